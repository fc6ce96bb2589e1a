package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// accepted are the licenses, by their SPDX names, that may be shipped under Apache-2.0:
// they ask for nothing but to be named.
var accepted = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// recognised is how much of a file, in percent of its words, has to be the text of
// licenses. The rest is names.
const recognised = 90

// read are the SHA-256 sums of files that say more, and that somebody has read.
var read = []string{
	// go.yaml.in/yaml/v3: which of its files are under MIT, and which under Apache-2.0.
	"d18f6323b71b0b768bb5e9616e36da390fbd39369a81807cca352de4e4e6aa0b",
}

// licenses are those of a module, and of the folders in it that are shipped and have one
// of their own.
func (m module) licenses() ([]string, error) {
	own, err := licensesIn(m.dir)
	if err != nil {
		return nil, err
	}
	if len(own) == 0 {
		return nil, fmt.Errorf("%s has no file with a license", m.dir)
	}
	all := map[string]bool{}
	for _, dir := range m.folders() {
		found, err := licensesIn(dir)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			all[name] = true
		}
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// folders are those from the module's own to those of its packages.
func (m module) folders() []string {
	folders := map[string]bool{m.dir: true}
	for _, dir := range m.packages {
		for ; len(dir) > len(m.dir); dir = filepath.Dir(dir) {
			folders[dir] = true
		}
	}
	return slices.Sorted(maps.Keys(folders))
}

// licensesIn are those of the files of a folder. One that may not be shipped is an error.
func licensesIn(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("look for licenses: %w", err)
	}
	var names []string
	var errs []error
	for _, e := range entries {
		if e.IsDir() || !isLicense(e.Name()) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read license: %w", err)
		}
		found, err := recognise(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
		}
		names = append(names, found...)
	}
	return names, errors.Join(errs...)
}

var (
	// licenseFile begins with such a word, whatever follows: LICENSE.MIT, COPYING-BSD.
	licenseFile = regexp.MustCompile(`(?i)^(un)?licen[cs]es?\b|^(un)?licen[cs]e[_-]|^copying(\b|_)|^copyright(\b|_)`)
	// sourceFile may be about licenses, and is none.
	sourceFile = regexp.MustCompile(`(?i)\.(go|s|c|h|py|sh|js|ts|tmpl|proto)$`)
)

func isLicense(name string) bool {
	return licenseFile.MatchString(name) && !sourceFile.MatchString(name)
}

// recognise names the licenses that a text consists of.
func recognise(text []byte) ([]string, error) {
	coverage := licensecheck.Scan(text)
	var names, refused []string
	for _, match := range coverage.Match {
		switch {
		case slices.Contains(names, match.ID) || slices.Contains(refused, match.ID):
		case slices.Contains(accepted, match.ID):
			names = append(names, match.ID)
		default:
			refused = append(refused, match.ID)
		}
	}
	switch {
	case len(refused) > 0:
		return nil, fmt.Errorf("%s may not be shipped, which is %s", strings.Join(refused, ", "), strings.Join(accepted, ", "))
	case coverage.Percent < recognised && !slices.Contains(read, sum(text)):
		return nil, fmt.Errorf("%.0f%% of its words are of a license that is known, want %d%%: somebody has to read it, and add %s to hack/licenses/license.go",
			coverage.Percent, recognised, sum(text))
	}
	return names, nil
}

func sum(text []byte) string {
	of := sha256.Sum256(text)
	return hex.EncodeToString(of[:])
}
