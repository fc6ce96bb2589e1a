package members

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/test/builders"
)

var (
	pool     = builders.MakePool("ns", "python").Obj()
	template = builders.MakeTemplate("ns", "python").Image("sandbox:v1").Obj()
)

func member(name string, created time.Time) *unstructured.Unstructured {
	return builders.MakeMember(pool, template).Name(name).UID("uid-of-" + name).Created(created).Obj()
}

func put(t testing.TB, s *Store, objs ...*unstructured.Unstructured) {
	t.Helper()
	for _, u := range objs {
		var err error
		if u.GetKind() == "Pod" {
			err = s.pods.put(u)
		} else {
			err = s.sandboxes.put(u)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func names(of []WithPod) []string {
	var out []string
	for _, m := range of {
		out = append(out, m.Name)
	}
	return out
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// The order is the same each time: which of equal members goes first must not
// change from one look to the next.
func TestMembersOfAPoolTheOldestFirst(t *testing.T) {
	s := NewStore(platform.NewReducer(agentsandbox.Objects{}))
	claim := builders.MakeClaim("ns", "c").Obj()
	young, old, older := member("a", noon), member("c", noon.Add(-time.Hour)), member("b", noon.Add(-time.Hour))
	put(t, s, young, old, older)
	if diff := cmp.Diff([]string{"b", "c", "a"}, names(s.OfPool(pool.GetUID()))); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
	put(t, s, builders.SandboxFrom(builders.Bound(old, claim, template).Obj()).UID(string(old.GetUID())).Obj())
	s.sandboxes.remove(types.NamespacedName{Namespace: "ns", Name: "b"})
	if diff := cmp.Diff([]string{"a"}, names(s.OfPool(pool.GetUID()))); diff != "" {
		t.Errorf("after one was bound and one deleted (-want,+got):\n%s", diff)
	}
	if got := s.Sandbox(types.NamespacedName{Namespace: "ns", Name: "c"}); got == nil {
		t.Error("the one that was bound is not there any more")
	}
}

// A list after a cut watch says what went meanwhile, in its own namespace only.
func TestAListReplacesWhatWasThere(t *testing.T) {
	s := NewStore(platform.NewReducer(agentsandbox.Objects{}))
	elsewhere := member("z", noon)
	elsewhere.SetNamespace("other")
	put(t, s, member("a", noon), member("b", noon), elsewhere)
	var notified []string
	s.HandleSandboxes(func(old, now *Member) {
		switch {
		case old == nil:
			notified = append(notified, "new "+now.Name)
		case now == nil:
			notified = append(notified, "gone "+old.Name)
		default:
			notified = append(notified, "changed "+now.Name)
		}
	})
	slices.Sort(notified)
	if diff := cmp.Diff([]string{"new a", "new b", "new z"}, notified); diff != "" {
		t.Errorf("at first (-want,+got):\n%s", diff)
	}
	notified = nil
	if err := s.sandboxes.replace("ns", []any{member("b", noon), member("c", noon)}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(notified)
	if diff := cmp.Diff([]string{"changed b", "gone a", "new c"}, notified); diff != "" {
		t.Errorf("after the list (-want,+got):\n%s", diff)
	}
}

// When etcd was restored from a snapshot, a member can have the generation of an edit that
// is no more, and another content. A list tells so.
func TestWhatAListHasIsNoLaterVersion(t *testing.T) {
	image := func(image string, rv int64) *unstructured.Unstructured {
		return builders.SandboxFrom(member("a", noon)).Image(image).Generation(2).RV(rv).Obj()
	}
	feed := func(s *Store, u *unstructured.Unstructured) any {
		listed, err := s.FeedSandboxes("", func() {}).Transformer()(u)
		if err != nil {
			t.Fatal(err)
		}
		return listed
	}
	cases := map[string]struct {
		list func(*Store, *unstructured.Unstructured) any
	}{
		"reduced on the way": {feed},
		"as it is":           {func(_ *Store, u *unstructured.Unstructured) any { return u }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, fresh := NewStore(platform.NewReducer(agentsandbox.Objects{})), NewStore(platform.NewReducer(agentsandbox.Objects{}))
			put(t, s, image("sandbox:v2", 900))
			if err := s.sandboxes.replace("", []any{tc.list(s, image("sandbox:v3", 700))}); err != nil {
				t.Fatal(err)
			}
			put(t, fresh, image("sandbox:v3", 700))
			if got, want := s.Sandbox(at("a")), fresh.Sandbox(at("a")); got.Content.Digest != want.Content.Digest {
				t.Errorf("the content is %x, want %x", got.Content.Digest, want.Content.Digest)
			}
		})
	}
}

// Whatever comes first, and whichever of them changes, a member is shown in the Pod
// that it names.
func TestMembersWithTheirPods(t *testing.T) {
	podOf := func(name, version string) *unstructured.Unstructured {
		pod := builders.MakePod(member(name, noon)).Stored("node-1").Obj()
		pod.SetResourceVersion(version)
		return pod
	}
	elsewhere := builders.SandboxFrom(member("a", noon)).PodName("b").Obj()
	cases := map[string]struct {
		do   func(s *Store)
		want map[string]string
	}{
		"the pod comes last":           {func(s *Store) { put(t, s, member("a", noon), podOf("a", "1")) }, map[string]string{"a": "1"}},
		"the pod comes first":          {func(s *Store) { put(t, s, podOf("a", "1"), member("a", noon)) }, map[string]string{"a": "1"}},
		"no pod":                       {func(s *Store) { put(t, s, member("a", noon)) }, map[string]string{"a": ""}},
		"the pod changes":              {func(s *Store) { put(t, s, member("a", noon), podOf("a", "1"), podOf("a", "2")) }, map[string]string{"a": "2"}},
		"the pod goes":                 {func(s *Store) { put(t, s, member("a", noon), podOf("a", "1")); s.pods.remove(at("a")) }, map[string]string{"a": ""}},
		"the member changes":           {func(s *Store) { put(t, s, member("a", noon), podOf("a", "1"), member("a", noon)) }, map[string]string{"a": "1"}},
		"another name, comes last":     {func(s *Store) { put(t, s, elsewhere, podOf("a", "1"), podOf("b", "2")) }, map[string]string{"a": "2"}},
		"another name, comes first":    {func(s *Store) { put(t, s, podOf("a", "1"), podOf("b", "2"), elsewhere) }, map[string]string{"a": "2"}},
		"two in one":                   {func(s *Store) { put(t, s, elsewhere, member("b", noon), podOf("b", "2")) }, map[string]string{"a": "2", "b": "2"}},
		"from another to its own name": {func(s *Store) { put(t, s, elsewhere, podOf("a", "1"), member("a", noon), podOf("b", "2")) }, map[string]string{"a": "1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := NewStore(platform.NewReducer(agentsandbox.Objects{}))
			tc.do(s)
			got := map[string]string{}
			for _, m := range s.OfPool(pool.GetUID()) {
				got[m.Name] = ""
				if m.Pod != nil {
					got[m.Name] = m.Pod.ResourceVersion
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("versions of pods (-want,+got):\n%s", diff)
			}
			for _, name := range []string{"a", "b"} {
				s.sandboxes.remove(at(name))
			}
			if len(s.byPool)+len(s.inPod) > 0 {
				t.Errorf("%v and %v are left of members that are gone", s.byPool, s.inPod)
			}
		})
	}
}

func at(name string) types.NamespacedName { return types.NamespacedName{Namespace: "ns", Name: name} }

func TestNodesInUse(t *testing.T) {
	s := NewStore(platform.NewReducer(agentsandbox.Objects{}))
	on := func(name, node string) *unstructured.Unstructured {
		return builders.MakePod(member(name, noon)).Stored(node).Obj()
	}
	put(t, s, on("a", "n1"), on("b", "n1"))
	nodes, version := s.Nodes(-1)
	if diff := cmp.Diff([]string{"n1"}, nodes); diff != "" {
		t.Errorf("(-want,+got):\n%s", diff)
	}
	put(t, s, on("c", "n1"))
	if _, now := s.Nodes(version); now != version {
		t.Error("another Pod on a node that has some is taken for news")
	}
	for _, name := range []string{"a", "b", "c"} {
		s.pods.remove(types.NamespacedName{Namespace: "ns", Name: name})
	}
	if nodes, now := s.Nodes(version); len(nodes) > 0 || now == version {
		t.Errorf("%v have Pods, version %d, want none and a newer one than %d", nodes, now, version)
	}
}

// What members of a pool have in common is in memory once.
func TestMembersShareWhatTheyHaveInCommon(t *testing.T) {
	s := NewStore(platform.NewReducer(agentsandbox.Objects{}))
	other := builders.TemplateFrom(template).Image("sandbox:v2").Obj()
	put(t, s, member("a", noon), member("b", noon), builders.MakeMember(pool, other).Name("c").Obj())
	get := func(name string) *Member { return s.Sandbox(types.NamespacedName{Namespace: "ns", Name: name}) }
	if get("a").Traits != get("b").Traits {
		t.Error("two members of one pool have traits of their own")
	}
	if get("a").Content == get("c").Content {
		t.Error("two members of different templates have the same content")
	}
}

// bytesAMember is what one member and its Pod may take, on every replica.
const bytesAMember = 1024

func TestMemoryOfAMember(t *testing.T) {
	const count = 4_000
	s := NewStore(platform.NewReducer(agentsandbox.Objects{}))
	// What all share is not what each takes.
	put(t, s, member("first", noon), builders.MakePod(member("first", noon)).Stored("node-0").Obj())
	before := heap()
	for i := range count {
		m := builders.SandboxFrom(member(fmt.Sprintf("python-pool-%05d-x7f9k", i), noon.Add(time.Duration(i)*time.Second))).
			UID(fmt.Sprintf("3f2504e0-4f89-11d3-9a0c-%012d", i)).RV(int64(1_000_000 + i)).Ready(true).Obj()
		pod := builders.MakePod(m).Stored(fmt.Sprintf("node-%d", i%100)).Obj()
		pod.SetUID(types.UID(fmt.Sprintf("9f2504e0-4f89-11d3-9a0c-%012d", i)))
		put(t, s, m, pod)
	}
	each := (heap() - before) / count
	t.Logf("%d bytes of heap a member with its Pod", each)
	if each > bytesAMember {
		t.Errorf("%d bytes of heap a member with its Pod, want %d at most", each, bytesAMember)
	}
	runtime.KeepAlive(s)
}

// heap is what is in use once nothing is left to collect: what others held goes
// with the second collection only.
func heap() int {
	var stats runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// Names of one namespace say nothing about another, and one that has nothing left
// costs nothing.
func TestNamespacesAreKeptApart(t *testing.T) {
	s := NewStore(platform.NewReducer(agentsandbox.Objects{}))
	here, there := member("a", noon), builders.MakeMember(builders.MakePool("other", "python").Obj(), template).Name("a").UID("b").Created(noon).Obj()
	put(t, s, here, there)
	s.sandboxes.remove(types.NamespacedName{Namespace: "ns", Name: "a"})
	if s.sandboxes.get(types.NamespacedName{Namespace: "ns", Name: "a"}) != nil || s.sandboxes.get(types.NamespacedName{Namespace: "other", Name: "a"}) == nil {
		t.Error("not the one that was deleted is gone")
	}
	if n := len(s.sandboxes.objects); n != 1 {
		t.Errorf("%d namespaces are kept, want 1", n)
	}
}
