package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// The variables that narrow the test.
const (
	envVersions = "UPSTREAM_VERSIONS"
	envLags     = "UPSTREAM_LAGS"
	envRounds   = "UPSTREAM_ROUNDS"
)

const (
	defaultRounds = 4
	defaultLag    = 1500 * time.Millisecond
)

// options are what the environment asks for.
type options struct {
	versions []string
	lags     []time.Duration
	rounds   int
}

// parseOptions reads the environment. An error names the variable.
func parseOptions(getenv func(string) string) (options, error) {
	o := options{versions: upstream.Releases(), lags: []time.Duration{defaultLag, 0}, rounds: defaultRounds}
	if text := getenv(envVersions); text != "" {
		o.versions = strings.Split(text, ",")
		for _, version := range o.versions {
			if !slices.Contains(upstream.Releases(), version) {
				return options{}, fmt.Errorf("%s: %q is not a release that is here: use %s, separated by commas",
					envVersions, version, strings.Join(upstream.Releases(), ", "))
			}
		}
	}
	if text := getenv(envLags); text != "" {
		o.lags = nil
		for part := range strings.SplitSeq(text, ",") {
			lag, err := scenario.ParseLag(part)
			if err != nil {
				return options{}, fmt.Errorf("%s: %w", envLags, err)
			}
			o.lags = append(o.lags, lag)
		}
	}
	if text := getenv(envRounds); text != "" {
		rounds, err := scenario.ParseCount(text)
		if err != nil {
			return options{}, fmt.Errorf("%s: %w", envRounds, err)
		}
		o.rounds = rounds
	}
	return o, nil
}
