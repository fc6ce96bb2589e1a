package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/config"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/webhooks"
)

// attack is one way to get a claim what no claim may get.
type attack string

const (
	// attackDisguise gives a member that is about to be stale to another kind with
	// a claim's UID, and then to that claim itself.
	attackDisguise attack = "disguise"
	// attackDisguisedBirth creates a sandbox of the revision before in that way.
	attackDisguisedBirth attack = "disguised-birth"
	// attackTwoClaims has one PATCH give a member to a claim that may have it and to
	// one that may not.
	attackTwoClaims attack = "two-claims"
	// attackTwoClaimsBirth has one CREATE do so.
	attackTwoClaimsBirth attack = "two-claims-birth"
	// attackByHand binds a member that is about to be stale, by a claim that names it.
	attackByHand attack = "by-hand"
	// attackFlood writes large templates, annotations and lists of injected paths where
	// nothing is enforced.
	attackFlood attack = "flood"
	// attackPodAgain makes members' Pods again, of the revision before.
	attackPodAgain attack = "pod-again"
	// attackImage sets the images of members' Pods.
	attackImage attack = "image"
	// attackDebug attaches containers to members' Pods.
	attackDebug attack = "debug"
	// attackPlant creates the Pod that a cold start would adopt.
	attackPlant attack = "plant"
	// attackReuse has one PATCH put a used sandbox back into its pool.
	attackReuse attack = "reuse"
	// attackReuseInTwo takes the claim off first.
	attackReuseInTwo attack = "reuse-in-two"
	// attackEdit is somebody with an editor, who changes members.
	attackEdit attack = "edit"
	// attackOvertake gives somebody what another one has.
	attackOvertake attack = "overtake"
	// attackEditedReturn gives back what was changed in use.
	attackEditedReturn attack = "edited-return"
)

// attacks are all of them, in the order of the report.
var attacks = []attack{
	attackDisguise, attackDisguisedBirth, attackTwoClaims, attackTwoClaimsBirth, attackByHand, attackFlood,
	attackPodAgain, attackImage, attackDebug, attackPlant, attackReuse, attackReuseInTwo,
	attackEdit, attackOvertake, attackEditedReturn,
}

// denied attacks are writes that nobody may make. Others are refused later, or
// never: Freshbind may have replaced what was attacked before a claim could get it.
func (a attack) denied() bool {
	return !slices.Contains([]attack{attackByHand, attackFlood, attackPodAgain, attackImage, attackDebug, attackPlant, attackEdit}, a)
}

const (
	// claimsPerRaid is how many claims that stay there are for each attack.
	claimsPerRaid = 3
	// tier is the label that the floor selects.
	tier, prod = "storm-tier", "prod"
)

// place is a namespace of the hostile tenant's, by how it enforces.
type place struct {
	how string
	// labels are the namespace's, pool the pool's annotations.
	labels, pool map[string]string
}

var auditing = map[string]string{settings.EnforcementKey: "audit"}

var places = [...]place{
	{how: "label", labels: scenario.Enforce()},
	{how: "default"},
	{how: "floor", labels: map[string]string{settings.EnforcementKey: "audit", tier: prod}},
	{how: "pool", labels: auditing, pool: scenario.Enforce()},
}

// scope, configured and auditOptions say of the default and of the floor the same to
// the API server, to Freshbind and to the judge.
func scope() webhooks.Scope {
	return webhooks.Scope{EnforcedByDefault: true, Enforced: []metav1.LabelSelector{{MatchLabels: floored()}}}
}

func configured(dir string) ([]string, error) {
	content := fmt.Sprintf("apiVersion: %s\nkind: %s\ndefaults: {enforcement: enforce}\n"+
		"floors:\n- namespaceSelector: {matchLabels: {%s: %s}}\n  minimumEnforcement: enforce\n", config.APIVersion, config.Kind, tier, prod)
	path := filepath.Join(dir, "freshbind.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return nil, fmt.Errorf("write Freshbind's configuration: %w", err)
	}
	return []string{"--config=" + path}, nil
}

func auditOptions() checker.Options {
	return checker.Options{Mode: "enforce", Floors: []checker.Floor{{Namespaces: labels.SelectorFromSet(floored()), Enforce: true}}}
}

func floored() map[string]string { return map[string]string{tier: prod} }

// raid is one attack in one place. pick chooses among what there is when its turn
// comes.
type raid struct {
	do   attack
	pick uint64
}

// attacks are those that a storm makes. Where nothing is enforced there are none.
func (w *world) attacks(o options) []attack {
	if o.unguarded {
		return nil
	}
	return w.platform.attacks()
}

// planRaids draws what the hostile tenant does, in each place one after the other.
// Every attack comes before any comes again, and each comes to every place in turn.
func planRaids(seed uint64, claims int, attacks []attack) (raids [len(places)][]raid) {
	chance := rand.New(rand.NewPCG(seed, 1))
	first := chance.IntN(len(places))
	if len(attacks) == 0 {
		return raids
	}
	for i := range max(len(attacks), claims/claimsPerRaid) {
		round := i / len(attacks)
		at := (first + i%len(attacks) + round) % len(places)
		raids[at] = append(raids[at], raid{do: attacks[i%len(attacks)], pick: chance.Uint64()})
	}
	for at := range raids {
		chance.Shuffle(len(raids[at]), func(i, j int) { raids[at][i], raids[at][j] = raids[at][j], raids[at][i] })
	}
	return raids
}
