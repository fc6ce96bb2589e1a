package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	barePoolLabel    = "agents.x-k8s.io/pool"
	rolloutStrategy  = "freshbind.dev/rollout-strategy"
	releaseOperation = `operation="release"`
)

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// oldWorld is a world whose pools have bare Pods as their members. The judge
// knows Sandboxes only, so what is judged here is the Pod that runs.
type oldWorld struct {
	*scenario.World
	pods dynamic.Interface
}

func startOldWorld(t *testing.T, version string) *oldWorld {
	t.Helper()
	program, err := fixture.Program()
	if err != nil {
		t.Fatal(err)
	}
	o := scenario.WorldOptions{Release: version}
	o.Guard.Program, o.Cluster.Log = program, os.Stderr
	s, err := scenario.StartWorld(context.WithoutCancel(t.Context()), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, path := range []string{s.Guard.LogPath(), s.Controllers.LogPath()} {
			if log, err := os.ReadFile(path); t.Failed() && err == nil {
				t.Logf("%s:\n%s", path, tail(string(log)))
			}
		}
		if err := errors.Join(s.Err(), s.Stop()); err != nil {
			t.Error(err)
		}
	})
	s.RanOn(t)
	cfg := rest.CopyConfig(s.Cluster.Config())
	cfg.QPS = -1
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return &oldWorld{World: s, pods: client}
}

func tail(log string) string {
	const most = 20_000
	return log[max(0, len(log)-most):]
}

// oldStage is a namespace with one pool of a template.
type oldStage struct {
	*stage
	old  *oldWorld
	pool scenario.Pool
}

func (w *oldWorld) stage(t *testing.T, replicas int, labels map[string]string) *oldStage {
	t.Helper()
	s := (&world{World: w.World}).namespace(t, labels)
	p := scenario.Pool{Name: "python", Template: "python", Replicas: replicas}
	template := builders.MakeTemplate(s.Name, p.Template).APIVersion(w.Version).PodSpec(builders.DefaultedPodSpec("sandbox:v1")).Obj()
	pool := builders.MakePool(s.Name, p.Name).APIVersion(w.Version).Template(p.Template).Replicas(int64(replicas)).
		Annotation(rolloutStrategy, scenario.Recreate).Obj()
	s.must(s.Create(t.Context(), template, pool))
	o := &oldStage{s, w, p}
	o.fullOf("sandbox:v1")
	o.settled()
	return o
}

// settled waits until a reconcile of the pool's controller saw all members in its cache.
// Before that it may still be creating one more, admitted before what the test does next
// and stored after it.
func (s *oldStage) settled() {
	s.t.Helper()
	s.eventually("pool that its controller sees full", func(context.Context) (string, bool) {
		seen, _, err := unstructured.NestedInt64(s.get(upstream.SandboxWarmPools, s.pool.Name).Object, "status", "replicas")
		s.must(err)
		pods := len(s.poolPods())
		return fmt.Sprintf("%d seen of %d", seen, pods), seen == int64(s.pool.Replicas) && pods == s.pool.Replicas
	})
}

func (s *oldStage) podClient() dynamic.ResourceInterface {
	return s.old.pods.Resource(podResource).Namespace(s.Name)
}

// fullOf waits until the pool has all its members, each running the image.
func (s *oldStage) fullOf(image string) []string {
	s.t.Helper()
	return s.members(image, s.pool.Replicas)
}

// members waits until so many Pods of the pool run the image, and none is
// otherwise; those that are being deleted do not count.
func (s *oldStage) members(image string, atLeast int) []string {
	s.t.Helper()
	var names []string
	s.eventually("pool full of "+image, func(ctx context.Context) (string, bool) {
		list, err := s.podClient().List(ctx, metav1.ListOptions{})
		s.must(err)
		names = nil
		var others []string
		for i := range list.Items {
			pod := &list.Items[i]
			owner := metav1.GetControllerOf(pod)
			if owner == nil || owner.Kind != "SandboxWarmPool" || pod.GetDeletionTimestamp() != nil {
				continue
			}
			phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
			if phase == "Running" && podImage(pod) == image {
				names = append(names, pod.GetName())
			} else {
				others = append(others, fmt.Sprintf("%s (%s %s)", pod.GetName(), phase, podImage(pod)))
			}
		}
		return fmt.Sprintf("%d, and %v", len(names), others), len(names) >= atLeast && len(others) == 0
	})
	return names
}

func podImage(pod *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	if len(containers) == 0 {
		return ""
	}
	first, _ := containers[0].(map[string]any)
	image, _ := first["image"].(string)
	return image
}

// running returns the Pod of each claim, and checks that it is its claim's own.
func (s *oldStage) running(claims []string) map[string]*unstructured.Unstructured {
	s.t.Helper()
	out, of := map[string]*unstructured.Unstructured{}, map[string]string{}
	for _, claim := range claims {
		sandbox := s.get(upstream.Sandboxes, claim)
		name := sandbox.GetAnnotations()[builders.AnnotationPodName]
		if name == "" {
			name = claim
		}
		pod, err := s.podClient().Get(s.t.Context(), name, metav1.GetOptions{})
		s.must(err)
		if owner := metav1.GetControllerOf(pod); owner == nil || owner.UID != sandbox.GetUID() {
			s.t.Errorf("claim %s runs in pod %s, which is not its sandbox's", claim, name)
		}
		if another, ok := of[name]; ok {
			s.t.Errorf("claims %s and %s run in one pod %s", claim, another, name)
		}
		out[claim], of[name] = pod, claim
	}
	return out
}

func TestOldReleases(t *testing.T) {
	for _, version := range upstream.OldReleases() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			w := startOldWorld(t, version)
			t.Run("other pods", func(t *testing.T) { testOtherPodsCostNothing(t, w) })
			t.Run("stamps", func(t *testing.T) { testBareStamps(t, w) })
			t.Run("stamps of before", func(t *testing.T) { testBareBackfill(t, w) })
			t.Run("births", func(t *testing.T) { testBareBirths(t, w) })
			t.Run("events", func(t *testing.T) { testBareEvents(t, w) })
			t.Run("in-place update", func(t *testing.T) { testOldUpdate(t, w) })
			t.Run("dead members", func(t *testing.T) { testOldDeadMembers(t, w) })
			t.Run("late deletes", func(t *testing.T) { testOldLateDeletes(t, w) })
		})
	}
}

func testOldUpdate(t *testing.T, w *oldWorld) {
	const claims = 6
	// play returns how many claims right after an update run in a pod of the old template.
	play := func(s *oldStage, image string) int {
		s.image(s.pool, image)
		names := scenario.Names(strings.ReplaceAll(image, ":", "-")+"-", claims)
		s.claim(s.pool, names...)
		stale := 0
		for _, pod := range s.running(names) {
			if podImage(pod) != image {
				stale++
			}
		}
		return stale
	}
	if stale := play(w.stage(t, 4, nil), "sandbox:v2"); stale == 0 {
		t.Error("without Freshbind no claim got an old pod: this test shows nothing")
	}
	guarded := &world{World: w.World}
	refused := func() float64 {
		return guarded.metric(t, "freshbind_bind_verdicts_total", `verdict="deny"`, `mode="enforce"`, releaseOperation)
	}
	s, before := w.stage(t, 4, scenario.Enforce()), refused()
	image := ""
	// Where Freshbind has deleted all old pods before any claim tries one, nothing has been shown yet.
	for i := 2; i < 2+maxAttempts && refused() == before; i++ {
		if image != "" {
			s.fullOf(image)
		}
		image = fmt.Sprintf("sandbox:v%d", i)
		if stale := play(s, image); stale > 0 {
			t.Errorf("%d of %d claims run in a pod of the old template", stale, claims)
		}
	}
	if refused() == before {
		t.Errorf("no release of a pod was refused after %d updates: nothing was judged", maxAttempts)
	}
	t.Logf("%.0f releases refused", refused()-before)

	s.fullOf(image)
	s.eventually("no outcome of a rollout that nobody can see", func(context.Context) (string, bool) {
		state := s.get(upstream.SandboxWarmPools, s.pool.Name).GetAnnotations()[settings.RolloutStateKey]
		return state, state == ""
	})
	// A claim whose cache shows no Pod of the pool yet starts without one.
	s.settled()
	warm := scenario.Names("w", 2)
	s.claim(s.pool, warm...)
	for claim, pod := range s.running(warm) {
		if pod.GetGenerateName() == "" || podImage(pod) != image {
			t.Errorf("claim %s runs in pod %s of %s, want one of the pool's", claim, pod.GetName(), podImage(pod))
		}
	}
}

// Upstream passes over a Pod that it sees being deleted. With a late cache it
// does not: these are the writes it would send then.
func testOldDeadMembers(t *testing.T, w *oldWorld) {
	s := w.stage(t, 3, scenario.Enforce())
	ctx := t.Context()
	member := s.dyingMember()
	take := []byte(`{"metadata":{"ownerReferences":null,"labels":{"` + barePoolLabel + `":null}}}`)
	err := s.answered(func() error {
		_, err := s.podClient().Patch(ctx, member.GetName(), types.MergePatchType, take, metav1.PatchOptions{})
		return err
	})
	wantRefused(t, "release of a pod that is being deleted", err, "MemberTerminating")

	template := s.get(upstream.SandboxTemplates, s.pool.Template)
	loose := &unstructured.Unstructured{}
	loose.SetAPIVersion("v1")
	loose.SetKind("Pod")
	loose.SetName("loose")
	spec, _, _ := unstructured.NestedMap(template.Object, "spec", "podTemplate", "spec")
	loose.Object["spec"] = spec
	created, err := s.podClient().Create(ctx, loose, metav1.CreateOptions{})
	s.must(err)
	s.must(s.hold(ctx, created))
	s.remove(created)
	// The claim of another template is one that upstream itself leaves alone.
	s.must(s.Create(ctx, builders.MakeClaimV1Alpha1(s.Name, "late", "none", "default").Obj()))
	claim := s.get(upstream.SandboxClaims, "late")
	create := func(pod string) error {
		sandbox := builders.MakeColdStart(claim, template).PodName(pod).Obj()
		return s.answered(func() error {
			_, err := s.Resource(upstream.Sandboxes).Create(ctx, sandbox, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		})
	}
	wantRefused(t, "sandbox of a template that does not exist", create("loose"), "TemplateGone")
	s.must(s.Resource(upstream.SandboxClaims).Delete(ctx, "late", metav1.DeleteOptions{}))
	s.claim(s.pool, "late2")
	claim = s.get(upstream.SandboxClaims, "late2")
	wantRefused(t, "sandbox in a pod that is being deleted", create("loose"), "PodTerminating")
	wantRefused(t, "sandbox in a pod that its pool has", create(s.members("sandbox:v1", 1)[0]), "PodForeign")
}

// dyingMember is one that is being deleted for as long as the test runs.
func (s *oldStage) dyingMember() *unstructured.Unstructured {
	s.t.Helper()
	var member *unstructured.Unstructured
	// A pool that has more than it should loses some, and nobody knows which.
	s.eventually("a member that stays", func(ctx context.Context) (string, bool) {
		var err error
		if member, err = s.podClient().Get(ctx, s.fullOf("sandbox:v1")[0], metav1.GetOptions{}); err == nil {
			err = s.hold(ctx, member)
		}
		return fmt.Sprint(err), err == nil
	})
	s.remove(member)
	return member
}

// hold has a Pod stay for as long as the test runs, whoever deletes it.
func (s *oldStage) hold(ctx context.Context, pod *unstructured.Unstructured) error {
	finalizers := func(ctx context.Context, list string) error {
		patch := []byte(`{"metadata":{"finalizers":` + list + `}}`)
		_, err := s.podClient().Patch(ctx, pod.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	if err := finalizers(ctx, `["test.freshbind.dev/hold"]`); err != nil {
		return err
	}
	s.t.Cleanup(func() {
		if err := finalizers(context.WithoutCancel(s.t.Context()), "null"); err != nil {
			s.t.Error(err)
		}
	})
	return nil
}

func (s *oldStage) remove(pod *unstructured.Unstructured) {
	s.t.Helper()
	s.must(s.podClient().Delete(s.t.Context(), pod.GetName(), metav1.DeleteOptions{}))
}

func wantRefused(t *testing.T, what string, err error, reason string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), reason) {
		t.Errorf("%s: got %v, want a refusal for %s", what, err, reason)
	}
}
