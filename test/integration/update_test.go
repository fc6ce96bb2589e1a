package integration

import (
	"context"
	"fmt"
	"testing"

	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

func TestAFieldRemoved(t *testing.T) {
	for _, emptied := range []bool{false, true} {
		t.Run(fmt.Sprintf("historyEmptied=%t", emptied), func(t *testing.T) {
			w := sharedWorld(t)
			kube, err := kubernetes.NewForConfig(w.Cluster.Config())
			if err != nil {
				t.Fatal(err)
			}
			s := w.enforced(t)
			class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: s.Name}, Handler: "kata"}
			_, err = kube.NodeV1().RuntimeClasses().Create(t.Context(), class, metav1.CreateOptions{})
			s.must(err)
			p := s.pool(scenario.Pool{Replicas: 3, Strategy: scenario.Recreate}, func(b *builders.Template) { b.RuntimeClass(s.Name) })
			w.delay(upstream.SandboxTemplates, lag)
			s.patch(upstream.SandboxTemplates, p.Template, `{"spec":{"podTemplate":{"spec":{"runtimeClassName":null}}}}`)
			if emptied {
				s.must(kube.AppsV1().ControllerRevisions(s.Name).DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}))
			}
			s.claim(p, "c1", "c2", "c3")
			for _, name := range []string{"c1", "c2", "c3"} {
				sandbox, err := s.SandboxOf(t.Context(), name)
				s.must(err)
				if class, ok, _ := unstructuredString(sandbox, "spec", "podTemplate", "spec", "runtimeClassName"); ok {
					t.Errorf("claim %s runs with runtime class %q, which the template has no more", name, class)
				}
			}
			s.fresh(3)
		})
	}
}

func TestHistoryNamesWhatIsStale(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	p := s.pool(scenario.Pool{Replicas: 1, Strategy: scenario.Recreate})
	kube, err := kubernetes.NewForConfig(s.w.Cluster.Config())
	s.must(err)
	for _, image := range []string{"sandbox:v2", "sandbox:v3", "sandbox:v1"} {
		s.image(p, image)
	}
	s.eventually("three revisions, the first one the newest again", func(ctx context.Context) (string, bool) {
		list, err := kube.AppsV1().ControllerRevisions(s.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error(), false
		}
		numbers := map[string]int64{}
		for _, r := range list.Items {
			numbers[r.Labels[settings.StampKey]] = r.Revision
		}
		want := hashOf(t, s.get(upstream.SandboxTemplates, p.Template))
		return fmt.Sprint(numbers), len(numbers) == 3 && numbers[want] == 4
	})
}

// A template that is deleted and created again takes its history along. A pool
// controller that has noticed neither goes on building what it was: that is
// stale, not something which nobody understands.
func TestATemplateCreatedAgainSeenLate(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	p := s.pool(scenario.Pool{Replicas: 3, Strategy: scenario.Recreate})
	see := s.hold(upstream.SandboxTemplates)
	s.must(s.Resource(upstream.SandboxTemplates).Delete(t.Context(), p.Template, metav1.DeleteOptions{}))
	s.eventually("the template gone", func(ctx context.Context) (string, bool) {
		_, err := s.Resource(upstream.SandboxTemplates).Get(ctx, p.Template, metav1.GetOptions{})
		return fmt.Sprint(err), err != nil
	})
	s.must(s.Create(t.Context(), builders.MakeTemplate(s.Name, p.Template).Image("sandbox:v2").Obj()))
	claims := scenario.Names("c", 3)
	s.must(s.CreateClaims(t.Context(), p, claims...))
	refused := func() float64 {
		return s.w.metric(t, "freshbind_bind_verdicts_total", `operation="birth"`, `verdict="deny"`, `reason="StaleRevision"`)
	}
	before := refused()
	s.eventually("births of the old template refused", func(context.Context) (string, bool) {
		return fmt.Sprint(refused() - before), refused()-before >= 6
	})
	see()
	s.must(s.WaitClaims(t.Context(), within, claims...))
	s.full(p, "sandbox:v2")
	s.fresh(3)
	if n := s.eventsOf("AttributionSuspended"); n > 0 {
		t.Errorf("attribution was suspended %d times", n)
	}
}
