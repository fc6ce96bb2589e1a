package recreate

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

const (
	// byPool indexes members by the UID of their pool.
	byPool = "freshbind.poolUID"
	// byNode indexes Pods by the node that they are on.
	byNode = "freshbind.node"
	// pageSize is how many objects a consistent list asks for at once.
	pageSize = 500
)

// PoolKinds are the served versions of what pools are made of.
type PoolKinds struct{ Pools, Templates, Sandboxes schema.GroupVersionKind }

// View is what the controller of pools sees: caches of its own, which hold
// unclaimed members in full, and of Pods and Nodes only what is looked at.
type View struct {
	cache client.Reader
	lists client.Reader
	kinds PoolKinds
	// informers fill the cache.
	informers cache.Cache

	departures departures
}

// NewView adds the caches to the manager, and returns them with a view of them.
func NewView(mgr manager.Manager, kinds PoolKinds, namespaces map[string]cache.Config) (*View, cache.Cache, error) {
	pooled, err := labels.NewRequirement(agentsandbox.WarmPoolLabel, selection.Exists, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("selecting members: %w", err)
	}
	podded, err := labels.NewRequirement(agentsandbox.PodSandboxLabel, selection.Exists, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("selecting pods of members: %w", err)
	}
	c, err := liveread.NewConsistentCache(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultNamespaces: namespaces,
		ByObject: map[client.Object]cache.ByObject{
			object(kinds.Sandboxes): {Label: labels.NewSelector().Add(*pooled), Transform: cache.TransformStripManagedFields()},
			object(podKind):         {Label: labels.NewSelector().Add(*podded), Transform: trimPod},
			object(nodeKind):        {Transform: trimNode},
		},
		DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("creating the cache of members: %w", err)
	}
	ctx := context.Background()
	if err := errors.Join(
		c.IndexField(ctx, object(kinds.Sandboxes), byPool, poolUIDs),
		c.IndexField(ctx, object(podKind), byNode, nodeNames),
		mgr.Add(leaderless{c}),
	); err != nil {
		return nil, nil, fmt.Errorf("indexing members: %w", err)
	}
	return &View{cache: c, lists: mgr.GetAPIReader(), kinds: kinds, informers: c}, c, nil
}

// leaderless fills a cache on every replica, so that a new leader has it.
type leaderless struct{ cache.Cache }

func (leaderless) NeedLeaderElection() bool { return false }

var (
	podKind  = corev1.SchemeGroupVersion.WithKind("Pod")
	nodeKind = corev1.SchemeGroupVersion.WithKind("Node")
)

func object(kind schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u
}

func poolUIDs(obj client.Object) []string {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		if _, uid := agentsandbox.PoolOf(u); uid != "" {
			return []string{uid}
		}
	}
	return nil
}

func nodeNames(obj client.Object) []string {
	if u, ok := obj.(*unstructured.Unstructured); ok && agentsandbox.NodeOf(u) != "" {
		return []string{agentsandbox.NodeOf(u)}
	}
	return nil
}

// trimPod keeps of a Pod whose it is, where it is or who places it, and, while it
// is nowhere, why.
func trimPod(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	spec := map[string]any{}
	for _, key := range []string{"nodeName", "schedulerName", "schedulingGates"} {
		if v, found, err := unstructured.NestedFieldNoCopy(u.Object, "spec", key); err == nil && found {
			spec[key] = v
		}
	}
	u.Object["spec"] = spec
	conditions, found, err := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	delete(u.Object, "status")
	if err == nil && found && agentsandbox.NodeOf(u) == "" {
		u.Object["status"] = map[string]any{"conditions": conditions}
	}
	u.SetManagedFields(nil)
	u.SetAnnotations(nil)
	return u, nil
}

// trimNode keeps of a Node what tells whether it is leaving, and what images it
// has.
func trimNode(obj any) (any, error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj, nil
	}
	conditions, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	images, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "images")
	u.Object["status"] = map[string]any{"conditions": conditions, "images": images}
	u.SetManagedFields(nil)
	u.SetAnnotations(nil)
	return u, nil
}

// get returns nil for what does not exist.
func (v *View) get(ctx context.Context, kind schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	u := object(kind)
	err := v.cache.Get(ctx, key, u)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s %s from the cache: %w", kind.Kind, key, err)
	}
	return u, nil
}

// Pool returns the pool that the cache shows, nil for none.
func (v *View) Pool(ctx context.Context, key types.NamespacedName) (*unstructured.Unstructured, error) {
	return v.get(ctx, v.kinds.Pools, key)
}

// Template returns the template that a pool refers to, nil for none.
func (v *View) Template(ctx context.Context, pool *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return v.get(ctx, v.kinds.Templates, types.NamespacedName{Namespace: pool.GetNamespace(), Name: agentsandbox.TemplateOf(pool)})
}

// Members are the idle members that a pool has, in the cache. They are the
// cache's own and must not be changed.
func (v *View) Members(ctx context.Context, pool *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(listOf(v.kinds.Sandboxes))
	err := v.cache.List(ctx, list, client.InNamespace(pool.GetNamespace()),
		client.MatchingFields{byPool: string(pool.GetUID())}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing members of pool %s: %w", pool.GetName(), err)
	}
	out := make([]*unstructured.Unstructured, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, &list.Items[i])
	}
	return out, nil
}

func listOf(kind schema.GroupVersionKind) schema.GroupVersionKind {
	return kind.GroupVersion().WithKind(kind.Kind + "List")
}

// Proven reports whether the cache shows what a consistent list does, or later:
// whatever another leader did is seen.
func (v *View) Proven(ctx context.Context, pool *unstructured.Unstructured) (bool, error) {
	listed, at, err := v.listed(ctx, pool)
	if err != nil {
		return false, err
	}
	cached, err := v.Members(ctx, pool)
	if err != nil {
		return false, err
	}
	shown := map[types.UID]string{}
	for _, m := range cached {
		shown[m.GetUID()] = m.GetResourceVersion()
		// Not listed: either younger than the list, or deleted unseen.
		if _, ok := listed[m.GetUID()]; !ok && !older(at, m.GetResourceVersion()) {
			return false, nil
		}
	}
	for uid, rv := range listed {
		if seen, ok := shown[uid]; !ok || older(seen, rv) {
			return false, nil
		}
	}
	return true, nil
}

// older compares resourceVersions of one resource (KEP-5504). What cannot be
// compared is taken for older.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order < 0
}

// listed are the resourceVersions of the pool's members in etcd, and that of the
// list.
func (v *View) listed(ctx context.Context, pool *unstructured.Unstructured) (members map[types.UID]string, at string, err error) {
	members = map[types.UID]string{}
	page := &metav1.PartialObjectMetadataList{}
	page.SetGroupVersionKind(listOf(v.kinds.Sandboxes))
	options := &client.ListOptions{
		Namespace: pool.GetNamespace(), Limit: pageSize,
		LabelSelector: labels.SelectorFromSet(labels.Set{agentsandbox.WarmPoolLabel: agentsandbox.NameHash(pool.GetName())}),
	}
	for {
		if err := v.lists.List(ctx, page, options); err != nil {
			return nil, "", fmt.Errorf("listing members of pool %s: %w", pool.GetName(), err)
		}
		for i := range page.Items {
			if owner := metav1.GetControllerOfNoCopy(&page.Items[i]); owner != nil && owner.UID == pool.GetUID() {
				members[page.Items[i].UID] = page.Items[i].ResourceVersion
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return members, page.ResourceVersion, nil
		}
	}
}

// podOf returns the Pod of a member, nil when the cache shows none.
func (v *View) podOf(ctx context.Context, member *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	return v.get(ctx, podKind, types.NamespacedName{Namespace: member.GetNamespace(), Name: agentsandbox.PodNameOf(member)})
}

// Stranded are those of the members whose node is about to go.
func (v *View) Stranded(ctx context.Context, members []*unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	var out []*unstructured.Unstructured
	leaving := map[string]bool{}
	for _, m := range members {
		pod, err := v.podOf(ctx, m)
		if err != nil {
			return nil, err
		}
		if pod == nil || agentsandbox.NodeOf(pod) == "" {
			continue
		}
		name := agentsandbox.NodeOf(pod)
		if _, known := leaving[name]; !known {
			node, err := v.get(ctx, nodeKind, types.NamespacedName{Name: name})
			if err != nil {
				return nil, err
			}
			leaving[name] = agentsandbox.Leaving(node) != ""
		}
		if leaving[name] {
			out = append(out, m)
		}
	}
	return out, nil
}
