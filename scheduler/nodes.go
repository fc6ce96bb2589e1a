package scheduler

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/placement"
)

// Nodes keeps of each node what answers depend on, so that a request with
// thousands of names costs a look at each and no more.
type Nodes struct {
	mu     sync.RWMutex
	byName map[string]node
	// zoned counts how often a node's zone became another.
	zoned int
	// leaving are those that are about to go for some pods.
	leaving map[string]freshness.Node
}

type node struct {
	zone string
	// images are hashes of their names, sorted: a node can have a hundred.
	images []uint64
}

// NewNodes knows no node. A node that it does not know takes every pod.
func NewNodes() *Nodes {
	return &Nodes{byName: map[string]node{}, leaving: map[string]freshness.Node{}}
}

var _ toolscache.ResourceEventHandler = (*Nodes)(nil)

// OnAdd takes a node in.
func (n *Nodes) OnAdd(obj any, _ bool) { n.set(obj) }

// OnUpdate takes its newest state in.
func (n *Nodes) OnUpdate(_, obj any) { n.set(obj) }

// OnDelete forgets it.
func (n *Nodes) OnDelete(obj any) {
	if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if u, ok := obj.(*unstructured.Unstructured); ok {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.byName, u.GetName())
		n.zoned++
		delete(n.leaving, u.GetName())
	}
}

func (n *Nodes) set(obj any) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	next := node{zone: u.GetLabels()[corev1.LabelTopologyZone], images: nodeImages(u)}
	state := placement.NodeState(u)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.byName[u.GetName()].zone != next.zone {
		n.zoned++
	}
	n.byName[u.GetName()] = next
	if state.Leaving(nil) == "" {
		delete(n.leaving, u.GetName())
	} else {
		n.leaving[u.GetName()] = state
	}
}

func nodeImages(u *unstructured.Unstructured) []uint64 {
	list, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status", "images")
	images, _ := list.([]any)
	var hashes []uint64
	for _, v := range images {
		image, _ := v.(map[string]any)
		names, _ := image["names"].([]any)
		for _, v := range names {
			if name, ok := v.(string); ok {
				hashes = append(hashes, imageHash(name))
			}
		}
	}
	slices.Sort(hashes)
	return slices.Clip(slices.Compact(hashes))
}

var imageSeed = maphash.MakeSeed()

// imageHash stands for a name. Two names of one hash would cost a node a part of
// a point.
func imageHash(name string) uint64 { return maphash.String(imageSeed, imageName(name)) }

// imageName is what one image is called by pods and by nodes alike.
func imageName(name string) string {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "docker.io/"), "library/")
	if last := name[strings.LastIndex(name, "/")+1:]; !strings.ContainsAny(last, ":@") {
		name += ":latest"
	}
	return name
}

// isLeaving reports whether the node is about to go for a pod.
func (n *Nodes) isLeaving(name string, pod *corev1.Pod) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.leaves(name, pod)
}

// leaves has to be called with the lock held.
func (n *Nodes) leaves(name string, pod *corev1.Pod) bool {
	state, some := n.leaving[name]
	return some && state.Leaving(pod.Spec.Tolerations) != ""
}

// leavingAmong returns those that leave for a pod, with what to say of them.
func (n *Nodes) leavingAmong(c candidates, pod *corev1.Pod) extenderv1.FailedNodesMap {
	n.mu.RLock()
	defer n.mu.RUnlock()
	failed := extenderv1.FailedNodesMap{}
	if len(n.leaving) == 0 {
		return failed
	}
	c.each(func(name string) {
		if n.leaves(name, pod) {
			failed[name] = NodeLeaving
		}
	})
	return failed
}

// sites returns the nodes in the order of scores.
func (n *Nodes) sites(scores extenderv1.HostPriorityList, images []uint64) []site {
	n.mu.RLock()
	defer n.mu.RUnlock()
	out := make([]site, len(scores))
	for i := range scores {
		known := n.byName[scores[i].Host]
		out[i].zone = known.zone
		for _, image := range images {
			if _, has := slices.BinarySearch(known.images, image); has {
				out[i].images += 1 / float64(len(images))
			}
		}
	}
	return out
}

// zone returns that of a node, and how often any node's became another.
func (n *Nodes) zone(name string) (zone string, zoned int) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.byName[name].zone, n.zoned
}

// byZone adds up what is counted by node.
func (n *Nodes) byZone(nodes map[string]int) (zones map[string]int, zoned int) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	zones = map[string]int{}
	for name, members := range nodes {
		zones[n.byName[name].zone] += members
	}
	return zones, n.zoned
}

// becameBetter reports whether a node has come to stay for some pod.
func becameBetter(before, now any) bool {
	old, wasNode := before.(*unstructured.Unstructured)
	u, isNode := now.(*unstructured.Unstructured)
	return wasNode && isNode && placement.NodeState(old).WorseThan(placement.NodeState(u))
}
