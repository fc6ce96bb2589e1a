package manager

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/placement"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/webhooks"
)

var nodeResource = schema.GroupResource{Resource: "nodes"}

// evictions looks up members by their Pods, as they are stored.
type evictions struct{ KeptPlatform }

var _ webhooks.Evictions = evictions{}

// Replaced is about the members that the controller of pools replaces.
func (e evictions) Replaced(ctx context.Context, namespace, name string) (member, enforcement string, err error) {
	pod, err := e.Get(ctx, podResource, namespace, name)
	if err != nil || pod == nil || pod.GetDeletionTimestamp() != nil || placement.NodeName(pod) == "" {
		return "", "", err
	}
	of := e.MemberOf(pod)
	if of == "" {
		return "", "", nil
	}
	sandbox, err := e.Get(ctx, e.Kinds().Member.GroupResource(), namespace, of)
	if err != nil || sandbox == nil || sandbox.GetDeletionTimestamp() != nil {
		return "", "", err
	}
	if is := e.DescribeMember(sandbox); !is.Pooled || !is.Unevictable || e.PodOf(sandbox) != name {
		return "", "", nil
	}
	node, err := e.Get(ctx, nodeResource, "", placement.NodeName(pod))
	if err != nil {
		return "", "", fmt.Errorf("reading the node of pod %s: %w", name, err)
	}
	if state := placement.NodeState(node); !state.IsCordoned(placement.Tolerations(pod)) && state.Leaving(placement.Tolerations(pod)) == "" {
		return "", "", nil
	}
	return of, sandbox.GetLabels()[settings.EnforcementKey], nil
}
