package pools

import (
	"context"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/members"
	"github.com/freshbind/freshbind/internal/placement"
)

// podNodes knows the nodes with Pods on them; none when nothing has changed since
// the version that is given.
type podNodes interface {
	Nodes(known int) (nodes []string, version int)
}

// leavingNodes knows which of the nodes that have Pods on them are about to go, and which
// are to be empty. It looks at all of them only after one of them has changed.
type leavingNodes struct {
	store podNodes
	node  func(ctx context.Context, name string) (*unstructured.Unstructured, error)

	mu      sync.Mutex
	changed bool
	known   int
	nodes   []string
	worse   worseNodes
}

// worseNodes are nodes by their names: leaving are those that some of their Pods have to
// leave, cordoned those that are to be empty of some.
type worseNodes struct{ leaving, cordoned map[string]freshness.Node }

// followNodes has the view know which of the nodes with Pods on them are about to
// go, or are to be empty.
func (v *View) followNodes(store podNodes) {
	nodes := &leavingNodes{store: store, node: v.node, known: -1}
	v.nodes, v.sawNode = nodes.now, nodes.saw
}

// saw is told of each Node that came, changed or went, before anybody acts on it.
func (l *leavingNodes) saw(name string, state freshness.Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, of := range []struct {
		nodes map[string]freshness.Node
		isOne bool
	}{{l.worse.leaving, state.Leaving(nil) != ""}, {l.worse.cordoned, state.IsCordoned(nil)}} {
		was, wasOne := of.nodes[name]
		l.changed = l.changed || of.isOne != wasOne || of.isOne && !reflect.DeepEqual(was, state)
	}
}

// now returns those nodes. The result must not be changed.
func (l *leavingNodes) now(ctx context.Context) (worseNodes, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if nodes, version := l.store.Nodes(l.known); version != l.known {
		l.nodes, l.known, l.changed = nodes, version, true
	}
	if !l.changed {
		return l.worse, nil
	}
	worse := worseNodes{map[string]freshness.Node{}, map[string]freshness.Node{}}
	for _, name := range l.nodes {
		node, err := l.node(ctx, name)
		if err != nil {
			return worseNodes{}, err
		}
		state := placement.NodeState(node)
		if state.Leaving(nil) != "" {
			worse.leaving[name] = state
		}
		if state.IsCordoned(nil) {
			worse.cordoned[name] = state
		}
	}
	l.worse, l.changed = worse, false
	return worse, nil
}

// onCordoned reports whether a member is to be replaced because the node is to be empty
// that its Pod is on.
func (w worseNodes) onCordoned(is members.WithPod) bool {
	if len(w.cordoned) == 0 || is.Pod == nil || !is.Unevictable {
		return false
	}
	node, cordoned := w.cordoned[is.Pod.Node()]
	return cordoned && is.Pod.IsUnwelcome(node)
}
