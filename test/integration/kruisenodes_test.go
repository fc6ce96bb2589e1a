package integration

import (
	"encoding/pem"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform/kruise"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fakekruise"
	"github.com/freshbind/freshbind/webhooks"
)

const (
	drainedNode, otherNode = "node-0", "node-1"
	// mayMiss is how many members may be missing while a node is emptied.
	mayMiss = 2
)

// kubectl drain empties a node of idle members, whose Pods refuse to be evicted: Freshbind
// replaces the Sandboxes, by as many at a time as may be missing. What somebody has stays
// until they are done with it.
func TestKruiseNodesAreEmptied(t *testing.T) {
	t.Parallel()
	w := startKruiseOn(t, 2)
	w.askedOnce()
	w.cordon(otherNode, true)
	server := w.doubleOf(0, fakekruise.Options{})
	set := w.sized(kruiseSpace, "")
	mayMissSome := func(s *unstructured.Unstructured) {
		s.SetAnnotations(map[string]string{settings.MaxUnavailableKey: fmt.Sprint(mayMiss)})
	}
	w.changed(set, mayMissSome)
	w.eventually("the SandboxSet to be full", func() error { return w.serves(set, kruiseSize) })
	got := w.served(server, fakekruise.Request{Namespace: kruiseSpace, Set: set.GetName(), User: "somebody"})
	w.eventually("the SandboxSet to be full again", func() error { return w.serves(set, kruiseSize) })
	w.evictionsAreRefused(got.Sandbox)
	if on := w.podsOn(drainedNode, set); len(on) < kruiseSize {
		t.Fatalf("%d members are on the node that is to be drained, want all: %q", len(on), on)
	}
	w.cordon(otherNode, false)

	inUse := got.Sandbox.GetName()
	w.eventually("all but one sandbox to leave the node", func() error {
		output, code := w.kubectl("drain", drainedNode, "--ignore-daemonsets", "--timeout=20s")
		w.must(w.serves(set, kruiseSize-mayMiss))
		if code == 0 {
			t.Fatalf("the node is empty, and somebody has sandbox %s on it:\n%s", inUse, output)
		}
		if on := w.podsOn(drainedNode, set); len(on) != 1 || on[0] != inUse {
			return fmt.Errorf("there are %q", on)
		}
		return nil
	})
	if now := w.at(set, inUse); now.GetUID() != got.Sandbox.GetUID() || now.GetDeletionTimestamp() != nil {
		t.Error("the sandbox that somebody has is not what it was")
	}
	w.eventually("the SandboxSet to be full elsewhere", func() error {
		if on := w.podsOn(otherNode, set); len(on) != kruiseSize {
			return fmt.Errorf("there are %q", on)
		}
		return w.serves(set, kruiseSize)
	})
	w.must(w.c.Delete(t.Context(), w.at(set, inUse)))

	// The other way round, in one go: nobody has any.
	w.eventually("the sandbox to be gone", func() error {
		if on := w.podsOn(drainedNode, set); len(on) > 0 {
			return fmt.Errorf("there are %q", on)
		}
		return nil
	})
	// One that refers to a template says nothing of its Pods, and goes as well.
	referring := w.set(kruiseSpace, "referring", "box")
	w.changed(referring, mayMissSome)
	w.eventually("the referring SandboxSet to be full", func() error { return w.serves(referring, boxes) })
	if on := w.podsOn(otherNode, referring); len(on) < boxes {
		t.Fatalf("%d members by reference are on the node that is to be drained, want all: %q", len(on), on)
	}
	w.cordon(drainedNode, false)
	said, code := "", 0
	w.inTime(func() {
		var output string
		output, code = w.kubectl("drain", otherNode, "--ignore-daemonsets", "--timeout="+within.String())
		said += output
	}, webhooks.EvictHook.Name)
	if code != 0 || !strings.Contains(said, "Freshbind replaces it") {
		t.Errorf("drain ends with %d, want 0, after it had to wait", code)
	}
	if on := append(w.podsOn(otherNode, set), w.podsOn(otherNode, referring)...); len(on) > 0 {
		t.Errorf("the node is drained, and has %q", on)
	}
}

// evictionsAreRefused has a double of upstream's webhook keep everybody but the Sandbox's
// controller from its Pod.
func (w *kruiseWorld) evictionsAreRefused(of *unstructured.Unstructured) {
	w.t.Helper()
	handler, err := fakekruise.NewPodWebhook(w.cluster.Config())
	w.must(err)
	server := httptest.NewTLSServer(handler)
	w.t.Cleanup(server.Close)
	w.create(fakekruise.PodWebhooks(server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	w.eventually("evictions to be refused", func() error {
		err := w.c.SubResource("eviction").Create(w.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: of.GetNamespace(), Name: of.GetName()}},
			&policyv1.Eviction{}, client.DryRunAll)
		if !apierrors.IsForbidden(err) {
			return fmt.Errorf("the answer is %q, want that it is forbidden", fmt.Sprint(err))
		}
		return nil
	})
}

// askedOnce waits until the API server asks Freshbind, and leaves nothing behind.
func (w *kruiseWorld) askedOnce() {
	w.t.Helper()
	set := w.set(kruiseSpace, "probe", "")
	w.asked(set)
	box := w.at(set, "probe")
	w.must(w.c.Delete(w.t.Context(), set))
	w.must(client.IgnoreNotFound(w.c.Delete(w.t.Context(), box)))
	w.must(client.IgnoreNotFound(w.c.Delete(w.t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: kruiseSpace, Name: "probe"}}, client.GracePeriodSeconds(0))))
	w.gone(box)
}

// serves is nil when a SandboxSet has so many members that are ready.
func (w *kruiseWorld) serves(set *unstructured.Unstructured, least int) error {
	w.t.Helper()
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(set.GroupVersionKind().GroupVersion().WithKind("SandboxList"))
	w.must(w.c.List(w.t.Context(), &list, client.InNamespace(set.GetNamespace())))
	ready := 0
	for i := range list.Items {
		box := &list.Items[i]
		is := kruise.Objects{}.DescribeMember(box)
		if metav1.IsControlledBy(box, set) && is.Pooled && !is.ReadySince.IsZero() && box.GetDeletionTimestamp() == nil {
			ready++
		}
	}
	if ready < least {
		return fmt.Errorf("%d members of %s are ready, want %d at least", ready, set.GetName(), least)
	}
	return nil
}

// cordon marks a node as one where nothing more is placed, or takes that back.
func (w *kruiseWorld) cordon(node string, is bool) {
	w.t.Helper()
	w.must(w.c.Patch(w.t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}},
		client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, is))))
}

// podsOn are the names of a SandboxSet's Pods, idle or not, on a node.
func (w *kruiseWorld) podsOn(node string, set *unstructured.Unstructured) []string {
	w.t.Helper()
	var list corev1.PodList
	w.must(w.c.List(w.t.Context(), &list, client.InNamespace(set.GetNamespace()), client.MatchingFields{"spec.nodeName": node}))
	var names []string
	for i := range list.Items {
		if pod := &list.Items[i]; strings.HasPrefix(pod.Name, set.GetName()+"-") {
			names = append(names, pod.Name)
		}
	}
	return names
}

// kubectl runs the real one.
func (w *kruiseWorld) kubectl(args ...string) (output string, code int) {
	w.t.Helper()
	tools, err := controlplane.Tools(w.t.Context(), os.Stderr, controlplane.Kubectl)
	w.must(err)
	cmd := exec.CommandContext(w.t.Context(), tools[controlplane.Kubectl], append(args, "--kubeconfig="+w.cluster.KubeconfigPath())...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	w.t.Logf("$ kubectl %s\n%s", strings.Join(args, " "), out)
	return string(out), cmd.ProcessState.ExitCode()
}
