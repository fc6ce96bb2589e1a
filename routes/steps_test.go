//go:build !race

package routes_test

const defaultSteps = "1000000"
