package pools

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/controllers/hints"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/livereadtest"
)

var now = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

var poolKinds = PoolKinds{
	Pools:     schema.GroupVersionKind{Group: builders.GroupExtensions, Version: builders.V1Beta1, Kind: "SandboxWarmPool"},
	Templates: schema.GroupVersionKind{Group: builders.GroupExtensions, Version: builders.V1Beta1, Kind: "SandboxTemplate"},
	Sandboxes: schema.GroupVersionKind{Group: builders.GroupCore, Version: builders.V1Beta1, Kind: "Sandbox"},
}

// history knows revisions by the templates that had them.
type history []*unstructured.Unstructured

func (h history) Revisions(context.Context, *unstructured.Unstructured) ([]platform.Recorded, error) {
	var out []platform.Recorded
	for _, t := range h {
		b, err := agentsandbox.RenderMember(t)
		if err != nil {
			return nil, err
		}
		out = append(out, platform.Recorded{Hash: b.Hash(), Template: t, Rendered: b})
	}
	return out, nil
}

// inForce is a platform whose stored objects can be others than those cached.
type inForce struct {
	agentsandbox.Platform
	stored client.Reader
	gets   atomic.Int32
	// refuse are the objects that cannot be read.
	refuse map[string]error
}

func newInForce(known platform.History, stored client.Reader) *inForce {
	p := &inForce{stored: stored, refuse: map[string]error{}}
	p.History, p.Defaults = known, settings.Defaults{Strategy: freshness.OnReplenish}
	p.Reader, p.Resolver = liveread.NewReader(livereadtest.GetterFunc(p.read), nil), p
	return p
}

func (p *inForce) Get(ctx context.Context, gr schema.GroupResource, namespace, name string) (*unstructured.Unstructured, error) {
	p.gets.Add(1)
	return p.Platform.Get(ctx, gr, namespace, name)
}

var storedKinds = map[schema.GroupResource]schema.GroupVersionKind{
	agentsandbox.Pools: poolKinds.Pools, agentsandbox.Templates: poolKinds.Templates, agentsandbox.Sandboxes: poolKinds.Sandboxes,
	podResource: podKind,
}

func (p *inForce) read(ctx context.Context, ref liveread.Ref) (*unstructured.Unstructured, error) {
	kind, known := storedKinds[ref.GVR.GroupResource()]
	if !known {
		return nil, apierrors.NewNotFound(ref.GVR.GroupResource(), ref.Name)
	}
	if err := p.refuse[kind.Kind+" "+ref.Name]; err != nil {
		return nil, err
	}
	u := object(kind)
	err := p.stored.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, u)
	if apierrors.IsNotFound(err) {
		// The client guesses names of resources.
		err = apierrors.NewNotFound(ref.GVR.GroupResource(), ref.Name)
	}
	return u, err
}

func (p *inForce) Resource(_ context.Context, gr schema.GroupResource) (schema.GroupVersionResource, error) {
	return gr.WithVersion(storedKinds[gr].Version), nil
}

// harness is a controller of pools on fake objects.
type harness struct {
	*Controller
	t      *testing.T
	client client.WithWatch
	clock  *clocktesting.FakePassiveClock
	mu     sync.Mutex
	writes []string
	// refuse makes writes with that verb fail, notified are the pools that the budget
	// has something for, and later those that it will have something for, and when.
	refuse   map[string]error
	notified []string
	later    map[string]time.Duration
	// born counts the members that took the places of others.
	born int
}

func (r *harness) notify(pool types.NamespacedName, after time.Duration) {
	if after > 0 {
		r.later[pool.Name] = after
		return
	}
	r.notified = append(r.notified, pool.Name)
}

func newHarness(t *testing.T, known history, objs ...*unstructured.Unstructured) *harness {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, k := range []schema.GroupVersionKind{poolKinds.Pools, poolKinds.Templates, poolKinds.Sandboxes, podKind, nodeKind} {
		scheme.AddKnownTypeWithName(k, &unstructured.Unstructured{})
		scheme.AddKnownTypeWithName(listOf(k), &unstructured.UnstructuredList{})
	}
	r := &harness{t: t, clock: clocktesting.NewFakePassiveClock(now), refuse: map[string]error{}, later: map[string]time.Duration{}}
	b := fake.NewClientBuilder().WithScheme(scheme)
	for _, o := range objs {
		b = b.WithObjects(o.DeepCopy())
	}
	r.client = b.WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			var o client.DeleteOptions
			o.ApplyOptions(opts)
			if ours := obj.GetObjectKind().GroupVersionKind().Kind == "Sandbox"; ours && (o.Preconditions == nil || o.Preconditions.UID == nil || o.Preconditions.ResourceVersion == nil) {
				t.Errorf("delete of %s without preconditions", obj.GetName())
			}
			r.note("delete " + obj.GetName())
			if err := cmp.Or(r.refuse["delete"], r.refuse["delete "+obj.GetName()]); err != nil {
				return err
			}
			return c.Delete(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			body, err := patch.Data(obj)
			if err != nil {
				return err
			}
			verb := "publish"
			switch {
			case strings.Contains(string(body), builders.LabelTemplateRef+`":null`):
				verb = "hide"
			case strings.Contains(string(body), builders.LabelTemplateRef):
				verb = "show"
			case strings.Contains(string(body), settings.StampKey):
				verb = "stamp " + obj.GetObjectKind().GroupVersionKind().Kind
			}
			r.note(verb + " " + obj.GetName())
			if err := cmp.Or(r.refuse[verb], r.refuse[verb+" "+obj.GetName()]); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build()
	act := func(context.Context, string, string) (bool, error) { return true, nil }
	r.Controller = &Controller{
		platform: newInForce(known, r.client),
		kinds:    agentsandbox.Objects{}.Kinds(), visible: agentsandbox.Objects{}, enforced: act, enforcedNow: act,
		leads:  func() bool { return true },
		ready:  map[types.UID]sets.Set[types.UID]{},
		view:   viewOf(r),
		client: r.client, refused: &Refused{hints: make(hints.Queue[Refusal], 100)},
		budget: NewBudget(50, Pace{}, r.notify), metrics: NewMetrics(prometheus.NewRegistry()), events: &events.FakeRecorder{}, clock: r.clock, records: map[types.NamespacedName]*poolRecord{},
	}
	return r
}

func (r *harness) note(write string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes = append(r.writes, write)
}

// count is how many writes were made so far.
func (r *harness) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.writes)
}

// step reconciles a pool, and returns what was written to members, sorted.
func (r *harness) step(pool *unstructured.Unstructured) (writes []string, again time.Duration) {
	r.t.Helper()
	r.writes = nil
	result, err := r.Reconcile(r.t.Context(), reconcile.Request{NamespacedName: client.ObjectKeyFromObject(pool)})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, w := range r.writes {
		if !strings.HasPrefix(w, "publish") {
			writes = append(writes, w)
		}
	}
	slices.Sort(writes)
	return writes, result.RequeueAfter
}

func (r *harness) annotation(pool *unstructured.Unstructured, key string) string {
	r.t.Helper()
	u := object(poolKinds.Pools)
	if err := r.client.Get(r.t.Context(), client.ObjectKeyFromObject(pool), u); err != nil {
		r.t.Fatal(err)
	}
	return u.GetAnnotations()[key]
}

func (r *harness) noted() []string {
	var out []string
	for {
		select {
		case h := <-r.refused.hints:
			out = append(out, h.Key.Name)
		default:
			slices.Sort(out)
			return out
		}
	}
}

var (
	v1 = builders.MakeTemplate("ns", "python").Image("sandbox:v1").RV(1).Obj()
	v2 = builders.MakeTemplate("ns", "python").Image("sandbox:v2").RV(2).Generation(2).Obj()
)

// of makes a ready member of a pool, built from a template.
func of(pool, template *unstructured.Unstructured, name string) *builders.Sandbox {
	return builders.MakeMember(pool, template).Name(name).Created(now.Add(-time.Hour)).Ready(true).Label(settings.StampKey, "v1-x")
}

func ofAll(pool, template *unstructured.Unstructured, n int) []*unstructured.Unstructured {
	var out []*unstructured.Unstructured
	for i := range n {
		out = append(out, of(pool, template, fmt.Sprintf("m%02d", i)).Obj())
	}
	return out
}
