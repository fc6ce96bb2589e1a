//go:build race

package integration

// raceEnabled: Freshbind is built with the race detector where this test is.
const raceEnabled = true
