package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// Go ends a package's tests after ten minutes, which is about time and not about the tests:
// on a machine that is busy with something else a minute's tests take as long. For
// benchmarks and fuzzing it has no such limit.
func TestNothingIsTestedWithGosOwnTimeout(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^.*(\$\(GO\) test|gotestsum)([ \t].*)?$`).FindAllString(strings.ReplaceAll(string(makefile), "\\\n", ""), -1)
	if len(commands) < 2 {
		t.Fatalf("the Makefile is read as %q, want what tests on control planes and the others", commands)
	}
	for _, command := range commands {
		if !regexp.MustCompile(`-timeout|-bench|-fuzz`).MatchString(command) {
			t.Errorf("$(GO_TEST) has a timeout, and this has none:\n%s", command)
		}
	}
}
