package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
)

// The variables that make the test longer: seeds, separated by commas, and
// claims per seed.
const (
	envTestSeeds  = "STORM_TEST_SEEDS"
	envTestClaims = "STORM_TEST_CLAIMS"
)

const (
	testSeeds  = "1,2,3"
	testClaims = 60
)

// testStorms are the storms that the environment asks for.
func testStorms(getenv func(string) string) ([]options, error) {
	texts, claims := getenv(envTestSeeds), testClaims
	if texts == "" {
		texts = testSeeds
	}
	if text := getenv(envTestClaims); text != "" {
		var err error
		if claims, err = parseClaims(text); err != nil {
			return nil, fmt.Errorf("%s: %w", envTestClaims, err)
		}
	}
	var storms []options
	for text := range strings.SplitSeq(texts, ",") {
		seed, err := parseSeed(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", envTestSeeds, err)
		}
		storms = append(storms, options{seed: seed, claims: claims, upstream: defaultUpstream})
	}
	return storms, nil
}

// TestStorm runs when somebody asks for seeds: a storm loads a machine for
// minutes, and what it finds depends on how loaded it is.
func TestStorm(t *testing.T) {
	if os.Getenv(envTestSeeds) == "" {
		t.Skipf("storms run on request: set %s=%s, or run make storm", envTestSeeds, testSeeds)
	}
	ctrl.SetLogger(logr.Discard())
	storms, err := testStorms(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range storms {
		t.Run(fmt.Sprintf("seed=%d", o.seed), func(t *testing.T) {
			var out bytes.Buffer
			r, err := run(t.Context(), o, &out)
			t.Logf("%s%s", out.String(), r.line())
			if err != nil {
				t.Fatal(err)
			}
			if faults := r.faults(); len(faults) > 0 {
				t.Errorf("not good: %s", strings.Join(faults, "; "))
			}
		})
	}
}
