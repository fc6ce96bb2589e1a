package pools

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/members"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

const (
	// verdictsKept bounds how many verdicts on members are remembered.
	verdictsKept = 8192
	// membersKept bounds how many members are remembered after they went.
	membersKept = 16384
	// goodFor is how long a judgement is, and how long a pool's policy on unknown
	// members is, which takes a look at all of them. What both depend on besides the
	// objects, recorded revisions and the namespace, seldom changes.
	goodFor = time.Second
	// unseenWithin bounds a live read, for which a scheduler waits with all its pods, and
	// by default no longer than a second.
	unseenWithin = 500 * time.Millisecond
)

// BarePodInspector compares members that are Pods with what is in force, from caches.
type BarePodInspector interface {
	InspectBarePod(ctx context.Context, pool, template, pod *unstructured.Unstructured) (freshness.Verdict, error)
}

// Dispositions says of Pods that wait for a node what will become of the members
// that they are. It works on every replica. It reads caches, and live only those members
// that no cache shows yet.
type Dispositions struct {
	view     *View
	platform platform.Inspector
	// barePods is nil for a platform without any.
	barePods BarePodInspector
	enforced Enforced
	clock    clock.PassiveClock
	// metadata shows every Sandbox, also those that claims have.
	metadata client.Reader
	live     Live
	judged   *lru.Cache
	policies *lru.Cache
	// former are the UIDs of members that were seen, with their pools' names.
	former *lru.Cache
}

func newDispositions(v *View, o Options, metadata client.Reader, c clock.PassiveClock) *Dispositions {
	return &Dispositions{
		view: v, platform: o.Inspector, barePods: o.BarePods, enforced: o.Enforced, metadata: metadata, live: o.Live, clock: c,
		judged: lru.New(verdictsKept), policies: lru.New(verdictsKept), former: lru.New(membersKept),
	}
}

// watch has members remembered.
func (f *Dispositions) watch(ctx context.Context, metadata cache.Cache) error {
	f.view.store.HandleSandboxes(f.remember)
	if _, err := metadata.GetInformer(ctx, f.sandboxMetadata()); err != nil {
		return fmt.Errorf("watching the metadata of sandboxes: %w", err)
	}
	return nil
}

func (f *Dispositions) sandboxMetadata() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(f.view.kinds.Sandboxes)
	return m
}

// remember keeps a member as soon as it is in its pool no more.
func (f *Dispositions) remember(old, now *members.Member) {
	if old == nil {
		return
	}
	pool, uid := old.Pool()
	if uid == "" {
		return
	}
	if now != nil && now.UID == old.UID {
		if _, still := now.Pool(); still == uid {
			return
		}
	}
	f.former.Add(old.UID, freshness.PodDisposition{Pool: pool, PoolUID: string(uid), ToBeDeleted: true})
}

// Caches are those that dispositions are made from: pools, templates, Nodes, and the
// Pods that wait for one.
func (f *Dispositions) Caches() cache.Cache { return f.view.informers }

// Members are those that dispositions are made of, and their Pods.
func (f *Dispositions) Members() *members.Cache { return f.view.store }

// Kinds are what its caches have in them.
func (f *Dispositions) Kinds() PoolKinds { return f.view.kinds }

// Of tells what will become of a Pod; the zero one when no pool has it, or
// when no cache shows the pool yet.
func (f *Dispositions) Of(ctx context.Context, pod metav1.Object) (freshness.PodDisposition, error) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return freshness.PodDisposition{}, nil
	}
	if f.view.objects.IsPool(owner) {
		if f.barePods == nil {
			return freshness.PodDisposition{}, nil
		}
		pool, err := f.pool(ctx, pod.GetNamespace(), owner.Name, owner.UID)
		if err != nil || pool == nil {
			return freshness.PodDisposition{}, err
		}
		return f.ofBarePod(ctx, pool, pod)
	}
	if !f.view.objects.IsMember(owner) {
		return freshness.PodDisposition{}, nil
	}
	member := f.view.member(pod.GetNamespace(), owner.Name)
	if member == nil || member.GetUID() != owner.UID {
		return f.ofFormer(ctx, pod.GetNamespace(), owner)
	}
	return f.ofPooled(ctx, member)
}

func (f *Dispositions) ofPooled(ctx context.Context, member *members.Member) (freshness.PodDisposition, error) {
	name, uid := member.Pool()
	if uid == "" {
		return freshness.PodDisposition{}, nil
	}
	pool, err := f.pool(ctx, member.GetNamespace(), name, uid)
	if err != nil || pool == nil {
		return freshness.PodDisposition{}, err
	}
	return f.ofMember(ctx, pool, member)
}

// ofUnseen is about the Pod of a Sandbox that may be a member and be in no cache yet:
// a scheduler's watch of Pods can be ahead of ours of Sandboxes.
func (f *Dispositions) ofUnseen(ctx context.Context, namespace string, owner *metav1.OwnerReference) (freshness.PodDisposition, error) {
	key := types.NamespacedName{Namespace: namespace, Name: owner.Name}
	if seen := f.view.members.Sandbox(key); seen != nil && seen.UID == owner.UID || !f.view.covers(namespace) {
		return freshness.PodDisposition{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, unseenWithin)
	defer cancel()
	sandbox, err := f.live(ctx, key)
	if err != nil {
		return freshness.PodDisposition{}, fmt.Errorf("reading sandbox %s, which no cache shows: %w", owner.Name, err)
	}
	if sandbox == nil || sandbox.GetUID() != owner.UID {
		return freshness.PodDisposition{}, nil
	}
	if member := f.view.members.Reduce(sandbox); member.Pooled {
		return f.ofPooled(ctx, member)
	}
	return freshness.PodDisposition{}, nil
}

// ofFormer is about the Pod of a member that is in its pool no more: either a
// claim has got it, or it is gone and its Pod goes next. Until the garbage
// collector comes that Pod would take a node.
func (f *Dispositions) ofFormer(ctx context.Context, namespace string, owner *metav1.OwnerReference) (freshness.PodDisposition, error) {
	was, ok := f.former.Get(owner.UID)
	if !ok {
		return f.ofUnseen(ctx, namespace, owner)
	}
	sandbox := f.sandboxMetadata()
	err := f.metadata.Get(ctx, types.NamespacedName{Namespace: namespace, Name: owner.Name}, sandbox)
	if client.IgnoreNotFound(err) != nil {
		return freshness.PodDisposition{}, fmt.Errorf("reading the metadata of sandbox %s: %w", owner.Name, err)
	}
	if now := metav1.GetControllerOfNoCopy(sandbox); err == nil && sandbox.UID == owner.UID && (now == nil || !f.view.objects.IsPool(now)) {
		return freshness.PodDisposition{}, nil
	}
	disposition := was.(freshness.PodDisposition)
	pool, err := f.view.Pool(ctx, types.NamespacedName{Namespace: namespace, Name: disposition.Pool})
	if err != nil {
		return freshness.PodDisposition{}, err
	}
	enforcement := ""
	if pool != nil {
		enforcement = pool.GetAnnotations()[settings.EnforcementKey]
	}
	if act, err := f.enforced(ctx, namespace, enforcement); err != nil || !act {
		return freshness.PodDisposition{}, err
	}
	return disposition, nil
}

// pool returns a pool that is there, and in whose namespace Freshbind is to act.
func (f *Dispositions) pool(ctx context.Context, namespace, name string, uid types.UID) (*unstructured.Unstructured, error) {
	pool, err := f.view.Pool(ctx, types.NamespacedName{Namespace: namespace, Name: name})
	if err != nil || pool == nil || pool.GetUID() != uid || pool.GetDeletionTimestamp() != nil {
		return nil, err
	}
	act, err := f.enforced(ctx, namespace, pool.GetAnnotations()[settings.EnforcementKey])
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
	platform.Judgement
	strategy  freshness.Strategy
	revision  string
	restarted time.Time
	at        time.Time
}

func (f *Dispositions) ofMember(ctx context.Context, pool *unstructured.Unstructured, member *members.Member) (freshness.PodDisposition, error) {
	disposition := freshness.PodDisposition{Pool: pool.GetName(), PoolUID: string(pool.GetUID())}
	template, err := f.view.Template(ctx, pool)
	if err != nil || template == nil {
		return disposition, err
	}
	j, err := f.judge(ctx, pool, template, member)
	if err != nil {
		return disposition, err
	}
	disposition.Found, disposition.Expected = j.Found, j.revision
	state := freshness.MemberState{Class: j.Class, Created: member.Created(), Edited: member.Generation > 1}
	if state.Class == freshness.Current || state.Class == freshness.Unclassified {
		return disposition, nil
	}
	policy, err := f.replacementPolicy(ctx, pool, template, j, state.Class)
	if err != nil {
		return disposition, err
	}
	// Neither ready nor gated: its Pod waits for a node.
	disposition.ToBeDeleted = policy.DeletesNow(state)
	return disposition, nil
}

func (f *Dispositions) judge(ctx context.Context, pool, template *unstructured.Unstructured, member *members.Member) (judgement, error) {
	key := nameOf(member) + " " + nameOf(pool) + " " + nameOf(template)
	now := f.clock.Now()
	if j, ok := f.judged.Get(key); ok && now.Sub(j.(judgement).at) < goodFor {
		return j.(judgement), nil
	}
	inspection, err := f.platform.Inspect(ctx, pool, template)
	if err != nil {
		return judgement{}, fmt.Errorf("rendering template %s: %w", template.GetName(), err)
	}
	what, err := inspection.Member(ctx, member)
	if err != nil {
		return judgement{}, err
	}
	j := judgement{what, inspection.Strategy(), inspection.Revision(), inspection.Restarted(), now}
	f.judged.Add(key, j)
	return j, nil
}

// nameOf names one content of an object for ever.
func nameOf(o version) string { return string(o.GetUID()) + "/" + o.GetResourceVersion() }

// replacementPolicy is what the leader plans by, as far as it is published.
func (f *Dispositions) replacementPolicy(
	ctx context.Context, pool, template *unstructured.Unstructured, j judgement, class freshness.Class,
) (freshness.ReplacementPolicy, error) {
	s := inputs(pool, f.view.objects.Pool(pool))
	s.Strategy, s.Now = j.strategy, f.clock.Now()
	s.Rollout, _ = recorded(pool.GetAnnotations(), s.Now)
	if !s.Rollout.Is(j.revision, template.GetName(), j.restarted) {
		s.Rollout = freshness.Begin(j.revision, template.GetName(), j.restarted, s.Now).From(sourceOf(pool), sourceOf(template))
	}
	if class != freshness.Unknown {
		return s.ReplacementPolicy(), nil
	}
	return f.policyOnUnknown(ctx, pool, template, s)
}

// agedPolicy is a policy and when it was found.
type agedPolicy struct {
	freshness.ReplacementPolicy
	at time.Time
}

func (f *Dispositions) policyOnUnknown(
	ctx context.Context, pool, template *unstructured.Unstructured, s freshness.PoolState,
) (freshness.ReplacementPolicy, error) {
	key := nameOf(pool) + " " + nameOf(template)
	if known, ok := f.policies.Get(key); ok && s.Now.Sub(known.(agedPolicy).at) < goodFor {
		return known.(agedPolicy).ReplacementPolicy, nil
	}
	for _, m := range f.view.Members(pool) {
		j, err := f.judge(ctx, pool, template, m)
		if err != nil {
			return freshness.ReplacementPolicy{}, err
		}
		s.Members = append(s.Members, freshness.MemberState{
			Class: j.Class, Created: m.Created(), Edited: m.Generation > 1, ByPool: m.CreatedByPool(),
		})
	}
	was := pool.GetAnnotations()[settings.AttributionKey] == s.Rollout.Revision
	s.Suspended = freshness.SuspendsAttribution(was, s.Members, s.Replicas, s.Rollout.Started)
	o := s.ReplacementPolicy()
	f.policies.Add(key, agedPolicy{o, s.Now})
	return o, nil
}

func (f *Dispositions) ofBarePod(ctx context.Context, pool *unstructured.Unstructured, pod metav1.Object) (freshness.PodDisposition, error) {
	disposition := freshness.PodDisposition{Pool: pool.GetName(), PoolUID: string(pool.GetUID())}
	template, err := f.view.Template(ctx, pool)
	if err != nil || template == nil {
		return disposition, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		return disposition, fmt.Errorf("reading pod %s: %w", pod.GetName(), err)
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(podKind)
	v, err := f.barePods.InspectBarePod(ctx, pool, template, u)
	if err != nil {
		return disposition, err
	}
	disposition.Found, disposition.Expected = v.Found, v.Expected
	disposition.ToBeDeleted = v.DeletesBarePod()
	return disposition, nil
}

// NodeObject is what Nodes are watched as.
func (f *Dispositions) NodeObject() client.Object { return object(nodeKind) }

// Pools are those of a namespace that the cache shows.
func (f *Dispositions) Pools(ctx context.Context, namespace string) ([]*unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(listOf(f.view.kinds.Pools))
	if err := f.view.cache.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing pools from the cache: %w", err)
	}
	out := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		out[i] = &list.Items[i]
	}
	return out, nil
}
