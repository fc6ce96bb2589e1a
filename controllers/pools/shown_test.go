package pools

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// get is nil where the cache shows none of that name.
func (s *shown) get(kind schema.GroupVersionKind, key types.NamespacedName) *unstructured.Unstructured {
	u := object(kind)
	switch err := s.view.cache.Get(context.Background(), key, u); {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		panic(err)
	}
	return u
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
	u := s.get(s.view.kinds.Sandboxes, key)
	if u == nil {
		return nil
	}
	return s.reducer.Member(u, nil)
}

func (s *shown) OfPool(pool types.UID) []members.WithPod {
	var out []members.WithPod
	pods := map[types.NamespacedName]*members.Pod{}
	for _, p := range s.podList() {
		pods[types.NamespacedName{Namespace: p.GetNamespace(), Name: p.Name}] = p
	}
	for _, u := range s.list(s.view.kinds.Sandboxes) {
		m := s.reducer.Member(&u, nil)
		if _, uid := m.Pool(); uid == pool {
			out = append(out, members.WithPod{Member: m, Pod: pods[types.NamespacedName{Namespace: m.GetNamespace(), Name: m.PodName()}]})
		}
	}
	return out
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
