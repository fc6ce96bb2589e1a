package cli_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/clitest"
)

// local has times printed as they are in the test.
func local(t *testing.T) {
	t.Helper()
	was := time.Local
	time.Local = time.UTC
	t.Cleanup(func() { time.Local = was })
}

func event(claim *unstructured.Unstructured, name, reason, sandbox, note string, after time.Duration, count int32) *eventsv1.Event {
	e := &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, EventTime: metav1.NewMicroTime(clitest.Now.Add(after)), Reason: reason, Note: note,
		Regarding: corev1.ObjectReference{APIVersion: claim.GetAPIVersion(), Kind: claim.GetKind(), Namespace: ns, Name: claim.GetName(), UID: claim.GetUID()},
	}
	if sandbox != "" {
		e.Related = &corev1.ObjectReference{Kind: "Sandbox", Name: sandbox}
	}
	if count > 1 {
		e.Series = &eventsv1.EventSeries{Count: count, LastObservedTime: metav1.NewMicroTime(clitest.Now.Add(after))}
	}
	return e
}

func TestExplainClaim(t *testing.T) {
	local(t)
	v1, v2, other := version("v1"), version("v2"), version("elsewhere")
	p := pool(2)
	claimed := builders.MakeClaim(ns, "c42").Pool("python").UID("uid-c42").Created(clitest.Now)
	ready := func() *builders.Claim {
		c := builders.ClaimFrom(claimed.Obj()).Names("python-a")
		return c.Set([]any{map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-31T12:00:02Z"}}, "status", "conditions")
	}
	bound := func(content *unstructured.Unstructured) client.Object {
		return builders.Bound(one(p, content, "python-a").Obj(), claimed.Obj(), content).Obj()
	}
	repaired := builders.MakeColdStart(claimed.Obj(), v2).
		Annotation(settings.RepairedKey, platform.Repair{From: clitest.Hash(t, v1), To: clitest.Hash(t, v2)}.Note()).Obj()
	r1, r2 := clitest.Revision(t, v1, 7, clitest.Now.Add(-time.Hour)), clitest.Revision(t, v2, 8, clitest.Now.Add(-time.Minute))
	late := clitest.Revision(t, v2, 8, clitest.Now.Add(time.Minute))
	// Shortened hashes are the tail of the lines below.
	h1, h2, h3 := short(t, v1), short(t, v2), short(t, other)
	cases := map[string]struct {
		objs []client.Object
		want string
	}{
		"fresh, after refusals": {
			objs: []client.Object{ready().Obj(), bound(v2), r1, r2, namespace("enforce"),
				event(claimed.Obj(), "e2", "MemberTerminating", "python-c", "deletion began", 871*time.Millisecond, 1),
				event(claimed.Obj(), "e1", "StaleRevision", "python-b", "image", 204*time.Millisecond, 3),
				event(claimed.Obj(), "e3", "SandboxAdopted", "python-a", "not ours", 0, 1),
			},
			want: `Claim c42 (uid uid-c42, created 2026-01-31 12:00:00) holds sandbox python-a: FRESH, bound warm, ready 2026-01-31 12:00:02 (+2 s)
  runs      template python revision 8 (` + h2 + `), equal in content
  in force  revision 8 (` + h2 + `) when the claim was created, and now
Refused (from events, which the API server keeps for an hour):
  12:00:00.204   python-b   StaleRevision       image (3 times)
  12:00:00.871   python-c   MemberTerminating   deletion began
`,
		},
		"an event that tells another story": {
			objs: []client.Object{claimed.Obj(), r1, r2, namespace("enforce"),
				event(claimed.Obj(), "e1", "StaleRevision", "python-b", "image\n\x1b[2JClaim c42 holds sandbox python-a: FRESH", time.Second, 1),
			},
			want: `Claim c42 (uid uid-c42, created 2026-01-31 12:00:00) holds no sandbox.
  pool      python: 0 of 2 members ready, 0 claimable, Filling 0/2
Refused (from events, which the API server keeps for an hour):
  12:00:01.000   python-b   StaleRevision   image\n^[[2JClaim c42 holds sandbox python-a: FRESH
`,
		},
		"repaired": {
			objs: []client.Object{ready().Obj(), repaired, r1, r2, namespace("enforce")},
			want: `Claim c42 (uid uid-c42, created 2026-01-31 12:00:00) holds sandbox c42: FRESH, started cold, ready 2026-01-31 12:00:02 (+2 s)
  runs      template python revision 8 (` + h2 + `), equal in content
  repaired  rendered from revision 7 (` + h1 + `) by a late cache, and rewritten when it was created
  in force  revision 8 (` + h2 + `) when the claim was created, and now
`,
		},
		"stale": {
			objs: []client.Object{ready().Obj(), bound(v1), r1, r2, namespace("audit"),
				event(claimed.Obj(), "e1", "StaleRevision", "python-a", "would be refused: image", time.Second, 1),
			},
			want: `Claim c42 (uid uid-c42, created 2026-01-31 12:00:00) holds sandbox python-a: STALE, bound warm, ready 2026-01-31 12:00:02 (+2 s)
  runs      template python revision 7 (` + h1 + `), equal in content
  in force  revision 8 (` + h2 + `) when the claim was created, and now
Not refused, in mode audit (from events, which the API server keeps for an hour):
  12:00:01.000   python-a   StaleRevision   would be refused: image
`,
		},
		"older by now": {
			objs: []client.Object{ready().Obj(), bound(v1), r1, late, namespace("enforce")},
			want: `Claim c42 (uid uid-c42, created 2026-01-31 12:00:00) holds sandbox python-a: FRESH, bound warm, ready 2026-01-31 12:00:02 (+2 s)
  runs      template python revision 7 (` + h1 + `), equal in content
  in force  revision 7 (` + h1 + `) when the claim was created; now revision 8 (` + h2 + `)
`,
		},
		"within the second of the change": {
			objs: []client.Object{ready().Obj(), bound(v1), r1, clitest.Revision(t, v2, 8, clitest.Now), namespace("enforce")},
			want: `Claim c42 (uid uid-c42, created 2026-01-31 12:00:00) holds sandbox python-a: OLDER, bound warm, ready 2026-01-31 12:00:02 (+2 s)
  runs      template python revision 7 (` + h1 + `), equal in content
  in force  revision 8 (` + h2 + `) probably when the claim was created (times are kept to the second), and now
`,
		},
		"no history": {
			objs: []client.Object{ready().Obj(), bound(other), namespace("enforce")},
			want: `Claim c42 (uid uid-c42, created 2026-01-31 12:00:00) holds sandbox python-a: UNKNOWN, bound warm, ready 2026-01-31 12:00:02 (+2 s)
  runs      ` + h3 + `, which equals no recorded revision of template python
  in force  a revision without a number (` + h2 + `) now; what was in force when the claim was created is not recorded
`,
		},
		"a cold start": {
			objs: []client.Object{claimed.Obj(), builders.MakeColdStart(claimed.Obj(), v2).Obj(), r1, r2, namespace("enforce")},
			want: `Claim c42 (uid uid-c42, created 2026-01-31 12:00:00) holds sandbox c42: FRESH, started cold, not ready yet
  runs      template python revision 8 (` + h2 + `), equal in content
  in force  revision 8 (` + h2 + `) when the claim was created, and now
`,
		},
		"a pod of something else": {
			objs: []client.Object{ready().Obj(), bound(v2), builders.MakePod(one(p, v1, "python-a").Obj()).Stored("n1").Obj(), r1, r2, namespace("enforce")},
			want: `Claim c42 (uid uid-c42, created 2026-01-31 12:00:00) holds sandbox python-a: STALE, bound warm, ready 2026-01-31 12:00:02 (+2 s)
  runs      template python revision 8 (` + h2 + `), equal in content
  but       its pod was built from revision 7 (` + h1 + `)
  in force  revision 8 (` + h2 + `) when the claim was created, and now
`,
		},
		"nothing yet": {
			objs: []client.Object{
				builders.ClaimFrom(claimed.Obj()).Set([]any{map[string]any{"type": "Ready", "status": "False", "message": "deleted before adoption completed"}}, "status", "conditions").Obj(),
				one(p, v2, "python-b").Ready(true).Obj(), r1, r2, namespace("enforce"),
			},
			want: `Claim c42 (uid uid-c42, created 2026-01-31 12:00:00) holds no sandbox.
  pool      python: 1 of 2 members ready, 1 claimable, Filling 1/2
The claim's own status says "deleted before adoption completed".
`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			story, err := newCluster(t, append(tc.objs, v2, p.Obj())...).ExplainClaim(t.Context(), ns, "c42")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, story.Text(false)); diff != "" {
				t.Errorf("text (-want,+got):\n%s", diff)
			}
		})
	}
}

func short(t *testing.T, template *unstructured.Unstructured) string {
	t.Helper()
	h := clitest.Hash(t, template)
	return h[:len("v1-")+8]
}

func TestExplainMember(t *testing.T) {
	local(t)
	v1, v2 := version("v1"), version("v2")
	p := pool(2)
	member := func(content *unstructured.Unstructured) *builders.Sandbox {
		return one(p, content, "python-a").Set([]any{map[string]any{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-31T11:59:30Z"}}, "status", "conditions")
	}
	with := func(s *builders.Sandbox) []client.Object {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
		return []client.Object{s.Obj(), builders.MakePod(s.Obj()).Stored("n1").Obj(), node}
	}
	recorded := []client.Object{clitest.Revision(t, v1, 7, clitest.Now), clitest.Revision(t, v2, 8, clitest.Now)}
	h1, h2 := short(t, v1), short(t, v2)
	const head = `Member python-a of pool python (uid uid-sandbox-prod-python-a, created 2026-01-31 11:59:00): `
	strict := func() *builders.Pool { return pool(2).Annotation("freshbind.dev/rollout-strategy", "Recreate") }
	cases := map[string]struct {
		pool *builders.Pool
		mode string
		objs []client.Object
		want string
	}{
		"fresh": {pool: strict(), mode: "enforce", objs: with(member(v2)), want: head + `CLAIMABLE, Fresh
  runs      template python revision 8 (` + h2 + `), equal in content
  in force  revision 8 (` + h2 + `)
  state     ready since 2026-01-31 11:59:30, shown to claims
  a claim   gets it
`},
		"stale": {pool: strict(), mode: "enforce", objs: with(member(v1)), want: head + `NOT CLAIMABLE, StaleRevision
  why       containers[name=c].image: "v2" -> "v1"
  runs      template python revision 7 (` + h1 + `), equal in content
  in force  revision 8 (` + h2 + `)
  state     ready since 2026-01-31 11:59:30, shown to claims
  a claim   is refused, for good: the controller replaces the member as the pool's strategy says
`},
		"stale in audit": {pool: strict(), mode: "audit", objs: with(member(v1)), want: head + `CLAIMABLE, StaleRevision
  why       containers[name=c].image: "v2" -> "v1"
  runs      template python revision 7 (` + h1 + `), equal in content
  in force  revision 8 (` + h2 + `)
  state     ready since 2026-01-31 11:59:30, shown to claims
  a claim   gets it: mode audit refuses nothing, and counts it
`},
		"stale and tolerated": {pool: p, mode: "enforce", objs: with(member(v1)), want: head + `CLAIMABLE, StaleRevision
  why       containers[name=c].image: "v2" -> "v1"
  runs      template python revision 7 (` + h1 + `), equal in content
  in force  revision 8 (` + h2 + `)
  state     ready since 2026-01-31 11:59:30, shown to claims
  a claim   gets it all the same: the pool tolerates stale members
`},
		"without a pod": {pool: p, mode: "enforce", objs: []client.Object{one(p, v2, "python-a").Obj()}, want: head + `NOT CLAIMABLE, PodNotYet
  why       sandbox python-a has no pod yet
  runs      template python revision 8 (` + h2 + `), equal in content
  in force  revision 8 (` + h2 + `)
  state     not ready, shown to claims
  a claim   is refused for now: this passes by itself
`},
		"hidden": {pool: p, mode: "enforce", objs: with(member(v2).NoLabel(builders.LabelTemplateRef)), want: head + `NOT CLAIMABLE, Fresh
  runs      template python revision 8 (` + h2 + `), equal in content
  in force  revision 8 (` + h2 + `)
  state     ready since 2026-01-31 11:59:30, hidden: the claim controller passes it over
  a claim   will get it once it is ready and shown
`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objs := append([]client.Object{v2, tc.pool.Obj(), namespace(tc.mode)}, recorded...)
			story, err := newCluster(t, append(objs, tc.objs...)...).ExplainMember(t.Context(), ns, "python-a")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, story.Text(false)); diff != "" {
				t.Errorf("text (-want,+got):\n%s", diff)
			}
		})
	}
}

// Who may not read nodes is told what was not looked at, and nothing fails.
// What the guard would not compare to its end is not compared here either.
func TestExplainMemberComparesNoMoreThanABind(t *testing.T) {
	variables := func(value string) *unstructured.Unstructured {
		var pairs []string
		for i := range freshness.MaxWork/2 + 1 {
			pairs = append(pairs, fmt.Sprintf("V%d", i), value)
		}
		return builders.TemplateFrom(version("v1")).Env(pairs...).Obj()
	}
	p := pool(1)
	member := one(p, variables("old"), "python-a").Obj()
	_, err := newCluster(t, p.Obj(), variables("new"), member, builders.MakePod(member).Obj()).ExplainMember(t.Context(), ns, "python-a")
	if err == nil || !strings.HasPrefix(err.Error(), "judging member python-a: ") {
		t.Errorf("error = %v, want that it cannot be judged", err)
	}
}

func TestExplainMemberWithoutNodes(t *testing.T) {
	v1 := version("v1")
	p := pool(1)
	m := one(p, v1, "python-a").Ready(true)
	c := clitest.New(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			if obj.GetObjectKind().GroupVersionKind().Kind == "Node" {
				return apierrors.NewForbidden(corev1.Resource("nodes"), key.Name, nil)
			}
			return c.Get(ctx, key, obj, opts...)
		},
	}, v1, p.Obj(), namespace("enforce"), m.Obj(), builders.MakePod(m.Obj()).Stored("n1").Obj())
	story, err := c.ExplainMember(t.Context(), ns, "python-a")
	if err != nil {
		t.Fatal(err)
	}
	if !story.Claimable || !story.NodeUnread || !strings.Contains(story.Text(false), "not read  its node") {
		t.Errorf("claimable %v, node unread %v: %s", story.Claimable, story.NodeUnread, story.Text(false))
	}
}
