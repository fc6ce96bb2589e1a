package scheduler

import (
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	toolscache "k8s.io/client-go/tools/cache"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

// Nodes keeps of each node what answers depend on, so that a request with
// thousands of names costs a look at each and no more.
type Nodes struct {
	mu     sync.RWMutex
	byName map[string]node
	// leaving are those that no member may go to.
	leaving sets.Set[string]
}

type node struct {
	zone   string
	images sets.Set[string]
}

// NewNodes knows no node. A node that it does not know takes every pod.
func NewNodes() *Nodes { return &Nodes{byName: map[string]node{}, leaving: sets.New[string]()} }

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
		n.leaving.Delete(u.GetName())
	}
}

func (n *Nodes) set(obj any) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	next := node{zone: u.GetLabels()[corev1.LabelTopologyZone], images: nodeImages(u)}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.byName[u.GetName()] = next
	if !leaves(u) {
		n.leaving.Delete(u.GetName())
	} else {
		n.leaving.Insert(u.GetName())
	}
}

func nodeImages(u *unstructured.Unstructured) sets.Set[string] {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "images")
	names := sets.New[string]()
	for _, v := range list {
		image, _ := v.(map[string]any)
		known, _, _ := unstructured.NestedStringSlice(image, "names")
		for _, name := range known {
			names.Insert(imageName(name))
		}
	}
	return names
}

// imageName is what one image is called by pods and by nodes alike.
func imageName(name string) string {
	name = strings.TrimPrefix(strings.TrimPrefix(name, "docker.io/"), "library/")
	if last := name[strings.LastIndex(name, "/")+1:]; !strings.ContainsAny(last, ":@") {
		name += ":latest"
	}
	return name
}

func (n *Nodes) isLeaving(name string) bool {
	n.mu.RLock()
	defer n.mu.RUnlock()
	return n.leaving.Has(name)
}

// leavingAmong returns those that leave, with what to say of them.
func (n *Nodes) leavingAmong(c candidates) extenderv1.FailedNodesMap {
	n.mu.RLock()
	defer n.mu.RUnlock()
	failed := extenderv1.FailedNodesMap{}
	if n.leaving.Len() == 0 {
		return failed
	}
	c.each(func(name string) {
		if n.leaving.Has(name) {
			failed[name] = NodeLeaving
		}
	})
	return failed
}

// sites returns the nodes in the order of scores.
func (n *Nodes) sites(scores extenderv1.HostPriorityList, images []string) []site {
	n.mu.RLock()
	defer n.mu.RUnlock()
	out := make([]site, len(scores))
	for i := range scores {
		known := n.byName[scores[i].Host]
		out[i].zone = known.zone
		for _, image := range images {
			if known.images.Has(image) {
				out[i].images += 1 / float64(len(images))
			}
		}
	}
	return out
}

func (n *Nodes) tally(on map[types.UID]string) tally {
	n.mu.RLock()
	defer n.mu.RUnlock()
	t := tally{nodes: map[string]int{}, zones: map[string]int{}}
	for _, name := range on {
		t.nodes[name]++
		t.zones[n.byName[name].zone]++
	}
	return t
}

func leaves(obj any) bool {
	u, ok := obj.(*unstructured.Unstructured)
	return ok && agentsandbox.Leaving(u) != ""
}
