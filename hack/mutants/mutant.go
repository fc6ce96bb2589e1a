package main

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/freshbind/freshbind/internal/freshness"
)

// mutant is one check, broken.
type mutant struct {
	// check is the reason of the denial that depends on it, or says in words
	// what does.
	check string
	// file is the path from the repository's root.
	file string
	// old is in the file exactly once, whatever white space separates its words,
	// and is replaced by broken.
	old, broken string
	// pkg is the folder of the test; "" for that of file.
	pkg string
	// test is TestX or TestX/subtest, which has to fail.
	test string
}

// mutants returns all of them.
func mutants() []mutant {
	return slices.Concat(
		judging, asking, suspensions, planning, barePods, deletes, reasons, contents, recognising, kruiseGuard, extracting, rendering, reading, answering,
		installing, scoping, closing, returning, settling, staying, remembering, forming, connecting, auditing, scheduling, running, admitting,
		routing, repairing, keeping, leaving, printing, holding, making, joining, cordoning, givingBack, referring, decoding,
	)
}

// at completes mutants that are all in one file.
func at(file string, list []mutant) []mutant {
	for i := range list {
		list[i].file = file
	}
	return list
}

func (m mutant) folder() string {
	if m.pkg != "" {
		return m.pkg
	}
	return path.Dir(m.file)
}

// title names a mutant in messages.
func (m mutant) title() string { return fmt.Sprintf("%s (%s)", m.check, m.file) }

// find returns what has to be replaced by what.
func (m mutant) find(text string) (edit, error) {
	words := strings.Fields(m.old)
	if len(words) == 0 || slices.Equal(words, strings.Fields(m.broken)) {
		return edit{}, fmt.Errorf("mutant %s: it changes nothing", m.title())
	}
	for i := range words {
		words[i] = regexp.QuoteMeta(words[i])
	}
	found := regexp.MustCompile(strings.Join(words, `\s+`)).FindAllStringIndex(text, -1)
	if len(found) != 1 {
		return edit{}, fmt.Errorf("mutant %s: its text is there %d times and must be there once: %q", m.title(), len(found), m.old)
	}
	return edit{found[0][0], found[0][1], m.broken}, nil
}

// apply returns the file's text with the check broken.
func (m mutant) apply(text string) (string, error) {
	at, err := m.find(text)
	if err != nil {
		return "", err
	}
	return replace(text, 0, []edit{at}), nil
}

// read returns the broken file.
func (m mutant) read(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", fmt.Errorf("mutant %s: %w", m.title(), err)
	}
	return m.apply(string(text))
}

// check reports every mutant that does not apply, and every reason of a denial
// that no mutant is for.
func check(root string, all []mutant) error {
	var errs []error
	for _, m := range all {
		if _, err := m.read(root); err != nil {
			errs = append(errs, err)
		}
	}
	for _, reason := range freshness.Reasons() {
		covers := func(m mutant) bool { return m.check == string(reason) }
		if reason != freshness.Fresh && !slices.ContainsFunc(all, covers) {
			errs = append(errs, fmt.Errorf("no mutant is for the reason %s: add one to hack/mutants", reason))
		}
	}
	return errors.Join(errs...)
}
