package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/freshbind/freshbind/hack/markdown"
	"github.com/freshbind/freshbind/test/controlplane"
)

// page is where the tables go, from the repository's root.
const page = "docs/benchmarks.md"

// setting is what a benchmark was run on.
type setting struct {
	day, commit, goVersion, kubernetes string
	cpus                               int
	// load is that of the machine in the minute before, "" where it does not tell.
	load string
	// chosen are the variables that were set.
	chosen []string
}

// findSetting has to be asked before anything is started, for the load.
func findSetting(ctx context.Context) (setting, error) {
	s := setting{day: time.Now().UTC().Format(time.DateOnly), goVersion: runtime.Version(), cpus: runtime.NumCPU()}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		s.load, _, _ = strings.Cut(string(load), " ")
	}
	s.chosen = chosen()
	var err error
	if s.kubernetes, err = controlplane.PinnedKubernetes(ctx); err != nil {
		return setting{}, err
	}
	s.commit, err = commit(ctx)
	return s, err
}

// chosen are the variables that somebody set.
func chosen() []string {
	var set []string
	for _, name := range []string{envMembers, envPairs, envPools, envLag, envLate} {
		if value := os.Getenv(name); value != "" {
			set = append(set, name+"="+value)
		}
	}
	return set
}

// commit names the one that is checked out, and says so if anything but the page
// differs from it.
func commit(ctx context.Context) (string, error) {
	name, err := exec.CommandContext(ctx, "git", "describe", "--always").Output()
	if err != nil {
		return "", fmt.Errorf("ask git for the commit: %w", err)
	}
	changes, err := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ":/", ":(top,exclude)"+page).Output()
	if err != nil {
		return "", fmt.Errorf("ask git for changes: %w", err)
	}
	if len(changes) > 0 {
		return strings.TrimSpace(string(name)) + " with changes", nil
	}
	return strings.TrimSpace(string(name)), nil
}

// section is what the page says of one benchmark.
func (s setting) section(bench string, rows []row) string {
	command := strings.Join(append(s.chosen, "make bench BENCH="+bench), " ")
	load := ""
	if s.load != "" {
		load = ", load " + s.load + " before"
	}
	return fmt.Sprintf("`%s`, %s, commit %s: %d CPUs%s, %s, Kubernetes %s.\n\n%s",
		command, s.day, s.commit, s.cpus, load, s.goVersion, s.kubernetes, pageTable(rows))
}

// withSection puts the section of a benchmark into the page's text, between the two
// comments that name its place.
func withSection(text, place, section string) (string, error) {
	begin, end := "<!-- "+place+" -->\n", "<!-- end of "+place+" -->"
	before, rest, found := strings.Cut(text, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", fmt.Errorf("no place for %s: add the lines %q and %q", place, strings.TrimSpace(begin), end)
	}
	return before + begin + section + end + after, nil
}

// place names where the page has a benchmark. A run that chose something of its own
// says nothing of the defaults, and stands elsewhere: "ready BENCH_LAG=10s". More
// turns, or fewer, are the same benchmark.
func place(bench string, chosen []string) string {
	own := slices.DeleteFunc(slices.Clone(chosen), func(c string) bool { return strings.HasPrefix(c, envPairs+"=") })
	return strings.Join(append([]string{bench}, own...), " ")
}

// newPublisher returns what puts a table into the page, where that is asked for. It
// needs git only then, and misses a place before anything has run for minutes.
func newPublisher(ctx context.Context, bench string) (func([]row) error, error) {
	if os.Getenv(markdown.UpdateDocs) == "" {
		return func([]row) error { return nil }, nil
	}
	root, err := controlplane.RepositoryDir()
	if err != nil {
		return nil, err
	}
	path, at := filepath.Join(root, page), place(bench, chosen())
	if _, err := markdown.Changed(path, withIn(at, "")); err != nil {
		return nil, err
	}
	on, err := findSetting(ctx)
	if err != nil {
		return nil, err
	}
	return func(rows []row) error {
		return markdown.Change(path, withIn(at, on.section(bench, rows)))
	}, nil
}

// withIn puts a section in its place.
func withIn(place, section string) func(string) (string, error) {
	return func(text string) (string, error) { return withSection(text, place, section) }
}
