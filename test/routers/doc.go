// Package routers runs the conformance kit on route tables of other projects. It
// is a module of its own: they bring along much that nothing shipped needs.
package routers
