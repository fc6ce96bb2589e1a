//go:build race

package standin

// raceEnabled: Freshbind is built with the race detector as well.
const raceEnabled = true
