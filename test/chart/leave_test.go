package chart

import (
	"context"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/test/scenario"
)

// However Freshbind goes, claims that are on their way when it does get their
// sandboxes, and nothing that blocks stays behind.
func TestClaimsGoOnWhenFreshbindGoes(t *testing.T) {
	for name, tc := range map[string]struct {
		leave func(*testing.T, *world)
		stays []string
	}{
		"helm uninstall": {func(t *testing.T, w *world) { w.leaveInOrder(t) }, nil},
		"helm uninstall --no-hooks": {func(t *testing.T, w *world) {
			_, err := w.helm.run(t.Context(), "uninstall", release, "--no-hooks")
			w.must(t, err)
		}, nil},
		// What holds Freshbind's user is not for Freshbind to tie to a namespace.
		"kubectl delete namespace": {func(t *testing.T, w *world) {
			w.owned(t)
			w.must(t, w.clients.CoreV1().Namespaces().Delete(t.Context(), namespace, metav1.DeleteOptions{}))
		}, []string{"freshbind-own-"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := sharedWorld(t)
			w.install(t)
			ns, p, _ := w.pool(t, scenario.Enforce())
			w.must(t, ns.WaitGuarded(t.Context(), within))
			const batches, batch = 6, 4
			var claims []string
			for i := range batches {
				var names []string
				for j := range batch {
					names = append(names, fmt.Sprintf("c%d-%d", i, j))
				}
				w.must(t, ns.CreateClaims(t.Context(), p, names...))
				claims = append(claims, names...)
				if i == batches/2 {
					w.leaves(func() {
						tc.leave(t, w)
						w.stop(t)
					})
				}
			}
			w.must(t, ns.WaitClaims(t.Context(), within, claims...))
			w.nothingLeft(t, tc.stays...)
			_, err := ns.WaitPool(t.Context(), p, "", within)
			w.must(t, err)
		})
	}
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
