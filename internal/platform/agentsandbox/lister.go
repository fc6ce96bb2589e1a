package agentsandbox

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

// warmPoolLabel is on every Sandbox that was made for a pool, until it is bound.
const warmPoolLabel = "agents.x-k8s.io/warm-pool-sandbox"

// maxUnstamped bounds how many members without a stamp are read in full for
// one piece of advice: each is some 10 KiB, and the guard needs its memory.
const maxUnstamped = 250

// Lister lists what a namespace holds.
type Lister struct {
	// Cache has the metadata of all Sandboxes. Without one everything is read in
	// full, from etcd and page by page.
	Cache client.Reader
	// API reads from the API server: with a Cache beside it out of the memory of
	// that server, which may be late and costs etcd nothing.
	API      client.Reader
	Resolver platform.Resolver
	// Pools lists a namespace's pools out of a cache; nil to ask the API server.
	Pools func(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error)
}

// unclaimed is a member that no claim has and that is not being deleted.
type unclaimed struct {
	uid, pool types.UID
	// shown: the claim controller does not pass it over.
	shown bool
	// template is the one that it says it was built from; "" when it does not.
	template string
	stamp    string
	// full: content and ready were read.
	full, ready bool
	content     revision.Blueprint
}

// is reports whether the member is built from b; known is false when nothing
// tells.
func (m unclaimed) is(b revision.Blueprint, injected revision.PathSet) (is, known bool) {
	switch {
	case m.full:
		return revision.Equal(b, m.content, injected), true
	case m.stamp != "":
		return m.stamp == b.Hash(), true
	}
	return false, false
}

// pools lists the pools of a namespace that are to stay.
func (s *Lister) pools(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error) {
	lists := s.Pools
	if lists == nil {
		lists = func(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error) {
			return s.list(ctx, Pools, kindPool, namespace, labels.Everything())
		}
	}
	list, err := lists(ctx, namespace)
	return slices.DeleteFunc(list, func(p *unstructured.Unstructured) bool { return p.GetDeletionTimestamp() != nil }), err
}

// members lists the unclaimed members of these pools, by pool. content says that
// it matters what they are built from.
func (s *Lister) members(ctx context.Context, namespace string, pools []*unstructured.Unstructured, content bool,
) (map[types.UID][]unclaimed, error) {
	wanted := map[types.UID]bool{}
	for _, p := range pools {
		wanted[p.GetUID()] = true
	}
	found := map[types.UID]unclaimed{}
	unstamped := 0
	if s.Cache != nil {
		cached, err := s.cached(ctx, namespace)
		if err != nil {
			return nil, err
		}
		for i := range cached {
			if m := unclaimedOf(&cached[i]); wanted[m.pool] {
				found[m.uid] = m
				if m.stamp == "" {
					unstamped++
				}
			}
		}
	}
	if s.Cache == nil || content && unstamped > 0 && unstamped <= maxUnstamped {
		if err := s.readFull(ctx, namespace, wanted, found); err != nil {
			return nil, err
		}
	}
	out := map[types.UID][]unclaimed{}
	for _, uid := range slices.Sorted(maps.Keys(found)) {
		out[found[uid].pool] = append(out[found[uid].pool], found[uid])
	}
	return out, nil
}

// readFull reads members in full: all of them, or those without a stamp.
func (s *Lister) readFull(ctx context.Context, namespace string, pools map[types.UID]bool, into map[types.UID]unclaimed) error {
	pooled, err := labels.NewRequirement(warmPoolLabel, selection.Exists, nil)
	if err != nil {
		return fmt.Errorf("selecting members: %w", err)
	}
	unstamped, err := labels.NewRequirement(settings.StampKey, selection.DoesNotExist, nil)
	if err != nil {
		return fmt.Errorf("selecting members without a stamp: %w", err)
	}
	selector := labels.NewSelector().Add(*pooled)
	if s.Cache != nil {
		selector = selector.Add(*unstamped)
	}
	list, err := s.list(ctx, Sandboxes, kindSandbox, namespace, selector)
	if err != nil {
		return err
	}
	for _, sandbox := range list {
		m := unclaimedOf(sandbox)
		if !pools[m.pool] {
			continue
		}
		if m.content, err = ContentOf(sandbox); err != nil {
			return err
		}
		m.full, m.ready = true, isReady(sandbox)
		into[m.uid] = m
	}
	return nil
}

// cached lists the metadata of Sandboxes. The objects are the cache's own and
// must not be changed.
func (s *Lister) cached(ctx context.Context, namespace string) ([]metav1.PartialObjectMetadata, error) {
	gvk, err := s.kind(ctx, Sandboxes, kindSandbox)
	if err != nil {
		return nil, err
	}
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(gvk)
	if err := s.Cache.List(ctx, &list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing sandboxes of namespace %s: %w", namespace, err)
	}
	return list.Items, nil
}

func (s *Lister) list(ctx context.Context, gr schema.GroupResource, kind, namespace string, selector labels.Selector,
) ([]*unstructured.Unstructured, error) {
	gvk, err := s.kind(ctx, gr, kind)
	if err != nil {
		return nil, err
	}
	options := &client.ListOptions{Namespace: namespace, LabelSelector: selector, Limit: platform.PageSize}
	if s.Cache != nil {
		options.Limit, options.Raw = 0, &metav1.ListOptions{ResourceVersion: "0"}
	}
	out, err := platform.ListPages(ctx, s.API, gvk, options)
	if err != nil {
		return nil, fmt.Errorf("listing %s of namespace %s: %w", gr.Resource, namespace, err)
	}
	return out, nil
}

// kind returns the list kind of the served version.
func (s *Lister) kind(ctx context.Context, gr schema.GroupResource, kind string) (schema.GroupVersionKind, error) {
	gvr, err := s.Resolver.Resource(ctx, gr)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("finding the served version of %s: %w", gr, err)
	}
	return gvr.GroupVersion().WithKind(kind + "List"), nil
}

// unclaimedOf reads what metadata says. It is of no pool when a claim has the
// Sandbox, no pool does, or it is being deleted.
func unclaimedOf(sandbox metav1.Object) unclaimed {
	owner := metav1.GetControllerOfNoCopy(sandbox)
	if owner == nil || sandbox.GetDeletionTimestamp() != nil || len(ClaimsOf(sandbox)) > 0 ||
		groupKind(owner.APIVersion, owner.Kind) != (schema.GroupKind{Group: ExtensionsGroup, Kind: kindPool}) {
		return unclaimed{}
	}
	carried := sandbox.GetLabels()
	return unclaimed{
		uid: sandbox.GetUID(), pool: owner.UID,
		shown:    carried[warmPoolLabel] != "" && carried[TemplateRefHashLabel] != "",
		template: sandbox.GetAnnotations()[templateRefAnnotation],
		stamp:    carried[settings.StampKey],
	}
}

// isReady reads the condition that Sandboxes and Pods both have.
func isReady(o *unstructured.Unstructured) bool {
	status, _ := o.Object["status"].(map[string]any)
	for _, c := range objects(status, "conditions") {
		if str(c, "type") == "Ready" {
			return str(c, "status") == "True"
		}
	}
	return false
}
