package pools

import (
	"context"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/placement"
)

// podNodes knows the nodes with Pods on them; none when nothing has changed since
// the version that is given.
type podNodes interface {
	Nodes(known int) (nodes []string, version int)
}

// leavingNodes knows which of the nodes that have Pods on them are about to go. It
// looks at all of them only after one of them has changed.
type leavingNodes struct {
	store podNodes
	node  func(ctx context.Context, name string) (*unstructured.Unstructured, error)

	mu      sync.Mutex
	changed bool
	known   int
	nodes   []string
	leaving map[string]freshness.Node
}

// followNodes has the view know which of the nodes with Pods on them are about to
// go.
func (v *View) followNodes(store podNodes) {
	nodes := &leavingNodes{store: store, node: v.node, known: -1}
	v.leaving, v.sawNode = nodes.now, nodes.saw
}

// saw is told of each Node that came, changed or went, before anybody acts on it.
func (l *leavingNodes) saw(name string, state freshness.Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was, left := l.leaving[name]
	leaves := state.Leaving(nil) != ""
	l.changed = l.changed || leaves != left || leaves && !reflect.DeepEqual(was, state)
}

// now returns the nodes that some of their Pods have to leave. The result must not
// be changed.
func (l *leavingNodes) now(ctx context.Context) (map[string]freshness.Node, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if nodes, version := l.store.Nodes(l.known); version != l.known {
		l.nodes, l.known, l.changed = nodes, version, true
	}
	if !l.changed {
		return l.leaving, nil
	}
	leaving := map[string]freshness.Node{}
	for _, name := range l.nodes {
		node, err := l.node(ctx, name)
		if err != nil {
			return nil, err
		}
		if state := placement.NodeState(node); state.Leaving(nil) != "" {
			leaving[name] = state
		}
	}
	l.leaving, l.changed = leaving, false
	return leaving, nil
}
