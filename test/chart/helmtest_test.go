package chart

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/test/scenario"
)

// "helm test" says whether the guard works, seen from outside: yes as installed,
// no when somebody has emptied what the API server trusts or who is asked.
func TestHelmTest(t *testing.T) {
	w := sharedWorld(t)
	w.install(t)
	b := w.binds(t)
	b.bind(t.Context())
	w.serving(t, len(w.replicas))
	w.eventually(t, "the doctor finds nothing", func(context.Context) (string, bool) {
		output, err := w.helmTest(t)
		return output, err == nil
	})
	// Who injects the CA, and who closes webhooks, write it as well.
	w.must(t, retry.RetryOnConflict(scenario.Conflicts, func() error {
		var v admissionregistrationv1.ValidatingWebhookConfiguration
		if err := w.client.Get(t.Context(), client.ObjectKey{Name: release}, &v); err != nil {
			return err
		}
		v.Webhooks = slices.DeleteFunc(v.Webhooks, func(h admissionregistrationv1.ValidatingWebhook) bool { return h.Name == "coldstart.freshbind.dev" })
		return w.client.Update(t.Context(), &v)
	}))
	w.eventually(t, "the doctor misses a webhook", func(context.Context) (string, bool) {
		output, err := w.helmTest(t)
		return output, err != nil && strings.Contains(output, "coldstart.freshbind.dev")
	})
}

// helmTest runs "helm test", plays the kubelet for its Pod, and returns what the
// Pod has said.
func (w *world) helmTest(t *testing.T) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	output := make(chan string, 1)
	go func() { output <- w.playPods(ctx, "app.kubernetes.io/component=test") }()
	_, err := w.helm.run(ctx, "test", release, helmTimeout)
	cancel()
	text := <-output
	if err != nil {
		text += "\n" + err.Error()
	}
	return text, err
}

// playPods waits for Pods of a hook, of which a Job makes another when one fails, and
// runs them until ctx ends. It returns what they have said.
func (w *world) playPods(ctx context.Context, selector string) string {
	output := ""
	for {
		pod, err := w.runningPod(ctx, selector)
		if err != nil && output == "" {
			return err.Error()
		}
		if err != nil {
			return output
		}
		output += w.playPod(ctx, pod)
	}
}

// playPod runs a Pod's program here, under its identity, and tells the API server how
// that ended.
func (w *world) playPod(ctx context.Context, pod *corev1.Pod) string {
	before := pod.DeepCopy()
	out, err := w.runContainer(ctx, pod)
	pod.Status.Phase = corev1.PodSucceeded
	if err != nil {
		pod.Status.Phase, out = corev1.PodFailed, out+err.Error()
	}
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].Ready = false
		pod.Status.ContainerStatuses[i].State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed", FinishedAt: metav1.Now()}}
	}
	// Others may have written its status meanwhile.
	if err := w.client.Status().Patch(ctx, pod, client.MergeFrom(before)); err != nil {
		out += err.Error()
	}
	return out
}

func (w *world) runningPod(ctx context.Context, selector string) (*corev1.Pod, error) {
	for {
		pods, err := w.clients.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err == nil {
			i := slices.IndexFunc(pods.Items, func(p corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning && p.DeletionTimestamp == nil })
			if i >= 0 {
				return &pods.Items[i], nil
			}
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("there was no pod: %w", ctx.Err())
		}
		pause(ctx)
	}
}

// pause is between two looks.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}

func (w *world) runContainer(ctx context.Context, pod *corev1.Pod) (string, error) {
	identity, err := w.cluster.User("system:serviceaccount:"+namespace+":"+pod.Spec.ServiceAccountName,
		"system:serviceaccounts", "system:serviceaccounts:"+namespace, "system:authenticated")
	if err != nil {
		return "", err
	}
	r := w.replicas[0]
	if err := w.cluster.WriteKubeconfig(identity, r.path("test-kubeconfig")); err != nil {
		return "", err
	}
	args := slices.Clone(pod.Spec.Containers[0].Args)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "/etc/freshbind/config.yaml", r.path("config.yaml"))
	}
	return run(ctx, r.program, append(args, "--kubeconfig="+r.path("test-kubeconfig"))...)
}

func run(ctx context.Context, program string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return string(out), err
}
