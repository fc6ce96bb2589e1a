package integration

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// A pool that was there before anybody said enforce gets its stamps, stays as it
// is, and is kept current from then on.
func TestBackfillWhenANamespaceIsEnforced(t *testing.T) {
	s := sharedWorld(t).namespace(t, nil)
	p := s.pool(scenario.Pool{Replicas: 12, Strategy: scenario.Recreate})
	before := map[types.UID]bool{}
	for _, m := range s.full(p, "") {
		before[m.UID] = true
	}
	for _, sandbox := range s.list(upstream.Sandboxes) {
		if stamp := sandbox.GetLabels()[platform.StampKey]; stamp != "" {
			t.Errorf("%s has stamp %s although nobody said enforce", sandbox.GetName(), stamp)
		}
	}
	namespaces := s.kube().CoreV1().Namespaces()
	_, err := namespaces.Patch(t.Context(), s.Name, types.MergePatchType,
		marshal(map[string]any{"metadata": map[string]any{"labels": scenario.Enforce()}}), metav1.PatchOptions{})
	s.must(err)
	want := s.printedHash(s.get(upstream.SandboxTemplates, p.Template))
	s.eventually("stamps on all members and pods", func(ctx context.Context) (string, bool) {
		n := 0
		for _, sandbox := range s.list(upstream.Sandboxes) {
			if sandbox.GetLabels()[platform.StampKey] == want {
				n++
			}
		}
		pods, err := s.kube().CoreV1().Pods(s.Name).List(ctx, metav1.ListOptions{LabelSelector: platform.StampKey + "=" + want})
		s.must(err)
		return fmt.Sprintf("%d members, %d pods", n, len(pods.Items)), n == 12 && len(pods.Items) == 12
	})
	for _, m := range s.full(p, "") {
		if !before[m.UID] {
			t.Errorf("member %s is new: the pool was to stay as it is", m.Name)
		}
	}
	s.must(s.WaitGuarded(t.Context(), within))
	s.image(p, "sandbox:v2")
	s.claim(p, scenario.Names("c", 3)...)
	s.fresh(3)
}
