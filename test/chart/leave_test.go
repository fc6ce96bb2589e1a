package chart

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/test/scenario"
)

// onTheirWay are claims of a full pool, some before Freshbind goes and some after.
type onTheirWay struct {
	w      *world
	ns     *scenario.Namespace
	pool   scenario.Pool
	claims []string
}

func (w *world) claimsOnTheirWay(t *testing.T) *onTheirWay {
	t.Helper()
	ns, p, _ := w.pool(t, scenario.Enforce())
	w.must(t, ns.WaitGuarded(t.Context(), within))
	return &onTheirWay{w: w, ns: ns, pool: p}
}

// come creates several batches, one right after the other.
func (c *onTheirWay) come(t *testing.T, batches int) {
	t.Helper()
	const batch = 4
	for range batches {
		var names []string
		for range batch {
			names = append(names, fmt.Sprintf("c%d", len(c.claims)+len(names)))
		}
		c.w.must(t, c.ns.CreateClaims(t.Context(), c.pool, names...))
		c.claims = append(c.claims, names...)
	}
}

// served waits until all of them are ready, and the pool is full again.
func (c *onTheirWay) served(t *testing.T) {
	t.Helper()
	c.w.must(t, c.ns.WaitClaims(t.Context(), within, c.claims...))
	_, err := c.ns.WaitPool(t.Context(), c.pool, "", within)
	c.w.must(t, err)
}

// Claims that are on their way when Freshbind comes get their sandboxes, and wait for
// nobody in a namespace that enforces nothing.
func TestClaimsGoOnWhenFreshbindComes(t *testing.T) {
	w := sharedWorld(t)
	w.cleanNamespace(t)
	ns, p, _ := w.pool(t, nil)
	w.must(t, ns.CreateClaims(t.Context(), p, "before-1", "before-2"))
	w.helmInstall(t)
	w.must(t, ns.CreateClaims(t.Context(), p, "between-1", "between-2"))
	w.must(t, ns.WaitClaims(t.Context(), within, "before-1", "before-2", "between-1", "between-2"))
	w.run(t)
	w.must(t, ns.CreateClaims(t.Context(), p, "after-1", "after-2"))
	w.must(t, ns.WaitClaims(t.Context(), within, "after-1", "after-2"))
}

// owned waits until what goes with the namespace belongs to it.
func (w *world) owned(t *testing.T) {
	t.Helper()
	w.eventually(t, "the namespace owns webhooks and policies", func(ctx context.Context) (string, bool) {
		installed, err := w.admission(ctx, staysWithoutHelm)
		if err != nil {
			return err.Error(), false
		}
		var not []string
		for _, o := range installed {
			if len(o.GetOwnerReferences()) != 1 {
				not = append(not, nameOf(o))
			}
		}
		return fmt.Sprintf("of %d it does not own %s", len(installed), strings.Join(not, ", ")), len(installed) > 0 && len(not) == 0
	})
}

// A namespace takes its time to go, and a finalizer of somebody's may hold it for ever. Webhooks
// that nobody answers must not stand for as long.
func TestANamespaceThatStaysBlocksNobody(t *testing.T) {
	for name, tc := range map[string]struct{ leads bool }{
		"a leader sees it":         {true},
		"nobody leads, all end it": {false},
	} {
		t.Run(name, func(t *testing.T) {
			w := sharedWorld(t)
			w.install(t, unhurried...)
			w.owned(t)
			ns, p, _ := w.pool(t, scenario.Enforce())
			w.must(t, ns.WaitGuarded(t.Context(), within))
			letGo := w.holdNamespace(t)
			if !tc.leads {
				w.takeLease(t)
			}
			w.leaves(func() {
				w.must(t, w.client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
				if !tc.leads {
					w.stop(t)
				}
				w.nothingLeft(t, staysWithoutHelm)
				w.stop(t)
			})
			w.must(t, ns.CreateClaims(t.Context(), p, "c1", "c2"))
			w.must(t, ns.WaitClaims(t.Context(), within, "c1", "c2"))
			var home corev1.Namespace
			w.must(t, w.client.Get(t.Context(), client.ObjectKey{Name: namespace}, &home))
			if home.DeletionTimestamp == nil {
				t.Error("the namespace is not being deleted")
			}
			letGo()
		})
	}
}

// holdNamespace has a finalizer hold the namespace until it is let go.
func (w *world) holdNamespace(t *testing.T) (letGo func()) {
	t.Helper()
	holds := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "somebodys", Finalizers: []string{"chart.freshbind.dev/held"}}}
	w.must(t, w.client.Create(t.Context(), holds))
	letGo = func() {
		err := w.client.Patch(context.WithoutCancel(t.Context()), holds, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		w.must(t, client.IgnoreNotFound(err))
	}
	t.Cleanup(letGo)
	return letGo
}

// takeLease has somebody lead who does nothing, and waits until no replica does.
func (w *world) takeLease(t *testing.T) {
	t.Helper()
	taken := fmt.Sprintf(`{"spec":{"holderIdentity":"nobody","leaseDurationSeconds":3600,"renewTime":%q}}`, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "freshbind"}}
	w.must(t, w.client.Patch(t.Context(), lease, client.RawPatch(types.MergePatchType, []byte(taken))))
	w.eventually(t, "no replica leads", func(ctx context.Context) (string, bool) {
		leads := 0
		for _, r := range w.replicas {
			text, err := r.metrics(ctx)
			if err != nil {
				return err.Error(), false
			}
			leads += strings.Count(text, `leader_election_master_status{name="freshbind"} 1`)
		}
		return fmt.Sprintf("%d lead", leads), leads == 0
	})
	w.serving(t, len(w.replicas))
}
