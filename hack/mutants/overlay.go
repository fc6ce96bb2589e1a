package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
)

// overlay is the file that tells the compiler what to read in place of other files.
func (t *trial) overlay(name string) string { return filepath.Join(t.dir, name+".json") }

// combined is the overlay with all mutants that can be chosen.
func (t *trial) combined() string { return t.overlay("combined") }

// prepare writes the mutants and their overlays, all of them from the files as
// they are now.
func (t *trial) prepare(ctx context.Context, all []mutant) error {
	t.broken = map[int]string{}
	for {
		if err := t.combine(all); err != nil {
			return err
		}
		wrong, err := t.compile(ctx)
		if err != nil || len(wrong) == 0 {
			return err
		}
		maps.Copy(t.broken, wrong)
	}
}

// combine writes the overlay of all mutants that compile, and one for each that is in
// no function.
func (t *trial) combine(all []mutant) error {
	files := map[string]map[int]mutant{}
	for i, m := range all {
		if files[m.file] == nil {
			files[m.file] = map[int]mutant{}
		}
		if _, wrong := t.broken[i]; !wrong {
			files[m.file][i] = m
		}
	}
	t.schemas = map[string]schema{}
	combined := map[string]string{}
	for file, mutants := range files {
		text, err := os.ReadFile(filepath.Join(t.root, file))
		if err != nil {
			return fmt.Errorf("read what to break: %w", err)
		}
		s, err := newSchema(string(text), mutants)
		if err != nil {
			return fmt.Errorf("break %s: %w", file, err)
		}
		t.schemas[file] = s
		combined[file], combined[path.Join(path.Dir(file), "zz_chosen.go")] = s.text, chosenFile(s.pkg)
		for i, m := range mutants {
			if slices.Contains(s.has, i) {
				continue
			}
			broken, err := m.apply(string(text))
			if err != nil {
				return err
			}
			if err := t.write(strconv.Itoa(i), map[string]string{file: broken}); err != nil {
				return err
			}
		}
	}
	return t.write("combined", combined)
}

// write writes an overlay, and the texts of files in it.
func (t *trial) write(name string, texts map[string]string) error {
	replaced := map[string]string{}
	var errs []error
	for file, text := range texts {
		at := filepath.Join(t.dir, name, filepath.FromSlash(file))
		replaced[filepath.Join(t.root, filepath.FromSlash(file))] = at
		errs = append(errs, os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600))
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err := errors.Join(append(errs, err, os.WriteFile(t.overlay(name), list, 0o600))...); err != nil {
		return fmt.Errorf("write mutants: %w", err)
	}
	return nil
}

// inCopy is what the compiler says of a broken copy.
var inCopy = regexp.MustCompile(`(?m)^.*\b` + lineOf + `(\d+):(\d+:.*)$`)

// compile compiles the packages with mutants. It returns those that do not compile, and
// why; the error is of what is no mutant's fault.
func (t *trial) compile(ctx context.Context) (map[int]string, error) {
	args := []string{"build", "-gcflags=-e", "-overlay=" + t.combined()}
	folders := map[string]bool{}
	for file := range t.schemas {
		folders["./"+path.Dir(file)] = true
	}
	cmd := exec.CommandContext(ctx, "go", append(args, slices.Sorted(maps.Keys(folders))...)...)
	cmd.Dir = t.root
	out, err := cmd.CombinedOutput()
	if err == nil {
		return nil, nil
	}
	wrong := map[int]string{}
	for _, match := range inCopy.FindAllSubmatch(out, -1) {
		i, err := strconv.Atoi(string(match[1]))
		if err != nil {
			return nil, fmt.Errorf("read the compiler's errors: %w", err)
		}
		if wrong[i] == "" {
			wrong[i] = string(match[2])
		}
	}
	if len(wrong) == 0 {
		return nil, fmt.Errorf("compile the packages with mutants: %w\n%s", err, tail(string(out)))
	}
	return wrong, nil
}
