// Package freshness decides whether a claim may get a sandbox. [Judge] is a
// pure function from a [Snapshot] (plain values read by somebody else) to a
// [Verdict]: no client, no clock, no I/O, so that every rule stands in one
// place and is tested as a table.
//
// An error never comes out of this package. Whoever takes the snapshot and
// cannot finish it has not decided, and must not treat that as a denial.
package freshness
