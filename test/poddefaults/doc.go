// Package poddefaults has tests that ask the API server's own code what it makes of a Pod.
package poddefaults
