package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/freshbind/freshbind/hack/markdown"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	envChosen  = "MATRIX"
	envResults = "MATRIX_RESULTS"
	// releasePrefix tells agent-sandbox from Kubernetes, as in hack/tools.
	releasePrefix = "agent-sandbox@"
)

// kubernetesVersions are the newest of each minor version that is claimed, of those
// that are Go modules.
var kubernetesVersions = []string{
	"v1.30.14", "v1.31.14", "v1.32.13", "v1.33.13", "v1.34.4", "v1.35.4", "v1.36.3", "v1.37.2",
}

// options are what the environment says.
type options struct {
	chosen choice
	// results is a folder that keeps what tests said, for make coverage; "" keeps nothing.
	results string
	// updateDocs puts what came of it into docs/matrix.md.
	updateDocs bool
}

// parseOptions reads the environment, as os.Getenv does.
func parseOptions(getenv func(string) string) (options, error) {
	chosen, err := parseChosen(getenv(envChosen))
	return options{chosen, getenv(envResults), getenv(markdown.UpdateDocs) != ""}, err
}

// choice is what to run.
type choice struct {
	kubernetes, releases []string
}

// parseChosen reads versions with commas between them. What it takes is run in the
// order of the lists here.
func parseChosen(text string) (choice, error) {
	all := choice{kubernetesVersions, upstream.AllReleases()}
	if text == "" {
		return all, nil
	}
	names := strings.Split(text, ",")
	for _, name := range names {
		release, found := strings.CutPrefix(name, releasePrefix)
		if found && slices.Contains(all.releases, release) || slices.Contains(all.kubernetes, name) {
			continue
		}
		return choice{}, fmt.Errorf("%s: %q is not here: use %s, or %s with one of %s, separated by commas", envChosen, name,
			strings.Join(all.kubernetes, ", "), releasePrefix, strings.Join(all.releases, ", "))
	}
	unnamed := func(prefix string) func(string) bool {
		return func(version string) bool { return !slices.Contains(names, prefix+version) }
	}
	return choice{
		slices.DeleteFunc(slices.Clone(all.kubernetes), unnamed("")),
		slices.DeleteFunc(slices.Clone(all.releases), unnamed(releasePrefix)),
	}, nil
}
