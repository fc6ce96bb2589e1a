package pools

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/controllers/hints"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/test/builders"
)

var (
	template = builders.MakeTemplate("ns", "python").Obj()
	pool     = builders.MakePool("ns", "python").Obj()
	member   = builders.MakeMember(pool, template).Name("python-abc").Obj()
)

// write is what reached the API server.
type write struct {
	Verb, Body string
	UID, RV    string
}

type snapshots struct {
	facts platform.Facts
	err   error
}

func (s snapshots) Snapshot(_ context.Context, w platform.Write) (platform.Facts, error) {
	s.facts.Operation = w.Operation
	return s.facts, s.err
}

// facts of a member that any claim could take, but for what change does.
func facts(change func(*freshness.Snapshot)) platform.Facts {
	s := freshness.Snapshot{
		Member: freshness.Member{
			Name: "python-abc", UID: "m", Generation: 1,
			Controller: freshness.Owner{Kind: freshness.OwnedByPool, Name: "python", UID: "p"},
		},
		Pool:     &freshness.Pool{Name: "python", UID: "p", Template: "python", Strategy: freshness.Recreate},
		Template: &freshness.Template{Name: "python"},
		Pod:      &freshness.Pod{ControllerUID: "m"},
	}
	change(&s)
	return platform.Facts{Snapshot: s, Enforcement: poolSays}
}

func TestSettlingARefusedMember(t *testing.T) {
	fine := facts(func(*freshness.Snapshot) {})
	dead := facts(func(s *freshness.Snapshot) { s.Pod.Deleting = true })
	taken := facts(func(s *freshness.Snapshot) { s.Member.Controller.Kind = freshness.OwnedByClaim })
	used := facts(func(s *freshness.Snapshot) { s.Member.Used = true })
	notYet := facts(func(s *freshness.Snapshot) { s.Pod = nil })
	old := func(s *freshness.Snapshot) {
		s.Pool.Strategy, s.Pool.Restarted, s.Member.Created = freshness.RollingUpdate, time.Unix(9, 0), time.Unix(1, 0)
	}
	stale := facts(old)
	onDrainingNode := facts(func(s *freshness.Snapshot) { s.Pod.NodeLeaving = "it is not ready" })
	tolerated := facts(func(s *freshness.Snapshot) {
		aside := freshness.Node{Evicting: []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoExecute}}}
		s.Pod.NodeLeaving = aside.Leaving([]corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}})
	})
	remade := facts(func(s *freshness.Snapshot) {
		old := content(t, "old")
		s.Template.Content, s.Template.Hash, s.Pod.Content = s.Member.Content, "v1-new", old
		s.Known = []freshness.Known{{Hash: "v1-old", Content: old}}
	})
	staleAndDead := facts(func(s *freshness.Snapshot) { old(s); s.Pod.Deleting = true })
	late := onDrainingNode
	late.Node = &platform.Node{Name: "n3", ResourceVersion: "7"}
	hidden := builders.SandboxFrom(member).NoLabel(builders.LabelTemplateRef).Obj()

	hide := write{Verb: "patch", Body: `{"metadata":{"labels":{"` + builders.LabelTemplateRef + `":null},"resourceVersion":"999","uid":"UID"}}`}
	show := func(rv string) write {
		return write{Verb: "patch", Body: `{"metadata":{"labels":{"` + builders.LabelTemplateRef + `":"` + builders.NameHash("python") + `"},"resourceVersion":"` + rv + `","uid":"UID"}}`}
	}
	type want struct {
		Writes []write
		Again  time.Duration
		Err    bool
	}
	cases := map[string]struct {
		stored *unstructured.Unstructured
		uid    string
		doubt  bool
		back   bool
		facts  platform.Facts
		nodes  []unstructured.Unstructured
		err    error
		mode   modeNow
		want   want
	}{
		"at fault: exactly that version is deleted": {stored: member, facts: dead, want: want{Writes: []write{{Verb: "delete", UID: "UID", RV: "999"}}}},
		"without fault: offered again":              {stored: member, facts: fine, want: want{Writes: []write{hide, show("1000")}}},
		"only in doubt, and fine: left alone":       {stored: member, facts: fine, doubt: true},
		"only in doubt, but dead":                   {stored: member, facts: dead, doubt: true, want: want{Writes: []write{{Verb: "delete", UID: "UID", RV: "999"}}}},
		"a Pod made again, that caches do not show": {stored: member, facts: remade, want: want{Writes: []write{{Verb: "delete", UID: "UID", RV: "999"}}}},
		"left hidden half-way: offered":             {stored: hidden, facts: fine, want: want{Writes: []write{show("999")}}},
		"passes by itself: looked at again":         {stored: member, facts: notYet, want: want{Again: recheck}},
		"stale: left to who sees the whole pool":    {stored: member, facts: stale, want: want{Again: recheck}},
		"stale and hidden: offered when shown":      {stored: hidden, facts: stale},
		"stale, but dead too":                       {stored: member, facts: staleAndDead, want: want{Writes: []write{{Verb: "delete", UID: "UID", RV: "999"}}}},
		"on a node that is about to go":             {stored: member, facts: onDrainingNode, nodes: nodesOf(3, 1), want: want{Writes: []write{{Verb: "delete", UID: "UID", RV: "999"}}}},
		"on one of too many to be given up":         {stored: member, facts: onDrainingNode, nodes: nodesOf(1, 3), want: want{Again: outageKept}},
		"on a node that caches show ready still":    {stored: member, facts: late, nodes: nodesOf(4, 0), want: want{Again: outageKept}},
		"tolerates the taint, too many not ready":   {stored: member, facts: tolerated, nodes: nodesOf(1, 3), want: want{Writes: []write{hide, show("1000")}}},
		"dead, on one of too many":                  {stored: member, facts: dead, nodes: nodesOf(1, 3), want: want{Writes: []write{{Verb: "delete", UID: "UID", RV: "999"}}}},
		"not given back, dead":                      {stored: member, facts: dead, back: true, want: want{Writes: []write{{Verb: "delete", UID: "UID", RV: "999"}}}},
		"not given back, stale":                     {stored: member, facts: stale, back: true, want: want{Writes: []write{{Verb: "delete", UID: "UID", RV: "999"}}}},
		"not given back, used":                      {stored: member, facts: used, back: true, want: want{Writes: []write{{Verb: "delete", UID: "UID", RV: "999"}}}},
		"not given back, and fine by now":           {stored: member, facts: fine, back: true},
		"not given back, as it passes":              {stored: member, facts: notYet, back: true, want: want{Again: recheck}},
		"not given back, and somebody's by now":     {stored: member, facts: taken, back: true},
		"taken meanwhile":                           {stored: member, facts: taken},
		"gone":                                      {},
		"another one of that name":                  {stored: member, uid: "another", facts: dead},
		"being deleted":                             {stored: builders.SandboxFrom(member).Deleting(time.Unix(1, 0)).Obj(), facts: dead},
		"undecided is not denied":                   {stored: member, err: errors.New("etcd is away"), want: want{Err: true}},
		"at fault, but audited by now":              {stored: member, facts: dead, mode: modeNow{audit: true}},
		"not given back, but audited by now":        {stored: member, facts: used, back: true, mode: modeNow{audit: true}},
		"without fault, audited by now: offered":    {stored: member, facts: fine, mode: modeNow{audit: true}, want: want{Writes: []write{hide, show("1000")}}},
		"at fault, in a mode that cannot be read":   {stored: member, facts: dead, mode: modeNow{err: errors.New("no answer")}, want: want{Err: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c, writes := newClient(t, tc.stored)
			outage := NewOutage(&nodeLists{nodes: tc.nodes}, clocktesting.NewFakePassiveClock(now))
			r := &Refused{visible: agentsandbox.Objects{}, client: c, enforcedNow: tc.mode.enforced(t), outage: outage, snapshots: snapshots{tc.facts, tc.err}, live: func(ctx context.Context, key types.NamespacedName) (*unstructured.Unstructured, error) {
				if tc.stored == nil {
					return nil, nil
				}
				u := &unstructured.Unstructured{}
				u.SetGroupVersionKind(tc.stored.GroupVersionKind())
				if tc.stored.GetDeletionTimestamp() != nil {
					return tc.stored, nil
				}
				return u, c.Get(ctx, key, u)
			}}
			uid := member.GetUID()
			if tc.uid != "" {
				uid = types.UID(tc.uid)
			}
			result, err := r.Reconcile(t.Context(), Refusal{NamespacedName: client.ObjectKeyFromObject(member), UID: uid, Doubted: tc.doubt, Returning: tc.back})
			got := want{Writes: *writes, Again: result.RequeueAfter, Err: err != nil}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// poolSays is what the pool says of its mode in these tests.
const poolSays = "as the pool says"

// modeNow is how the mode is stored; not audit is enforce.
type modeNow struct {
	audit bool
	err   error
}

func (m modeNow) enforced(t *testing.T) Enforced {
	t.Helper()
	return func(_ context.Context, namespace, pool string) (bool, error) {
		if namespace != "ns" || pool != poolSays {
			t.Errorf("asked for the mode of namespace %q and %q, want ns and what the pool says", namespace, pool)
		}
		return !m.audit && m.err == nil, m.err
	}
}

// What does not pass is looked at less and less often, until it does.
func TestWhatDoesNotPassIsLookedAtLessOften(t *testing.T) {
	c, _ := newClient(t, member)
	outage := NewOutage(&nodeLists{}, clocktesting.NewFakePassiveClock(now))
	live := func(context.Context, types.NamespacedName) (*unstructured.Unstructured, error) { return member, nil }
	notYet := snapshots{facts(func(s *freshness.Snapshot) { s.Pod = nil }), nil}
	onLeave := nodesOf(1, 3)
	onDrainingNode := snapshots{facts(func(s *freshness.Snapshot) { s.Member.Bare, s.Pod.NodeLeaving = true, "it is not ready" }), nil}
	refusal := refusalOf(member)
	controllers := map[string]reconcile.TypedReconciler[Refusal]{
		"a member": &Refused{visible: agentsandbox.Objects{}, client: c, outage: outage, snapshots: notYet, live: live},
		"a bare Pod": &Pods{
			client: c, outage: NewOutage(&nodeLists{nodes: onLeave}, clocktesting.NewFakePassiveClock(now)), snapshots: onDrainingNode,
			live: func(context.Context, types.NamespacedName) (*unstructured.Unstructured, error) {
				return builders.PodFrom(barePod).Set(string(refusal.UID), "metadata", "uid").Obj(), nil
			},
		},
	}
	for name, r := range controllers {
		t.Run(name, func(t *testing.T) {
			var got []time.Duration
			for range 3 {
				result, err := r.Reconcile(t.Context(), refusal)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, result.RequeueAfter)
			}
			if diff := cmp.Diff([]time.Duration{recheck, 2 * recheck, 4 * recheck}, got); diff != "" {
				t.Errorf("waits (-want,+got):\n%s", diff)
			}
		})
	}
}

// newClient records writes; the member's UID is written as UID.
func newClient(t *testing.T, stored *unstructured.Unstructured) (client.WithWatch, *[]write) {
	t.Helper()
	scheme := runtime.NewScheme()
	gv := schema.GroupVersion{Group: builders.GroupCore, Version: builders.V1Beta1}
	scheme.AddKnownTypeWithName(gv.WithKind("Sandbox"), &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(gv.WithKind("SandboxList"), &unstructured.UnstructuredList{})
	b := fake.NewClientBuilder().WithScheme(scheme)
	if stored != nil && stored.GetDeletionTimestamp() == nil {
		b = b.WithObjects(stored.DeepCopy())
	}
	writes := new([]write)
	hideUID := func(s string) string { return strings.ReplaceAll(s, string(member.GetUID()), "UID") }
	return b.WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			var o client.DeleteOptions
			o.ApplyOptions(opts)
			w := write{Verb: "delete"}
			if p := o.Preconditions; p != nil && p.UID != nil && p.ResourceVersion != nil {
				w.UID, w.RV = hideUID(string(*p.UID)), *p.ResourceVersion
			}
			*writes = append(*writes, w)
			return c.Delete(ctx, obj, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			body, err := patch.Data(obj)
			if err != nil {
				return err
			}
			*writes = append(*writes, write{Verb: "patch", Body: hideUID(string(body))})
			return c.Patch(ctx, obj, patch, opts...)
		},
	}).Build(), writes
}

func TestAFullQueueDropsHintsAndBlocksNobody(t *testing.T) {
	r := &Refused{hints: make(hints.Queue[Refusal], 1)}
	for range 3 {
		r.Note(member, freshness.FaultMember)
	}
	if len(r.hints) != 1 {
		t.Errorf("%d hints wait, want 1", len(r.hints))
	}
}

func TestHowLongARefusedMemberIsLeftAlone(t *testing.T) {
	cases := map[string]struct {
		fault freshness.Fault
		want  time.Duration
	}{
		"its own fault":    {freshness.FaultMember, 0},
		"the claim's":      {freshness.FaultClaim, spare},
		"nobody's, passes": {freshness.FaultNobody, spare},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &Refused{hints: make(hints.Queue[Refusal], 1)}
			r.Note(member, tc.fault)
			want := hints.Hint[Refusal]{Key: refusalOf(member), After: tc.want}
			if diff := cmp.Diff(want, <-r.hints); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// content is that of a Pod that differs by its host name only.
func content(t *testing.T, hostname string) revision.Blueprint {
	t.Helper()
	b, err := revision.FromPodSpec(map[string]any{"hostname": hostname})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A used Sandbox that was refused to its pool is settled as what it is.
func TestARefusedReturnIsNoted(t *testing.T) {
	r := &Refused{hints: make(hints.Queue[Refusal], 1)}
	r.NoteReturn(member)
	want := Refusal{NamespacedName: client.ObjectKeyFromObject(member), UID: member.GetUID(), Returning: true}
	if got := (<-r.hints).Key; got != want {
		t.Errorf("noted %+v, want %+v", got, want)
	}
}
