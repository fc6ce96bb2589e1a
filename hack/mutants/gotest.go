package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/freshbind/freshbind/test/testevents"
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

// program is the tests of one folder, built.
type program struct{ binary, dir string }

// build builds the tests of a folder with an overlay.
func (t *trial) build(ctx context.Context, folder, overlay string) (*program, error) {
	dir, err := os.MkdirTemp(t.dir, "build-")
	if err != nil {
		return nil, fmt.Errorf("make folder: %w", err)
	}
	p := &program{filepath.Join(dir, "tests"), filepath.Join(t.root, folder)}
	// Without debug information tests link in half the time.
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay="+overlay, "-o="+p.binary, ".")
	// It may be in a module of its own.
	cmd.Dir = p.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		p.remove()
		return nil, fmt.Errorf("build the tests in %s: %w\n%s", folder, err, tail(string(out)))
	}
	return p, nil
}

// remove frees what was built: a program takes up to a hundred megabytes.
func (p *program) remove() { _ = os.RemoveAll(filepath.Dir(p.binary)) }

// run runs tests with one mutant chosen, "" for none. It is an error only when they
// could not be run.
func (p *program) run(ctx context.Context, pattern, chosen string, timeout time.Duration) (outcomes, error) {
	cmd := exec.CommandContext(ctx, "go", "tool", "test2json", p.binary, "-test.v=test2json", "-test.timeout="+timeout.String(), "-test.run="+pattern)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), chosenVariable+"="+chosen)
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && (!errors.As(err, &failed) || ctx.Err() != nil) {
		return outcomes{}, fmt.Errorf("run tests in %s: %w", p.dir, errors.Join(err, ctx.Err()))
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
		var e testevents.Event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			text.Write(append(lines.Bytes(), '\n'))
			continue
		}
		text.WriteString(e.Output)
		if e.Test != "" && (e.Action == unended || e.Ended()) {
			o.of[e.Test] = e.Action
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
