package pools

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
)

// handover is what the leader before this one left on the pools: how far their
// rollouts are, and what they replace.
type handover struct {
	mu    sync.Mutex
	taken bool
	pools map[types.NamespacedName]left
}

// left is what one pool says.
type left struct {
	pool        types.UID
	annotations map[string]string
}

// takeOver reads, once, what all pools have stored, by consistent lists: a cache
// may not show yet what the last leader wrote, and no member is deleted before it
// is known what others are being replaced.
func (p *Controller) takeOver(ctx context.Context) error {
	h := &p.handover
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.taken {
		return nil
	}
	h.pools = map[types.NamespacedName]left{}
	for _, namespace := range p.view.namespaces() {
		if err := p.view.eachPool(ctx, namespace, h.note); err != nil {
			return err
		}
	}
	for key, was := range h.pools {
		rollout, _ := recorded(was.annotations, p.clock.Now())
		p.budget.Settle(was.pool, Account{rollout.Replacing.Deleted(), rollout.State == freshness.Failed}, true)
		if len(was.annotations) == 0 {
			delete(h.pools, key)
			continue
		}
		// When the leader before deleted its last ones is not stored.
		p.budget.Exhaust()
	}
	h.taken = true
	return nil
}

func (h *handover) note(pool *metav1.PartialObjectMetadata) {
	annotations := map[string]string{}
	for _, key := range []string{settings.RolloutStatusKey, settings.RolloutStateKey, settings.RolloutReasonKey} {
		if value := pool.GetAnnotations()[key]; value != "" {
			annotations[key] = value
		}
	}
	h.pools[client.ObjectKeyFromObject(pool)] = left{pool.GetUID(), annotations}
}

// forget returns the UID of what was left of a pool.
func (h *handover) forget(key types.NamespacedName) types.UID {
	h.mu.Lock()
	defer h.mu.Unlock()
	was := h.pools[key]
	delete(h.pools, key)
	return was.pool
}

// stored is what the pool says of its rollout: what was read at the takeover, or
// what the cache shows of a pool that is younger. It is asked once of each.
func (p *Controller) stored(pool *unstructured.Unstructured) map[string]string {
	h := &p.handover
	h.mu.Lock()
	defer h.mu.Unlock()
	key := client.ObjectKeyFromObject(pool)
	was, ok := h.pools[key]
	delete(h.pools, key)
	if ok && was.pool != pool.GetUID() {
		p.budget.Forget(was.pool)
	}
	if was.pool != pool.GetUID() {
		return pool.GetAnnotations()
	}
	return was.annotations
}

// eachPool lists the pools of a namespace, "" for all, as they are stored.
func (v *View) eachPool(ctx context.Context, namespace string, do func(*metav1.PartialObjectMetadata)) error {
	page := &metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(listOf(v.kinds.Pools))
	options := &client.ListOptions{Namespace: namespace, Limit: pageSize}
	for {
		if err := v.lists.List(ctx, page, options); err != nil {
			return fmt.Errorf("listing pools: %w", err)
		}
		for i := range page.Items {
			do(&page.Items[i])
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}

// namespaces are those to look at; "" is all of them.
func (v *View) namespaces() []string {
	if len(v.only) == 0 {
		return []string{metav1.NamespaceAll}
	}
	return v.only
}
