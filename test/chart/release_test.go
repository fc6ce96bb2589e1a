package chart

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// unhurried leaves time to whoever leaves, on a machine that is busy with other things.
var unhurried = set("config.releasePeriod=8m", "terminationGracePeriodSeconds=600")

// However Freshbind goes, claims that are on their way when it does get their
// sandboxes, nothing that blocks stays behind, and whoever takes it away in the middle
// of a rollout finds all members of a pool claimable, without the hook too, once the
// command was run.
func TestFreshbindGoes(t *testing.T) {
	const members, replaced = 8, 2
	for name, tc := range map[string]struct {
		// leave returns what the command has said, where that is run.
		leave func(*testing.T, *world, *scenario.Namespace, scenario.Pool) string
		// stays is how many members are hidden after that, and before the command.
		stays int
	}{
		"helm uninstall": {func(t *testing.T, w *world, _ *scenario.Namespace, _ scenario.Pool) string {
			output := w.leaveInOrder(t)
			w.nothingLeft(t)
			return output
		}, 0},
		"helm uninstall --no-hooks": {func(t *testing.T, w *world, _ *scenario.Namespace, _ scenario.Pool) string {
			w.uninstall(t)
			w.nothingLeft(t)
			return ""
		}, members - replaced},
		"kubectl delete namespace": {func(t *testing.T, w *world, ns *scenario.Namespace, p scenario.Pool) string {
			w.owned(t)
			return w.takeAway(t, ns, p, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
		}, 0},
		"kubectl delete deployment": {func(t *testing.T, w *world, ns *scenario.Namespace, p scenario.Pool) string {
			return w.takeAway(t, ns, p, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: release}})
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := sharedWorld(t)
			w.install(t, unhurried...)
			ns, p := w.rollingPool(t, members)
			// A member that is new is not counted as available for an hour, so that the
			// rollout waits where it is.
			_, err := ns.SetImage(t.Context(), p.Template, "sandbox:v2")
			w.must(t, err)
			w.hidden(t, ns, p, members-replaced)
			others := w.claimsOnTheirWay(t)
			others.come(t, 4)
			output := tc.leave(t, w, ns, p)
			others.come(t, 2)
			w.hidden(t, ns, p, tc.stays)
			if tc.stays > 0 {
				output = w.releaseByHand(t)
			}
			if want := fmt.Sprintf("SandboxWarmPool %s/%s: %d members shown", ns.Name, p.Name, tc.stays); !strings.Contains(output, want) {
				t.Errorf("%q is not in\n%s", want, output)
			}
			w.hidden(t, ns, p, 0)
			w.unmarked(t, ns)
			w.allWarm(t, ns, p, members-replaced)
			others.served(t)
		})
	}
}

// allWarm checks that so many claims get members of the pool, all at once.
func (w *world) allWarm(t *testing.T, ns *scenario.Namespace, p scenario.Pool, want int) {
	t.Helper()
	claims := scenario.Names("c", want)
	w.must(t, ns.CreateClaims(t.Context(), p, claims...))
	w.must(t, ns.WaitClaims(t.Context(), within, claims...))
	for _, claim := range claims {
		sandbox, err := ns.SandboxOf(t.Context(), claim)
		w.must(t, err)
		if launched := sandbox.GetLabels()["agents.x-k8s.io/launch-type"]; launched != "warm" {
			t.Errorf("claim %s has a %s sandbox, want a warm one", claim, launched)
		}
	}
}

// takeAway deletes what the manager runs by, stops it as its kubelet would, and waits until
// nothing is hidden, though nobody runs a command. It returns what that says later.
func (w *world) takeAway(t *testing.T, ns *scenario.Namespace, p scenario.Pool, obj client.Object) string {
	t.Helper()
	w.leaves(func() {
		w.must(t, w.client.Delete(t.Context(), obj))
		w.stop(t)
	})
	w.hidden(t, ns, p, 0)
	w.uninstall(t)
	// The namespace is the owner of what would be in the way of the command.
	w.nothingLeft(t, staysWithoutHelm)
	return w.releaseByHand(t)
}

// A release that cannot be done, here for lack of an image, fails an uninstall;
// without hooks it goes on. The next one does not trip over what is left.
func TestAnUninstallIsNotHeldUpForEver(t *testing.T) {
	w := sharedWorld(t)
	w.install(t, set("uninstall.release.timeoutSeconds=10")...)
	ctx, stop := context.WithTimeout(t.Context(), within)
	defer stop()
	deadline := make(chan int64, 1)
	go func() { deadline <- w.hurry(ctx) }()
	// Nobody plays the Pod of the Job, as if it could not start.
	_, err := w.helm.run(ctx, "uninstall", release, helmTimeout)
	if err == nil || !strings.Contains(err.Error(), "Job/"+namespace+"/"+release+"-release") {
		t.Fatalf("uninstalling without a Pod: %v, want that the hook failed", err)
	}
	// Pulling the image may take half a minute (templates/uninstall.yaml).
	if got := <-deadline; got != 10+30 {
		t.Errorf("the hook's deadline is %d s, want 40 s", got)
	}
	w.leaveInOrder(t)
	w.nothingLeft(t)
}

// hurry has the deadline of the release's Job come as soon as there is one, and returns
// the deadline that it had.
func (w *world) hurry(ctx context.Context) int64 {
	jobs := w.clients.BatchV1().Jobs(namespace)
	for ctx.Err() == nil {
		job, err := jobs.Get(ctx, release+"-release", metav1.GetOptions{})
		if err == nil {
			soon := []byte(`{"spec":{"activeDeadlineSeconds":1}}`)
			if _, err = jobs.Patch(ctx, job.Name, types.MergePatchType, soon, metav1.PatchOptions{}); err == nil {
				return ptr.Deref(job.Spec.ActiveDeadlineSeconds, 0)
			}
		}
		pause(ctx)
	}
	return 0
}

// rollingPool makes a full pool under RollingUpdate whose new members are never
// available.
func (w *world) rollingPool(t *testing.T, members int) (*scenario.Namespace, scenario.Pool) {
	t.Helper()
	w.spaces++
	ns, err := scenario.CreateNamespace(t.Context(), w.cluster.Config(), "v1beta1", fmt.Sprintf("chart-%d", w.spaces), scenario.Enforce())
	w.must(t, err)
	w.must(t, ns.WaitGuarded(t.Context(), within))
	p := scenario.Pool{Name: "python", Template: "python", Image: "sandbox:v1", Replicas: members, Strategy: scenario.OnReplenish}
	w.must(t, ns.Create(t.Context(),
		builders.MakeTemplate(ns.Name, p.Template).APIVersion(ns.Version).Image(p.Image).Obj(),
		builders.MakePool(ns.Name, p.Name).APIVersion(ns.Version).Template(p.Template).Replicas(int64(members)).Strategy(p.Strategy).
			Annotation(settings.StrategyKey, "RollingUpdate").Annotation(settings.MinReadySecondsKey, "3600").Obj()))
	_, err = ns.WaitPool(t.Context(), p, "", within)
	w.must(t, err)
	return ns, p
}

// hidden waits until so many members of a full pool are hidden.
func (w *world) hidden(t *testing.T, ns *scenario.Namespace, p scenario.Pool, want int) {
	t.Helper()
	w.eventually(t, fmt.Sprintf("%d members are hidden", want), func(ctx context.Context) (string, bool) {
		members, err := ns.Members(ctx, p.Name)
		if err != nil {
			return err.Error(), false
		}
		hidden, ready := 0, 0
		for _, m := range members {
			if m.Ready && !m.Deleting {
				ready++
			}
			if !m.Shown {
				hidden++
			}
		}
		return fmt.Sprintf("%d members, %d ready, %d hidden", len(members), ready, hidden), ready == p.Replicas && hidden == want
	})
}

// unmarked checks that nothing of a namespace carries a key of Freshbind's but
// what its user wrote.
func (w *world) unmarked(t *testing.T, ns *scenario.Namespace) {
	t.Helper()
	theirs := []string{settings.StrategyKey, settings.MinReadySecondsKey}
	for _, r := range []string{"sandboxes", "pods", "sandboxwarmpools", "sandboxclaims"} {
		for _, o := range w.metadata(t, ns, r) {
			for _, keys := range []map[string]string{o.Labels, o.Annotations} {
				for key := range keys {
					if strings.HasPrefix(key, settings.Prefix) && !slices.Contains(theirs, key) {
						t.Errorf("%s %s still has %s", r, o.Name, key)
					}
				}
			}
		}
	}
}

func (w *world) metadata(t *testing.T, ns *scenario.Namespace, resource string) []metav1.PartialObjectMetadata {
	t.Helper()
	list := &metav1.PartialObjectMetadataList{}
	switch resource {
	case "pods":
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
	case "sandboxes":
		list.SetGroupVersionKind(upstream.Sandboxes.WithVersion(ns.Version).GroupVersion().WithKind("SandboxList"))
	case "sandboxclaims":
		list.SetGroupVersionKind(upstream.SandboxClaims.WithVersion(ns.Version).GroupVersion().WithKind("SandboxClaimList"))
	case "sandboxwarmpools":
		list.SetGroupVersionKind(upstream.SandboxWarmPools.WithVersion(ns.Version).GroupVersion().WithKind("SandboxWarmPoolList"))
	}
	w.must(t, w.client.List(t.Context(), list, client.InNamespace(ns.Name)))
	return list.Items
}

// releaseByHand runs the command as whoever installs things, and returns what it
// said.
func (w *world) releaseByHand(t *testing.T) string {
	t.Helper()
	r := w.replicas[0]
	path := r.path("admin-kubeconfig")
	w.must(t, w.cluster.WriteKubeconfig(w.cluster.Config(), path))
	out, err := run(t.Context(), r.program, "release", "-A", "--kubeconfig="+path)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// leaveInOrder uninstalls the release, plays the kubelet for the Job that comes
// before it, and returns what that has said. The manager's Pods are gone when its
// processes are.
func (w *world) leaveInOrder(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	pods := w.holdPods(ctx, t)
	output := make(chan string, 1)
	go func() { output <- w.playPods(ctx, "job-name="+release+"-release") }()
	go func() { w.stopWithTheDeployment(ctx, t, pods) }()
	var err error
	w.leaves(func() {
		_, err = w.helm.run(ctx, "uninstall", release, "--wait", helmTimeout)
		w.stop(t)
	})
	cancel()
	text := <-output
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return text
}

const held = "chart.freshbind.dev/its-process-runs"

// holdPods has the manager's Pods stay until somebody lets them go.
func (w *world) holdPods(ctx context.Context, t *testing.T) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	w.must(t, w.client.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/component": "manager"}))
	for i := range pods.Items {
		w.must(t, w.client.Patch(ctx, &pods.Items[i], client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["`+held+`"]}}`))))
	}
	return pods.Items
}

// stopWithTheDeployment ends the processes once the Deployment wants none.
func (w *world) stopWithTheDeployment(ctx context.Context, t *testing.T, pods []corev1.Pod) {
	ended := func(context.Context) (string, bool) {
		d, err := w.clients.AppsV1().Deployments(namespace).Get(ctx, release, metav1.GetOptions{})
		return fmt.Sprint(err), err != nil || *d.Spec.Replicas == 0
	}
	for {
		if _, ok := ended(ctx); ok {
			break
		}
		if ctx.Err() != nil {
			return
		}
		pause(ctx)
	}
	for _, r := range w.replicas {
		if err := w.kubelet.stop(r); err != nil {
			t.Error(err)
		}
	}
	for i := range pods {
		err := w.client.Patch(context.WithoutCancel(ctx), &pods[i], client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		if client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	}
}
