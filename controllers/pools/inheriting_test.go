package pools

import (
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

var v3 = builders.MakeTemplate("ns", "python").Image("sandbox:v3").RV(3).Generation(3).Obj()

// succeeded is a new leader of what another one had. What it writes is noted with the
// first one.
func (r *harness) succeeded(known history) *harness {
	next := newHarness(r.t, known)
	next.client, next.Controller.client = r.client, r.client
	next.view.cache, next.view.lists = r.client, r.client
	next.platform.(*inForce).stored = r.client
	return next
}

// put stores an object that is there, whatever version it has.
func (r *harness) put(u *unstructured.Unstructured) {
	r.t.Helper()
	is := object(u.GroupVersionKind())
	if err := r.client.Get(r.t.Context(), client.ObjectKeyFromObject(u), is); err != nil {
		r.t.Fatal(err)
	}
	u = u.DeepCopy()
	u.SetResourceVersion(is.GetResourceVersion())
	if err := r.client.Update(r.t.Context(), u); err != nil {
		r.t.Fatal(err)
	}
}

// A claim may have taken a member before the last leader deleted one, without that
// leader knowing of it. What becomes ready first takes that member's place, also when the
// template has changed between the two leaders.
func TestALeaderInheritsDeletesAcrossAnEdit(t *testing.T) {
	known := history{v1, v2, v3}
	pool := rollingPool("a", 3, "max-unavailable", "1")
	r := newHarness(t, known, append(ofAll(pool, v1, 3), pool, v2)...)
	if writes, _ := r.step(pool); deletesIn(writes) != 1 {
		t.Fatalf("the first leader: %v, want one delete", writes)
	}
	claimed := of(pool, v1, "m01").Obj()
	if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(claimed), claimed); err != nil {
		t.Fatal(err)
	}
	gone := client.Preconditions{UID: ptr.To(claimed.GetUID()), ResourceVersion: ptr.To(claimed.GetResourceVersion())}
	if err := r.client.Delete(t.Context(), claimed, gone); err != nil {
		t.Fatal(err)
	}
	r.put(v3)
	unready := of(pool, v3, "n").Ready(false).Obj()
	if err := r.client.Create(t.Context(), unready); err != nil {
		t.Fatal(err)
	}
	next := r.succeeded(known)
	r.writes = nil
	next.step(pool)
	next.put(of(pool, v3, "n").Obj())
	next.step(pool)
	if n := deletesIn(r.writes); n > 0 {
		t.Errorf("%d members deleted more, want none: only the claimed one's place is filled", n)
	}
}

// A template that a cache shows may be older than the one that was planned on. By that
// one an old member which becomes ready would count as a replacement.
func TestAPlanDoesNotGoBackToAnOlderTemplate(t *testing.T) {
	pool := builders.MakePool("ns", "a").Template("python").Replicas(3).Strategy("Recreate").Obj()
	r := newHarness(t, history{v1, v2, v3}, pool, v1,
		of(pool, v1, "a").Obj(), of(pool, v1, "b").Ready(false).Obj(), of(pool, v2, "c").Ready(false).Obj())
	r.budget = NewBudget(2, Pace{}, r.notify)
	stored := newHarness(t, nil, pool, v3)
	r.platform.(*inForce).stored = stored.client
	// It has become ready, which the cache does not show yet.
	r.refuse["delete b"] = apierrors.NewConflict(schema.GroupResource{}, "b", nil)
	writes, _ := r.step(pool)
	deletes := deletesIn(slices.DeleteFunc(writes, func(w string) bool { return w == "delete b" }))
	delete(r.refuse, "delete b")
	r.put(of(pool, v1, "b").Obj())
	says := r.annotation(pool, settings.RolloutRevisionKey)
	for _, shown := range []*unstructured.Unstructured{v1, v2, v3} {
		r.put(shown)
		writes, _ := r.step(pool)
		deletes += deletesIn(writes)
		if got := r.annotation(pool, settings.RolloutRevisionKey); got != says {
			t.Errorf("the pool says %s while the cache shows %s, want %s as before", got, imageOf(shown), says)
		}
	}
	if deletes != 2 {
		t.Errorf("%d members deleted, none replaced: the budget is 2", deletes)
	}
}

// A leader begins no earlier than the last one, either.
func TestALeaderDoesNotGoBackToAnOlderTemplate(t *testing.T) {
	pool := builders.MakePool("ns", "a").Template("python").Replicas(1).Strategy("Recreate").Obj()
	r := newHarness(t, history{v1, v2, v3}, pool, v3, of(pool, v1, "a").Obj())
	stored := newHarness(t, nil, pool, v3)
	r.step(pool)
	says := r.annotation(pool, settings.RolloutRevisionKey)
	r.put(v2)
	next := r.succeeded(history{v1, v2, v3})
	next.platform.(*inForce).stored = stored.client
	next.step(pool)
	if got := r.annotation(pool, settings.RolloutRevisionKey); got != says {
		t.Errorf("the pool says %s, want %s as the last leader had it", got, says)
	}
}

func TestWhichTemplateMayBeOlder(t *testing.T) {
	for name, tc := range map[string]struct {
		known, shown templateVersion
		want         bool
	}{
		"none is known":          {templateVersion{}, templateVersion{"a", 1}, false},
		"the same":               {templateVersion{"a", 2}, templateVersion{"a", 2}, false},
		"a newer one":            {templateVersion{"a", 2}, templateVersion{"a", 3}, false},
		"an older one":           {templateVersion{"a", 2}, templateVersion{"a", 1}, true},
		"another one":            {templateVersion{"a", 2}, templateVersion{"b", 3}, true},
		"older than was said":    {templateVersion{"", 2}, templateVersion{"a", 1}, true},
		"no older than was said": {templateVersion{"", 2}, templateVersion{"a", 2}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.known.isAfter(tc.shown); got != tc.want {
				t.Errorf("%+v is after %+v: %t, want %t", tc.known, tc.shown, got, tc.want)
			}
		})
	}
}
