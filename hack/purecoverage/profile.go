package main

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"
)

// module is what the names of files in a profile begin with.
const module = "github.com/freshbind/freshbind/"

// coverage is which statements of a package ran.
type coverage struct {
	ran, all int
	// left are the places of those that did not: file:line.
	left []place
}

type place struct {
	file       string
	line, many int
}

func (c *coverage) percent() float64 { return 100 * float64(c.ran) / float64(c.all) }

// read reads a profile as go test writes it: FILE:LINE.COLUMN,LINE.COLUMN STATEMENTS COUNT.
func read(profile string) (map[string]*coverage, error) {
	covered := map[string]*coverage{}
	for line := range strings.Lines(profile) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "mode:") {
			continue
		}
		at, many, ran, err := parse(line)
		if err != nil {
			return nil, fmt.Errorf("read which statements ran: %q: %w", line, err)
		}
		folder := path.Dir(at.file)
		c := covered[folder]
		if c == nil {
			c = &coverage{}
			covered[folder] = c
		}
		c.all += many
		switch {
		case ran:
			c.ran += many
		case many > 0:
			c.left = append(c.left, at)
		}
	}
	return covered, nil
}

func parse(line string) (at place, many int, ran bool, err error) {
	fields := strings.Fields(line)
	if len(fields) != 3 {
		return place{}, 0, false, errors.New("want a place and two numbers")
	}
	file, span, _ := strings.Cut(fields[0], ":")
	from, _, _ := strings.Cut(span, ".")
	number, err := strconv.Atoi(from)
	many, err2 := strconv.Atoi(fields[1])
	if err := errors.Join(err, err2); err != nil {
		return place{}, 0, false, err
	}
	return place{strings.TrimPrefix(file, module), number, many}, many, fields[2] != "0", nil
}

// report prints how much of each package ran. The error names those of which too little
// did.
func report(out io.Writer, packages []string, covered map[string]*coverage) error {
	var errs []error
	for _, p := range packages {
		c := covered[p]
		if c == nil || c.all == 0 {
			errs = append(errs, fmt.Errorf("%s: it has no statements, or no tests", p))
			continue
		}
		if _, err := fmt.Fprintf(out, "%-24s %5.1f%% of %d statements\n", p, c.percent(), c.all); err != nil {
			return fmt.Errorf("print: %w", err)
		}
		if c.percent() < least {
			errs = append(errs, fmt.Errorf("%s: its tests run %.1f%% of its statements, want %d%%; they leave out\n%s", p, c.percent(), least, c.places()))
		}
	}
	return errors.Join(errs...)
}

// places are where statements are that did not run, one line each.
func (c *coverage) places() string {
	sorted := slices.Clone(c.left)
	slices.SortFunc(sorted, func(a, b place) int {
		if a.file != b.file {
			return strings.Compare(a.file, b.file)
		}
		return a.line - b.line
	})
	var lines []string
	for _, at := range sorted {
		lines = append(lines, fmt.Sprintf("  %s:%d: %d", at.file, at.line, at.many))
	}
	return strings.Join(lines, "\n")
}
