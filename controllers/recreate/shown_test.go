package recreate

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/members"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

// shown reduces what the view's cache has at the moment.
type shown struct {
	view    *View
	reducer agentsandbox.Reducer
}

// view is a View of fake objects.
func viewOf(r *rig) *View {
	v := &View{cache: r.client, lists: r.client, kinds: poolKinds}
	s := &shown{view: v}
	v.members, v.pods, v.leaving = s, s, s.leaving
	return v
}

func (s *shown) list(kind schema.GroupVersionKind) []unstructured.Unstructured {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(listOf(kind))
	if err := s.view.cache.List(context.Background(), list); err != nil {
		panic(err)
	}
	return list.Items
}

func (s *shown) sandboxes() []*members.Member {
	var out []*members.Member
	for _, u := range s.list(s.view.kinds.Sandboxes) {
		out = append(out, s.reducer.Sandbox(&u, nil))
	}
	return out
}

func (s *shown) podList() []*members.Pod {
	var out []*members.Pod
	for _, u := range s.list(podKind) {
		out = append(out, s.reducer.Pod(&u, nil))
	}
	return out
}

func (s *shown) Sandbox(key types.NamespacedName) *members.Member {
	for _, m := range s.sandboxes() {
		if m.GetNamespace() == key.Namespace && m.Name == key.Name {
			return m
		}
	}
	return nil
}

func (s *shown) OfPool(pool types.UID) []*members.Member {
	return slices.DeleteFunc(s.sandboxes(), func(m *members.Member) bool {
		_, uid := m.Pool()
		return uid != pool
	})
}

func (s *shown) Pod(key types.NamespacedName) *members.Pod {
	for _, p := range s.podList() {
		if p.GetNamespace() == key.Namespace && p.Name == key.Name {
			return p
		}
	}
	return nil
}

func (s *shown) Special(key types.NamespacedName) *members.Pod {
	if p := s.Pod(key); p != nil && (p.Gated() || p.Scheduler() != "" && p.Scheduler() != "default-scheduler") {
		return p
	}
	return nil
}

func (s *shown) PodsOn(node string) []*members.Pod {
	return slices.DeleteFunc(s.podList(), func(p *members.Pod) bool { return p.Node() != node })
}

func (s *shown) leaving(ctx context.Context) (map[string]freshness.Node, error) {
	out := map[string]freshness.Node{}
	for _, p := range s.podList() {
		node, err := s.view.node(ctx, p.Node())
		if err != nil {
			return nil, err
		}
		if state := agentsandbox.NodeStateOf(node); p.Node() != "" && state.Leaving(nil) != "" {
			out[p.Node()] = state
		}
	}
	return out, nil
}
