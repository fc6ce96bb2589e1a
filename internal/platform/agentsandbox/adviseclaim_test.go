package agentsandbox

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/advice"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

func TestAdviceOnClaims(t *testing.T) {
	python := builders.MakePool("ns", "python").Replicas(3).Strategy("OnReplenish").Set(3, "status", "readyReplicas").Obj()
	node := builders.PoolFrom(python).Name("node").Obj()
	strict := builders.PoolFrom(python).Annotation(settings.StrategyKey, "Recreate").Obj()
	pool := func(change func(*builders.Pool)) *unstructured.Unstructured {
		b := builders.PoolFrom(python)
		change(b)
		return b.Obj()
	}
	one := func(o ...*unstructured.Unstructured) []*unstructured.Unstructured { return o }
	claim := builders.MakeClaim("ns", "c1").Obj()
	hidden := func(b *builders.Sandbox) { b.NoLabel(TemplateRefHashLabel) }
	byTemplate := func(warmPool string) *unstructured.Unstructured {
		return builders.MakeClaimV1Alpha1("ns", "c1", "python", warmPool).Obj()
	}
	const cold = "this claim will cold-start: "

	cases := map[string]struct {
		stored  []*unstructured.Unstructured
		claim   *unstructured.Unstructured
		audited bool
		outcome advice.Outcome
		want    []string
	}{
		"warm":        {stored: all(one(python, adviseV2), idleMembers(python, adviseV2, "a", 3)), claim: claim, outcome: advice.Warm},
		"no pool":     {stored: one(adviseV2), claim: claim, outcome: advice.Waits, want: []string{"this claim waits: pool python does not exist"}},
		"no template": {stored: one(python), claim: claim, outcome: advice.Waits, want: []string{"this claim waits: template python of pool python does not exist"}},
		"pool going": {stored: all(one(pool(func(p *builders.Pool) {
			p.Deleting(time.Unix(1, 0)).Set([]any{"example.com/f"}, "metadata", "finalizers")
		}), adviseV2), idleMembers(python, adviseV2, "a", 3)), claim: claim, outcome: advice.Waits, want: []string{"this claim waits: pool python does not exist"}},
		"replicas 0":                  {stored: one(pool(func(p *builders.Pool) { p.Replicas(0).Set(0, "status", "readyReplicas") }), adviseV2), claim: claim, outcome: advice.ColdByDesign},
		"empty":                       {stored: one(pool(func(p *builders.Pool) { p.Set(0, "status", "readyReplicas") }), adviseV2), claim: claim, outcome: advice.Cold, want: []string{cold + "pool python has no idle member (0 of 3)"}},
		"no status yet":               {stored: all(one(pool(func(p *builders.Pool) { p.Unset("status") }), adviseV2), idleMembers(python, adviseV2, "a", 3)), claim: claim, outcome: advice.Cold, want: []string{cold + "pool python has no ready member (0 of 3)"}},
		"stale, served":               {stored: all(one(python, adviseV2), idleMembers(python, adviseV1, "a", 3)), claim: claim, outcome: advice.Warm},
		"stale, refused":              {stored: all(one(strict, adviseV2), idleMembers(python, adviseV1, "a", 3)), claim: claim, outcome: advice.Cold, want: []string{cold + "pool python has no member for it (of 3 idle: 3 stale, which Recreate does not serve)"}},
		"stale, refused, by stamps":   {stored: all(one(strict, adviseV2), idleMembers(python, adviseV1, "a", 3, stamped(stampOf(t, adviseV1)))), claim: claim, outcome: advice.Cold, want: []string{cold + "pool python has no member for it (of 3 idle: 3 stale, which Recreate does not serve)"}},
		"stale, audited":              {stored: all(one(strict, adviseV2), idleMembers(python, adviseV1, "a", 3)), claim: claim, audited: true, outcome: advice.Warm},
		"stale, enforced by the pool": {stored: all(one(builders.PoolFrom(strict).Annotation(settings.EnforcementKey, "enforce").Obj(), adviseV2), idleMembers(python, adviseV1, "a", 3)), claim: claim, audited: true, outcome: advice.Cold, want: []string{cold + "pool python has no member for it (of 3 idle: 3 stale, which Recreate does not serve)"}},
		"one is fresh":                {stored: all(one(strict, adviseV2), idleMembers(python, adviseV1, "a", 2), idleMembers(python, adviseV2, "b", 1)), claim: claim, outcome: advice.Warm},
		"one is fresh, but hidden":    {stored: all(one(strict, adviseV2), idleMembers(python, adviseV1, "a", 2), idleMembers(python, adviseV2, "b", 1, hidden)), claim: claim, outcome: advice.Cold, want: []string{cold + "pool python has no member for it (of 3 idle: 2 stale, which Recreate does not serve; 1 hidden)"}},
		"of another template":         {stored: all(one(python, adviseV2), idleMembers(python, builders.MakeTemplate("ns", "other").Image("sandbox:v2").Obj(), "a", 3)), claim: claim, outcome: advice.Cold, want: []string{cold + "pool python has no member for it (of 3 idle: 3 of another template)"}},
		"of no template that it says": {stored: all(one(python, adviseV2), idleMembers(python, adviseV2, "a", 3, func(b *builders.Sandbox) { b.Unset("metadata", "annotations", templateRefAnnotation) })), claim: claim, outcome: advice.Warm},
		"of another one, audited":     {stored: all(one(python, adviseV2), idleMembers(python, builders.MakeTemplate("ns", "other").Image("sandbox:v2").Obj(), "a", 3)), claim: claim, audited: true, outcome: advice.Warm},
		"of another one, recreated":   {stored: all(one(pool(func(p *builders.Pool) { p.Strategy("Recreate") }), adviseV2), idleMembers(python, builders.MakeTemplate("ns", "other").Image("sandbox:v2").Obj(), "a", 3)), claim: claim, audited: true, outcome: advice.Cold, want: []string{cold + "pool python has no member for it (of 3 idle: 3 of another template)"}},
		"env":                         {stored: one(python, builders.TemplateFrom(adviseV2).EnvPolicy("Allowed").Obj()), claim: builders.ClaimFrom(claim).Env("", "A", "b").Obj(), outcome: advice.ColdByDesign},
		"volumes":                     {stored: one(python, builders.TemplateFrom(adviseV2).VolumeClaimPolicy("Allowed").Obj()), claim: builders.ClaimFrom(claim).VolumeClaim("data", "1Gi").Obj(), outcome: advice.ColdByDesign},
		"env, not allowed":            {stored: one(python, adviseV2), claim: builders.ClaimFrom(claim).Env("", "A", "b").Obj(), outcome: advice.Impossible, want: []string{`this claim gets no sandbox: envVarsInjectionPolicy "" allows no claim to set env`}},
		"v1alpha1, none":              {stored: one(adviseV2), claim: byTemplate("none"), outcome: advice.ColdByDesign},
		"v1alpha1, no template":       {stored: one(python), claim: byTemplate("none"), outcome: advice.Waits, want: []string{"this claim waits: template python does not exist"}},
		"v1alpha1, default":           {stored: all(one(python, adviseV2), idleMembers(python, adviseV2, "a", 3)), claim: byTemplate("default"), outcome: advice.Warm},
		"v1alpha1, by name only":      {stored: all(one(builders.PoolFrom(python).Annotation(settings.ClaimsKey, "by-name").Obj(), adviseV2), idleMembers(python, adviseV2, "a", 3)), claim: byTemplate("default"), outcome: advice.ColdByDesign},
		"v1alpha1, a pool":            {stored: all(one(python, adviseV2), idleMembers(python, adviseV2, "a", 3)), claim: byTemplate("python"), outcome: advice.Warm},
		"v1alpha1, of another one":    {stored: one(pool(func(p *builders.Pool) { p.Template("other") }), adviseV2), claim: byTemplate("python"), outcome: advice.Cold, want: []string{cold + "pool python has no idle member (0 of 3)"}},
		"another pool has some":       {stored: all(one(python, node, adviseV2), idleMembers(node, adviseV2, "a", 3)), claim: claim, outcome: advice.Cold, want: []string{cold + "pool python has no idle member (0 of 3)"}},
		"too many to be looked at":    {stored: all(one(strict, adviseV2), idleMembers(python, adviseV2, "a", maxUnstamped+1)), claim: claim, outcome: advice.Warm},
		"v1alpha1, no such pool":      {stored: one(adviseV2), claim: byTemplate("python"), outcome: advice.Cold, want: []string{cold + "pool python does not exist"}},
	}
	for name, tc := range cases {
		for _, cached := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, cached %t", name, cached), func(t *testing.T) {
				a, _ := newAdviser(cached, !tc.audited, tc.stored...)
				got, err := a.Claim(t.Context(), tc.claim)
				if err != nil {
					t.Fatal(err)
				}
				outcome, line := got.Outcome()
				if outcome != tc.outcome {
					t.Errorf("Outcome() = %s (%s), want %s", outcome, line, tc.outcome)
				}
				if diff := cmp.Diff(tc.want, got.Lines()); diff != "" {
					t.Errorf("Lines() (-want,+got):\n%s", diff)
				}
			})
		}
	}
}

// What members are built from is read where one pool does not serve stale ones.
func TestAdviceOnClaimsReadsWhatMatters(t *testing.T) {
	lenient := builders.MakePool("ns", "python").Strategy("OnReplenish").Set(1, "status", "readyReplicas").Obj()
	strict := builders.PoolFrom(lenient).Annotation(settings.StrategyKey, "Recreate").Obj()
	first := builders.PoolFrom(strict).Name("first").Obj()
	for name, tc := range map[string]struct {
		pools []*unstructured.Unstructured
		want  int
	}{
		"stale ones are served": {[]*unstructured.Unstructured{lenient}, 0},
		"they are not":          {[]*unstructured.Unstructured{strict}, 1},
		"one does not":          {[]*unstructured.Unstructured{first, lenient}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			a, l := newAdviser(true, true, all(tc.pools, []*unstructured.Unstructured{adviseV2}, idleMembers(lenient, adviseV2, "a", 1))...)
			if _, err := a.Claim(t.Context(), builders.MakeClaimV1Alpha1("ns", "c1", "python", "default").Obj()); err != nil || len(l.selected) != tc.want {
				t.Errorf("members are read by %v, want %d times, error %v", l.selected, tc.want, err)
			}
		})
	}
}

func TestUnclaimed(t *testing.T) {
	pool, claim := builders.MakePool("ns", "python").UID("uid-pool").Obj(), builders.MakeClaim("ns", "c1").Obj()
	member := func() *builders.Sandbox { return builders.MakeMember(pool, adviseV1).Name("m").UID("uid-m") }
	nobody := builders.ControllerRef(pool)
	nobody.APIVersion, nobody.Kind = "example.com/v1", "Nobody"
	want := unclaimed{uid: "uid-m", pool: "uid-pool", shown: true, template: "python"}
	hidden := want
	hidden.shown = false
	for name, tc := range map[string]struct {
		sandbox *builders.Sandbox
		want    unclaimed
	}{
		"a member":           {member(), want},
		"hidden":             {member().NoLabel(TemplateRefHashLabel), hidden},
		"of no pool's label": {member().NoLabel(warmPoolLabel), hidden},
		"nobody's":           {member().Owners(), unclaimed{}},
		"a claim's":          {member().Owners(builders.ControllerRef(claim)), unclaimed{}},
		"a claim's, too":     {member().Owners(builders.ControllerRef(pool), unmarkedRef(claim)), unclaimed{}},
		"another kind's":     {member().Owners(nobody), unclaimed{}},
		"deleting":           {member().Deleting(time.Unix(1, 0)), unclaimed{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, unclaimedOf(tc.sandbox.Obj()), cmp.AllowUnexported(unclaimed{})); diff != "" {
				t.Errorf("unclaimedOf() (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestAdviceOnClaimsThatNeedAReadyMember(t *testing.T) {
	python := builders.MakePool("ns", "python").Replicas(2).Strategy("Recreate").Set(1, "status", "readyReplicas").Obj()
	unready := func(b *builders.Sandbox) { b.Ready(false) }
	a, _ := newAdviser(false, true, all([]*unstructured.Unstructured{python, adviseV2},
		idleMembers(python, adviseV1, "a", 1), idleMembers(python, adviseV2, "b", 1, unready))...)
	got, err := a.Claim(t.Context(), builders.MakeClaim("ns", "c1").Obj())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"this claim will cold-start: pool python has no member for it (of 2 idle: 1 stale, which Recreate does not serve; 1 not ready)"}
	if diff := cmp.Diff(want, got.Lines()); diff != "" {
		t.Errorf("Lines() (-want,+got):\n%s", diff)
	}
}

func TestAdviceInputs(t *testing.T) {
	a := &Adviser{}
	meta := map[string]any{"labels": map[string]any{"l": "1"}, "annotations": map[string]any{"a": "2"}}
	ofAnother := builders.MakePool("ns", "p").Annotation("x", "y").Obj()
	ofAnother.SetAPIVersion("example.com/v1")
	cases := map[string]struct {
		obj  *unstructured.Unstructured
		want advice.Inputs
	}{
		"nothing":         {nil, advice.Inputs{}},
		"claim":           {builders.MakeClaim("ns", "c").Annotation("x", "y").Obj(), advice.Inputs{}},
		"pool":            {builders.MakePool("ns", "p").Strategy("Recreate").Annotation("x", "y").Obj(), advice.Inputs{Annotations: map[string]string{"x": "y"}, Strategy: "Recreate"}},
		"another group's": {ofAnother, advice.Inputs{}},
		"template":        {builders.MakeTemplate("ns", "t").Annotation("x", "y").Set(meta, "spec", "podTemplate", "metadata").Obj(), advice.Inputs{Annotations: map[string]string{"x": "y"}, PodLabels: map[string]string{"l": "1"}, PodAnnotations: map[string]string{"a": "2"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, a.Inputs(tc.obj)); diff != "" {
				t.Errorf("Inputs() (-want,+got):\n%s", diff)
			}
		})
	}
}

// The keys are written down twice: package advice knows no platform.
func TestAdviceReadsTheSameKeys(t *testing.T) {
	checked := []string{settings.StrategyKey, settings.InjectedPathsKey, settings.EnforcementKey}
	if diff := cmp.Diff([]string{settings.StrategyKey, settings.InjectedPathsKey, settings.EnforcementKey}, checked); diff != "" {
		t.Errorf("keys that verdicts read and that advice checks (-want,+got):\n%s", diff)
	}
}

func TestAlwaysCold(t *testing.T) {
	named := func(pool string) *builders.Claim { return builders.MakeClaimV1Alpha1("ns", "c", "python", pool) }
	for name, tc := range map[string]struct {
		claim *builders.Claim
		want  bool
	}{
		"of a pool":              {builders.MakeClaim("ns", "c"), false},
		"with env":               {builders.MakeClaim("ns", "c").Env("", "A", "1"), true},
		"with a volume":          {builders.MakeClaim("ns", "c").VolumeClaim("data", "1Gi"), true},
		"v1alpha1, any pool":     {named("default"), false},
		"v1alpha1, a pool":       {named("python"), false},
		"v1alpha1, no pool":      {named("none"), true},
		"v0.2, says nothing":     {named(""), false},
		"any pool, but with env": {named("default").Env("", "A", "1"), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := alwaysCold(tc.claim.Obj()); got != tc.want {
				t.Errorf("alwaysCold() = %t, want %t", got, tc.want)
			}
		})
	}
}
