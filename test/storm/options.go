package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
	"github.com/freshbind/freshbind/test/warmpool"
)

// The variables that shape the storm.
const (
	envSeed     = "STORM_SEED"
	envClaims   = "STORM_CLAIMS"
	envUpstream = "STORM_UPSTREAM"
)

const (
	defaultClaims   = 300
	defaultUpstream = "v1.0.3"
	// minClaims leaves room for all that has to happen between the bursts.
	minClaims = 30
	// kruiseUpstream stands for the double of OpenKruise Agents.
	kruiseUpstream = "kruise"
	// claimsPerMember makes pools of 50 for 300 claims.
	claimsPerMember = 6
	// randomSeeds is below how much a seed is drawn: short enough to be typed.
	randomSeeds = 1_000_000
)

// options are what the environment asks for.
type options struct {
	seed     uint64
	claims   int
	upstream string
	// unguarded: nothing is enforced.
	unguarded bool
}

// mode are the labels of the storm's own namespaces.
func (o options) mode() map[string]string {
	if o.unguarded {
		return auditing
	}
	return scenario.Enforce()
}

// platform is what STORM_UPSTREAM names.
func (o options) platform() platform {
	if o.upstream == kruiseUpstream {
		return &kruiseAgents{&warmpool.Kruise{}}
	}
	return &agentSandbox{AgentSandbox: &warmpool.AgentSandbox{Release: o.upstream}}
}

// size is how many members each pool wants.
func (o options) size() int { return o.claims / claimsPerMember }

// refers: the members of this pool of the storm's own name a template, where there is
// another way and Freshbind rolls the pool out. What upstream's own rolling goes by does not
// tell which content of the template a Pod has. The seed says in which pools.
func (o options) refers(pool int) bool { return (o.seed+uint64(pool))%pools != 0 }

// parseOptions reads the environment. An error names the variable.
func parseOptions(getenv func(string) string) (options, error) {
	o := options{seed: rand.Uint64N(randomSeeds), claims: defaultClaims, upstream: defaultUpstream}
	if text := getenv(envSeed); text != "" {
		seed, err := parseSeed(text)
		if err != nil {
			return options{}, fmt.Errorf("%s: %w", envSeed, err)
		}
		o.seed = seed
	}
	if text := getenv(envClaims); text != "" {
		claims, err := parseClaims(text)
		if err != nil {
			return options{}, fmt.Errorf("%s: %w", envClaims, err)
		}
		o.claims = claims
	}
	if text := getenv(envUpstream); text != "" {
		if known := append(upstream.Releases(), kruiseUpstream); !slices.Contains(known, text) {
			return options{}, fmt.Errorf("%s: %q is not a release that is here: use one of %s", envUpstream, text, strings.Join(known, ", "))
		}
		o.upstream = text
	}
	return o, nil
}

func parseSeed(text string) (uint64, error) {
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a whole number of 0 or more", text)
	}
	return seed, nil
}

func parseClaims(text string) (int, error) {
	claims, err := scenario.ParseCount(text)
	if err != nil {
		return 0, err
	}
	if claims < minClaims {
		return 0, fmt.Errorf("%d are too few for a storm: use %d or more", claims, minClaims)
	}
	return claims, nil
}
