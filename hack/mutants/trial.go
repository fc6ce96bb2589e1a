package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

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
	// schemas are the files with mutants, by their paths from the root.
	schemas map[string]schema
	// broken are mutants that do not compile, and the compiler's message.
	broken map[int]string
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

// problem is why a mutant was not killed; "" when its test failed, as it has to.
type problem string

// mutated tries each mutant and prints a table, in the mutants' order.
func (t *trial) mutated(ctx context.Context, all []mutant, out io.Writer) (killed int, err error) {
	problems := make([]chan problem, len(all))
	folders := map[string][]int{}
	for i, m := range all {
		problems[i] = make(chan problem, 1)
		folders[m.folder()] = append(folders[m.folder()], i)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel + 1)
	group.Go(func() error {
		for i, m := range all {
			select {
			case why := <-problems[i]:
				if why == "" {
					killed++
				}
				_, _ = fmt.Fprint(out, row(m, why))
			case <-ctx.Done():
				return nil
			}
		}
		return nil
	})
	// The largest first, so that none is left alone at the end.
	names := slices.SortedFunc(maps.Keys(folders), func(a, b string) int {
		return cmp.Or(len(folders[b])-len(folders[a]), strings.Compare(a, b))
	})
	for _, folder := range names {
		group.Go(func() error { return t.folder(ctx, folder, folders[folder], all, problems) })
	}
	err = group.Wait()
	return killed, err
}

// folder tries the mutants whose tests are in one folder.
func (t *trial) folder(ctx context.Context, folder string, numbers []int, all []mutant, problems []chan problem) error {
	p, err := t.build(ctx, folder, t.combined())
	if err != nil {
		return err
	}
	defer p.remove()
	var tests []string
	for _, i := range numbers {
		tests = append(tests, all[i].test)
	}
	// All of a package's tests at once, which may take long.
	begun := time.Now()
	unmutated, err := p.run(ctx, functions(tests), "", 20*time.Minute)
	if err != nil {
		return err
	}
	within := timeoutFor(time.Since(begun))
	for _, i := range numbers {
		why := passes(all[i].test, unmutated)
		if why == "" {
			if why, err = t.try(ctx, p, i, all[i], within); err != nil {
				return err
			}
		}
		problems[i] <- why
	}
	return nil
}

// row is a line of the table, and more where something is wrong.
func row(m mutant, why problem) string {
	line := fmt.Sprintf("%-46s  %s %s\n", m.check, m.folder(), printed(m.test))
	if why != "" {
		line += fmt.Sprintf("  NOT KILLED: %s\n  %s: %q -> %q\n", why, m.file, m.old, m.broken)
	}
	return line
}

// timeoutFor is how long a test may take with a mutant before it counts as hung: far longer
// than all of its package's do without one.
func timeoutFor(took time.Duration) time.Duration { return max(30*time.Second, 20*took) }

func (t *trial) try(ctx context.Context, p *program, i int, m mutant, within time.Duration) (problem, error) {
	if message, ok := t.broken[i]; ok {
		return problem("it does not compile: " + message), nil
	}
	number := strconv.Itoa(i)
	if !slices.Contains(t.schemas[m.file].has, i) {
		alone, err := t.build(ctx, m.folder(), t.overlay(number))
		if err != nil {
			return problem(err.Error()), ctx.Err()
		}
		defer alone.remove()
		p = alone
	}
	o, err := p.run(ctx, pattern(m.test), number, within)
	if err != nil {
		return "", err
	}
	return judge(m.test, o), nil
}

// passes says what is wrong with a test, by how it ends without a mutant.
func passes(test string, o outcomes) problem {
	switch how := o.of[printed(test)]; how {
	case "pass":
		return ""
	case "":
		return "there is no such test"
	default:
		return problem("without a mutant the test ends with " + how + ":\n" + tail(o.output))
	}
}

// judge says what became of a mutant, by how its test ended.
func judge(test string, o outcomes) problem {
	switch how := o.of[printed(test)]; {
	case how == "fail", how == unended:
		return ""
	case how != "":
		return problem("the test ends with " + how)
	case len(o.of) == 0:
		return problem("no test ran:\n" + tail(o.output))
	default:
		return "there is no such test"
	}
}

// tail is the end of what a test printed.
func tail(output string) string {
	output = strings.TrimSpace(output)
	if len(output) > shownOutput {
		output = "..." + output[len(output)-shownOutput:]
	}
	return output
}
