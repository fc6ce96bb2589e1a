// Package model explores every order in which the writes of a small cluster can
// happen, with the shipped [freshness.Judge] as its guard, and looks for one after
// which a claim has what it must not have.
//
// The cluster has one template with two revisions, one pool with three members, and
// two claims. Whoever writes may act on any version of an object that was ever stored:
// that is what an arbitrarily late cache shows, and what a second replica, a leader
// of before or a controller that comes back from a crash does. Admission reads
// everything at one moment, and its write is stored at any later one, with a second
// write in between, onto exactly the version that admission saw.
//
// A person with an editor interferes once in each history: takes the pool away,
// exchanges a Pod, puts a used sandbox back, and so on (see [Interferences]).
//
// What must hold is written down in oracle.go, from the promises and not from the
// guard's rules. [Variants] are the same cluster with one safeguard less; for each of
// them [Variant.Explore] finds a shortest history that breaks a promise, and the tests
// in test/integration play it on a real API server with all safeguards.
package model
