package integration

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	notReadyLabel  = "test.freshbind.dev/not-ready"
	strategicPatch = types.StrategicMergePatchType
	byHand         = "by-hand"
)

// leavingNode is the row's own, so that no other row's members are on it.
func (r *row) leavingNode() string { return "leaving-" + r.Name }

// placeMembers puts the pool's members on a node of their own. What comes after
// the first members goes to another node.
func (r *row) placeMembers(template *builders.Template) {
	template.PodSpec(byHand, "schedulerName")
	kube := r.kube()
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(r.Name))
	network := fmt.Sprintf("10.20.%d.0/24", hash.Sum32()%256)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: r.leavingNode(), Finalizers: []string{"test.freshbind.dev/hold"}},
		// Nobody else's Pods come here.
		Spec:   corev1.NodeSpec{Unschedulable: true, PodCIDR: network, PodCIDRs: []string{network}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "172.31.9.1"}}},
	}
	_, err := kube.CoreV1().Nodes().Create(r.t.Context(), node, createOptions)
	r.must(err)
	r.t.Cleanup(func() {
		r.patchNode(context.WithoutCancel(r.t.Context()), `{"metadata":{"finalizers":null}}`)
	})
	r.eventually("node "+node.Name+" ready", func(ctx context.Context) (string, bool) {
		stored, err := kube.CoreV1().Nodes().Get(ctx, node.Name, getOptions)
		r.must(err)
		ready := slices.ContainsFunc(stored.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		if len(stored.Spec.Taints) == 0 {
			return fmt.Sprint(stored.Status.Conditions), ready
		}
		// The API server's own, for a new node, which the controller manager
		// would take off.
		r.patchNode(ctx, `{"spec":{"taints":null}}`)
		return "tainted", false
	})
	placed := 0
	go wait.UntilWithContext(r.t.Context(), func(ctx context.Context) { r.place(ctx, &placed) }, 50*time.Millisecond)
}

// place binds the Pods that wait. One that cannot be bound now does not count.
func (r *row) place(ctx context.Context, placed *int) {
	kube := r.kube()
	list, err := kube.CoreV1().Pods(r.Name).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
	if err != nil {
		return // at the test's end, or tried again
	}
	for i := range list.Items {
		node := r.leavingNode()
		if *placed >= replicas {
			node = "node-0"
		}
		pod := &list.Items[i]
		err := kube.CoreV1().Pods(r.Name).Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: node},
		}, createOptions)
		if err == nil {
			*placed++
		}
	}
}

func (r *row) patchNode(ctx context.Context, patch string) {
	r.t.Helper()
	_, err := r.kube().CoreV1().Nodes().Patch(ctx, r.leavingNode(), mergePatch, []byte(patch), patchOptions)
	if err != nil && !isNotFound(err) {
		r.t.Error(err)
	}
}

func (r *row) deleteNode() {
	r.must(r.kube().CoreV1().Nodes().Delete(r.t.Context(), r.leavingNode(), metav1.DeleteOptions{}))
}

func (r *row) taintNode() {
	r.patchNode(r.t.Context(), `{"spec":{"taints":[{"key":"going","effect":"NoExecute"}]}}`)
}

func (r *row) breakNode() {
	r.patchNode(r.t.Context(), `{"metadata":{"labels":{"`+notReadyLabel+`":"true"}}}`)
	r.eventually("node not ready", func(ctx context.Context) (string, bool) {
		node, err := r.kube().CoreV1().Nodes().Get(ctx, r.leavingNode(), getOptions)
		r.must(err)
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return string(c.Status), c.Status == corev1.ConditionFalse
			}
		}
		return "no condition", false
	})
}

// offNode waits until no member of the pool is on the node that leaves, and
// checks that no claim is.
func (r *row) offNode() {
	r.eventually("members off node "+r.leavingNode(), func(ctx context.Context) (string, bool) {
		there := r.onNode(ctx)
		left := slices.DeleteFunc(r.present(ctx, r.pool), func(m *object) bool { return !there[m.GetName()] })
		return fmt.Sprint(len(left)), len(left) == 0
	})
	there := r.onNode(r.t.Context())
	for _, claim := range r.claims {
		for _, sandbox := range r.owned(r.get(upstream.SandboxClaims, claim)) {
			if there[podNameOf(sandbox)] {
				r.t.Errorf("claim %s runs on the node that leaves", claim)
			}
		}
	}
}

// onNode names the row's Pods on the node that leaves.
func (r *row) onNode(ctx context.Context) map[string]bool {
	r.t.Helper()
	list, err := r.kube().CoreV1().Pods(r.Name).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + r.leavingNode()})
	r.must(err)
	there := map[string]bool{}
	for i := range list.Items {
		there[list.Items[i].Name] = true
	}
	return there
}
