package manager

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/webhooks"
)

// eventLines keeps events as lines.
type eventLines struct{ lines []string }

func (r *eventLines) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	about, _ := regarding.(*unstructured.Unstructured)
	line := fmt.Sprintf("%s %s on %s %s/%s: %s", eventType, reason, action, about.GetNamespace(), about.GetName(), fmt.Sprintf(note, args...))
	if u, ok := related.(*unstructured.Unstructured); ok && u != nil {
		line += " [" + u.GetName() + "]"
	}
	r.lines = append(r.lines, line)
}

// kinds are those of a platform whose claims have objects.
var kinds = platform.Served{Claims: schema.GroupVersionKind{Kind: "Claim"}, Pools: schema.GroupVersionKind{Kind: "Pool"}}

func TestDeniedTellsTheOwners(t *testing.T) {
	template := builders.MakeTemplate("ns", "python").Obj()
	member := builders.MakeMember(builders.MakePool("ns", "python").Obj(), template).Name("python-abc").Obj()
	claim := freshness.Owner{Kind: freshness.OwnedByClaim, Name: "c1", UID: "u"}
	verdict := freshness.Verdict{Reason: freshness.StaleRevision, Found: "v1-old", Expected: "v1-new", Detail: "image differs"}
	pool := &freshness.Pool{Name: "python", UID: "p"}
	cases := map[string]struct {
		denial webhooks.Denial
		want   []string
	}{
		"bind": {
			webhooks.Denial{Write: platform.Write{Operation: freshness.Bind, Old: member, New: member, Claim: claim}, Verdict: verdict, Pool: pool, Mode: settings.Enforce},
			[]string{
				"Warning StaleRevision on Bind ns/c1: image differs (is v1-old, in force is v1-new) [python-abc]",
				"Warning StaleRevision on Bind ns/python: claim c1: image differs (is v1-old, in force is v1-new) [python-abc]",
			},
		},
		"bind, pool gone, audited": {
			webhooks.Denial{Write: platform.Write{Operation: freshness.Bind, Old: member, New: member, Claim: claim}, Verdict: freshness.Verdict{Reason: freshness.PoolGone, Detail: "no pool"}, Mode: settings.Audit},
			[]string{"Warning PoolGone on Bind ns/c1: would be refused: no pool [python-abc]"},
		},
		"release of a bare pod, which names no claim": {
			webhooks.Denial{Write: platform.Write{Operation: freshness.Release, Old: member, New: member}, Verdict: verdict, Pool: pool, Mode: settings.Enforce},
			[]string{"Warning StaleRevision on Bind ns/python: image differs (is v1-old, in force is v1-new) [python-abc]"},
		},
		"return to a pool, which names no claim": {
			webhooks.Denial{Write: platform.Write{Operation: freshness.Return, Old: member, New: member}, Verdict: verdict, Pool: pool, Mode: settings.Enforce},
			[]string{"Warning StaleRevision on Return ns/python: image differs (is v1-old, in force is v1-new) [python-abc]"},
		},
		"cold start": {
			webhooks.Denial{Write: platform.Write{Operation: freshness.ColdStart, New: member, Claim: claim}, Verdict: verdict, Pool: pool, Mode: settings.Enforce},
			[]string{"Warning StaleRevision on ColdStart ns/c1: image differs (is v1-old, in force is v1-new)"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := &eventLines{}
			reporter{events: r, kinds: kinds}.report(tc.denial)
			if diff := cmp.Diff(tc.want, r.lines); diff != "" {
				t.Errorf("events (-want,+got):\n%s", diff)
			}
		})
	}
}

// Where claims have no object, the member is what people look at.
func TestWithoutObjectsOfClaimsTheMemberTells(t *testing.T) {
	pool := builders.MakePool("ns", "python").Obj()
	member := builders.MakeMember(pool, builders.MakeTemplate("ns", "python").Obj()).Name("python-abc").Obj()
	claim := freshness.Owner{Kind: freshness.OwnedByClaim, Name: "alice", UID: "alice"}
	verdict := freshness.Verdict{Reason: freshness.StaleRevision, Detail: "image differs"}
	r := &eventLines{}
	withoutClaims := reporter{events: r, kinds: platform.Served{Pools: kinds.Pools}}
	withoutClaims.Denied(webhooks.Denial{
		Write:   platform.Write{Operation: freshness.Bind, Old: member, New: member, Claim: claim},
		Verdict: verdict, Pool: &freshness.Pool{Name: "python"}, Mode: settings.Enforce,
	})
	cold := platform.Write{Operation: freshness.ColdStart, New: member, Claim: claim}
	withoutClaims.Denied(webhooks.Denial{Write: cold, Verdict: verdict, Mode: settings.Enforce})
	withoutClaims.Repaired(cold, "v1-a -> v1-b")
	want := []string{
		"Warning StaleRevision on Bind ns/python-abc: claim alice: image differs [python-abc]",
		"Warning StaleRevision on Bind ns/python: claim alice: image differs [python-abc]",
		"Warning StaleRevision on ColdStart ns/python-abc: image differs",
		"Normal ColdStartRepaired on ColdStart ns/python-abc: its sandbox was rendered from an older revision, and Freshbind rewrote it to the one in force: v1-a -> v1-b",
	}
	if diff := cmp.Diff(want, r.lines); diff != "" {
		t.Errorf("events (-want,+got):\n%s", diff)
	}
}

func TestRepairedTellsTheClaim(t *testing.T) {
	template := builders.MakeTemplate("ns", "python").Obj()
	stored := builders.MakeClaim("ns", "c1").Obj()
	r := &eventLines{}
	reporter{events: r, kinds: kinds}.Repaired(platform.Write{
		Operation: freshness.ColdStart, New: builders.MakeColdStart(stored, template).Obj(),
		Claim: freshness.Owner{Kind: freshness.OwnedByClaim, Name: "c1", UID: "u"},
	}, "v1-a -> v1-b")
	want := []string{"Normal ColdStartRepaired on ColdStart ns/c1: its sandbox was rendered from an older revision, and Freshbind rewrote it to the one in force: v1-a -> v1-b"}
	if diff := cmp.Diff(want, r.lines); diff != "" {
		t.Errorf("events (-want,+got):\n%s", diff)
	}
}
