package main

import (
	"os"
	"regexp"
	"testing"
)

// Go ends a package's tests after ten minutes, which is about time and not about the tests:
// on a machine that is busy with something else a minute's tests take as long.
func TestNothingIsTestedWithGosOwnTimeout(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	if tests := regexp.MustCompile(`(?m)^.*\$\(GO_TEST\).*$`).FindAll(makefile, -1); len(tests) < 10 {
		t.Fatalf("the Makefile runs %d tests with a timeout of its own, want many:\n%s", len(tests), tests)
	}
	for _, line := range regexp.MustCompile(`(?m)^.*\$\(GO\) test .*$`).FindAll(makefile, -1) {
		if !regexp.MustCompile(`-timeout|-bench|-fuzz`).Match(line) {
			t.Errorf("$(GO_TEST) has a timeout, and this has none:\n%s", line)
		}
	}
}
