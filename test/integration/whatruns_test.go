package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// A member whose Pod is not what its Sandbox says goes to nobody, and makes room
// for another one.
func TestMembersWhosePodsAreAnothersWork(t *testing.T) {
	cases := map[string]func(s *stage, member string){
		"an image set by hand": func(s *stage, member string) {
			s.patchPod(member, strategicPatch, `{"spec":{"containers":[{"name":"c","image":"sandbox:odd"}]}}`)
		},
		"debugged": func(s *stage, member string) {
			s.patchPod(member, strategicPatch,
				`{"spec":{"ephemeralContainers":[{"name":"debugger","image":"busybox","targetContainerName":"c"}]}}`, "ephemeralcontainers")
		},
		"made again from the revision before": func(s *stage, member string) { s.makePodAgain(member, "sandbox:v1") },
	}
	for name, touch := range cases {
		t.Run(name, func(t *testing.T) {
			s := sharedWorld(t).enforced(t)
			p := s.pool(scenario.Pool{Replicas: 2, Strategy: scenario.Recreate})
			s.image(p, "sandbox:v2")
			var touched []types.UID
			for _, m := range s.full(p, "sandbox:v2") {
				touched = append(touched, m.UID)
				touch(s, m.Name)
			}
			s.claim(p, "c1", "c2")
			for _, claim := range []string{"c1", "c2"} {
				sandbox, err := s.SandboxOf(t.Context(), claim)
				s.must(err)
				if slices.Contains(touched, sandbox.GetUID()) {
					t.Errorf("claim %s was given sandbox %s", claim, sandbox.GetName())
				}
			}
			s.eventually("members replaced", func(ctx context.Context) (string, bool) {
				members, err := s.Members(ctx, p.Name)
				s.must(err)
				left := slices.ContainsFunc(members, func(m scenario.Member) bool { return slices.Contains(touched, m.UID) })
				return fmt.Sprint(members), !left
			})
			s.full(p, "sandbox:v2")
		})
	}
}

func (s *stage) patchPod(name string, kind types.PatchType, patch string, subresource ...string) {
	s.t.Helper()
	_, err := s.kube().CoreV1().Pods(s.Name).Patch(s.t.Context(), name, kind, []byte(patch), metav1.PatchOptions{}, subresource...)
	s.must(err)
}

// makePodAgain puts a Pod of another image in the place of a Sandbox's, whose
// controller does not see it.
func (s *stage) makePodAgain(sandbox, image string) {
	s.t.Helper()
	owner := s.get(upstream.Sandboxes, sandbox)
	s.w.Controllers.Proxy().Hold("", "pods")
	defer s.w.Controllers.Proxy().Release("", "pods")
	s.deletePod(sandbox)
	pod := builders.MakePod(builders.SandboxFrom(owner).Image(image).Obj()).UID("").Obj()
	pod.SetResourceVersion("")
	typed := &corev1.Pod{}
	s.must(runtime.DefaultUnstructuredConverter.FromUnstructured(pod.Object, typed))
	_, err := s.kube().CoreV1().Pods(s.Name).Create(s.t.Context(), typed, metav1.CreateOptions{})
	s.must(err)
}

func (s *stage) deletePod(name string) {
	s.t.Helper()
	now := int64(0)
	s.must(s.kube().CoreV1().Pods(s.Name).Delete(s.t.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: &now}))
	s.eventually("pod "+name+" gone", func(ctx context.Context) (string, bool) {
		_, err := s.kube().CoreV1().Pods(s.Name).Get(ctx, name, metav1.GetOptions{})
		return fmt.Sprint(err), isNotFound(err)
	})
}

// A cold start takes over no Pod that was there before: an orphaned one, or one
// that somebody planted. It goes on as soon as that is gone.
func TestColdStartsTakeOverNoPod(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	p := s.pool(scenario.Pool{Replicas: 0, Strategy: scenario.Recreate})
	refusals := func() float64 {
		return s.w.metric(t, "freshbind_bind_verdicts_total", `operation="coldstart"`, `reason="PodForeign"`, `verdict="deny"`)
	}
	refused := func(before float64) {
		t.Helper()
		s.eventually("cold start refused", func(context.Context) (string, bool) {
			now := refusals()
			return fmt.Sprint(now), now > before
		})
		if list := s.list(upstream.Sandboxes); len(list) > 0 {
			t.Errorf("sandbox %s was created beside a pod of its name", list[0].GetName())
		}
	}
	before := refusals()
	planted, err := s.kube().CoreV1().Pods(s.Name).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "c1", Labels: map[string]string{builders.LabelNameHash: builders.NameHash("c1")}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "planted"}}},
	}, metav1.CreateOptions{})
	s.must(err)
	s.must(s.CreateClaims(t.Context(), p, "c1"))
	refused(before)
	// A Sandbox that names a Pod which is not there runs in the one of its own name.
	elsewhere := builders.MakeColdStart(s.get(upstream.SandboxClaims, "c1"), s.get(upstream.SandboxTemplates, p.Template)).UID("").PodName("absent").Obj()
	err = s.answered(func() error {
		_, err := s.Resource(upstream.Sandboxes).Create(t.Context(), elsewhere, metav1.CreateOptions{})
		return err
	})
	wantRefused(t, "a sandbox in a pod that is not there", err, "PodForeign")
	s.deletePod("c1")
	s.must(s.WaitClaims(t.Context(), within, "c1"))
	own := s.podOf("c1")
	if own.UID == planted.UID || own.Spec.Containers[0].Image != "sandbox:v1" {
		t.Errorf("the claim runs %s in pod %s", own.Spec.Containers[0].Image, own.UID)
	}

	before = refusals()
	// What the garbage collector does when a Sandbox is deleted and its Pod orphaned:
	// it does not run here.
	see, seePods := s.hold(upstream.Sandboxes), s.hold(pods)
	s.patchPod("c1", mergePatch, noOwners)
	s.must(s.Resource(upstream.Sandboxes).Delete(t.Context(), "c1", metav1.DeleteOptions{}))
	see()
	seePods()
	refused(before)
	s.deletePod("c1")
	s.eventually("the claim has a pod again", func(ctx context.Context) (string, bool) {
		pod, err := s.kube().CoreV1().Pods(s.Name).Get(ctx, "c1", metav1.GetOptions{})
		return fmt.Sprint(err), err == nil && pod.UID != own.UID && metav1.GetControllerOf(pod) != nil
	})
	s.must(s.WaitClaims(t.Context(), within, "c1"))
}

// Nobody makes a member by hand in the name of a used sandbox whose Pod outlived it: its
// controller would take that over, and the next claim would get it.
func TestMembersTakeOverNoPod(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	p := s.pool(scenario.Pool{Replicas: 1, Strategy: scenario.Recreate})
	s.full(p, "")
	s.claim(p, "c1")
	used, err := s.SandboxOf(t.Context(), "c1")
	s.must(err)
	again := builders.SandboxFrom(s.get(upstream.Sandboxes, s.full(p, "")[0].Name)).Name(used.GetName()).UID("").
		Unset("metadata", "annotations", settings.CreatedByKey).Unset("metadata", "resourceVersion").Unset("status").Obj()

	// What the garbage collector does when a Sandbox is deleted and its Pod orphaned: it
	// does not run here.
	see, seePods := s.hold(upstream.Sandboxes), s.hold(pods)
	s.patchPod(used.GetName(), mergePatch, noOwners)
	s.must(s.Resource(upstream.Sandboxes).Delete(t.Context(), used.GetName(), metav1.DeleteOptions{}))
	create := func(ctx context.Context, pod string) error {
		made := builders.SandboxFrom(again).PodName(pod).Obj()
		_, err := s.Resource(upstream.Sandboxes).Create(ctx, made, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	for _, pod := range []string{used.GetName(), "absent"} {
		s.eventually("a member beside that Pod refused, which says pod "+pod, func(ctx context.Context) (string, bool) {
			err := create(ctx, pod)
			return fmt.Sprint(err), apierrors.IsForbidden(err) && strings.Contains(err.Error(), "PodForeign")
		})
	}
	s.deletePod(used.GetName())
	s.must(create(t.Context(), used.GetName()))
	see()
	seePods()
}

// Nobody is given the Pod of somebody else's sandbox by a member that names it: agent-sandbox
// runs a member in the Pod that it names, once that is its own.
func TestMembersRunInNoUsedPod(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	p := s.pool(scenario.Pool{Replicas: 1, Strategy: scenario.Recreate})
	s.claim(p, "c1")
	sandbox, err := s.SandboxOf(t.Context(), "c1")
	s.must(err)
	used, member := s.podOf(sandbox.GetName()), s.get(upstream.Sandboxes, s.full(p, "")[0].Name)
	s.patchPod(used.Name, mergePatch, string(marshal(map[string]any{"metadata": map[string]any{
		"ownerReferences": []any{builders.ControllerRef(member)},
	}})))
	s.patch(upstream.Sandboxes, member.GetName(), fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, builders.AnnotationPodName, used.Name))
	s.deletePod(member.GetName())
	s.eventually("that member deleted, or served by the used pod", func(ctx context.Context) (string, bool) {
		now, err := s.Resource(upstream.Sandboxes).Get(ctx, member.GetName(), metav1.GetOptions{})
		if err != nil {
			return err.Error(), isNotFound(err)
		}
		addresses, _, _ := unstructured.NestedStringSlice(now.Object, "status", "podIPs")
		return fmt.Sprint(addresses), slices.Contains(addresses, used.Status.PodIP)
	})
	s.full(p, "")
	s.claim(p, "c2")
	sandbox, err = s.SandboxOf(t.Context(), "c2")
	s.must(err)
	if sandbox.GetUID() == member.GetUID() {
		t.Errorf("claim c2 was given sandbox %s, which runs in pod %s of claim c1", member.GetName(), sandbox.GetAnnotations()[builders.AnnotationPodName])
	}
	s.full(p, "")
}

func (s *stage) podOf(name string) *corev1.Pod {
	s.t.Helper()
	pod, err := s.kube().CoreV1().Pods(s.Name).Get(s.t.Context(), name, metav1.GetOptions{})
	s.must(err)
	return pod
}

// What the API server's own admission adds to Pods changes neither their stamps nor
// whether an edited one can be compared.
func TestWhatAdmissionAddsToPods(t *testing.T) {
	w := ownWorld(t, scenario.WorldOptions{Cluster: controlplane.Options{
		APIServerFlags: []string{"--enable-admission-plugins=ExtendedResourceToleration,AlwaysPullImages"},
	}})
	s := w.enforced(t)
	kube, ctx := s.kube(), t.Context()
	_, err := kube.NodeV1().RuntimeClasses().Create(ctx, &nodev1.RuntimeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "kata"}, Handler: "kata",
		Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}},
		Scheduling: &nodev1.Scheduling{
			NodeSelector: map[string]string{"kata": "yes"},
			Tolerations:  []corev1.Toleration{{Key: "kata", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}},
		},
	}, metav1.CreateOptions{})
	s.must(err)
	never := corev1.PreemptNever
	_, err = kube.SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: "standard"}, Value: 1000, GlobalDefault: true, PreemptionPolicy: &never,
	}, metav1.CreateOptions{})
	s.must(err)
	_, err = kube.CoreV1().LimitRanges(s.Name).Create(ctx, &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Name: "defaults"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type:           corev1.LimitTypeContainer,
			DefaultRequest: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")},
			Default:        corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
		}}},
	}, metav1.CreateOptions{})
	s.must(err)
	s.admissionAdds()
	s.ungate()
	p := s.pool(scenario.Pool{Replicas: 2, Strategy: scenario.Recreate}, func(tpl *builders.Template) {
		tpl.PodSpec("kata", "runtimeClassName").PodSpec([]any{map[string]any{"name": "wait.example.com/room"}}, "schedulingGates").
			Set("runtime/default", "spec", "podTemplate", "metadata", "annotations", corev1.DeprecatedAppArmorBetaContainerAnnotationKeyPrefix+"c").
			PodSpec([]any{map[string]any{
				"name": "c", "image": "sandbox:v1", "imagePullPolicy": "IfNotPresent", "resources": map[string]any{"limits": map[string]any{"example.com/gpu": "1"}},
			}}, "containers")
	})
	var uids []types.UID
	for _, m := range s.full(p, "") {
		uids = append(uids, m.UID)
		pod := s.podOf(m.Name)
		if pod.Spec.Overhead == nil || pod.Spec.PriorityClassName != "standard" || pod.Spec.NodeSelector["kata"] == "" || pod.Generation < 2 ||
			len(pod.Spec.Containers[0].Resources.Requests) < 3 || len(pod.Spec.Tolerations) < 4 || pod.Spec.Containers[0].ImagePullPolicy != corev1.PullAlways ||
			pod.Spec.Containers[0].SecurityContext == nil {
			t.Fatalf("admission and the scheduler's gate added too little for this test: generation %d, %+v", pod.Generation, pod.Spec)
		}
		if stamp, own := pod.Labels[settings.StampKey], s.get(upstream.Sandboxes, m.Name).GetLabels()[settings.StampKey]; stamp == "" || stamp != own {
			t.Errorf("pod %s is stamped %q, its sandbox %q", m.Name, stamp, own)
		}
	}
	s.claim(p, "c1", "c2")
	for _, claim := range []string{"c1", "c2"} {
		sandbox, err := s.SandboxOf(ctx, claim)
		s.must(err)
		if !slices.Contains(uids, sandbox.GetUID()) {
			t.Errorf("claim %s started cold", claim)
		}
	}
	s.full(p, "")
}

// admissionAdds waits until the API server has seen all that its admission adds to Pods from.
func (s *stage) admissionAdds() {
	s.t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "probe"},
		Spec:       corev1.PodSpec{RuntimeClassName: new("kata"), Containers: []corev1.Container{{Name: "c", Image: "sandbox:v1"}}},
	}
	s.eventually("runtime class, priority and limits in force", func(ctx context.Context) (string, bool) {
		got, err := s.kube().CoreV1().Pods(s.Name).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%+v", got.Spec), got.Spec.Overhead != nil && got.Spec.PriorityClassName == "standard" &&
			len(got.Spec.Containers[0].Resources.Requests) > 0
	})
}

// ungate takes the gates off the stage's Pods, as a scheduler with queues does.
func (s *stage) ungate() {
	go wait.UntilWithContext(s.t.Context(), func(ctx context.Context) {
		pods, err := s.kube().CoreV1().Pods(s.Name).List(ctx, metav1.ListOptions{})
		if err != nil {
			return // at the test's end, or tried again
		}
		for i := range pods.Items {
			if len(pods.Items[i].Spec.SchedulingGates) > 0 {
				_, _ = s.kube().CoreV1().Pods(s.Name).Patch(ctx, pods.Items[i].Name, types.JSONPatchType,
					[]byte(`[{"op":"remove","path":"/spec/schedulingGates"},{"op":"add","path":"/spec/nodeSelector/zone","value":"a"}]`), metav1.PatchOptions{})
			}
		}
	}, 50*time.Millisecond)
}
