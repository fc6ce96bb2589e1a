package pools

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/lru"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/test/builders"
)

// What stood there when a claim of its pool was cold-started, and still does, is
// offered: soon at first, then ever more seldom.
func TestSkippedMembersAreOfferedAgain(t *testing.T) {
	pool, other := builders.MakePool("ns", "python").Obj(), builders.MakePool("ns", "other").Obj()
	born := func(name string, at time.Time) *unstructured.Unstructured {
		return of(pool, v1, name).Created(at).Obj()
	}
	r := newHarness(t, nil, born("old", now.Add(-time.Hour)), born("same second", now), born("younger", now.Add(time.Second)),
		of(other, v1, "another pool's").Obj(), of(pool, v1, "another pool's by its owner").Owners(builders.ControllerRef(other)).Obj(), of(pool, v1, "hidden").NoLabel(builders.LabelTemplateRef).Obj(),
		of(pool, v1, "leaving").Set([]any{"x/y"}, "metadata", "finalizers").Deleting(now).Obj())
	var noted []string
	c := clocktesting.NewFakePassiveClock(now)
	o := &Reofferer{
		cache: r.client, sandboxes: poolKinds.Sandboxes, members: agentsandbox.Objects{}, offered: lru.New(offersKept), clock: c,
		note: func(m *unstructured.Unstructured, f freshness.Fault) {
			if f != freshness.FaultNobody {
				t.Errorf("%s is noted for fault %v", m.GetName(), f)
			}
			noted = append(noted, m.GetName())
		},
	}
	for i, tc := range []struct {
		after time.Duration
		want  []string
	}{
		{reofferAfter, []string{"old"}},
		{reofferAfter + nextOffer - 1, nil},
		{reofferAfter + nextOffer, []string{"old"}},
		{reofferAfter + 2*nextOffer, nil},
		{reofferAfter + 4*nextOffer, []string{"old"}},
	} {
		noted = nil
		c.SetTime(now.Add(tc.after))
		hint := SkippedPool{types.NamespacedName{Namespace: "ns", Name: "python"}, now.Unix()}
		if _, err := o.Reconcile(t.Context(), hint); err != nil {
			t.Fatal(err)
		}
		slices.Sort(noted)
		if diff := cmp.Diff(tc.want, noted); diff != "" {
			t.Errorf("cold start %d, after %s (-want,+got):\n%s", i, tc.after, diff)
		}
	}
}
