package integration

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// A claim takes a Pod out of its pool before it creates the Sandbox that names it. The
// pool's controller, seeing Pods late, may count that Pod as one too many. Its claim
// would wait for it for ever.
func testOldLateDeletes(t *testing.T, w *oldWorld) {
	s := w.stage(t, 2, scenario.Enforce())
	ctx := t.Context()
	pods := s.w.controllers(t).Resource(podResource).Namespace(s.Name)
	deletes := func(name string, preconditions *metav1.Preconditions) error {
		return pods.Delete(ctx, name, metav1.DeleteOptions{Preconditions: preconditions, DryRun: []string{metav1.DryRunAll}})
	}
	passes := func(why string, err error) {
		t.Helper()
		if err != nil {
			t.Errorf("the delete of a pod is refused, though %s: %v", why, err)
		}
	}
	// The webhook fails open: where the machine has more to do, a delete passes once.
	kept := func(why, name string) {
		t.Helper()
		s.eventually("the delete of a pod refused: "+why, func(context.Context) (string, bool) {
			err := deletes(name, nil)
			return fmt.Sprint(err), err != nil && strings.Contains(err.Error(), "MemberClaimed")
		})
	}
	names := s.fullOf("sandbox:v1")
	passes("its pool has it", deletes(names[0], nil))

	pod := s.released(names[0])
	passes("no claim waits", deletes(pod.GetName(), nil))
	// The claim of another template is one that upstream itself leaves alone.
	s.must(s.Create(ctx, builders.MakeClaimV1Alpha1(s.Name, "late", "none", "default").Obj()))
	kept("a claim waits", pod.GetName())
	uid := pod.GetUID()
	passes("no other pod can be meant", deletes(pod.GetName(), &metav1.Preconditions{UID: &uid}))
	passes("a person deletes it", s.podClient().Delete(ctx, pod.GetName(), metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}))
	s.must(s.Resource(upstream.SandboxClaims).Delete(ctx, "late", metav1.DeleteOptions{}))
	passes("the claim is gone", deletes(pod.GetName(), nil))

	s.settled()
	s.claim(s.pool, "served")
	passes("the only claim has another pod", deletes(pod.GetName(), nil))
	for _, used := range s.running([]string{"served"}) {
		kept("a claim's sandbox runs in it", used.GetName())
	}
}

// released has a Pod leave its pool as a claim of v0.1.0 does, which leaves no word of itself.
func (s *oldStage) released(name string) *unstructured.Unstructured {
	s.t.Helper()
	leave := []byte(`{"metadata":{"ownerReferences":null,"labels":{"` + barePoolLabel + `":null,"` + agentsandbox.TemplateRefHashLabel + `":null}}}`)
	var pod *unstructured.Unstructured
	s.must(s.answered(func() (err error) {
		pod, err = s.podClient().Patch(s.t.Context(), name, types.MergePatchType, leave, metav1.PatchOptions{})
		return err
	}))
	return pod
}
