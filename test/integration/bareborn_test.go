package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// A pool whose template cache is late makes members of the old template. With
// Freshbind none is born.
func testBareBirths(t *testing.T, w *oldWorld) {
	play := func(labels map[string]string) (s *oldStage, born func() map[string]int, see func()) {
		s = w.stage(t, 3, labels)
		see = s.stage.hold(upstream.SandboxTemplates)
		s.image(s.pool, "sandbox:v2")
		born = s.watchBirths()
		for _, name := range s.poolPods() {
			// Where Freshbind enforces it may have been first.
			s.must(client.IgnoreNotFound(s.podClient().Delete(t.Context(), name, metav1.DeleteOptions{})))
		}
		return s, born, see
	}
	s, born, see := play(nil)
	s.eventually("births in a late pool without Freshbind", func(context.Context) (string, bool) {
		return fmt.Sprint(born()), born()["sandbox:v1"] > 0
	})
	see()
	guarded := &world{World: w.World}
	refused := func() float64 {
		return guarded.metric(t, "freshbind_bind_verdicts_total", `verdict="deny"`, `mode="enforce"`, `operation="birth"`, `reason="StaleRevision"`)
	}
	const hook = "birth-pod.freshbind.dev"
	before, unanswered := refused(), guarded.unanswered(t, hook)
	s, born, see = play(scenario.Enforce())
	s.eventually("births refused", func(context.Context) (string, bool) {
		n := refused() - before
		return fmt.Sprint(n), n > 0
	})
	see()
	s.fullOf("sandbox:v2")
	s.eventually("births of the newer template", func(context.Context) (string, bool) {
		return fmt.Sprint(born()), born()["sandbox:v2"] >= s.pool.Replicas
	})
	// Its hook is one that fails open.
	if n, most := born()["sandbox:v1"], int(guarded.unanswered(t, hook)-unanswered); n > most {
		t.Errorf("%d pods of the old template were born, and %d births had no answer in time", n, most)
	}
	t.Logf("%.0f births refused", refused()-before)
}

// poolPods are the Pods that a pool has and that are not being deleted.
func (s *oldStage) poolPods() []string {
	s.t.Helper()
	list, err := s.podClient().List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	var names []string
	for i := range list.Items {
		if owner := metav1.GetControllerOf(&list.Items[i]); owner != nil && owner.Kind == "SandboxWarmPool" && list.Items[i].GetDeletionTimestamp() == nil {
			names = append(names, list.Items[i].GetName())
		}
	}
	return names
}

// watchBirths counts, by image, the Pods that are stored from now on.
func (s *oldStage) watchBirths() func() map[string]int {
	s.t.Helper()
	list, err := s.podClient().List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	var mu sync.Mutex
	born := map[string]int{}
	s.watchFrom(s.podClient(), list.GetResourceVersion(), func(event watch.EventType, pod *unstructured.Unstructured) {
		if event == watch.Added {
			mu.Lock()
			defer mu.Unlock()
			born[podImage(pod)]++
		}
	})
	return func() map[string]int {
		mu.Lock()
		defer mu.Unlock()
		out := map[string]int{}
		for image, n := range born {
			out[image] = n
		}
		return out
	}
}

// Bare Pods carry the stamp of what they were built from, whatever was written.
func testBareStamps(t *testing.T, w *oldWorld) {
	s := w.stage(t, 2, scenario.Enforce())
	template := s.get(upstream.SandboxTemplates, s.pool.Template)
	hash := s.printedHash(template)
	members := s.fullOf("sandbox:v1")
	for _, name := range members {
		s.stampedPod(name, hash)
	}
	member, err := s.podClient().Get(t.Context(), members[0], metav1.GetOptions{})
	s.must(err)
	s.forgedAtCreate(member, hash)

	s.forgedLater(members[0], hash)
	s.claim(s.pool, "c1")
	s.stampedPod(s.running([]string{"c1"})["c1"].GetName(), hash)
	s.image(s.pool, "sandbox:v2")
	s.claim(s.pool, scenario.Names("n", s.pool.Replicas)...)
	next := s.printedHash(s.get(upstream.SandboxTemplates, s.pool.Template))
	for _, name := range s.fullOf("sandbox:v2") {
		s.stampedPod(name, next)
	}
}

// Bare Pods that were there before anybody said enforce get their stamps, and stay.
func testBareBackfill(t *testing.T, w *oldWorld) {
	s := w.stage(t, 2, nil)
	names := s.fullOf("sandbox:v1")
	for _, name := range names {
		pod, err := s.podClient().Get(t.Context(), name, metav1.GetOptions{})
		s.must(err)
		if stamp := pod.GetLabels()[stampKey]; stamp != "" {
			t.Errorf("pod %s has stamp %s although nobody said enforce", name, stamp)
		}
	}
	s.enforce()
	hash := s.printedHash(s.get(upstream.SandboxTemplates, s.pool.Template))
	for _, name := range names {
		s.stampedPod(name, hash)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(names)), slices.Sorted(slices.Values(s.fullOf("sandbox:v1")))); diff != "" {
		t.Errorf("the pool was to stay as it is (-want,+got):\n%s", diff)
	}
}

func (s *oldStage) stampedPod(name, want string) {
	s.t.Helper()
	s.stampIs("pod "+name, want, func(ctx context.Context) string {
		pod, err := s.podClient().Get(ctx, name, metav1.GetOptions{})
		s.must(err)
		return pod.GetLabels()[stampKey]
	})
}

// forgedAtCreate tries Pods of the pool whose stamp says something else than
// their content.
func (s *oldStage) forgedAtCreate(member *unstructured.Unstructured, hash string) {
	s.t.Helper()
	const forged = "v1-0123456789abcdef"
	owner := builders.ControllerRef(s.get(upstream.SandboxWarmPools, s.pool.Name))
	copyOf := func(image string) *unstructured.Unstructured {
		b := builders.PodFrom(member).Name("").Unset("metadata", "uid").Unset("metadata", "resourceVersion").
			Unset("spec", "nodeName").Unset("status").Owners(owner).Label(stampKey, forged)
		containers, _, _ := unstructured.NestedSlice(member.Object, "spec", "containers")
		containers[0].(map[string]any)["image"] = image
		return b.Set(containers, "spec", "containers").Obj()
	}
	for image, want := range map[string][]string{"sandbox:v1": {hash}, "other:v1": nil} {
		got := ""
		s.w.inTime(s.t, func() {
			stored, err := s.podClient().Create(s.t.Context(), copyOf(image), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			s.must(err)
			got = stored.GetLabels()[stampKey]
		}, stampHooks...)
		if got == "" || got == forged || want != nil && !slices.Contains(want, got) {
			s.t.Errorf("pod of %s created with a forged stamp is stamped %q, want %v", image, got, want)
		}
	}
}

// forgedLater changes a stamp. Policies hold a moment after they are stored.
func (s *oldStage) forgedLater(name, hash string) {
	s.t.Helper()
	forge := func(ctx context.Context, dryRun ...string) string {
		patch := []byte(`{"metadata":{"labels":{"` + stampKey + `":"v1-0123456789abcdef"}}}`)
		stored, err := s.podClient().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: dryRun})
		s.must(err)
		return stored.GetLabels()[stampKey]
	}
	s.eventually("a changed stamp put back", func(ctx context.Context) (string, bool) {
		got := forge(ctx, metav1.DryRunAll)
		return got, got == hash
	})
	if got := forge(s.t.Context()); got != hash {
		s.t.Errorf("pod %s is stamped %q after a change, want %s", name, got, hash)
	}
}

// A refused release says nothing in any status. Its claim is told by an event,
// although the Pod names it by UID only, and so is the pool.
func testBareEvents(t *testing.T, w *oldWorld) {
	s := w.stage(t, 2, scenario.Enforce())
	s.claim(s.pool, "c1")
	uid := s.get(upstream.SandboxClaims, "c1").GetUID()
	member := s.dyingMember()
	take := fmt.Appendf(nil, `{"metadata":{"ownerReferences":null,"labels":{%q:null,%q:%q}}}`, barePoolLabel, builders.LabelClaimUID, uid)
	err := s.answered(func() error {
		_, err := s.podClient().Patch(t.Context(), member.GetName(), types.MergePatchType, take, metav1.PatchOptions{})
		return err
	})
	wantRefused(t, "release of a pod that is being deleted", err, "MemberTerminating")
	s.eventually("events on the claim and on the pool", func(ctx context.Context) (string, bool) {
		list, err := s.kube().EventsV1().Events(s.Name).List(ctx, metav1.ListOptions{})
		s.must(err)
		notes := map[string]string{}
		for _, e := range list.Items {
			if e.Reason == "MemberTerminating" && e.Related != nil && e.Related.Name == member.GetName() {
				notes[e.Regarding.Kind+" "+e.Regarding.Name] = e.Note
			}
		}
		_, claim := notes["SandboxClaim c1"]
		return fmt.Sprint(notes), claim && strings.HasPrefix(notes["SandboxWarmPool python"], "claim c1: ")
	})
}

// Nobody else's Pods cost a call.
func testOtherPodsCostNothing(t *testing.T, w *oldWorld) {
	s := (&world{World: w.World}).namespace(t, scenario.Enforce())
	asked := func() float64 {
		w := &world{World: w.World}
		return w.metric(t, "controller_runtime_webhook_requests_total", `webhook="/birth"`) +
			w.metric(t, "controller_runtime_webhook_requests_total", `webhook="/stamp"`)
	}
	pods := w.pods.Resource(podResource).Namespace(s.Name)
	before := asked()
	for name, refs := range map[string][]metav1.OwnerReference{
		"nobodys":                   nil,
		"of-a-replica-set":          {{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "r", Controller: new(true)}},
		"of-another-platforms-pool": {{APIVersion: "agents.kruise.io/v1alpha1", Kind: "SandboxWarmPool", Name: "p", UID: "p", Controller: new(true)}},
	} {
		pod := &unstructured.Unstructured{}
		pod.SetAPIVersion("v1")
		pod.SetKind("Pod")
		pod.SetName(name)
		pod.SetOwnerReferences(refs)
		pod.Object["spec"] = map[string]any{"containers": []any{map[string]any{"name": "c", "image": "i"}}}
		_, err := pods.Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		s.must(err)
	}
	if after := asked(); after != before {
		t.Errorf("%.0f calls for pods that are nobody's, a ReplicaSet's and another platform's", after-before)
	}
}
