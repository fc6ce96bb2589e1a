package checker

import "k8s.io/apimachinery/pkg/types"

// finishListing ends a LIST: what it did not return is gone, at an unknown moment before its RV.
func (h *History) finishListing(e Event) {
	listed := h.listing[e.Resource]
	delete(h.listing, e.Resource)
	if h.synced[e.Resource] != "" {
		switch e.Resource {
		case Templates:
			vanishNamed(h, h.templatesThat(func(n name) bool { return !n.setTemplate() }), listed, e, uidOfTemplate)
		case Pools:
			vanishNamed(h, h.templatesThat(name.setTemplate), listed, e, uidOfTemplate)
			vanishNamed(h, h.pools, listed, e, func(s poolState) types.UID { return s.uid })
		case Claims:
			vanish(h, h.claims, listed, e)
		case Sandboxes:
			vanish(h, h.sandboxes, listed, e)
		case Pods:
			vanish(h, h.pods, listed, e)
		case Nodes:
			vanishNamed(h, h.nodes, listed, e, func(s nodeState) types.UID { return s.uid })
		}
	} else {
		h.synced[e.Resource] = e.RV
	}
	h.advance(e.Resource, e.RV)
}

func vanishNamed[K comparable, S any](h *History, m map[K]*timeline[S], listed map[types.UID]bool, e Event, uid func(S) types.UID) {
	for _, line := range m {
		if last, ok := line.latest(); ok && !last.gone && !listed[uid(last.state)] {
			line.add(entry[S]{first: e.RV, seen: e.SeenAt, state: last.state, gone: true, inexact: true, after: h.intact[e.Resource]}, nil)
		}
	}
}

func vanish[S any](h *History, m map[types.UID]*object[S], listed map[types.UID]bool, e Event) {
	for uid, o := range m {
		if last, ok := o.line.latest(); ok && !last.gone && !listed[uid] {
			o.line.add(entry[S]{first: e.RV, seen: e.SeenAt, state: last.state, gone: true, inexact: true, after: h.intact[e.Resource]}, nil)
		}
	}
}
