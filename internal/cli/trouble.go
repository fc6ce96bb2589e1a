package cli

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// troubleAfter is how long a member may take to become ready before it is trouble.
const troubleAfter = 10 * time.Second

// TroubleOf looks for what keeps a pool's newest member from becoming ready;
// nil when it is too early to ask, or nothing is wrong.
func (c *Cluster) TroubleOf(ctx context.Context, s *Store, p *Pool) (*Trouble, error) {
	m := p.Newest()
	if m == nil {
		return nil, nil
	}
	since := c.Now().Sub(m.Created.Time)
	if since < troubleAfter {
		return nil, nil
	}
	t := &Trouble{Member: m.Name, For: since, Why: "it has no pod yet"}
	sandbox := all[*unstructured.Unstructured](s, members)[types.NamespacedName{Namespace: p.Namespace, Name: m.Name}]
	if sandbox == nil {
		return nil, nil
	}
	pod, err := c.Get(ctx, podResource, p.Namespace, c.Objects.PodOf(sandbox))
	switch {
	case apierrors.IsNotFound(err):
		return t, nil
	case apierrors.IsForbidden(err):
		t.Why = "its pod may not be read"
		return t, nil
	case err != nil:
		return nil, err
	}
	t.Why = podTrouble(pod)
	return t, nil
}

// podTrouble says why a Pod is not ready.
func podTrouble(pod *unstructured.Unstructured) string {
	for _, key := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, status := range list(pod, "status", key) {
			reason, _, _ := unstructured.NestedString(status, "state", "waiting", "reason")
			if reason == "" {
				reason, _, _ = unstructured.NestedString(status, "state", "terminated", "reason")
			}
			name, _, _ := unstructured.NestedString(status, "name")
			if reason != "" && reason != "PodInitializing" && reason != "Completed" {
				return reason + " (container " + name + ")"
			}
		}
	}
	for _, condition := range list(pod, "status", "conditions") {
		if condition["type"] == "PodScheduled" && condition["status"] == "False" {
			reason, _ := condition["reason"].(string)
			message, _ := condition["message"].(string)
			return reason + ": " + message
		}
	}
	phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
	if phase == "" {
		phase = "not started"
	}
	return "its pod is " + phase
}

func list(obj *unstructured.Unstructured, path ...string) []map[string]any {
	items, _, _ := unstructured.NestedSlice(obj.Object, path...)
	var out []map[string]any
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}
