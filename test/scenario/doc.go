// Package scenario plays what users do to a warm-pool system, for the demo and
// for tests: namespaces, templates that change in place, pools, bursts of
// claims, and a probe for members that nobody is ever given. Everything goes
// through the API server as a user's requests do, and every function returns
// an error that says what was waited for and how far it got.
package scenario
