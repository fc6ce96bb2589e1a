package integration

import (
	"cmp"
	"context"
	"maps"
	"os"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// unguarded plays everything without Freshbind denying: a row that passes then
// shows nothing.
var unguarded = os.Getenv("FRESHBIND_WAYS_UNGUARDED") != ""

// barePods stands in the tables for every release whose members are bare Pods.
const barePods = "bare pods"

// faultCase is one way in which a bind goes wrong. Where something depends on the
// release, the tables name it, or barePods.
type faultCase struct {
	// reason is what the guard has to say at least once; without it the row has
	// shown nothing.
	reason freshness.Reason
	// reasons are those of releases in which it is another one.
	reasons map[string]freshness.Reason
	// operation is the judged one; any when empty.
	operation freshness.Operation
	// impossible says why a release has no such case.
	impossible map[string]string
	// strategy of the pool's own spec, Recreate when empty, and rollout the
	// annotation, for pools that upstream itself is to leave alone.
	strategy, rollout string
	// served is the image that claims have where that is not the template's in the
	// end, but the one in force when they came.
	served string
	// template changes the template before it is stored.
	template func(*row, *builders.Template)
	// prepare runs while nothing is late, provoke while the caches are late, and
	// after once all claims are ready.
	prepare, provoke, after func(*row)
}

func byRelease[V any](table map[string]V, w *faultWorld) (V, bool) {
	if v, ok := table[w.release]; ok {
		return v, true
	}
	v, ok := table[barePods]
	return v, ok && w.bare
}

// phase is a set of cases that are played at the same time, each in a namespace
// of its own, because the same caches of the controllers are late.
type phase struct {
	// late are the resources whose changes the controllers do not see, lateBare
	// those in releases whose members are bare Pods.
	late, lateBare []schema.GroupResource
	cases          map[string]faultCase
}

var pods = schema.GroupResource{Resource: "pods"}

func phases() []phase {
	inputs := []schema.GroupResource{upstream.SandboxTemplates, upstream.SandboxWarmPools}
	all := []schema.GroupResource{upstream.SandboxClaims, upstream.Sandboxes, pods}
	return []phase{
		{late: inputs, lateBare: inputs, cases: inputFaults},
		{late: all[:2], lateBare: all, cases: writtenFaults},
		{late: all[1:], lateBare: all, cases: podFaults},
		{late: all[1:2], lateBare: all[2:], cases: deleteFaults},
		{late: inputs, lateBare: inputs, cases: outageFaults},
	}
}

// TestFaults plays every case in which a bind can go wrong with every release. The
// controllers make the mistake themselves where their caches can be made late
// enough for it; where not, what they would write is written in their name.
func TestFaults(t *testing.T) {
	for _, version := range upstream.AllReleases() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			w := startFaults(t, version)
			for _, p := range phases() {
				w.play(t, p)
			}
		})
	}
}

// faultWorld is a world of one release.
type faultWorld struct {
	*world
	release string
	// bare: members are Pods, not Sandboxes.
	bare bool
	// core reaches what is not agent-sandbox's, as an admin.
	core dynamic.Interface
	// upstream has the controllers' own identity.
	upstream dynamic.Interface
	journal  *journal
}

// notReady keeps a node with the label as it is: kwok makes all others ready.
const notReady = `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: node-not-ready}
spec:
  resourceRef: {apiGroup: v1, kind: Node}
  selector: {matchLabels: {` + notReadyLabel + `: "true"}}
  weight: 1
  next:
    statusTemplate: |
      conditions:
      - {type: Ready, status: "False", reason: KubeletNotReady, message: it is told to be}
`

func startFaults(t *testing.T, version string) *faultWorld {
	t.Helper()
	return faultsIn(t, ownWorld(t, scenario.WorldOptions{Release: version, Cluster: controlplane.Options{Stages: notReady}}), version)
}

// faultsIn is for what goes wrong in a world of that release.
func faultsIn(t *testing.T, in *world, version string) *faultWorld {
	t.Helper()
	w := &faultWorld{world: in, release: version, bare: upstream.BarePods(version)}
	w.journal = &journal{path: w.Guard.LogPath()}
	identity, err := w.Cluster.User(upstream.User, "system:serviceaccounts", "system:serviceaccounts:"+upstream.Namespace, "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cfg  *rest.Config
		into *dynamic.Interface
	}{{w.Cluster.Config(), &w.core}, {identity, &w.upstream}} {
		cfg := rest.CopyConfig(c.cfg)
		cfg.QPS = -1
		if *c.into, err = dynamic.NewForConfig(cfg); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// play runs the cases of a phase side by side: all pools are full before the
// caches get late, and everything has gone wrong before they catch up.
func (w *faultWorld) play(t *testing.T, p phase) {
	late := p.late
	if w.bare {
		late = p.lateBare
	}
	g := newGate(len(p.cases))
	var rows sync.WaitGroup
	for _, name := range slices.Sorted(maps.Keys(p.cases)) {
		prepared, provoked := sync.OnceFunc(g.prepared.Done), sync.OnceFunc(g.provoked.Done)
		rows.Go(func() {
			// Also a row that fails, or is not to be run at all, holds nobody up.
			defer provoked()
			defer prepared()
			t.Run(name, func(t *testing.T) {
				if why, ok := byRelease(p.cases[name].impossible, w); ok {
					t.Skipf("cannot go wrong in %s: %s", w.release, why)
				}
				r := w.row(t, name, p.cases[name])
				r.prepare()
				prepared()
				<-g.late
				r.provoke()
				provoked()
				<-g.seen
				r.finish()
			})
		})
	}
	g.prepared.Wait()
	for _, r := range late {
		w.Controllers.Proxy().Hold(r.Group, r.Resource)
	}
	close(g.late)
	g.provoked.Wait()
	for _, r := range late {
		w.Controllers.Proxy().Release(r.Group, r.Resource)
	}
	close(g.seen)
	rows.Wait()
}

// gate is what the rows of a phase wait for together.
type gate struct {
	prepared, provoked sync.WaitGroup
	late, seen         chan struct{}
}

func newGate(rows int) *gate {
	g := &gate{late: make(chan struct{}), seen: make(chan struct{})}
	g.prepared.Add(rows)
	g.provoked.Add(rows)
	return g
}

const (
	replicas  = 2
	claimants = 3
	// provoking bounds how long a row keeps the caches late, for all rows of its
	// phase: claims that are refused meanwhile wait ever longer, so that they need as
	// much time again.
	provoking = within / 2
)

// row is one case being played.
type row struct {
	*stage
	w     *faultWorld
	name  string
	fault faultCase
	pool  scenario.Pool
	other *scenario.Pool
	// claims are those that have to be ready in the end.
	claims []string
	// members are the pool's, as they were before anything went wrong, and
	// victims those that are wrong then.
	members, victims []*object
	// byHand is what somebody made that looks like a member.
	byHand *object
	// unprotected is how many deletes had passed without an answer before it began.
	unprotected int
}

func (w *faultWorld) row(t *testing.T, name string, fault faultCase) *row {
	labels := scenario.Enforce()
	if unguarded {
		labels = nil
	}
	s := w.namespace(t, labels)
	return &row{
		stage: s, w: w, name: name, fault: fault,
		pool: scenario.Pool{Name: "py-" + s.Name, Template: "py-" + s.Name, Image: "sandbox:v1", Replicas: replicas},
	}
}

// otherName is that of another template or pool. Rows share none: upstream's
// queues of members are by name of template or pool, over all namespaces.
func (r *row) otherName() string { return "other-" + r.Name }

// want is the reason that the row is about.
func (r *row) want() freshness.Reason {
	if reason, ok := byRelease(r.fault.reasons, r.w); ok {
		return reason
	}
	return r.fault.reason
}

func (r *row) prepare() {
	r.create(r.pool, r.fault.template)
	r.members = r.filled(r.pool, r.pool.Image)
	if r.fault.prepare != nil {
		r.fault.prepare(r)
	}
	r.victims = r.members
}

// create stores a pool and its template.
func (r *row) create(p scenario.Pool, change func(*row, *builders.Template)) {
	r.t.Helper()
	template := builders.MakeTemplate(r.Name, p.Template).APIVersion(r.Version).Image(p.Image)
	if change != nil {
		change(r, template)
	}
	r.must(r.Create(r.t.Context(), template.Obj(), r.poolObject(p)))
}

func (r *row) poolObject(p scenario.Pool) *object {
	pool := builders.MakePool(r.Name, p.Name).APIVersion(r.Version).Template(p.Template).Replicas(int64(p.Replicas))
	rollout := r.fault.rollout
	if r.w.bare {
		rollout = cmp.Or(rollout, r.fault.strategy, scenario.Recreate)
	} else {
		pool.Strategy(cmp.Or(r.fault.strategy, scenario.Recreate))
	}
	if rollout != "" {
		pool.Annotation(rolloutStrategy, rollout)
	}
	return pool.Obj()
}

// provoke lets things go wrong, and waits until the guard has said so.
func (r *row) provoke() {
	r.fault.provoke(r)
	if r.want() != "" {
		r.refused(r.want())
	}
}

// refused waits until a write was refused for the reason, or Freshbind has
// deleted every victim before anybody tried one.
func (r *row) refused(reason freshness.Reason) {
	r.t.Helper()
	err := scenario.Poll(r.t.Context(), provoking, func(ctx context.Context) (bool, error) {
		return r.count(reason) > 0 || reason == r.want() && r.fault.operation == "" && r.gone(ctx), nil
	})
	if err != nil {
		r.t.Fatalf("nothing was refused for %s, only for: %s", reason, r.refusals(""))
	}
}

// eventually polls ever less often: a dozen rows do so at once.
func (r *row) eventually(what string, condition func(ctx context.Context) (string, bool)) {
	r.t.Helper()
	state := ""
	err := scenario.Poll(r.t.Context(), within, func(ctx context.Context) (bool, error) {
		var done bool
		state, done = condition(ctx)
		return done, nil
	})
	if err != nil {
		r.t.Fatalf("%s: %v; there is: %s", what, err, state)
	}
}

// gone reports whether all victims are deleted.
func (r *row) gone(ctx context.Context) bool {
	r.t.Helper()
	client := r.memberClient()
	for _, v := range r.victims {
		now, err := client.Get(ctx, v.GetName(), metav1.GetOptions{})
		if err == nil && now.GetUID() == v.GetUID() && now.GetDeletionTimestamp() == nil || err != nil && !isNotFound(err) {
			return false
		}
	}
	return len(r.victims) > 0
}

// claim creates the row's claims at once.
func (r *row) claim() {
	r.t.Helper()
	names := scenario.Names("c", claimants)
	r.must(r.CreateClaims(r.t.Context(), r.pool, names...))
	r.claims = append(r.claims, names...)
}

// serve gives a new claim a member while nothing is late, and returns the claim
// with what it got.
func (r *row) serve(name string) (claim, sandbox *object) {
	r.t.Helper()
	r.stage.claim(r.pool, name)
	r.claims = append(r.claims, name)
	claim = r.get(upstream.SandboxClaims, name)
	owned := r.owned(claim)
	if len(owned) != 1 {
		r.t.Fatalf("claim %s has %d sandboxes, want 1", name, len(owned))
	}
	r.members = r.filled(r.pool, r.pool.Image)
	return claim, owned[0]
}

// owned lists the live sandboxes of a claim.
func (r *row) owned(claim *object) []*object {
	var out []*object
	sandboxes := r.list(upstream.Sandboxes)
	for i := range sandboxes {
		s := &sandboxes[i]
		if s.GetDeletionTimestamp() == nil && slices.ContainsFunc(s.GetOwnerReferences(),
			func(o metav1.OwnerReference) bool { return o.UID == claim.GetUID() }) {
			out = append(out, s)
		}
	}
	return out
}
