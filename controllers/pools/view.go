package pools

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	restclient "k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/members"
	"github.com/freshbind/freshbind/internal/placement"
	"github.com/freshbind/freshbind/internal/platform"
)

const (
	// pageSize is how many objects a consistent list asks for at once.
	pageSize = 500
)

// hasBarePods reports whether members of pools of this kind may be Pods.
func (v *View) hasBarePods(pools schema.GroupVersionKind) bool {
	return v.barePods != nil && v.barePods.HasBarePods(pools.GroupVersion())
}

// PoolKinds are the served versions of what pools are made of. SharedTemplates is empty where
// there are none.
type PoolKinds struct{ Pools, Templates, SharedTemplates, Sandboxes schema.GroupVersionKind }

// Members shows Sandboxes, as far as they are kept.
type Members interface {
	Sandbox(key types.NamespacedName) *members.Member
	// Reduce returns a Sandbox that was read elsewhere as it would be kept.
	Reduce(sandbox *unstructured.Unstructured) *members.Member
	// OfPool returns the members that a pool has, the oldest first.
	OfPool(pool types.UID) []members.WithPod
}

// MemberPods shows the Pods of Sandboxes, as far as they are kept.
type MemberPods interface {
	PodsOn(node string) []*members.Pod
}

// View is what the controller of pools sees: members and Pods reduced to what is
// looked at, and a cache of its own of pools, templates and Nodes.
type View struct {
	cache   client.Reader
	lists   client.Reader
	members Members
	pods    MemberPods
	// nodes are those that Pods have to leave, or are to.
	nodes func(ctx context.Context) (worseNodes, error)
	// sawNode is told of changes of nodes.
	sawNode func(name string, state freshness.Node)
	kinds   PoolKinds
	objects Objects
	// barePods tells which pools have some; nil for a platform without any.
	barePods platform.BarePods
	// only are the namespaces to look at; all when there are none.
	only []string
	// informers fill the cache.
	informers cache.Cache
	store     *members.Cache

	drains   drainCount
	listings listings
}

// Objects reads what a platform's objects say.
type Objects interface {
	platform.Owners
	platform.Selectors
	platform.Pools
}

// ViewOptions configure a View.
type ViewOptions struct {
	Members    *members.Cache
	Kinds      PoolKinds
	Objects    Objects
	BarePods   platform.BarePods
	Namespaces map[string]cache.Config
	// Scheduling: somebody looks at the labels and images of nodes.
	Scheduling bool
}

// UserAgentSuffix ends the user agent of requests that fill the cache of pools.
const UserAgentSuffix = " (pools)"

// NewView adds the caches to the manager, and returns a view of them.
func NewView(mgr manager.Manager, o ViewOptions) (*View, error) {
	cfg := restclient.CopyConfig(mgr.GetConfig())
	// Audit logs tell its lists from those of other caches.
	cfg.UserAgent += UserAgentSuffix
	c, err := liveread.NewConsistentCache(cfg, cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), DefaultNamespaces: o.Namespaces,
		ByObject: map[client.Object]cache.ByObject{
			// Only those that wait for a node are read in full, by schedulers' helpers.
			object(podKind): {
				Label: o.Objects.MemberPods(), Field: fields.OneTermEqualSelector("spec.nodeName", ""), Transform: trimPod,
			},
			object(nodeKind): {Transform: trimNode(o.Scheduling)},
		},
		DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return nil, fmt.Errorf("creating the cache of pools: %w", err)
	}
	v := &View{cache: c, lists: mgr.GetAPIReader(), members: o.Members, pods: o.Members, kinds: o.Kinds, objects: o.Objects, barePods: o.BarePods, informers: c, store: o.Members,
		only: slices.Collect(maps.Keys(o.Namespaces))}
	v.followNodes(o.Members)
	if err := mgr.Add(leaderless{c}); err != nil {
		return nil, fmt.Errorf("adding the cache of pools: %w", err)
	}
	return v, nil
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

// trimPod keeps of a Pod whose it is, where it is or who places it, what has it
// stay there, and, while it is nowhere, why.
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
	if tolerations := placement.StayTolerations(u); tolerations != nil {
		spec["tolerations"] = tolerations
	}
	u.Object["spec"] = spec
	conditions, found, err := unstructured.NestedFieldNoCopy(u.Object, "status", "conditions")
	delete(u.Object, "status")
	if err == nil && found && placement.NodeName(u) == "" {
		u.Object["status"] = map[string]any{"conditions": conditions}
	}
	u.SetManagedFields(nil)
	u.SetAnnotations(nil)
	return u, nil
}

// isReady and notReady are all that is kept of a node's status, once for all
// nodes.
var isReady, notReady = statusOfNode(corev1.ConditionTrue), statusOfNode(corev1.ConditionUnknown)

func statusOfNode(ready corev1.ConditionStatus) map[string]any {
	return map[string]any{"conditions": []any{map[string]any{"type": string(corev1.NodeReady), "status": string(ready)}}}
}

// trimNode keeps of a Node what tells whether it is leaving or cordoned and, for scheduling,
// its labels and what images it has.
func trimNode(scheduling bool) toolscache.TransformFunc {
	return func(obj any) (any, error) {
		u, ok := obj.(*unstructured.Unstructured)
		if !ok {
			return obj, nil
		}
		metadata := map[string]any{"name": u.GetName(), "resourceVersion": u.GetResourceVersion()}
		if deleted, found, err := unstructured.NestedFieldNoCopy(u.Object, "metadata", "deletionTimestamp"); found && err == nil {
			metadata["deletionTimestamp"] = deleted
		}
		trimmed := map[string]any{"apiVersion": "v1", "kind": "Node", "metadata": metadata}
		if ready, known := placement.NodeReady(u); known && ready {
			trimmed["status"] = isReady
		} else if known {
			trimmed["status"] = notReady
		}
		spec := map[string]any{}
		for _, key := range []string{"taints", "unschedulable"} {
			if v, found, err := unstructured.NestedFieldNoCopy(u.Object, "spec", key); found && err == nil {
				spec[key] = v
			}
		}
		if len(spec) > 0 {
			trimmed["spec"] = spec
		}
		if scheduling {
			metadata["labels"], _, _ = unstructured.NestedFieldNoCopy(u.Object, "metadata", "labels")
			images, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "images")
			status := map[string]any{"images": images}
			if of, ok := trimmed["status"].(map[string]any); ok {
				maps.Copy(status, of)
			}
			trimmed["status"] = status
		}
		return &unstructured.Unstructured{Object: trimmed}, nil
	}
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
	is, kind := v.objects.Pool(pool), v.kinds.Templates
	if is.TemplateKind != "" {
		if kind = v.kinds.SharedTemplates; kind.Kind != is.TemplateKind {
			return nil, nil
		}
	}
	return v.get(ctx, kind, types.NamespacedName{Namespace: pool.GetNamespace(), Name: is.Template})
}

// Members are the idle members that a pool has, in the cache. They are the
// cache's own and must not be changed.
func (v *View) Members(pool *unstructured.Unstructured) []*members.Member {
	var out []*members.Member
	for _, m := range v.members.OfPool(pool.GetUID()) {
		if idle(pool, m) {
			out = append(out, m.Member)
		}
	}
	return out
}

func listOf(kind schema.GroupVersionKind) schema.GroupVersionKind {
	return kind.GroupVersion().WithKind(kind.Kind + "List")
}

// Proven reports whether the cache shows what a consistent list of the pool's
// members does, or later: whatever another leader did is seen.
func (v *View) Proven(ctx context.Context, pool *unstructured.Unstructured) (bool, error) {
	l, err := v.list(ctx, pool.GetNamespace(), v.objects.MembersOf(pool.GetName()))
	return err == nil && v.shows(pool, l), err
}

// shows reports whether the cache shows what the list does, or later.
func (v *View) shows(pool *unstructured.Unstructured, l *listing) bool {
	listed := l.members[pool.GetUID()]
	shown := map[types.UID]string{}
	for _, m := range v.members.OfPool(pool.GetUID()) {
		shown[m.UID] = m.ResourceVersion
		// Not listed: either younger than the list, or deleted unseen. A list selects by
		// other means what nobody may be given.
		if _, ok := listed[m.UID]; !ok && idle(pool, m) && !older(l.at, m.ResourceVersion) {
			return false
		}
	}
	for uid, rv := range listed {
		if seen, ok := shown[uid]; !ok || older(seen, rv) {
			return false
		}
	}
	return true
}

// older compares resourceVersions of one resource (KEP-5504). What cannot be
// compared is taken for older.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order < 0
}

// member returns a Sandbox that was made for a pool, and that no claim has; nil for
// none.
func (v *View) member(namespace, name string) *members.Member {
	m := v.members.Sandbox(types.NamespacedName{Namespace: namespace, Name: name})
	if m == nil || !m.Pooled {
		return nil
	}
	return m
}

// covers reports whether Freshbind looks at a namespace at all.
func (v *View) covers(namespace string) bool {
	return len(v.only) == 0 || slices.Contains(v.only, namespace)
}

func (v *View) node(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	return v.get(ctx, nodeKind, types.NamespacedName{Name: name})
}

// OnDrainingNodes are those of the members whose node is about to go, for their Pods.
func (v *View) OnDrainingNodes(ctx context.Context, of []entry) ([]*members.Member, error) {
	nodes, err := v.nodes(ctx)
	if err != nil || len(nodes.leaving) == 0 {
		return nil, err
	}
	var out []*members.Member
	for _, m := range of {
		if m.Pod == nil {
			continue
		}
		if node, ok := nodes.leaving[m.Pod.Node()]; ok && m.Pod.MustLeave(node) {
			out = append(out, m.Member)
		}
	}
	return out, nil
}
