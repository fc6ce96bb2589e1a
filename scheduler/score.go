package scheduler

import (
	"hash/fnv"

	"k8s.io/apimachinery/pkg/types"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
)

// Weights say how much counts what a node has. With Image below Node images
// decide only between nodes that have as many members.
type Weights struct {
	// Zone counts for each member in the node's zone, Node for each on the node
	// itself, and Image against them for having all the images of the pod.
	Zone, Node, Image int
}

func (w Weights) any() bool { return w != Weights{} }

// site is a node as the score sees it.
type site struct {
	zone string
	// images is the share, 0 to 1, of the pod's images that the node has.
	images float64
}

// tally counts a pool's members by node and by zone.
type tally struct {
	nodes, zones map[string]int
	// moved and movedZones come on top.
	moved, movedZones map[string]int
}

func (t tally) on(node string) int { return t.nodes[node] + t.moved[node] }

func (t tally) in(zone string) int { return t.zones[zone] + t.movedZones[zone] }

// othersAtMost leaves a gap below the best, so that the scheduler's own opinion
// on capacity and images does not close it.
const othersAtMost = extenderv1.MaxExtenderPriority - 2

// score fills in the scores of the nodes, and returns the index of the best, -1
// for no nodes. With
//
//	cost(node) = Zone * members in its zone + Node * members on it - Image * share of the images that it has
//
// the node of least cost gets 10 and every other one
//
//	8 * (greatest cost - cost) / (greatest cost - least cost)
//
// rounded down (8 when all costs are equal). Among equals a hash of pod and node
// decides which one gets the 10: only one may, because where the scheduler puts
// this pod has to be known when it asks for the next one, before any cache shows it.
// A node without a zone is in the zone "".
func score(nodes extenderv1.HostPriorityList, sites []site, has tally, w Weights, pod types.UID) int {
	if len(nodes) == 0 {
		return -1
	}
	costs := make([]float64, len(nodes))
	best, least, greatest := 0, 0.0, 0.0
	of := drawFor(pod)
	var lot uint32
	for i, node := range nodes {
		c := float64(w.Zone*has.in(sites[i].zone)+w.Node*has.on(node.Host)) - float64(w.Image)*sites[i].images
		costs[i] = c
		if i == 0 {
			least, greatest, lot = c, c, of.draw(node.Host)
			continue
		}
		greatest = max(greatest, c)
		if c > least {
			continue
		}
		if l := of.draw(node.Host); c < least || l > lot {
			best, least, lot = i, c, l
		}
	}
	for i := range nodes {
		nodes[i].Score = othersAtMost
		if greatest > least {
			nodes[i].Score = int64(float64(othersAtMost) * (greatest - costs[i]) / (greatest - least))
		}
	}
	nodes[best].Score = extenderv1.MaxExtenderPriority
	return best
}

// lots draws for the nodes of one pod: the hash FNV-1a of both, of which the pod's part
// is the same for all.
type lots uint32

func drawFor(pod types.UID) lots {
	h := fnv.New32a()
	_, _ = h.Write([]byte(pod))
	return lots(h.Sum32())
}

func (l lots) draw(node string) uint32 {
	const prime = 16777619
	h := uint32(l)
	for i := range len(node) {
		h = (h ^ uint32(node[i])) * prime
	}
	return h
}
