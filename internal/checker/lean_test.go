package checker

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/test/builders"
)

// lean says of an event no more than an audit log does: a deletion is one of a name and a UID, specs are named, and a Pod's is a
// text.
func lean(t *testing.T, e Event) Event {
	t.Helper()
	if e.Object == nil {
		return e
	}
	u := e.Object.DeepCopy()
	e.Object = u
	if e.Type == Deleted {
		metadata := map[string]any{"name": u.GetName(), "namespace": u.GetNamespace(), "uid": string(u.GetUID()), "resourceVersion": u.GetResourceVersion()}
		u.Object = map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": metadata}
		return e
	}
	spec, err := json.Marshal(u.Object["spec"])
	if err != nil {
		t.Fatal(err)
	}
	e.SpecKey = string(spec)
	if ResourceOf(u) == Pods {
		e.PodSpec = string(spec)
		all, _, _ := unstructured.NestedMap(u.Object, "spec")
		u.Object["spec"] = map[string]any{"nodeName": all["nodeName"]}
		if all["ephemeralContainers"] != nil {
			u.Object["spec"].(map[string]any)["ephemeralContainers"] = all["ephemeralContainers"]
		}
	}
	return e
}

// Events that say less are judged as those that say all.
func TestEventsThatSayLess(t *testing.T) {
	for name, tc := range map[string]story{
		"fresh": {want: []string{"c1: Fresh"}, tell: func(s *scene) { s.create("c1"); s.serve() }},
		"stale": {want: []string{"c1: Stale"}, tell: func(s *scene) { s.update("sandbox:v2"); s.create("c1"); s.serve() }},
		"two members, one spec": {want: []string{"c1: Stale", "c2: Stale"}, tell: func(s *scene) {
			s.create("c1")
			second := s.claim
			s.birth("python-m2")
			s.update("sandbox:v2")
			s.serve()
			s.claim = second
			s.create("c2")
			s.birthOf("python-m3", "sandbox:v1")
			s.serve()
		}},
		"the Pod had ended": {want: []string{"c1: DeadMember"}, tell: func(s *scene) {
			s.podPhase(corev1.PodFailed)
			s.create("c1")
			s.serve()
		}},
		"the Pod was deleted": {want: []string{"c1: DeadMember"}, tell: func(s *scene) {
			s.member = s.mod(builders.SandboxFrom(s.member).Set([]any{"10.0.0.1"}, "status", "podIPs"))
			s.del(builders.PodFrom(s.pod))
			s.create("c1")
			s.serve()
		}},
		"another image in the Pod": {want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.pod = s.mod(builders.PodFrom(s.pod).Set([]any{map[string]any{"name": "c", "image": "mine"}}, "spec", "containers"))
			s.create("c1")
			s.serve()
		}},
		"somebody worked in it": {want: []string{"c1: UsedMember"}, tell: func(s *scene) {
			s.pod = s.mod(builders.PodFrom(s.pod).Set([]any{map[string]any{"name": "debug"}}, "spec", "ephemeralContainers"))
			s.create("c1")
			s.serve()
		}},
		"the claim was deleted": {want: []string{"c1: WrongClaim"}, tell: func(s *scene) {
			s.create("c1")
			s.choose()
			s.del(builders.ClaimFrom(s.claim))
			s.member = s.mod(builders.SandboxFrom(s.member).Annotation("x", "y"))
			s.bind()
		}},
		"the template was deleted": {want: []string{"c1: NotYet"}, tell: func(s *scene) {
			s.del(builders.TemplateFrom(s.template))
			s.create("c1")
			s.serve()
		}},
		"the pool was deleted": {want: []string{"c1: ForeignMember"}, tell: func(s *scene) {
			s.del(builders.PoolFrom(s.pool))
			s.create("c1")
			s.serve()
		}},
		"a member was deleted, and one is made for the claim": {want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.create("c1")
			s.del(builders.SandboxFrom(s.member))
			s.add(builders.MakeColdStart(s.claim, s.template))
		}},
		"a spec that cannot be read, twice": {want: []string{"c1: Unjudged", "c2: Unjudged"}, tell: func(s *scene) {
			for _, claim := range []string{"c1", "c2"} {
				s.create(claim)
				s.add(builders.MakeColdStart(s.claim, s.template).Set("x", "spec", "volumeClaimTemplates"))
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, "Recreate")
			tc.tell(s)
			s.progress()
			if diff := cmp.Diff(tc.want, s.verdicts()); diff != "" {
				t.Fatalf("verdicts of the whole events (-want,+got):\n%s\n%s", diff, s.dump())
			}
			less := unsyncedRecording(t)
			for _, e := range s.events {
				if err := less.h.Add(lean(t, e)); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(tc.want, less.verdicts()); diff != "" {
				t.Errorf("verdicts (-want,+got):\n%s\n%s", diff, less.dump())
			}
		})
	}
}

// birthOf makes a ready member of another image than the template's.
func (s *scene) birthOf(name, image string) {
	old := builders.TemplateFrom(s.template).Image(image).Obj()
	s.member = s.add(builders.MakeMember(s.pool, old).Name(name))
	s.pod = s.add(builders.MakePod(s.member).Stored("node"))
	s.member = s.mod(builders.SandboxFrom(s.member).Ready(true))
}

// Every kind is read for one platform or for all, and once.
func TestKinds(t *testing.T) {
	seen := map[[2]string]int{}
	for _, k := range Kinds() {
		u := &unstructured.Unstructured{}
		u.SetAPIVersion(k.Group + "/v1")
		if k.Group == "" {
			u.SetAPIVersion("v1")
		}
		u.SetKind(k.Name)
		if got := ResourceOf(u); got != k.Resource {
			t.Errorf("a %s of %q is taken for %q, want %q", k.Name, k.Group, got, k.Resource)
		}
		for _, p := range Platforms() {
			if k.Platform == "" || k.Platform == p {
				seen[[2]string{p, string(k.Resource)}]++
			}
		}
	}
	for _, p := range Platforms() {
		for _, r := range append(Resources(), Namespaces, Nodes) {
			if n := seen[[2]string{p, string(r)}]; n != 1 {
				t.Errorf("%s has %d kinds of %s, want 1", p, n, r)
			}
			if want := r == Namespaces || r == Nodes; r.Optional() != want {
				t.Errorf("%s is optional: %t, want %t", r, r.Optional(), want)
			}
		}
	}
}

// What a report says in numbers and in one line.
func TestReportInWords(t *testing.T) {
	s := newScene(t, "Recreate")
	s.update("sandbox:v2")
	s.create("c1")
	s.serve()
	s.birth("python-m2")
	s.create("c2")
	s.serve()
	s.progress()
	r := s.h.Judge()
	if got := r.Bad(); got != 1 || r.Namespace(ns).Bad() != 1 || r.Namespace("elsewhere").Bad() != 0 {
		t.Errorf("%d bad findings, %d here and %d elsewhere, want 1, 1 and 0", got, r.Namespace(ns).Bad(), r.Namespace("elsewhere").Bad())
	}
	if got, want := r.Namespace(ns).String(), "default: claims=2 ready=2 warm=2 cold=0 Fresh=1 Stale=1"; got != want {
		t.Errorf("summary %q, want %q", got, want)
	}
	if b := r.Binds[0]; !b.Has(Stale) || b.Has(Duplicate) {
		t.Errorf("the bind %s has Stale: %t, Duplicate: %t", b, b.Has(Stale), b.Has(Duplicate))
	}
	raw, err := json.Marshal(r.Namespace(ns))
	if err != nil {
		t.Fatal(err)
	}
	var numbers struct {
		ReadyP50Seconds, ReadyP99Seconds float64
	}
	if err := json.Unmarshal(raw, &numbers); err != nil {
		t.Fatal(err)
	}
	if numbers.ReadyP50Seconds != 0.3 || numbers.ReadyP99Seconds != 0.3 {
		t.Errorf("times to be ready are %v, want 0.3 s", numbers)
	}
}
