package pools

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/members"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

// shown reduces what the view's cache has at the moment.
type shown struct {
	view    *View
	reducer *platform.Reducer
	// nodes have Pods on them, since they were last asked for.
	nodes   []string
	version int
}

// view is a View of fake objects.
func viewOf(r *harness) *View {
	v := &View{cache: r.client, lists: r.client, kinds: poolKinds, objects: agentsandbox.Objects{}, barePods: agentsandbox.BarePods{}}
	s := &shown{view: v, reducer: platform.NewReducer(agentsandbox.Objects{})}
	v.members, v.pods = s, s
	v.followNodes(s)
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
		out = append(out, s.reducer.Member(&u, nil))
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

func (s *shown) Reduce(u *unstructured.Unstructured) *members.Member { return s.reducer.Member(u, nil) }

func (s *shown) Sandbox(key types.NamespacedName) *members.Member {
	for _, m := range s.sandboxes() {
		if m.GetNamespace() == key.Namespace && m.Name == key.Name {
			return m
		}
	}
	return nil
}

func (s *shown) OfPool(pool types.UID) []members.WithPod {
	var out []members.WithPod
	for _, m := range s.sandboxes() {
		if _, uid := m.Pool(); uid == pool {
			out = append(out, members.WithPod{Member: m, Pod: s.pod(m.GetNamespace(), m.PodName())})
		}
	}
	return out
}

func (s *shown) pod(namespace, name string) *members.Pod {
	for _, p := range s.podList() {
		if p.GetNamespace() == namespace && p.Name == name {
			return p
		}
	}
	return nil
}

func (s *shown) PodsOn(node string) []*members.Pod {
	return slices.DeleteFunc(s.podList(), func(p *members.Pod) bool { return p.Node() != node })
}

func (s *shown) Nodes(known int) (nodes []string, version int) {
	var now []string
	for _, p := range s.podList() {
		if name := p.Node(); name != "" && !slices.Contains(now, name) {
			now = append(now, name)
		}
	}
	if !slices.Equal(now, s.nodes) {
		s.nodes = now
		s.version++
	}
	if known == s.version {
		return nil, known
	}
	return s.nodes, s.version
}
