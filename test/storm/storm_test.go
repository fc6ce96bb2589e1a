package main

import (
	"context"
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

// TestStorm makes the storms one after another in one world.
func TestStorm(t *testing.T) {
	ctrl.SetLogger(logr.Discard())
	storms, err := testStorms(os.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	err = inWorld(t.Context(), (options{upstream: defaultUpstream}).platform(), t.Output(), func(ctx context.Context, w *world) (bool, error) {
		w.RanOn(t)
		var results []result
		for _, o := range storms {
			t.Run(fmt.Sprintf("seed=%d", o.seed), func(t *testing.T) {
				r, err := w.storm(ctx, o, t.Output())
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%s\n%s", r.line(), r.raids())
				if faults := r.faults(); len(faults) > 0 {
					t.Errorf("not good:\n%s", explain(faults))
				}
				results = append(results, r)
			})
		}
		// After a storm that could not be made there is an error already.
		if len(results) < len(storms) {
			return false, nil
		}
		if faults := unproven(results...); len(faults) > 0 {
			t.Error(explain(faults))
		}
		return !t.Failed(), nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
