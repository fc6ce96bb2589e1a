package scheduler

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/freshbind/freshbind/internal/freshness"
)

// What a pod is told in its condition PodScheduled. The scheduler counts nodes by
// the whole text, so that it names none.
const (
	// StaleMember: the pod's member is about to be deleted.
	StaleMember = mark + "StaleMember"
	// NodeLeaving: no claim could be given that member on that node.
	NodeLeaving = mark + "NodeLeaving"

	mark = "freshbind: "
)

// Members knows what becomes of pods.
type Members interface {
	// Of returns the zero PodDisposition for a pod that no pool has.
	Of(ctx context.Context, pod metav1.Object) (freshness.PodDisposition, error)
}

// Extender answers kube-scheduler. All fields have to be set.
type Extender struct {
	Members Members
	Nodes   *Nodes
	Placed  *Placed
	Assumed *AssumeCache
	Weights Weights
	Metrics *Metrics
}

// candidates are the nodes of a request, in either form. Absent forms are nil.
type candidates struct {
	names *[]string
	nodes *corev1.NodeList
}

func candidatesOf(args *extenderv1.ExtenderArgs) candidates {
	return candidates{names: args.NodeNames, nodes: args.Nodes}
}

// each calls f for each name, that of a node given in both forms once.
func (c candidates) each(f func(name string)) {
	if c.names != nil {
		for _, name := range *c.names {
			f(name)
		}
		return
	}
	if c.nodes != nil {
		for i := range c.nodes.Items {
			f(c.nodes.Items[i].Name)
		}
	}
}

func (c candidates) count() int {
	n := 0
	c.each(func(string) { n++ })
	return n
}

// without returns those that are not failed, in the forms that were given: a
// form that is left out is read as no node at all.
func (c candidates) without(failed extenderv1.FailedNodesMap) candidates {
	if len(failed) == 0 {
		return c
	}
	fails := func(name string) bool { _, ok := failed[name]; return ok }
	out := c
	if c.names != nil {
		names := slices.DeleteFunc(slices.Clone(*c.names), fails)
		out.names = &names
	}
	if c.nodes != nil {
		list := *c.nodes
		list.Items = slices.DeleteFunc(slices.Clone(c.nodes.Items), func(n corev1.Node) bool { return fails(n.Name) })
		out.nodes = &list
	}
	return out
}

// Filter refuses every node to the pod of a member that is about to be deleted,
// and nodes that leave for them to those of all others.
func (e *Extender) Filter(ctx context.Context, args *extenderv1.ExtenderArgs) *extenderv1.ExtenderFilterResult {
	given := candidatesOf(args)
	disposition, outcome := e.disposition(ctx, args.Pod)
	failed := extenderv1.FailedNodesMap{}
	switch {
	case disposition.ToBeDeleted:
		why := staleMessage(disposition)
		failed = make(extenderv1.FailedNodesMap, given.count())
		given.each(func(name string) { failed[name] = why })
		outcome = refused
		e.Assumed.refuse(args.Pod.UID)
		logf.FromContext(ctx).V(2).Info("Refused a stale member", "namespace", args.Pod.Namespace, "pod", args.Pod.Name,
			"found", disposition.Found, "expected", disposition.Expected)
	case disposition.Pool != "":
		e.Assumed.clearRefusal(args.Pod.UID)
		if failed = e.Nodes.leavingAmong(given, args.Pod); len(failed) > 0 {
			outcome = filtered
		}
	}
	left := given.without(failed)
	if disposition.Pool != "" {
		e.noteChoice(args.Pod, disposition, left)
	}
	e.Metrics.count(verbFilter, outcome)
	return &extenderv1.ExtenderFilterResult{NodeNames: left.names, Nodes: left.nodes, FailedAndUnresolvableNodes: failed}
}

// noteChoice: of one node that is left the scheduler asks nobody's opinion
// (schedule_one.go, schedulePod).
func (e *Extender) noteChoice(pod *corev1.Pod, p freshness.PodDisposition, left candidates) {
	e.Assumed.drop(p.PoolUID, pod.UID)
	if left.count() == 1 {
		left.each(func(name string) { e.Assumed.assume(p.PoolUID, pod, name) })
	}
}

// disposition of a pod that could not be found is the zero one.
func (e *Extender) disposition(ctx context.Context, pod *corev1.Pod) (freshness.PodDisposition, outcome) {
	if pod == nil {
		return freshness.PodDisposition{}, passed
	}
	p, err := e.Members.Of(ctx, pod)
	if err != nil {
		logf.FromContext(ctx).V(2).Info("Let a pod pass unjudged", "namespace", pod.Namespace, "pod", pod.Name, "reason", err.Error())
		return freshness.PodDisposition{}, undecided
	}
	return p, passed
}

func staleMessage(p freshness.PodDisposition) string {
	switch {
	case p.Expected == "":
		return StaleMember
	case p.Found == "":
		return fmt.Sprintf("%s (is unknown, in force is %s)", StaleMember, p.Expected)
	}
	return fmt.Sprintf("%s (is %s, in force is %s)", StaleMember, p.Found, p.Expected)
}

// Preempt has a pod that Filter refuses evict nobody. The scheduler looks for
// victims on nodes that Filter was never asked about. One that Filter refused, and
// that has become fine in between, does so the next time: it may need none.
func (e *Extender) Preempt(ctx context.Context, args *extenderv1.ExtenderPreemptionArgs) *extenderv1.ExtenderPreemptionResult {
	disposition, outcome := e.disposition(ctx, args.Pod)
	victims := map[string]*extenderv1.MetaVictims{}
	if disposition.ToBeDeleted || args.Pod != nil && e.Assumed.clearRefusal(args.Pod.UID) {
		e.Metrics.count(verbPreempt, refused)
		return &extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: victims}
	}
	keep := func(node string, v *extenderv1.MetaVictims) {
		if disposition.Pool != "" && e.Nodes.isLeaving(node, args.Pod) {
			outcome = filtered
			return
		}
		victims[node] = v
	}
	for node, v := range args.NodeNameToVictims {
		keep(node, metaOf(v))
	}
	for node, v := range args.NodeNameToMetaVictims {
		keep(node, withoutNil(v))
	}
	e.Metrics.count(verbPreempt, outcome)
	return &extenderv1.ExtenderPreemptionResult{NodeNameToMetaVictims: victims}
}

// metaOf and withoutNil return nothing that the scheduler would have to follow
// into nil (extender.go, convertToVictims).
func metaOf(v *extenderv1.Victims) *extenderv1.MetaVictims {
	out := &extenderv1.MetaVictims{Pods: []*extenderv1.MetaPod{}}
	if v == nil {
		return out
	}
	out.NumPDBViolations = v.NumPDBViolations
	for _, pod := range v.Pods {
		if pod != nil {
			out.Pods = append(out.Pods, &extenderv1.MetaPod{UID: string(pod.UID)})
		}
	}
	return out
}

func withoutNil(v *extenderv1.MetaVictims) *extenderv1.MetaVictims {
	if v == nil {
		return &extenderv1.MetaVictims{Pods: []*extenderv1.MetaPod{}}
	}
	out := *v
	out.Pods = slices.DeleteFunc(slices.Clone(v.Pods), func(p *extenderv1.MetaPod) bool { return p == nil })
	return &out
}

// Prioritize scores nodes for a pool's members; for all other pods they are
// alike.
func (e *Extender) Prioritize(ctx context.Context, args *extenderv1.ExtenderArgs) *extenderv1.HostPriorityList {
	given := candidatesOf(args)
	scores := make(extenderv1.HostPriorityList, 0, given.count())
	disposition, outcome := e.disposition(ctx, args.Pod)
	if disposition.Pool == "" || !e.Weights.any() {
		given.each(func(name string) { scores = append(scores, extenderv1.HostPriority{Host: name}) })
		e.Metrics.count(verbPrioritize, outcome)
		return &scores
	}
	given.each(func(name string) { scores = append(scores, extenderv1.HostPriority{Host: name}) })
	nodes := e.Nodes.sites(scores, imagesOf(args.Pod))
	best := -1
	e.Placed.with(disposition.PoolUID, args.Pod, e.Assumed, func(has tally) {
		best = score(scores, nodes, has, e.Weights, args.Pod.UID)
	})
	if best >= 0 {
		e.Assumed.assume(disposition.PoolUID, args.Pod, scores[best].Host)
	}
	e.Metrics.count(verbPrioritize, outcome)
	return &scores
}

func imagesOf(pod *corev1.Pod) []uint64 {
	var images []uint64
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			images = append(images, imageHash(list[i].Image))
		}
	}
	return images
}
