package pools

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/freshbind/freshbind/controllers/hints"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/test/builders"
)

var (
	claim   = builders.MakeClaimV1Alpha1("ns", "c1", "python", "").Obj()
	barePod = builders.MakePod(member).Owners(builders.ControllerRef(pool)).
		Set("python-", "metadata", "generateName").Obj()
	given = builders.PodFrom(barePod).Owners().Label(agentsandbox.PodClaimLabel, string(claim.GetUID())).Obj()
	// unmarked is what v0.1.0 leaves of a Pod that it took.
	unmarked = builders.PodFrom(barePod).Owners().Obj()
	// strange was made by somebody else.
	strange = builders.PodFrom(unmarked).Set("", "metadata", "generateName").NoLabel(agentsandbox.PodPoolLabel).Obj()
)

func asKind(kind schema.GroupVersionKind, obj *unstructured.Unstructured) *unstructured.Unstructured {
	obj = obj.DeepCopy()
	obj.SetGroupVersionKind(kind)
	return obj
}

func TestSettlingARefusedPod(t *testing.T) {
	kinds := Kinds{
		Sandboxes: schema.GroupVersionKind{Group: builders.GroupCore, Version: builders.V1Alpha1, Kind: "Sandbox"},
		Claims:    schema.GroupVersionKind{Group: builders.GroupExtensions, Version: builders.V1Alpha1, Kind: "SandboxClaim"},
	}
	fine := facts(func(s *freshness.Snapshot) { s.Member.Bare = true })
	dead := facts(func(s *freshness.Snapshot) { s.Member.Bare, s.Pod.Finished = true, true })
	noTemplate := facts(func(s *freshness.Snapshot) { s.Member.Bare, s.Template = true, nil })
	noPool := facts(func(s *freshness.Snapshot) { s.Member.Bare, s.Pool = true, nil })
	live := asKind(kinds.Claims, claim)
	inIt := asKind(kinds.Sandboxes, builders.MakeColdStart(claim, template).PodName(barePod.GetName()).Obj())
	elsewhere := asKind(kinds.Sandboxes, builders.MakeColdStart(claim, template).Obj())

	type want struct {
		Deleted bool
		Again   time.Duration
		Err     bool
	}
	deleted := want{Deleted: true}
	cases := map[string]struct {
		pod     *unstructured.Unstructured
		facts   platform.Facts
		err     error
		stored  []client.Object
		overdue bool
		mode    modeNow
		want    want
	}{
		"member at fault":                           {pod: barePod, facts: dead, want: deleted},
		"member without fault":                      {pod: barePod, facts: fine},
		"member whose template is gone":             {pod: barePod, facts: noTemplate},
		"of somebody else":                          {pod: builders.PodFrom(barePod).Owners(builders.ControllerRef(member)).Obj(), facts: facts(func(s *freshness.Snapshot) { s.Member.Controller.Kind = freshness.OwnedByAnother })},
		"undecided is not denied":                   {pod: barePod, err: errors.New("etcd is away"), want: want{Err: true}},
		"being deleted":                             {pod: builders.PodFrom(barePod).Deleting(time.Unix(1, 0)).Obj(), facts: dead},
		"gone":                                      {facts: dead},
		"released and not marked, a moment ago":     {pod: unmarked, facts: fine},
		"released and not marked, long ago":         {pod: unmarked, facts: fine, overdue: true, want: deleted},
		"released and not marked, at fault":         {pod: unmarked, facts: dead, want: deleted},
		"released, a sandbox runs in it":            {pod: unmarked, facts: dead, stored: []client.Object{inIt}},
		"given to a claim that waits":               {pod: given, facts: fine, stored: []client.Object{live}, want: want{Again: recheck}},
		"given to a claim that waits, at fault":     {pod: given, facts: dead, stored: []client.Object{live}, want: deleted},
		"given to a claim that has another sandbox": {pod: given, facts: fine, stored: []client.Object{live, elsewhere}, want: deleted},
		"given to a claim that is gone":             {pod: given, facts: fine, want: deleted},
		"given, and its sandbox is there":           {pod: given, facts: dead, stored: []client.Object{live, inIt}},
		"never a pool's":                            {pod: strange, facts: noPool, overdue: true},
		"member at fault, but audited by now":       {pod: barePod, facts: dead, mode: modeNow{audit: true}},
		"released at fault, but audited by now":     {pod: unmarked, facts: dead, mode: modeNow{audit: true}},
		"at fault, in a mode that cannot be read":   {pod: barePod, facts: dead, mode: modeNow{err: errors.New("no answer")}, want: want{Err: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, k := range []schema.GroupVersionKind{kinds.Sandboxes, kinds.Claims} {
				scheme.AddKnownTypeWithName(k, &unstructured.Unstructured{})
				scheme.AddKnownTypeWithName(k.GroupVersion().WithKind(k.Kind+"List"), &unstructured.UnstructuredList{})
			}
			lists := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.stored...).Build()
			c, writes := newClient(t, nil)
			p := &Pods{
				client: c, lists: lists, enforcedNow: tc.mode.enforced(t), snapshots: snapshots{tc.facts, tc.err}, kinds: kinds, objects: agentsandbox.Objects{}, released: agentsandbox.BarePods{},
				live: func(context.Context, types.NamespacedName) (*unstructured.Unstructured, error) {
					if tc.pod == nil {
						return nil, nil
					}
					return builders.PodFrom(tc.pod).RV(7).Obj(), nil
				},
			}
			result, err := p.Reconcile(t.Context(), Refusal{NamespacedName: client.ObjectKeyFromObject(barePod), UID: barePod.GetUID(), Overdue: tc.overdue})
			got := want{Again: result.RequeueAfter, Err: err != nil}
			if len(*writes) > 0 {
				got.Deleted = true
				if diff := cmp.Diff([]write{{Verb: "delete", UID: string(barePod.GetUID()), RV: "7"}}, *writes); diff != "" {
					t.Errorf("writes (-want,+got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s%v", diff, err)
			}
		})
	}
}

func TestAFullQueueOfPodsBlocksNobody(t *testing.T) {
	p := &Pods{hints: make(hints.Queue[Refusal], 1)}
	for range 3 {
		p.Note(barePod)
	}
	if diff := cmp.Diff(Refusal{NamespacedName: client.ObjectKeyFromObject(barePod), UID: barePod.GetUID()}, (<-p.hints).Key); diff != "" {
		t.Errorf("hint (-want,+got):\n%s", diff)
	}
}

// queued notes what it is asked to look at, and when.
type queued struct {
	workqueue.TypedRateLimitingInterface[Refusal]
	after chan time.Duration
}

func (q *queued) AddAfter(_ Refusal, after time.Duration) { q.after <- after }

// A Pod is in use a while after it was allowed to leave its pool, and a refused
// one never.
func TestWhenPodsAreLookedAt(t *testing.T) {
	cases := map[string]struct {
		note func(*Pods, *unstructured.Unstructured)
		want time.Duration
	}{
		"refused":  {(*Pods).Note, 0},
		"released": {(*Pods).NoteReleased, released},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p, q := &Pods{hints: make(hints.Queue[Refusal], 1)}, &queued{after: make(chan time.Duration)}
			if err := p.hints.Feed(t.Context(), q); err != nil {
				t.Fatal(err)
			}
			tc.note(p, barePod)
			if got := <-q.after; got != tc.want {
				t.Errorf("looked at after %s, want %s", got, tc.want)
			}
		})
	}
}
