package model

import (
	"fmt"
	"slices"
	"strings"

	"github.com/freshbind/freshbind/internal/freshness"
)

// Variant is the cluster with one safeguard less; the zero Variant has them all.
type Variant struct {
	// Name says what is missing.
	Name string
	// Without is the rule that is not asked about writes of Operation.
	Without   string
	Operation freshness.Operation
	// Person is all that the person does, Nothing for whatever comes to mind.
	Person Interference
	// Cached is what the guard reads from a cache in place of the store.
	Cached Cached
	// NoVersionLock: the API server stores a write onto whatever version there is.
	NoVersionLock bool
	// NoPreconditions: Freshbind deletes by name alone what it once saw idle.
	NoPreconditions bool
	// Unprotected: nobody refuses the pool controller's deletes.
	Unprotected bool
	// NoOverlap and NoRewriting: what no admission excludes counts as broken, too.
	NoOverlap, NoRewriting bool
	// Want is the promise that a shortest history breaks.
	Want Promise
}

// Cached is an object that is read late.
type Cached uint8

// The zero value: everything is read live.
const (
	NoneCached Cached = iota
	CachedTemplate
	CachedPool
	CachedClaim
	CachedPod
	CachedSandboxes
)

// late are what the guard may see where one of its reads is from a cache, besides what
// is stored: what was there before.
func (v *Variant) late(q question) []question {
	before := q
	switch v.Cached {
	case CachedTemplate:
		if before.templateGone = false; q.other && !q.templateGone {
			before.template = 1 - q.template
		}
	case CachedPool:
		before.pool = Nothing
	case CachedClaim:
		before.claim = claimThere
	case CachedPod:
		if q.pod != PodNotYet {
			before.pod, before.podContent = Nothing, q.content
		}
	case CachedSandboxes:
		before.held = false
	}
	if before == q {
		return nil
	}
	return []question{before}
}

// Bounds are those of a cluster that is large enough for the story. Where nothing but
// the lack of a verdict is to be found, all of it is gone through.
func (v *Variant) Bounds() Bounds {
	if v.Want == Decided {
		return Tiny
	}
	return Small
}

func (v *Variant) rules(op freshness.Operation) []freshness.Rule {
	if v.Without == "" || v.Operation != op {
		return allRules
	}
	return slices.DeleteFunc(slices.Clone(allRules), func(r freshness.Rule) bool { return r.Name == v.Without })
}

var allRules = freshness.Rules()

// Judged are the operations whose rules are in the model.
func Judged() []freshness.Operation {
	return []freshness.Operation{freshness.Bind, freshness.ColdStart, freshness.ForeignController}
}

// Outside says of the other operations why they are not.
func Outside() map[freshness.Operation]string {
	return map[freshness.Operation]string{
		freshness.Birth:     "the hook fails open, so the model lets every birth pass and nothing depends on it",
		freshness.Release:   "members that are bare Pods, v0.1 and v0.2",
		freshness.WarmStart: "members that are bare Pods, v0.1 and v0.2",
		freshness.Return:    "platforms that recycle; to the model, whatever was used never goes back",
		freshness.Released:  "no write: asked after a release of a bare Pod",
		freshness.Idle:      "no write: asked for the pool's planner, which may delete whatever is idle in the model",
		freshness.Stored:    "no write: asked for the pool's planner, which may delete whatever is idle in the model",
	}
}

// broken is what a history breaks where a rule is missing.
var broken = map[freshness.Operation]map[string]Promise{
	freshness.Bind: {
		"claimLives": Belongs, "isMember": OneToOne, "oneOwner": OneToOne, "claimWantsThis": OneToOne, "claimHoldsNone": OneToOne,
		"memberLives": Alive, "blueprintKept": Fresh, "podKept": Alive, "belongs": Belongs, "podLives": Alive,
		"templateInForce": Decided, "contentIsCurrent": Fresh, "podIsCurrent": Fresh, "isYoung": Fresh,
	},
	freshness.ColdStart: {
		"claimLives": Belongs, "oneOwner": OneToOne, "claimHoldsNone": OneToOne, "nothingToAdopt": Alive,
		"templateInForce": Belongs, "contentIsCurrent": Fresh,
	},
	freshness.ForeignController: {"ownerIsNoClaim": Fresh},
}

// spoilt are the different things that a rule looks at. Each has a story of its own.
var spoilt = map[freshness.Operation]map[string][]Interference{
	freshness.Bind: {
		"claimLives":       {ClaimReplaced, ClaimTerminating},
		"belongs":          {PoolReplaced, PoolTerminating, PoolSwitched, ClaimElsewhere},
		"podLives":         {PodTerminating, PodFinished, PodGone, PodForeign, PodDebugged, NodeLeaving, PodNotYet},
		"contentIsCurrent": {PodEdited, MemberEdited},
		"podIsCurrent":     {PodEdited, MemberEdited},
	},
	freshness.ColdStart: {
		"claimLives":      {ClaimReplaced, ClaimTerminating},
		"templateInForce": {PoolTerminating, PoolSwitched},
	},
}

// Variants are all ways to leave out one safeguard, each rule of a bind, a cold start
// and a foreign controller among them.
func Variants() []Variant {
	var out []Variant
	for _, op := range Judged() {
		for _, r := range allRules {
			if slices.Contains(r.Operations, op) {
				out = append(out, without(op, r.Name)...)
			}
		}
	}
	return append(out,
		Variant{Name: "template from a cache", Cached: CachedTemplate, Want: Fresh},
		Variant{Name: "pool from a cache", Cached: CachedPool, Want: Belongs},
		Variant{Name: "claim from a cache", Cached: CachedClaim, Want: Belongs},
		Variant{Name: "pod from a cache", Cached: CachedPod, Want: Alive},
		Variant{Name: "the claim's sandboxes from a cache", Cached: CachedSandboxes, Want: OneToOne},
		Variant{Name: "no version lock", NoVersionLock: true, Want: OneToOne},
		Variant{Name: "deletes without preconditions", NoPreconditions: true, Want: InUse},
		Variant{Name: "deletes by the pool controller unprotected", Unprotected: true, Want: InUse},
	)
}

// without leaves out a rule, once for each thing that it looks at.
func without(op freshness.Operation, rule string) []Variant {
	v := Variant{Name: fmt.Sprintf("%s without %s", op, rule), Without: rule, Operation: op, Want: broken[op][rule]}
	if len(spoilt[op][rule]) == 0 {
		return []Variant{v}
	}
	var out []Variant
	for _, i := range spoilt[op][rule] {
		of := v
		of.Person = i
		of.Name += ": a person " + strings.ReplaceAll(interferenceWords[i], " %s", "")
		out = append(out, of)
	}
	return out
}

// Gaps are what no admission can exclude: the cluster has all safeguards, and what the
// model excuses otherwise counts.
func Gaps() []Variant {
	return []Variant{
		{Name: "gap: two writes for a claim on their way at once", NoOverlap: true, Want: OneToOne},
		{Name: "gap: a choice is rewritten before the status names the sandbox", NoRewriting: true, Want: OneToOne},
	}
}
