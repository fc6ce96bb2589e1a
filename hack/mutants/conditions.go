package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/freshbind/freshbind/test/controlplane"
)

// envConditions names the variable that chooses among conditions.
const envConditions = "CONDITIONS"

// tally is what became of the conditions.
type tally struct{ noticed, explained, unexplained int }

// forceAll forces each condition of packages, and prints those that no test notices and
// no explanation names.
func forceAll(ctx context.Context, packages []string, only string, out io.Writer) (sum tally, err error) {
	chosen, err := regexp.Compile(only)
	if err != nil {
		return sum, fmt.Errorf("%s: %q is no regular expression: %w", envConditions, only, err)
	}
	reasons, err := parseExplained(explainedText)
	if err != nil {
		return sum, err
	}
	root, err := controlplane.RepositoryDir()
	if err != nil {
		return sum, err
	}
	dir, err := os.MkdirTemp("", "freshbind-conditions-")
	if err != nil {
		return sum, fmt.Errorf("make folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	t := &trial{root: root, dir: dir}
	files, err := listPackages(ctx, root, packages)
	if err != nil {
		return sum, err
	}
	for _, p := range files {
		err = errors.Join(err, t.forcePackage(ctx, p, chosen, reasons, &sum, out))
		if ctx.Err() != nil {
			return sum, err
		}
	}
	return sum, err
}

// listed is a package as go list tells it.
type listed struct {
	Dir     string
	GoFiles []string
}

func listPackages(ctx context.Context, root string, patterns []string) ([]listed, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list", "-json=Dir,GoFiles"}, patterns...)...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list packages %v: %w", patterns, err)
	}
	var all []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); d.More(); {
		var p listed
		if err := d.Decode(&p); err != nil {
			return nil, fmt.Errorf("read the list of packages: %w", err)
		}
		if p.Dir, err = filepath.Rel(root, p.Dir); err != nil {
			return nil, fmt.Errorf("list packages: %w", err)
		}
		p.Dir = filepath.ToSlash(p.Dir)
		all = append(all, p)
	}
	return all, nil
}

// result is what became of one variant.
type result struct{ noticed, unreached bool }

func (t *trial) forcePackage(ctx context.Context, p listed, chosen *regexp.Regexp, reasons map[string]string, sum *tally, out io.Writer) error {
	f, err := t.force(ctx, p.Dir, p.GoFiles)
	if err != nil {
		return err
	}
	if f.program == nil {
		return unnamed(p.Dir, nil, reasons)
	}
	defer f.remove()
	all := variants(f.all)
	tried := slices.DeleteFunc(slices.Clone(all), func(v forced) bool {
		return !chosen.MatchString(f.all[v.condition].name(v.to))
	})
	if err := f.try(ctx, tried, func(v forced, is result) {
		sum.count(f.all[v.condition].name(v.to), is, reasons, out)
	}); err != nil {
		return err
	}
	return unnamed(p.Dir, f.nameAll(all), reasons)
}

// try forces each, and reports in their order what became of them, as soon as it is known.
func (f *forcing) try(ctx context.Context, all []forced, report func(forced, result)) error {
	results := make([]*result, len(all))
	var reported int
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, v := range all {
		group.Go(func() error {
			noticed, unreached, err := f.noticed(ctx, v)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			for results[i] = (&result{noticed, unreached}); reported < len(all) && results[reported] != nil; reported++ {
				report(all[reported], *results[reported])
			}
			return nil
		})
	}
	return group.Wait()
}

func (f *forcing) nameAll(all []forced) map[string]bool {
	names := map[string]bool{}
	for _, v := range all {
		names[f.all[v.condition].name(v.to)] = true
	}
	return names
}

// count counts a variant, and prints what nobody explains.
func (s *tally) count(name string, is result, reasons map[string]string, out io.Writer) {
	switch {
	case is.noticed:
		s.noticed++
		if reasons[name] != "" {
			_, _ = fmt.Fprintf(out, "explained, and noticed all the same: %s\n", name)
		}
	case reasons[name] != "":
		s.explained++
	case is.unreached:
		s.unexplained++
		_, _ = fmt.Fprintf(out, "NOT TESTED: %s\n", name)
	default:
		s.unexplained++
		_, _ = fmt.Fprintf(out, "NOT NOTICED: %s\n", name)
	}
}

// explainedText has a line for each forced condition that no test can notice, or need
// not: its name, " # " and why.
//
//go:embed explained.txt
var explainedText string

func parseExplained(text string) (map[string]string, error) {
	reasons := map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, ok := strings.Cut(line, " # ")
		if !ok || reason == "" {
			return nil, fmt.Errorf("explained.txt: %q has no reason after a \" # \"", line)
		}
		if reasons[name] != "" {
			return nil, fmt.Errorf("explained.txt: %q is there twice", name)
		}
		reasons[name] = reason
	}
	return reasons, nil
}

// unnamed is an error where an explanation is of a folder and names no condition there.
func unnamed(folder string, names map[string]bool, reasons map[string]string) error {
	var errs []error
	for name := range reasons {
		file, _, _ := strings.Cut(name, ":")
		if path.Dir(file) == folder && !names[name] {
			errs = append(errs, fmt.Errorf("explained.txt: there is no condition %q", name))
		}
	}
	return errors.Join(errs...)
}
