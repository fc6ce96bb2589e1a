package controlplane

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

func testPod(name string, change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "image"}}},
	}
	if change != nil {
		change(pod)
	}
	return pod
}

func createPod(t *testing.T, client kubernetes.Interface, pod *corev1.Pod) *corev1.Pod {
	t.Helper()
	created, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return created
}

// readyPod waits until a pod runs and is ready.
func readyPod(t *testing.T, client kubernetes.Interface, name string) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	eventually(t, "pod "+name+" to be ready", func() (bool, error) {
		var err error
		pod, err = client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && podReady(pod), err
	})
	return pod
}

func podReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return pod.Status.Phase == corev1.PodRunning && condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func podGone(t *testing.T, client kubernetes.Interface, namespace, name string) {
	t.Helper()
	eventually(t, "pod "+name+" to be gone", func() (bool, error) {
		_, err := client.CoreV1().Pods(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}

// slowStage keeps pods labelled slow from becoming ready.
const slowStage = `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: slow}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchLabels: {slow: "true"}
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: .status.reason, operator: DoesNotExist}
    - {key: .status.phase, operator: In, values: [Pending]}
  weight: 1
  next:
    statusTemplate: 'reason: Slow'
`

// TestNodes runs pods with nothing but kwok and the binding in turn.
func TestNodes(t *testing.T) {
	c := startCluster(t, Options{Nodes: 2, Stages: slowStage})
	client := clientFor(t, c.Config())
	t.Run("pods run", func(t *testing.T) { testPodsRun(t, client) })
	t.Run("gated pods wait", func(t *testing.T) { testGatedPods(t, client) })
	t.Run("own stages win", func(t *testing.T) { testStages(t, client) })
	t.Run("nodes have heartbeats", func(t *testing.T) { testHeartbeats(t, client) })
	t.Run("kwok has a version", func(t *testing.T) {
		if versions, err := c.Versions(t.Context()); err != nil || versions.Kwok == "" {
			t.Errorf("got %+v, %v", versions, err)
		}
	})
}

func testPodsRun(t *testing.T, client kubernetes.Interface) {
	const count = 10
	for i := range count {
		createPod(t, client, testPod(fmt.Sprintf("pod-%d", i), func(pod *corev1.Pod) {
			pod.Spec.InitContainers = []corev1.Container{{Name: "init", Image: "image"}}
		}))
	}
	ips, nodes := map[string]bool{}, map[string]bool{}
	for i := range count {
		pod := readyPod(t, client, fmt.Sprintf("pod-%d", i))
		if pod.Status.PodIP == "" || pod.Status.HostIP == "" || len(pod.Status.ContainerStatuses) != 1 ||
			!pod.Status.ContainerStatuses[0].Ready || len(pod.Status.InitContainerStatuses) != 1 {
			t.Errorf("status of pod %s is not complete: %+v", pod.Name, pod.Status)
		}
		ips[pod.Status.PodIP] = true
		nodes[pod.Spec.NodeName] = true
	}
	if len(ips) != count || len(nodes) != 2 {
		t.Errorf("%d pods have %d addresses on %d nodes, want %d on 2", count, len(ips), len(nodes), count)
	}
	if err := client.CoreV1().Pods("default").Delete(t.Context(), "pod-0", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	podGone(t, client, "default", "pod-0")
}

func testGatedPods(t *testing.T, client kubernetes.Interface) {
	createPod(t, client, testPod("gated", func(pod *corev1.Pod) {
		pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.test/gate"}}
	}))
	createPod(t, client, testPod("foreign", func(pod *corev1.Pod) { pod.Spec.SchedulerName = "other" }))
	createPod(t, client, testPod("after", nil))
	readyPod(t, client, "after")
	for _, name := range []string{"gated", "foreign"} {
		pod, err := client.CoreV1().Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || pod.Spec.NodeName != "" {
			t.Errorf("pod %s was bound to %q, %v", name, pod.Spec.NodeName, err)
		}
	}
	_, err := client.CoreV1().Pods("default").Patch(t.Context(), "gated", types.MergePatchType,
		[]byte(`{"spec":{"schedulingGates":null}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	readyPod(t, client, "gated")
}

func testStages(t *testing.T, client kubernetes.Interface) {
	createPod(t, client, testPod("slow", func(pod *corev1.Pod) { pod.Labels = map[string]string{"slow": "true"} }))
	eventually(t, "the stage of our own", func() (bool, error) {
		pod, err := client.CoreV1().Pods("default").Get(t.Context(), "slow", metav1.GetOptions{})
		return err == nil && pod.Status.Reason == "Slow", err
	})
}

func testHeartbeats(t *testing.T, client kubernetes.Interface) {
	eventually(t, "a lease of node-0", func() (bool, error) {
		lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), "node-0", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil && lease.Spec.RenewTime != nil, err
	})
}

// TestControllers runs the controller manager and the scheduler.
func TestControllers(t *testing.T) {
	crd := testCRD("example.test", "owners", "Owner")
	c := startCluster(t, Options{
		Nodes: 2, ControllerManager: true, Scheduler: true,
		CRDs:            []*apiextensionsv1.CustomResourceDefinition{crd},
		SchedulerConfig: "profiles: [{schedulerName: default-scheduler}, {schedulerName: second}]",
	})
	client := clientFor(t, c.Config())
	owner := createOwner(t, c)
	createPod(t, client, testPod("owned", func(pod *corev1.Pod) {
		pod.Spec.SchedulerName = "second"
		pod.OwnerReferences = []metav1.OwnerReference{owner}
	}))
	pod := readyPod(t, client, "owned")
	if pod.Spec.ServiceAccountName != "default" {
		t.Errorf("service account %q, want the default one", pod.Spec.ServiceAccountName)
	}
	deleteOwner(t, c, owner.Name)
	podGone(t, client, "default", "owned")
	testNamespaceEnds(t, client)
}

var owners = schema.GroupVersionResource{Group: "example.test", Version: "v1", Resource: "owners"}

// createOwner makes an object of a CRD and returns a reference to it.
func createOwner(t *testing.T, c *Cluster) metav1.OwnerReference {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	owner := &unstructured.Unstructured{}
	owner.SetAPIVersion(owners.GroupVersion().String())
	owner.SetKind("Owner")
	owner.SetName("owner")
	owner, err = client.Resource(owners).Namespace("default").Create(t.Context(), owner, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return metav1.OwnerReference{
		APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID(),
	}
}

func deleteOwner(t *testing.T, c *Cluster, name string) {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Resource(owners).Namespace("default").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

// testNamespaceEnds deletes a namespace with a pod in it.
func testNamespaceEnds(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	const name = "short-lived"
	_, err := client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "a pod to be accepted", func() (bool, error) {
		_, err := client.CoreV1().Pods(name).Create(t.Context(), testPod("pod", nil), metav1.CreateOptions{})
		// The service account is made after the namespace.
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err := client.CoreV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the namespace to be gone", func() (bool, error) {
		_, err := client.CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, err
	})
}
