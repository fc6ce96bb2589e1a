package pools

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
