package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// unended is how a test ended that did not: it hung, or took the process with it.
const unended = "run"

// outcomes is how each test ended, by its name as Go prints it: pass, fail, skip
// or unended. It is empty when nothing ran, as when the code does not compile.
type outcomes struct {
	of map[string]string
	// output is what was printed, for people.
	output string
}

// testEvent is one line of go test -json (cmd/test2json).
type testEvent struct {
	Action, Test, Output string
}

// goTest runs tests of one folder. It is an error only when go test could not
// be run.
func goTest(ctx context.Context, root, folder, pattern string, args ...string) (outcomes, error) {
	// Without debug information a test links in half the time.
	args = append([]string{"test", "-json", "-count=1", "-vet=off", "-timeout=3m", "-ldflags=-s -w", "-run=" + pattern}, args...)
	cmd := exec.CommandContext(ctx, "go", append(args, ".")...)
	// It may be in a module of its own.
	cmd.Dir = filepath.Join(root, folder)
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && (!errors.As(err, &failed) || ctx.Err() != nil) {
		return outcomes{}, fmt.Errorf("run go test in %s: %w", folder, errors.Join(err, ctx.Err()))
	}
	return parseOutcomes(out), nil
}

// parseOutcomes reads the events. Lines that are none are kept as output.
func parseOutcomes(out []byte) outcomes {
	o := outcomes{of: map[string]string{}}
	var text strings.Builder
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, len(out)+1)
	for lines.Scan() {
		var e testEvent
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			text.Write(append(lines.Bytes(), '\n'))
			continue
		}
		text.WriteString(e.Output)
		switch e.Action {
		case unended, "pass", "fail", "skip":
			if e.Test != "" {
				o.of[e.Test] = e.Action
			}
		}
	}
	o.output = text.String()
	return o
}

// printed is a test's name as Go prints it.
func printed(test string) string { return strings.ReplaceAll(test, " ", "_") }

// pattern matches that one test, and its subtests.
func pattern(test string) string {
	parts := strings.Split(printed(test), "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// topLevel is the function of a test.
func topLevel(test string) string {
	name, _, _ := strings.Cut(test, "/")
	return name
}
