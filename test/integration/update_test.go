package integration

import (
	"context"
	"fmt"
	"slices"
	"testing"

	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

func TestUpdateInPlaceSeenLate(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	p := s.pool(scenario.Pool{Replicas: 5, Strategy: scenario.Recreate})
	s.w.delay(upstream.SandboxTemplates, lag)
	for round := 2; round <= 3; round++ {
		image := fmt.Sprintf("sandbox:v%d", round)
		s.image(p, image)
		s.claim(p, scenario.Names(fmt.Sprintf("c%d-", round), 5)...)
		s.full(p, image)
	}
	sum := s.fresh(10)
	if sum.StaleBirths > 0 {
		t.Errorf("%d members were born stale", sum.StaleBirths)
	}
	if refused := s.w.metric(t, "freshbind_bind_verdicts_total", `operation="bind"`, `verdict="deny"`); refused == 0 {
		t.Error("no bind was refused: this test has shown nothing")
	}
}

func TestPoolSwitchedToAnotherTemplate(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	p := s.pool(scenario.Pool{Replicas: 5, Strategy: scenario.Recreate})
	s.must(s.Create(t.Context(), builders.MakeTemplate(s.Name, "other").Image("other:v1").Obj()))
	s.w.delay(upstream.SandboxWarmPools, lag)
	s.patch(upstream.SandboxWarmPools, p.Name, `{"spec":{"sandboxTemplateRef":{"name":"other"}}}`)
	s.claim(p, scenario.Names("c", 5)...)
	s.full(p, "other:v1")
	s.fresh(5)
}

// Members of A are fresh again, and can be claimed warm: also those that were
// refused while B was in force, which upstream by itself never offers again.
func TestBackAndForth(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	// Upstream itself leaves stale members alone here; what the pool wants is
	// said by the annotation.
	p := s.pool(scenario.Pool{Replicas: 4, Strategy: scenario.OnReplenish})
	s.patch(upstream.SandboxWarmPools, p.Name, `{"metadata":{"annotations":{"freshbind.dev/rollout-strategy":"Recreate"}}}`)
	a := s.full(p, "sandbox:v1")
	before := s.w.metric(t, "freshbind_bind_verdicts_total", `operation="bind"`, `verdict="deny"`)

	// So that refused members of A outlive B.
	restore := s.w.forbidDeletes(t)
	s.image(p, "sandbox:v2")
	s.claim(p, "b1")
	if refused := s.w.metric(t, "freshbind_bind_verdicts_total", `operation="bind"`, `verdict="deny"`) - before; refused < 4 {
		t.Fatalf("%v binds of members of A were refused while B was in force, want all 4 members", refused)
	}
	s.image(p, "sandbox:v1")
	restore()
	if again := s.full(p, "sandbox:v1"); !sameMembers(a, again) {
		t.Fatalf("the pool has other members than before: %v, %v", a, again)
	}
	probe, err := s.Ghosts(t.Context(), p, "probe-")
	s.must(err)
	if len(probe.Ghosts) > 0 {
		t.Errorf("members of A are never offered again: %v", probe.Ghosts)
	}
	for _, m := range a {
		if s.get(upstream.Sandboxes, m.Name).GetLabels()[builders.LabelClaimUID] == "" {
			t.Errorf("member %s of A was not claimed", m.Name)
		}
	}
	_, findings := s.judged()
	for _, b := range findings {
		t.Errorf("not fresh: %s", b)
	}
}

func sameMembers(a, b []scenario.Member) bool {
	uids := map[types.UID]bool{}
	for _, m := range a {
		uids[m.UID] = true
	}
	for _, m := range b {
		delete(uids, m.UID)
	}
	return len(uids) == 0 && len(a) == len(b)
}

// forbidDeletes takes away Freshbind's right to delete sandboxes until the
// returned function is called.
func (w *world) forbidDeletes(t *testing.T) (restore func()) {
	t.Helper()
	kube, err := kubernetes.NewForConfig(w.Cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	role, err := kube.RbacV1().ClusterRoles().Get(t.Context(), "freshbind", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	limited := role.DeepCopy()
	for i, rule := range limited.Rules {
		if slices.Contains(rule.Resources, "sandboxes") {
			limited.Rules[i].Verbs = slices.DeleteFunc(rule.Verbs, func(v string) bool { return v == "delete" })
		}
	}
	if limited, err = kube.RbacV1().ClusterRoles().Update(t.Context(), limited, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		role.ResourceVersion = limited.ResourceVersion
		if _, err := kube.RbacV1().ClusterRoles().Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

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

func TestColdStartSeenLate(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	p := s.pool(scenario.Pool{Replicas: 0, Strategy: scenario.Recreate})
	s.w.delay(upstream.SandboxTemplates, lag)
	s.image(p, "sandbox:v2")
	s.claim(p, "c1", "c2")
	if sum := s.fresh(2); sum.Cold != 2 {
		t.Errorf("%d cold starts, want 2", sum.Cold)
	}
	if refused := s.w.metric(t, "freshbind_bind_verdicts_total", `operation="coldstart"`, `verdict="deny"`); refused == 0 {
		t.Error("no cold start was refused: this test has shown nothing")
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
			numbers[r.Labels[platform.StampKey]] = r.Revision
		}
		want := hashOf(t, s.get(upstream.SandboxTemplates, p.Template))
		return fmt.Sprint(numbers), len(numbers) == 3 && numbers[want] == 4
	})
}
