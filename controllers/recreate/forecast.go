package recreate

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

const (
	// forecastsKept bounds how many verdicts on members are remembered.
	forecastsKept = 8192
	// membersKept bounds how many members are remembered after they went.
	membersKept = 16384
	// goodFor is how long a judgement is, and how long a pool's outlook on unknown
	// members is, which takes a look at all of them. What both depend on besides the
	// objects, recorded revisions and the namespace, seldom changes.
	goodFor = time.Second
)

// Inspector compares members with what is in force, from caches.
type Inspector interface {
	Inspect(ctx context.Context, pool, template *unstructured.Unstructured) (*agentsandbox.Inspection, error)
	InspectBarePod(ctx context.Context, pool, template, pod *unstructured.Unstructured) (freshness.Verdict, error)
}

// Forecast says of Pods that wait for a node what will become of the members
// that they are. It works on every replica, and reads nothing but caches.
type Forecast struct {
	view     *View
	platform Inspector
	enforced Enforced
	clock    clock.PassiveClock
	// metadata shows every Sandbox, also those that claims have.
	metadata client.Reader
	judged   *lru.Cache
	outlooks *lru.Cache
	// former are the UIDs of members that were seen, with their pools' names.
	former *lru.Cache
}

func newForecast(v *View, p Inspector, e Enforced, metadata client.Reader, c clock.PassiveClock) *Forecast {
	return &Forecast{
		view: v, platform: p, enforced: e, metadata: metadata, clock: c,
		judged: lru.New(forecastsKept), outlooks: lru.New(forecastsKept), former: lru.New(membersKept),
	}
}

// watch has members remembered.
func (f *Forecast) watch(ctx context.Context, metadata cache.Cache) error {
	informer, err := f.view.informers.GetInformer(ctx, object(f.view.kinds.Sandboxes))
	if err != nil {
		return fmt.Errorf("watching members: %w", err)
	}
	if _, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: f.remember}); err != nil {
		return fmt.Errorf("watching members: %w", err)
	}
	if _, err := metadata.GetInformer(ctx, f.sandboxMetadata()); err != nil {
		return fmt.Errorf("watching the metadata of sandboxes: %w", err)
	}
	return nil
}

func (f *Forecast) sandboxMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(f.view.kinds.Sandboxes)
	return m
}

func (f *Forecast) remember(obj any) {
	if member, ok := obj.(*unstructured.Unstructured); ok {
		if pool, uid := agentsandbox.PoolOf(member); uid != "" {
			f.former.Add(member.GetUID(), freshness.Prospect{Pool: pool, PoolUID: uid, Goes: true})
		}
	}
}

// Caches are those that forecasts are made from, pools, templates, sandboxes,
// Pods and Nodes in them.
func (f *Forecast) Caches() cache.Cache { return f.view.informers }

// Kinds are what its caches have in them.
func (f *Forecast) Kinds() PoolKinds { return f.view.kinds }

// Of tells what will become of a Pod; the zero Prospect when no pool has it, or
// when no cache shows yet that one does.
func (f *Forecast) Of(ctx context.Context, pod metav1.Object) (freshness.Prospect, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return freshness.Prospect{}, nil
	}
	if agentsandbox.IsPoolOwner(owner) {
		pool, err := f.pool(ctx, pod.GetNamespace(), owner.Name, owner.UID)
		if err != nil || pool == nil {
			return freshness.Prospect{}, err
		}
		return f.ofBarePod(ctx, pool, pod)
	}
	if !agentsandbox.IsSandboxOwner(owner) {
		return freshness.Prospect{}, nil
	}
	member, err := f.view.get(ctx, f.view.kinds.Sandboxes, types.NamespacedName{Namespace: pod.GetNamespace(), Name: owner.Name})
	if err != nil {
		return freshness.Prospect{}, err
	}
	if member == nil || member.GetUID() != owner.UID {
		return f.ofFormer(ctx, pod.GetNamespace(), owner)
	}
	name, uid := agentsandbox.PoolOf(member)
	if uid == "" {
		return freshness.Prospect{}, nil
	}
	pool, err := f.pool(ctx, pod.GetNamespace(), name, types.UID(uid))
	if err != nil || pool == nil {
		return freshness.Prospect{}, err
	}
	return f.ofMember(ctx, pool, member)
}

// ofFormer is about the Pod of a member that is in its pool no more: either a
// claim has got it, or it is gone and its Pod goes next. Until the garbage
// collector comes that Pod would take a node.
func (f *Forecast) ofFormer(ctx context.Context, namespace string, owner *metav1.OwnerReference) (freshness.Prospect, error) {
	was, ok := f.former.Get(owner.UID)
	if !ok {
		return freshness.Prospect{}, nil
	}
	sandbox := f.sandboxMetadata()
	err := f.metadata.Get(ctx, types.NamespacedName{Namespace: namespace, Name: owner.Name}, sandbox)
	if client.IgnoreNotFound(err) != nil {
		return freshness.Prospect{}, fmt.Errorf("reading the metadata of sandbox %s: %w", owner.Name, err)
	}
	if now := metav1.GetControllerOfNoCopy(sandbox); err == nil && sandbox.UID == owner.UID && (now == nil || !agentsandbox.IsPoolOwner(now)) {
		return freshness.Prospect{}, nil
	}
	prospect := was.(freshness.Prospect)
	pool, err := f.view.Pool(ctx, types.NamespacedName{Namespace: namespace, Name: prospect.Pool})
	if err != nil {
		return freshness.Prospect{}, err
	}
	said := ""
	if pool != nil {
		said = pool.GetAnnotations()[platform.EnforcementKey]
	}
	if act, err := f.enforced(ctx, namespace, said); err != nil || !act {
		return freshness.Prospect{}, err
	}
	return prospect, nil
}

// pool returns a pool that is there, and in whose namespace Freshbind is to act.
func (f *Forecast) pool(ctx context.Context, namespace, name string, uid types.UID) (*unstructured.Unstructured, error) {
	pool, err := f.view.Pool(ctx, types.NamespacedName{Namespace: namespace, Name: name})
	if err != nil || pool == nil || pool.GetUID() != uid || pool.GetDeletionTimestamp() != nil {
		return nil, err
	}
	act, err := f.enforced(ctx, namespace, pool.GetAnnotations()[platform.EnforcementKey])
	if err != nil {
		return nil, fmt.Errorf("finding the mode of pool %s/%s: %w", namespace, name, err)
	}
	if !act {
		return nil, nil
	}
	return pool, nil
}

// judgement is a verdict on one version of a member beside one of its pool and
// of its template.
type judgement struct {
	freshness.Verdict
	strategy  freshness.Strategy
	revision  string
	restarted time.Time
	at        time.Time
}

func (f *Forecast) ofMember(ctx context.Context, pool, member *unstructured.Unstructured) (freshness.Prospect, error) {
	prospect := freshness.Prospect{Pool: pool.GetName(), PoolUID: string(pool.GetUID())}
	template, err := f.view.Template(ctx, pool)
	if err != nil || template == nil {
		return prospect, err
	}
	j, err := f.judge(ctx, pool, template, member)
	if err != nil {
		return prospect, err
	}
	prospect.Found, prospect.Expected = j.Found, j.Expected
	state := freshness.MemberState{
		Class: freshness.ClassOf(j.Verdict), Created: member.GetCreationTimestamp().Time, Edited: member.GetGeneration() > 1,
	}
	if state.Class == freshness.Current || state.Class == freshness.Unclassified {
		return prospect, nil
	}
	outlook, err := f.outlook(ctx, pool, template, j, state.Class)
	if err != nil {
		return prospect, err
	}
	// Neither ready nor gated: its Pod waits for a node.
	prospect.Goes = outlook.Goes(state)
	return prospect, nil
}

func (f *Forecast) judge(ctx context.Context, pool, template, member *unstructured.Unstructured) (judgement, error) {
	key := version(member) + " " + version(pool) + " " + version(template)
	now := f.clock.Now()
	if j, ok := f.judged.Get(key); ok && now.Sub(j.(judgement).at) < goodFor {
		return j.(judgement), nil
	}
	inspection, err := f.platform.Inspect(ctx, pool, template)
	if err != nil {
		return judgement{}, fmt.Errorf("rendering template %s: %w", template.GetName(), err)
	}
	v, err := inspection.Member(member)
	if err != nil {
		return judgement{}, err
	}
	j := judgement{v, inspection.Strategy(), inspection.Revision(), inspection.Restarted(), now}
	f.judged.Add(key, j)
	return j, nil
}

// version names one content of an object for ever.
func version(o metav1.Object) string { return string(o.GetUID()) + "/" + o.GetResourceVersion() }

// outlook is what the leader plans by, as far as it is published.
func (f *Forecast) outlook(
	ctx context.Context, pool, template *unstructured.Unstructured, j judgement, class freshness.Class,
) (freshness.Outlook, error) {
	s := inputs(pool)
	s.Strategy, s.Now = j.strategy, f.clock.Now()
	s.Rollout, _ = recorded(pool, s.Now)
	if s.Rollout.Revision != j.revision || !s.Rollout.Restarted.Equal(j.restarted) {
		s.Rollout = freshness.Begin(j.revision, j.restarted, s.Now)
	}
	if class != freshness.Unknown {
		return s.Outlook(), nil
	}
	return f.outlookOnUnknown(ctx, pool, template, s)
}

// agedOutlook is an outlook and when it was found.
type agedOutlook struct {
	freshness.Outlook
	at time.Time
}

func (f *Forecast) outlookOnUnknown(
	ctx context.Context, pool, template *unstructured.Unstructured, s freshness.PoolState,
) (freshness.Outlook, error) {
	key := version(pool) + " " + version(template)
	if known, ok := f.outlooks.Get(key); ok && s.Now.Sub(known.(agedOutlook).at) < goodFor {
		return known.(agedOutlook).Outlook, nil
	}
	members, err := f.view.Members(ctx, pool)
	if err != nil {
		return freshness.Outlook{}, err
	}
	for _, m := range members {
		j, err := f.judge(ctx, pool, template, m)
		if err != nil {
			return freshness.Outlook{}, err
		}
		s.Members = append(s.Members, freshness.MemberState{
			Class: freshness.ClassOf(j.Verdict), Created: m.GetCreationTimestamp().Time, Edited: m.GetGeneration() > 1,
		})
	}
	was := pool.GetAnnotations()[platform.AttributionKey] == s.Rollout.Revision
	s.Suspended = freshness.Incomprehensible(was, s.Members, s.Replicas, s.Rollout.Started)
	o := s.Outlook()
	f.outlooks.Add(key, agedOutlook{o, s.Now})
	return o, nil
}

func (f *Forecast) ofBarePod(ctx context.Context, pool *unstructured.Unstructured, pod metav1.Object) (freshness.Prospect, error) {
	prospect := freshness.Prospect{Pool: pool.GetName(), PoolUID: string(pool.GetUID())}
	template, err := f.view.Template(ctx, pool)
	if err != nil || template == nil {
		return prospect, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		return prospect, fmt.Errorf("reading pod %s: %w", pod.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(podKind)
	v, err := f.platform.InspectBarePod(ctx, pool, template, u)
	if err != nil {
		return prospect, err
	}
	prospect.Found, prospect.Expected = v.Found, v.Expected
	prospect.Goes = v.BarePodGoes()
	return prospect, nil
}

// Placed returns the nodes of a pool's members, by the UIDs of their Pods. Bare
// Pods are in no cache.
func (f *Forecast) Placed(ctx context.Context, namespace, pool string) (map[types.UID]string, error) {
	stored, err := f.view.Pool(ctx, types.NamespacedName{Namespace: namespace, Name: pool})
	if err != nil || stored == nil {
		return nil, err
	}
	members, err := f.view.Members(ctx, stored)
	if err != nil {
		return nil, err
	}
	pods := &unstructured.UnstructuredList{}
	pods.SetGroupVersionKind(listOf(podKind))
	if err := f.view.cache.List(ctx, pods, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing pods of pool %s: %w", pool, err)
	}
	byName := make(map[string]*unstructured.Unstructured, len(pods.Items))
	for i := range pods.Items {
		byName[pods.Items[i].GetName()] = &pods.Items[i]
	}
	placed := map[types.UID]string{}
	for _, m := range members {
		pod := byName[agentsandbox.PodNameOf(m)]
		if node := agentsandbox.NodeOf(pod); node != "" && pod.GetDeletionTimestamp() == nil {
			placed[pod.GetUID()] = node
		}
	}
	return placed, nil
}

// NodeObject is what Nodes are watched as.
func (f *Forecast) NodeObject() client.Object { return object(nodeKind) }
