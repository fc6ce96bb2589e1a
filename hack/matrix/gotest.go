package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/testevents"
)

// guardPackage has the tests of the guard, and of the policies.
const guardPackage = "integration"

// policies are what tests.txt marks of guardPackage besides guardTests.
const policies = "policies"

// guardTests are what names of tests of the guard begin with.
var guardTests = []string{"TestFaults", "TestWhatTheAPIServerAdds"}

// suiteArgs are arguments for go test: the tests that tests.txt marks.
func suiteArgs(ctx context.Context) ([]string, error) {
	root, err := controlplane.RepositoryDir()
	if err != nil {
		return nil, err
	}
	out, err := controlplane.Go(ctx, root, "run", "./test/suite", "matrix")
	return strings.Fields(out), err
}

// goTest runs tests and returns what came of them, by column. All
// that they wrote is kept in a file by that name when one fails, and it is an error
// when one runs on another Kubernetes.
func (o options) goTest(ctx context.Context, out io.Writer, name, kubernetes string, args []string) (map[string]outcome, error) {
	root, err := controlplane.RepositoryDir()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(os.TempDir(), "freshbind-matrix-"+name+".log"))
	if err != nil {
		return nil, fmt.Errorf("keep what tests write: %w", err)
	}
	defer func() { _ = log.Close() }()

	running, stop := context.WithCancel(ctx)
	defer stop()
	cmd := exec.CommandContext(running, "go", append([]string{"test", "-json", "-count=1", "-timeout=60m", "-p=1"}, args...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	// Tests take their control planes away when they are told to stop.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("read from go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("run go test: %w", err)
	}
	t := tally{}
	var events bytes.Buffer
	readErr := t.read(io.TeeReader(stdout, &events), out, log, kubernetes)
	if readErr != nil {
		stop()
	}
	waitErr := cmd.Wait()
	if err := errors.Join(readErr, ctx.Err()); err != nil {
		return nil, err
	}
	if err := keepResults(o.results, name, events.Bytes()); err != nil {
		return nil, err
	}
	outcomes := t.outcomes()
	// What the tests say counts; without a failed one, something else is wrong.
	var exit *exec.ExitError
	if waitErr != nil && (!errors.As(waitErr, &exit) || !failedAny(outcomes)) {
		return nil, fmt.Errorf("go test: %w; see %s", waitErr, log.Name())
	}
	if waitErr == nil {
		return outcomes, os.Remove(log.Name())
	}
	say(out, "  what the tests wrote is in %s", log.Name())
	return outcomes, nil
}

// keepResults puts what go test -json wrote into a folder, for make coverage. Only
// whole runs get there.
func keepResults(dir, name string, events []byte) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make folder of results: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "matrix-"+name+".json"), events, 0o644); err != nil {
		return fmt.Errorf("keep results: %w", err)
	}
	return nil
}

func failedAny(outcomes map[string]outcome) bool {
	for _, o := range outcomes {
		if o.failed > 0 {
			return true
		}
	}
	return false
}

// outcome is what came of a package's tests.
type outcome struct {
	passed, failed, skipped int
}

func (o outcome) String() string {
	if o == (outcome{}) {
		return "not run"
	}
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{o.failed, "FAILED"}, {o.passed, "passed"}, {o.skipped, "skipped"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	return strings.Join(parts, ", ")
}

// tally has the last action of each test, by column and test. A package by itself
// is the test "".
type tally map[string]map[string]string

// read takes the events of go test -json, reports them to people, and keeps all that
// was written in log. The tests have to run on that Kubernetes.
func (t tally) read(from io.Reader, out, log io.Writer, kubernetes string) error {
	output := map[string]string{}
	return testevents.Read(from, func(e testevents.Event) error {
		if e.Output != "" {
			if _, err := io.WriteString(log, e.Output); err != nil {
				return fmt.Errorf("keep what tests write: %w", err)
			}
			output[e.Package+" "+e.Test] += e.Output
		}
		if e.Action == "attr" && e.Key == controlplane.AttrKubernetes && e.Value != kubernetes {
			return fmt.Errorf("%s %s runs on Kubernetes %s", folder(e.Package), e.Test, e.Value)
		}
		if !e.Ended() {
			return nil
		}
		column := columnOf(e)
		if t[column] == nil {
			t[column] = map[string]string{}
		}
		t[column][e.Test] = e.Action
		t.report(out, e, output[e.Package+" "+e.Test])
		delete(output, e.Package+" "+e.Test)
		return nil
	})
}

// report reports a test that ended, with its output, or a package.
func (t tally) report(out io.Writer, e testevents.Event, output string) {
	pkg := folder(e.Package)
	switch {
	case e.Action == "fail" && output != "" || e.Action == "skip" && e.Test != "":
		say(out, "  %s %s %s\n%s", e.Action, pkg, e.Test, indented(output))
	case e.Test != "" && !strings.Contains(e.Test, "/"):
		say(out, "  %s %s %s", e.Action, pkg, e.Test)
	}
	if e.Test == "" {
		say(out, "  %s: %s, after %.0f s", pkg, t.outcomes()[pkg], e.Elapsed)
	}
}

// columnOf is where a test is counted: by the folder below test/, but for policies.
func columnOf(e testevents.Event) string {
	pkg := folder(e.Package)
	isGuards := slices.ContainsFunc(guardTests, func(prefix string) bool { return strings.HasPrefix(e.Test, prefix) })
	if pkg == guardPackage && e.Test != "" && !isGuards {
		return policies
	}
	return pkg
}

// folder is the last part of a package's path.
func folder(pkg string) string { return path.Base(pkg) }

// maxOutput is how much of a test's output people are shown; its end says why.
const maxOutput = 4000

func indented(text string) string {
	text = strings.TrimRight(text[max(0, len(text)-maxOutput):], "\n")
	return "      " + strings.ReplaceAll(text, "\n", "\n      ")
}

// outcomes counts tests that have no subtests. A package that failed without one of
// them, because it does not compile or because a program of it died, counts as one.
func (t tally) outcomes() map[string]outcome {
	all := map[string]outcome{}
	for pkg, tests := range t {
		var o outcome
		for test, action := range tests {
			if test == "" || t.hasSubtests(pkg, test) {
				continue
			}
			switch action {
			case "pass":
				o.passed++
			case "fail":
				o.failed++
			case "skip":
				o.skipped++
			}
		}
		if o.failed == 0 && slices.Contains(actions(tests), "fail") {
			o.failed++
		}
		all[pkg] = o
	}
	return all
}

func (t tally) hasSubtests(pkg, test string) bool {
	for other := range t[pkg] {
		if strings.HasPrefix(other, test+"/") {
			return true
		}
	}
	return false
}

func actions(tests map[string]string) []string {
	var all []string
	for _, action := range tests {
		all = append(all, action)
	}
	return all
}
