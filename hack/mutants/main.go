// Command mutants shows that the tests notice when a check is missing. It
// breaks one check after another, never in the files themselves but in an
// overlay that the compiler is given, and runs the one test that has to fail
// then. It prints which test that is for each check, and exits with 0 only when
// every such test passes on the code as it is and fails on the broken one.
//
// A mutant whose text is not in its file exactly once is an error: the code has
// moved on, and the mutant has to follow.
//
// Environment:
//
//	MUTANTS=regexp       only mutants whose check or file matches
//	MUTANTS_SAMPLE=text  a part of them that takes about two minutes; over many texts, all
//
// With packages as arguments it forces each condition in them to true and to false
// instead, one at a time, and runs the package's tests that reach it. It prints what no
// test notices, and exits with 0 only when explained.txt says why for each.
//
//	CONDITIONS=regexp  only conditions whose file, function or text matches
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"syscall"

	"github.com/freshbind/freshbind/test/controlplane"
)

// envOnly names the variable that chooses among the mutants.
const envOnly = "MUTANTS"

func main() { os.Exit(try()) }

func try() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if packages := os.Args[1:]; len(packages) > 0 {
		return tryConditions(ctx, packages)
	}
	killed, all, err := run(ctx, os.Getenv(envOnly), os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	fmt.Printf("mutants: killed=%d of %d\n", killed, all)
	if err != nil || killed < all {
		return 1
	}
	return 0
}

func tryConditions(ctx context.Context, packages []string) int {
	sum, err := forceAll(ctx, packages, os.Getenv(envConditions), os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conditions:", err)
	}
	fmt.Printf("conditions: noticed=%d explained=%d unexplained=%d\n", sum.noticed, sum.explained, sum.unexplained)
	if err != nil || sum.unexplained > 0 {
		return 1
	}
	return 0
}

// run tries the mutants that match, and returns how many were killed of how
// many. An error means that they could not be tried, or that a test fails
// without them.
func run(ctx context.Context, only string, out io.Writer) (killed, all int, err error) {
	root, err := controlplane.RepositoryDir()
	if err != nil {
		return 0, 0, err
	}
	if err := check(root, mutants()); err != nil {
		return 0, len(mutants()), err
	}
	chosen, err := choose(mutants(), only)
	if err != nil {
		return 0, len(mutants()), fmt.Errorf("%s: %w", envOnly, err)
	}
	if text, ok := os.LookupEnv(envSample); ok {
		var part string
		if chosen, part, err = sample(chosen, text); err != nil {
			return 0, len(mutants()), fmt.Errorf("%s: %w", envSample, err)
		}
		_, _ = fmt.Fprintf(out, "mutants: %s\n", part)
	}
	dir, err := os.MkdirTemp("", "freshbind-mutants-")
	if err != nil {
		return 0, len(chosen), fmt.Errorf("make folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	t := &trial{root: root, dir: dir}
	if err := t.prepare(ctx, chosen); err != nil {
		return 0, len(chosen), err
	}
	killed, err = t.mutated(ctx, chosen, out)
	return killed, len(chosen), err
}

// choose returns the mutants that match. None is an error: it would look as if
// all were killed.
func choose(all []mutant, only string) ([]mutant, error) {
	pattern, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("%q is no regular expression: %w", only, err)
	}
	chosen := slices.DeleteFunc(slices.Clone(all), func(m mutant) bool {
		return !pattern.MatchString(m.check) && !pattern.MatchString(m.file)
	})
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%q matches no mutant's check or file", only)
	}
	return chosen, nil
}
