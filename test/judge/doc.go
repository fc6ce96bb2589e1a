// Package judge holds what keeps the auditor abreast of the guard. They share no code, so nothing but a test tells when one
// knows a rule that the other does not.
package judge
