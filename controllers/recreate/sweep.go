package recreate

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

// sweep has every bare Pod of a pool judged when the pool or its template has
// changed. Releases whose members are Pods (v0.1, v0.2) show none of them as
// Sandboxes, so that nothing else would look at those which nobody tries.
func (p *Pools) sweep(ctx context.Context, m *memory, s *situation) error {
	seen := sweptAt{template: m.template, pool: s.pool.GetGeneration()}
	if len(s.members) > 0 || s.pool.GroupVersionKind().Version != agentsandbox.BarePodVersion || m.swept == seen {
		return nil
	}
	pods, err := p.view.BarePods(ctx, s.pool)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		p.pods.Note(pod)
	}
	m.swept = seen
	return nil
}

// sweptAt is what a sweep was about.
type sweptAt struct {
	template edition
	pool     int64
}

// BarePods are the Pods that are a pool's members, by a consistent list of their
// metadata: no cache holds them.
func (v *View) BarePods(ctx context.Context, pool *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(listOf(podKind))
	err := v.lists.List(ctx, list, client.InNamespace(pool.GetNamespace()),
		client.MatchingLabels{agentsandbox.PodPoolLabel: agentsandbox.NameHash(pool.GetName())})
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
