package pools

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/placement"
)

// sweep has every bare Pod of a pool judged when the pool, its template or a node
// has changed for the worse. Releases whose members are Pods (v0.1, v0.2) show
// none of them as Sandboxes, so that nothing else would look at those which nobody
// tries.
func (p *Controller) sweep(ctx context.Context, m *poolRecord, s *poolState) error {
	if len(s.members) > 0 || !p.view.hasBarePods(s.pool.GroupVersionKind()) {
		m.bare = false
		return nil
	}
	drains, err := p.view.DrainedNodes(ctx)
	if err != nil {
		return err
	}
	seen := sweptAt{template: m.template, pool: s.pool.GetGeneration(), drains: drains}
	// A pool that shows no Sandbox although it is to have some has bare Pods, or
	// none yet.
	if m.swept == seen && (m.bare || s.Replicas == 0) {
		return nil
	}
	pods, err := p.view.BarePods(ctx, s.pool)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		p.pods.Note(pod)
	}
	m.swept, m.bare = seen, len(pods) > 0
	return nil
}

// sweptAt is what a sweep was about.
type sweptAt struct {
	template templateVersion
	pool     int64
	drains   int
}

// drainCount tells when a node has become one that Pods have to leave.
type drainCount struct {
	mu    sync.Mutex
	nodes map[string]freshness.Node
	n     int
}

// DrainedNodes counts how often nodes have become worse for some Pod, as far as the
// cache showed it. Which pools have bare Pods there no cache tells.
func (v *View) DrainedNodes(ctx context.Context) (int, error) {
	d := &v.drains
	// Also the list is made under the lock: an older one after a younger one
	// would bring nodes back.
	d.mu.Lock()
	defer d.mu.Unlock()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(listOf(nodeKind))
	if err := v.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return 0, fmt.Errorf("listing nodes from the cache: %w", err)
	}
	nodes := make(map[string]freshness.Node, len(list.Items))
	for i := range list.Items {
		nodes[list.Items[i].GetName()] = placement.NodeState(&list.Items[i])
	}
	for name, before := range d.nodes {
		now, there := nodes[name]
		if !there {
			now = freshness.Node{Gone: true}
		}
		if now.WorseThan(before) {
			d.n++
			break
		}
	}
	d.nodes = nodes
	return d.n, nil
}

// BarePods are the Pods that are a pool's members and meet all that is asked of their
// labels, by a consistent list of their metadata: no cache holds them.
func (v *View) BarePods(ctx context.Context, pool *unstructured.Unstructured, only ...labels.Requirement) ([]*unstructured.Unstructured, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(listOf(podKind))
	err := v.lists.List(ctx, list, client.InNamespace(pool.GetNamespace()),
		client.MatchingLabelsSelector{Selector: v.barePods.BarePodsOf(pool.GetName()).Add(only...)})
	if err != nil {
		return nil, fmt.Errorf("listing pods of pool %s: %w", pool.GetName(), err)
	}
	var out []*unstructured.Unstructured
	for i := range list.Items {
		if owner := metav1.GetControllerOfNoCopy(&list.Items[i]); owner == nil || owner.UID != pool.GetUID() {
			continue
		}
		pod := object(podKind)
		pod.SetNamespace(list.Items[i].Namespace)
		pod.SetName(list.Items[i].Name)
		pod.SetUID(list.Items[i].UID)
		out = append(out, pod)
	}
	return out, nil
}
