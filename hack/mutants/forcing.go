package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// quickTests is how many of the quickest tests are tried first.
	quickTests = 5
	// memoryKiB is how much address space a broken program may take.
	memoryKiB = 6 << 20
)

// forcing are the conditions of one package, and its tests built so that each can be
// forced.
type forcing struct {
	all   []condition
	tests []seenTest
	*program
}

// seenTest is a test, how long it takes, and the values that conditions had in it.
type seenTest struct {
	name string
	took time.Duration
	seen map[forced]bool
}

// force finds the conditions in a folder's files and builds its tests.
func (t *trial) force(ctx context.Context, folder string, files []string) (*forcing, error) {
	f := &forcing{}
	texts := map[string]string{}
	pkg := ""
	for _, name := range files {
		file := path.Join(folder, name)
		text, err := os.ReadFile(filepath.Join(t.root, file))
		if err != nil {
			return nil, fmt.Errorf("read what to break: %w", err)
		}
		found, forcible, of, err := conditions(file, string(text), len(f.all))
		if err != nil {
			return nil, err
		}
		f.all, texts[file], pkg = append(f.all, found...), forcible, of
	}
	if len(f.all) == 0 {
		return f, nil
	}
	texts[path.Join(folder, "zz_forcing.go")] = forcingFile(pkg, len(f.all))
	name := "forcing-" + strings.ReplaceAll(folder, "/", "-")
	if err := t.write(name, texts); err != nil {
		return nil, err
	}
	var err error
	if f.program, err = t.build(ctx, folder, t.overlay(name)); err != nil {
		return nil, err
	}
	return f, f.watch(ctx)
}

// watch runs each test by itself and notes the values of conditions.
func (f *forcing) watch(ctx context.Context) error {
	out, err := f.command(ctx, "-test.list=^(Test|Fuzz|Example)").Output()
	if err != nil {
		return fmt.Errorf("list the tests in %s: %w", f.dir, err)
	}
	names := strings.Fields(string(out))
	f.tests = make([]seenTest, len(names))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, name := range names {
		group.Go(func() (err error) {
			f.tests[i], err = f.watchOne(ctx, name, filepath.Join(filepath.Dir(f.binary), name))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	slices.SortStableFunc(f.tests, func(a, b seenTest) int { return cmp.Compare(a.took, b.took) })
	return nil
}

func (f *forcing) watchOne(ctx context.Context, name, notes string) (seenTest, error) {
	cmd := f.command(ctx, "-test.run=^"+name+"$")
	cmd.Env = append(os.Environ(), seenVariable+"="+notes)
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return seenTest{}, fmt.Errorf("%s in %s fails without a forced condition: %w\n%s", name, f.dir, err, tail(string(out)))
	}
	test := seenTest{name, time.Since(began), map[forced]bool{}}
	lines, err := os.ReadFile(notes)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return seenTest{}, fmt.Errorf("read the values of conditions: %w", err)
	}
	for line := range strings.Lines(string(lines)) {
		var is forced
		if _, err := fmt.Sscanf(line, "%d=%t", &is.condition, &is.to); err != nil {
			return seenTest{}, fmt.Errorf("read the value %q of a condition: %w", line, err)
		}
		test.seen[is] = true
	}
	return test, nil
}

// command runs the tests' program, with a bound of memory: a loop that does not end may
// take all there is.
func (f *forcing) command(ctx context.Context, args ...string) *exec.Cmd {
	limited := fmt.Sprintf(`ulimit -v %d; exec "$0" "$@"`, memoryKiB)
	cmd := exec.CommandContext(ctx, "sh", append([]string{"-c", limited, f.binary}, args...)...)
	cmd.Dir = f.dir
	return cmd
}

// noticed says whether a test fails when a condition is forced. Only tests in which the
// condition had the other value can; unreached is true where there is none.
func (f *forcing) noticed(ctx context.Context, v forced) (noticed, unreached bool, err error) {
	var can []seenTest
	for _, test := range f.tests {
		if test.seen[forced{v.condition, !v.to}] {
			can = append(can, test)
		}
	}
	if len(can) == 0 {
		return false, true, nil
	}
	quick := min(quickTests, len(can))
	for _, tests := range [][]seenTest{can[:quick], can[quick:]} {
		if len(tests) == 0 || noticed {
			break
		}
		if noticed, err = f.fails(ctx, v, tests); err != nil {
			return false, false, err
		}
	}
	return noticed, false, nil
}

func (f *forcing) fails(ctx context.Context, v forced, tests []seenTest) (bool, error) {
	var names []string
	var took time.Duration
	for _, test := range tests {
		names = append(names, test.name)
		took += test.took
	}
	// A program that hangs has noticed, too; a slow machine has not.
	timeout := 30*time.Second + 10*took
	cmd := f.command(ctx, "-test.failfast", "-test.timeout="+timeout.String(), "-test.run="+functions(names))
	cmd.Env = append(os.Environ(), forcedVariable+"="+v.String())
	err := cmd.Run()
	var failed *exec.ExitError
	if err != nil && (!errors.As(err, &failed) || ctx.Err() != nil) {
		return false, fmt.Errorf("run tests in %s: %w", f.dir, errors.Join(err, ctx.Err()))
	}
	return err != nil, nil
}
