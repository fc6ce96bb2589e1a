package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

const (
	// parallel is how many tests are built and run at once: linking takes
	// memory.
	parallel = 2
	// shownOutput is how much of a test's output is shown, in bytes.
	shownOutput = 1500
)

// trial runs tests with and without mutants.
type trial struct {
	root, dir string
}

// unmutated runs the tests of all mutants on the code as it is, once per
// package. The error names those that do not pass.
func (t *trial) unmutated(ctx context.Context, all []mutant) error {
	tests := map[string][]string{}
	for _, m := range all {
		tests[m.folder()] = append(tests[m.folder()], m.test)
	}
	errs := make(chan error, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for folder, names := range tests {
		group.Go(func() error {
			// All of a package's tests at once, which may take long and must not fail.
			o, err := goTest(ctx, t.root, folder, functions(names), "-timeout=20m")
			if err != nil {
				return err
			}
			for _, name := range distinct(names) {
				if how := o.of[printed(name)]; how != "pass" {
					errs <- fmt.Errorf("without a mutant, %s %s has to pass, and does not (%q): %s", folder, name, how, tail(o.output))
				}
			}
			return nil
		})
	}
	err := group.Wait()
	close(errs)
	for each := range errs {
		err = errors.Join(err, each)
	}
	return err
}

func distinct(names []string) []string {
	names = slices.Clone(names)
	slices.Sort(names)
	return slices.Compact(names)
}

// functions is a pattern for all functions of the tests.
func functions(tests []string) string {
	var names []string
	for _, test := range tests {
		names = append(names, topLevel(test))
	}
	return "^(" + strings.Join(distinct(names), "|") + ")$"
}

// fate is what became of a mutant; "" when its test failed, as it has to.
type fate string

// mutated tries each mutant and prints a table, in the mutants' order.
func (t *trial) mutated(ctx context.Context, all []mutant, out io.Writer) (killed int, err error) {
	fates := make([]chan fate, len(all))
	for i := range all {
		fates[i] = make(chan fate, 1)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel + 1)
	group.Go(func() error {
		for i, m := range all {
			select {
			case f := <-fates[i]:
				if f == "" {
					killed++
				}
				_, _ = fmt.Fprint(out, row(m, f))
			case <-ctx.Done():
				return nil
			}
		}
		return nil
	})
	for i, m := range all {
		group.Go(func() error {
			f, err := t.try(ctx, i, m)
			if err == nil {
				fates[i] <- f
			}
			return err
		})
	}
	err = group.Wait()
	return killed, err
}

// row is a line of the table, and more where something is wrong.
func row(m mutant, f fate) string {
	line := fmt.Sprintf("%-46s  %s %s\n", m.check, m.folder(), printed(m.test))
	if f != "" {
		line += fmt.Sprintf("  NOT KILLED: %s\n  %s: %q -> %q\n", f, m.file, m.old, m.broken)
	}
	return line
}

func (t *trial) try(ctx context.Context, i int, m mutant) (fate, error) {
	o, err := goTest(ctx, t.root, m.folder(), pattern(m.test), "-overlay="+t.overlay(i))
	if err != nil {
		return "", err
	}
	return judge(m.test, o), nil
}

// judge says what became of a mutant, by how its test ended.
func judge(test string, o outcomes) fate {
	switch how := o.of[printed(test)]; {
	case how == "fail", how == unended:
		return ""
	case how != "":
		return fate("the test ends with " + how)
	case len(o.of) == 0:
		return fate("no test ran; does it compile?\n" + tail(o.output))
	default:
		return "there is no such test"
	}
}

// overlay is the file that tells the compiler of a mutant.
func (t *trial) overlay(i int) string { return filepath.Join(t.dir, fmt.Sprintf("%d.json", i)) }

// prepare writes the mutants and their overlays, all of them from the files as
// they are now.
func (t *trial) prepare(all []mutant) error {
	for i, m := range all {
		text, err := m.read(t.root)
		if err != nil {
			return err
		}
		broken := filepath.Join(t.dir, fmt.Sprintf("%d.go", i))
		overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(t.root, m.file): broken}})
		if err != nil {
			return fmt.Errorf("write overlay: %w", err)
		}
		if err := errors.Join(os.WriteFile(broken, []byte(text), 0o600), os.WriteFile(t.overlay(i), overlay, 0o600)); err != nil {
			return fmt.Errorf("write mutant: %w", err)
		}
	}
	return nil
}

// tail is the end of what a test printed.
func tail(output string) string {
	output = strings.TrimSpace(output)
	if len(output) > shownOutput {
		output = "..." + output[len(output)-shownOutput:]
	}
	return output
}
