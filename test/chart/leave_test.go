package chart

import (
	"context"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
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

// owned waits until the configurations belong to the namespace.
func (w *world) owned(t *testing.T) {
	t.Helper()
	w.eventually(t, "the namespace owns the webhook configurations", func(ctx context.Context) (string, bool) {
		var v admissionregistrationv1.ValidatingWebhookConfiguration
		var m admissionregistrationv1.MutatingWebhookConfiguration
		for _, o := range []client.Object{&v, &m} {
			if err := w.client.Get(ctx, client.ObjectKey{Name: release}, o); err != nil {
				return err.Error(), false
			}
		}
		return fmt.Sprint(v.OwnerReferences, m.OwnerReferences), len(v.OwnerReferences) == 1 && len(m.OwnerReferences) == 1
	})
}
