//go:build race

package routes_test

// defaultSteps are fewer with the race detector, which makes each ten times as
// slow. The histories are of one goroutine: it has nothing to find there.
const defaultSteps = "50000"
