// Package routes shows on a real control plane, with real nginx where that is
// installed, that no request reaches a sandbox's address after somebody else may
// have it.
package routes
