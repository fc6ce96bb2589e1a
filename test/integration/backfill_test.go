package integration

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// A pool that was there before anybody said enforce gets its stamps, stays as it
// is, and is kept current from then on.
func TestBackfillWhenANamespaceIsEnforced(t *testing.T) {
	s := sharedWorld(t).namespace(t, nil)
	p := s.pool(scenario.Pool{Replicas: 12, Strategy: scenario.Recreate})
	before := s.uids(p)
	for _, sandbox := range s.list(upstream.Sandboxes) {
		if stamp := sandbox.GetLabels()[settings.StampKey]; stamp != "" {
			t.Errorf("%s has stamp %s although nobody said enforce", sandbox.GetName(), stamp)
		}
	}
	s.enforce()
	s.stampedAll(p, before)
	s.must(s.WaitGuarded(t.Context(), within))
	s.image(p, "sandbox:v2")
	s.claim(p, scenario.Names("c", 3)...)
	s.fresh(3)
}

// Pods that were made again while nobody answered get the stamps that their members have
// all along.
func TestPodsMadeWhileNobodyAnsweredGetStamps(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, scenario.WorldOptions{})
	s := w.enforced(t)
	p := s.pool(scenario.Pool{Replicas: 3, Strategy: scenario.Recreate})
	before := s.uids(p)
	s.stampedAll(p, before)
	s.must(w.Guard.Stop())

	pods := s.kube().CoreV1().Pods(s.Name)
	was := sets.New[types.UID]()
	for _, m := range s.full(p, "") {
		pod, err := pods.Get(t.Context(), m.Name, getOptions)
		s.must(err)
		was.Insert(pod.UID)
		s.must(pods.Delete(t.Context(), pod.Name, metav1.DeleteOptions{}))
	}
	s.eventually("other pods of the same members", func(ctx context.Context) (string, bool) {
		list, err := pods.List(ctx, metav1.ListOptions{})
		s.must(err)
		n := 0
		for i := range list.Items {
			if pod := &list.Items[i]; !was.Has(pod.UID) && pod.DeletionTimestamp == nil {
				if n++; pod.Labels[settings.StampKey] != "" {
					t.Fatalf("pod %s is stamped although nobody answered: the test proves nothing", pod.Name)
				}
			}
		}
		return fmt.Sprintf("%d of %d", n, p.Replicas), n == p.Replicas
	})
	s.must(w.Guard.Start(t.Context()))
	s.stampedAll(p, before)
}
