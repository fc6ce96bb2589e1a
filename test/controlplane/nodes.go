package controlplane

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

//go:embed stages.yaml
var stages string

// startNodes makes the fake nodes, starts kwok to keep them alive, and returns
// when pods can be bound to all of them.
func (c *Cluster) startNodes(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	kwok, err := c.startKwok()
	if err != nil {
		return err
	}
	for i := range c.options.Nodes {
		if _, err := client.CoreV1().Nodes().Create(ctx, node(i), metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create node: %w", err)
		}
	}
	if err := c.waitNodes(ctx, client, kwok); err != nil {
		return err
	}
	if !c.options.Scheduler && !c.options.OwnScheduler {
		return c.startBinder()
	}
	return nil
}

func (c *Cluster) startKwok() (*Process, error) {
	kubeconfig, err := c.userKubeconfig("kwok", "system:masters")
	if err != nil {
		return nil, err
	}
	config := filepath.Join(c.dir, "kwok.yaml")
	if err := os.WriteFile(config, []byte(stages+"---\n"+c.options.Stages), 0o644); err != nil {
		return nil, fmt.Errorf("write kwok's configuration: %w", err)
	}
	return c.Run(Kwok, c.programs[Kwok], "--kubeconfig="+kubeconfig, "--config="+config)
}

// node is the i-th fake node. Its pod network holds 4096 addresses and overlaps
// with no other node's.
func node(i int) *corev1.Node {
	name := fmt.Sprintf("node-%d", i)
	network := fmt.Sprintf("10.%d.%d.0/20", 128+i/16, i%16*16)
	size := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("1000"),
		corev1.ResourceMemory:           resource.MustParse("4Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("40Ti"),
		corev1.ResourcePods:             resource.MustParse("4000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:   name,
				corev1.LabelOSStable:   "linux",
				corev1.LabelArchStable: "amd64",
			},
		},
		Spec: corev1.NodeSpec{PodCIDR: network, PodCIDRs: []string{network}},
		Status: corev1.NodeStatus{
			Capacity:    size,
			Allocatable: size,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("172.31.%d.%d", i/250, 1+i%250)},
				{Type: corev1.NodeHostName, Address: name},
			},
		},
	}
}

// waitNodes waits until all nodes are ready and free of the taint that the API
// server puts on new ones. Only the controller manager would take it off.
func (c *Cluster) waitNodes(ctx context.Context, client kubernetes.Interface, kwok *Process) error {
	seen := "none"
	err := wait.PollUntilContextTimeout(ctx, readyPoll, startTimeout, true, func(ctx context.Context) (bool, error) {
		if err := kwok.Err(); err != nil {
			return false, err
		}
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, fmt.Errorf("list nodes: %w", err)
		}
		waiting := unusable(list.Items)
		seen = strings.Join(waiting, ", ")
		if c.options.ControllerManager {
			return len(waiting) == 0, nil
		}
		return len(waiting) == 0, untaint(ctx, client, list.Items)
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("nodes not ready (%s): %w, log %s:\n%s", seen, err, kwok.LogPath, tail(kwok.LogPath))
	}
	return err
}

// unusable lists the nodes that cannot take pods.
func unusable(nodes []corev1.Node) []string {
	var names []string
	for i := range nodes {
		if !usable(&nodes[i]) {
			names = append(names, nodes[i].Name)
		}
	}
	return names
}

func usable(node *corev1.Node) bool {
	if node.Spec.Unschedulable || node.DeletionTimestamp != nil || hasNotReadyTaint(node) {
		return false
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func hasNotReadyTaint(node *corev1.Node) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady {
			return true
		}
	}
	return false
}

func untaint(ctx context.Context, client kubernetes.Interface, nodes []corev1.Node) error {
	for i := range nodes {
		if !hasNotReadyTaint(&nodes[i]) {
			continue
		}
		nodes[i].Spec.Taints = nil
		_, err := client.CoreV1().Nodes().Update(ctx, &nodes[i], metav1.UpdateOptions{})
		// A conflict is kwok's status update: the next round sees it.
		if err != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("remove taint of node %s: %w", nodes[i].Name, err)
		}
	}
	return nil
}
