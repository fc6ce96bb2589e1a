package agentsandbox

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/livereadtest"
)

// roundsOf are the reads that a question takes.
func roundsOf(t *testing.T, objs []*unstructured.Unstructured, ask func(context.Context, *Platform) error) []string {
	t.Helper()
	r, stored := livereadtest.NewRounds(), newStore(objs...)
	p := newPlatform(stored, nil)
	p.Reader = r.Reader(stored, func(ref liveread.Ref) string { return singular(ref.GVR.Resource) + "/" + ref.Name })
	p.ByUID = liveread.NewReader(byUID{claims: objs}, nil)
	rounds, err := r.Of(func() error { return ask(t.Context(), p) })
	if err != nil {
		t.Error(err)
	}
	return rounds
}

// Every round of reads is a part of the price of a write. None reads what nobody needs,
// and none anything twice.
func TestRoundsOfReads(t *testing.T) {
	template, other := builders.MakeTemplate("ns", "python").Obj(), builders.MakeTemplate("ns", "other").Obj()
	claim := builders.MakeClaim("ns", "c1").Names("python-abc").Obj()
	unnamed := builders.MakeClaim("ns", "c1").Obj()
	none := builders.MakeClaimV1Alpha1("ns", "c1", "python", "none").Names("python-abc").Obj()
	another := builders.MakeClaimV1Alpha1("ns", "c1", "other", "python").Names("python-abc").Obj()
	anyPool := builders.MakeClaimV1Alpha1("ns", "c1", "python", "").Obj()
	byPool := builders.MakeClaimV1Alpha1("ns", "c1", "python", "python").Obj()
	switched := builders.PoolFrom(testPool).Template("other").Obj()
	member, pod := running(template)
	byPools := builders.SandboxFrom(member).Annotation(settings.CreatedByKey, settings.CreatedByPool).Obj()
	nobodys := builders.SandboxFrom(member).Owners().Obj()
	alike, alikesPod := builders.SandboxFrom(member).Name("c1").Obj(), builders.PodFrom(pod).Name("c1").Obj()
	cold := func() *builders.Sandbox { return builders.MakeColdStart(unnamed, template) }
	silent := func(b *builders.Sandbox) *unstructured.Unstructured {
		return b.Unset("metadata", "annotations", templateRefAnnotation).Obj()
	}
	bare := barePod(template)
	given := released(bare, anyPool)
	byHand := builders.PodFrom(given).Unset("metadata", "generateName").Obj()
	start := builders.MakeColdStart(anyPool, template).PodName("python-abc").Obj()
	stranger := builders.ControllerRef(claim)
	stranger.APIVersion, stranger.Kind = "example.com/v1", "Nobody"
	givenAway := builders.SandboxFrom(member).Owners(stranger).Obj()

	write := func(change func(*platform.Write), op admissionv1.Operation, old, obj *unstructured.Unstructured) func(context.Context, *Platform) error {
		return func(ctx context.Context, p *Platform) error {
			w, _ := p.Classify(op, old, obj)
			change(&w)
			_, err := p.Snapshot(ctx, w)
			return err
		}
	}
	asItIs := func(*platform.Write) {}
	bind := func(m, c *unstructured.Unstructured) func(context.Context, *Platform) error {
		return write(asItIs, admissionv1.Update, m, builders.Bound(m, c, template).Obj())
	}
	create := func(obj *unstructured.Unstructured) func(context.Context, *Platform) error {
		return write(asItIs, admissionv1.Create, nil, obj)
	}
	look := func(op freshness.Operation, obj *unstructured.Unstructured) func(context.Context, *Platform) error {
		return func(ctx context.Context, p *Platform) error {
			_, err := p.Snapshot(ctx, platform.Write{Operation: op, New: obj})
			return err
		}
	}
	with := func(change func(*Platform), ask func(context.Context, *Platform) error) func(context.Context, *Platform) error {
		return func(ctx context.Context, p *Platform) error {
			change(p)
			return ask(ctx, p)
		}
	}
	barePods := func(p *Platform) { p.Resolver = &store{version: BarePodVersion} }
	shownOn := func(node string) func(*Platform) {
		return func(p *Platform) { p.CachedNode = func(_, _ string) string { return node } }
	}
	floor := floorOf(t, nil, freshness.Recreate)
	enforcement := func(ctx context.Context, p *Platform) error {
		_, err := p.EnforcementFor(ctx, "ns", "c1")
		return err
	}

	const (
		ofBind  = "pod/python-abc sandbox/c1 sandboxclaim/c1 sandboxtemplate/python sandboxwarmpool/python"
		ofStart = "namespace/ns pod/c1 sandboxclaim/c1 sandboxtemplate/python"
		ofTaken = "namespace/ns pod/python-abc sandboxclaim/c1 sandboxtemplate/python"
		node    = "node/node-1"
		// beside a node that nobody guessed, the namespace is read.
		beside = "namespace/ns " + node
		pool   = "sandboxwarmpool/python"
	)
	type objs = []*unstructured.Unstructured
	type rounds = []string
	all := objs{claim, testPool, template, pod}
	for name, tc := range map[string]struct {
		stored objs
		ask    func(context.Context, *Platform) error
		want   rounds
	}{
		"a bind":                           {all, bind(member, claim), rounds{ofBind, beside}},
		"a bind, its node is cached":       {all, with(shownOn("node-1"), bind(member, claim)), rounds{node + " " + ofBind}},
		"a bind, another node is cached":   {all, with(shownOn("node-9"), bind(member, claim)), rounds{"node/node-9 " + ofBind, beside}},
		"a bind, no node is cached":        {all, with(shownOn(""), bind(member, claim)), rounds{ofBind, beside}},
		"a bind, strategies have floors":   {all, with(func(p *Platform) { p.Defaults.Floors = settings.Floors{floor} }, bind(member, claim)), rounds{"namespace/ns " + ofBind, node}},
		"a bind of the claim's name":       {append(all, alikesPod), bind(alike, claim), rounds{"pod/c1 sandboxclaim/c1 sandboxtemplate/python " + pool, beside + " sandbox/python-abc"}},
		"a bind by a claim without a name": {all, write(func(w *platform.Write) { w.Claim.Name = "" }, admissionv1.Update, member, builders.Bound(member, claim, template).Obj()), rounds{"pod/python-abc sandboxtemplate/python " + pool, beside}},
		"a bind of nobody's":               {all, bind(nobodys, claim), rounds{"pod/python-abc sandbox/c1 sandboxclaim/c1 sandboxtemplate/python", beside + " " + pool}},
		"a bind of nobody's, for no pool":  {append(all[1:4:4], none), bind(nobodys, none), rounds{"pod/python-abc sandbox/c1 sandboxclaim/c1 sandboxtemplate/python", beside}},
		"a bind, the claim names another":  {append(all[1:4:4], another), bind(member, another), rounds{ofBind, beside}},
		"a bind, the pool has switched":    {objs{claim, switched, template, other, pod}, bind(member, claim), rounds{ofBind, beside + " sandboxtemplate/other"}},

		"a cold start":                        {objs{unnamed, testPool, template}, create(cold().Obj()), rounds{ofStart, pool}},
		"a cold start, it may hold another":   {objs{unnamed, testPool, template}, write(func(w *platform.Write) { w.MayHold = []string{"more"} }, admissionv1.Create, nil, cold().Obj()), rounds{ofStart, "sandbox/more " + pool}},
		"a cold start, the pool switched":     {objs{unnamed, switched, template, other}, create(cold().Obj()), rounds{ofStart, pool, "sandboxtemplate/other"}},
		"a cold start that says little":       {objs{unnamed, testPool, template}, create(silent(cold())), rounds{"namespace/ns pod/c1 sandboxclaim/c1", pool, "sandboxtemplate/python"}},
		"a cold start for no pool":            {objs{none, testPool, template}, create(builders.MakeColdStart(none, template).Obj()), rounds{ofStart, "sandbox/python-abc"}},
		"a cold start, a pool's Pod is there": {objs{none, testPool, template, builders.PodFrom(bare).Name("c1").Obj()}, create(builders.MakeColdStart(none, template).Obj()), rounds{ofStart, "sandbox/python-abc"}},
		"a cold start, the claim is gone":     {objs{testPool, template}, create(cold().Obj()), rounds{ofStart}},
		"a cold start, a Pod is in its way":   {objs{unnamed, testPool, template, builders.MakePod(cold().Obj()).Owners().Stored("node-1").Obj()}, create(cold().Obj()), rounds{ofStart, pool}},
		"a cold start, its own Pod is there":  {objs{unnamed, testPool, template, builders.MakePod(cold().Obj()).Stored("node-1").Obj()}, create(cold().Obj()), rounds{ofStart, "sandbox/c1 " + pool}},
		"a cold start that says a pool's":     {objs{unnamed, testPool, template}, create(cold().Annotation(settings.CreatedByKey, settings.CreatedByPool).Obj()), rounds{ofStart, pool}},
		"a cold start without a name":         {objs{unnamed, testPool, template}, create(cold().Unset("metadata", "name").Obj()), rounds{"namespace/ns sandboxclaim/c1 sandboxtemplate/python", "sandbox/c1 " + pool}},
		"a cold start's content":              {objs{unnamed, testPool, template}, write(func(w *platform.Write) { w.ContentOnly = true }, admissionv1.Create, nil, cold().Obj()), rounds{"namespace/ns sandboxclaim/c1 sandboxtemplate/python", pool}},

		"a birth":                  {all, create(byPools), rounds{"namespace/ns sandboxtemplate/python " + pool}},
		"a birth that says little": {all, create(silent(builders.SandboxFrom(byPools))), rounds{"namespace/ns " + pool, "sandboxtemplate/python"}},
		"a birth by hand":          {append(all[1:3:3], given), create(member), rounds{"namespace/ns pod/python-abc sandboxtemplate/python " + pool}},
		"a member":                 {all, look(freshness.Idle, member), rounds{"namespace/ns pod/python-abc sandboxtemplate/python " + pool, node}},
		"a member on no node":      {objs{testPool, template, builders.PodFrom(pod).Unset("spec", "nodeName").Obj()}, look(freshness.Idle, member), rounds{"namespace/ns pod/python-abc sandboxtemplate/python " + pool}},

		"a start in a Pod":                     {objs{anyPool, testPool, template, given}, with(barePods, create(start)), rounds{ofTaken, node + " " + pool}},
		"a start in a Pod, for a pool":         {objs{byPool, testPool, template, given}, with(barePods, create(start)), rounds{ofTaken, node + " " + pool}},
		"a start in a Pod made by hand":        {objs{anyPool, testPool, template, byHand}, with(barePods, create(start)), rounds{ofTaken, node}},
		"a start in a Pod by hand, for a pool": {objs{byPool, testPool, template, byHand}, with(barePods, create(start)), rounds{ofTaken, node + " " + pool}},
		"a start in a Pod that is gone":        {objs{anyPool, testPool, template}, with(barePods, create(start)), rounds{ofTaken}},
		"a Pod that is taken":                  {objs{anyPool, testPool, template}, write(asItIs, admissionv1.Update, bare, given), rounds{"namespace/ns " + node + " " + pool, "sandboxtemplate/python"}},
		"a Pod on no node that is taken":       {objs{anyPool, testPool, template}, look(freshness.Released, builders.PodFrom(given).Unset("spec", "nodeName").Obj()), rounds{"namespace/ns " + pool, "sandboxtemplate/python"}},
		"a Pod made by hand that was taken":    {objs{anyPool, testPool, template}, look(freshness.Released, byHand), rounds{"namespace/ns " + node}},
		"a Pod made by hand that a pool has":   {objs{anyPool, testPool, template}, look(freshness.Idle, builders.PodFrom(bare).Unset("metadata", "generateName").Obj()), rounds{"namespace/ns " + node + " " + pool, "sandboxtemplate/python"}},
		"a stranger's controller":              {all, write(asItIs, admissionv1.Update, member, givenAway), rounds{"namespace/ns sandboxclaim/c1", pool}},
		"who enforces":                         {all, enforcement, rounds{"sandboxclaim/c1", pool}},
		"who enforces, for a claim of no pool": {objs{none, testPool}, enforcement, rounds{"sandboxclaim/c1"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if diff := cmp.Diff(tc.want, roundsOf(t, tc.stored, tc.ask)); diff != "" {
					t.Errorf("(-want,+got):\n%s", diff)
				}
			})
		})
	}
}
