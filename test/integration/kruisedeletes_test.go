package integration

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform/kruise"
)

// lateDeletes: upstream's controllers decide by late caches. They delete nothing that
// somebody has and whose time is not up, and whatever else they like.
func (w *kruiseWorld) lateDeletes(set *unstructured.Unstructured) {
	w.t.Helper()
	cfg, err := w.cluster.User(kruise.ControllerUser, "system:masters", "system:serviceaccounts", "system:authenticated")
	w.must(err)
	late, err := client.New(cfg, client.Options{})
	w.must(err)
	deletes := func(m *unstructured.Unstructured, opts ...client.DeleteOption) error {
		return late.Delete(w.t.Context(), m, append(opts, client.DryRunAll)...)
	}
	// The webhook fails open: where the machine has more to do, a delete passes once.
	kept := func(m *unstructured.Unstructured) {
		w.t.Helper()
		w.eventually("a late delete of "+m.GetName()+" to be refused", func() error { return refused(deletes(m), "MemberClaimed: ") })
	}
	passes := func(what string, err error) {
		w.t.Helper()
		if err != nil {
			w.t.Errorf("refused, though %s: %v", what, err)
		}
	}
	idle := w.member(set, "not-in-use")
	passes("nobody has it", deletes(idle))

	m := w.member(set, "in-use")
	w.must(w.take(m, "a-user", ""))
	kept(m)
	passes("it is meant", deletes(m, client.Preconditions{UID: ptr.To(m.GetUID())}))
	passes("its user deletes it", w.c.Delete(w.t.Context(), m, client.DryRunAll))
	shutdown := func(at time.Time) func(*unstructured.Unstructured) {
		return func(u *unstructured.Unstructured) {
			u.Object["spec"].(map[string]any)["shutdownTime"] = at.UTC().Format(time.RFC3339)
		}
	}
	w.changed(m, shutdown(time.Now().Add(-time.Second)))
	passes("its time is up", deletes(m))
	w.changed(m, shutdown(time.Now().Add(24*time.Hour)))
	kept(m)
	w.phase(m, "Recycling")
	passes("it is being recycled", deletes(m))

	claim := w.claim(kruiseSpace, "served", set.GetName())
	of := w.member(set, "of-a-claim")
	w.must(w.take(of, string(claim.GetUID()), claim.GetName()))
	passes("its claim may have failed with it", deletes(of))
	w.status(claim, map[string]any{"phase": "Completed", "claimedReplicas": int64(1)})
	kept(of)
}
