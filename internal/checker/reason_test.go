package checker

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/test/builders"
)

// plain is a builder of what there is none for.
type plain struct{ u *unstructured.Unstructured }

func (p plain) Obj() *unstructured.Unstructured { return p.u.DeepCopy() }

func makeNode(name string, fields map[string]any) plain {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Node"}}
	u.SetName(name)
	u.SetUID("node-uid")
	for key, value := range fields {
		u.Object[key] = value
	}
	return plain{u}
}

// nodes makes the recording one of nodes, too, with this one in it.
func (s *scene) node(fields map[string]any) {
	s.list(makeNode("node", fields))
	s.event(Event{Type: Synced, Resource: Nodes, RV: s.at()})
}

func serve(s *scene) {
	s.create("c1")
	s.serve()
}

// debug attaches a container to the Pod, as kubectl debug does.
func debug(s *scene) {
	s.pod = s.mod(builders.PodFrom(s.pod).Set([]any{map[string]any{"name": "debug", "image": "busybox"}}, "spec", "ephemeralContainers"))
}

// histories has one for each reason: the last bind is called by its name.
func histories() map[Reason]func(*scene) {
	return map[Reason]func(*scene){
		ReasonStaleRevision: func(s *scene) { s.update("sandbox:v2"); serve(s) },
		ReasonUnknownRevision: func(s *scene) {
			s.member = s.add(builders.MakeMember(s.pool, s.template).Name("python-odd").Image("odd:v1"))
			serve(s)
		},
		ReasonMemberTerminating: func(s *scene) {
			s.member = s.mod(builders.SandboxFrom(s.member).Deleting(s.now))
			serve(s)
		},
		ReasonPodTerminating: func(s *scene) { s.pod = s.mod(builders.PodFrom(s.pod).Deleting(s.now)); serve(s) },
		ReasonPodFinished:    func(s *scene) { s.podPhase(corev1.PodFailed); serve(s) },
		ReasonPodForeign:     func(s *scene) { s.pod = s.mod(builders.PodFrom(s.pod).Owners()); serve(s) },
		ReasonPodModified:    func(s *scene) { debug(s); serve(s) },
		ReasonPodNotYet: func(s *scene) {
			s.member = s.add(builders.MakeMember(s.pool, s.template).Name("python-m2"))
			serve(s)
		},
		ReasonNodeLeaving: func(s *scene) {
			s.node(map[string]any{"spec": map[string]any{"taints": []any{map[string]any{"key": "gone", "effect": "NoExecute"}}}})
			serve(s)
		},
		ReasonMemberUsed: func(s *scene) {
			member := s.member
			serve(s)
			s.member = s.mod(builders.SandboxFrom(member))
			s.create("c2")
			s.serve()
		},
		ReasonMemberClaimed: func(s *scene) { serve(s); s.create("c2"); s.choose(); s.bind() },
		ReasonOwnerMismatch: func(s *scene) {
			s.create("c1")
			ref := builders.ControllerRef(s.claim)
			ref.APIVersion, ref.Kind, ref.Name = "example.com/v1", "Nobody", "nobody"
			s.mod(builders.SandboxFrom(s.member).Owners(ref))
		},
		ReasonClaimHoldsAnother: func(s *scene) { serve(s); s.birth("python-m2"); s.choose(); s.bind() },
		ReasonClaimNamesAnother: func(s *scene) { s.create("c1"); s.choose(); s.birth("python-m2"); s.bind() },
		ReasonClaimGone: func(s *scene) {
			s.create("c1")
			s.claim = s.mod(builders.ClaimFrom(s.claim).Deleting(s.now))
			s.serve()
		},
		ReasonClaimReplaced: func(s *scene) {
			s.create("c1")
			old := s.claim
			s.del(builders.ClaimFrom(s.claim))
			s.add(builders.MakeClaim(ns, "c1").UID("second"))
			s.claim = old
			s.member = s.mod(builders.SandboxFrom(s.member).Annotation("x", "y"))
			s.bind()
		},
		ReasonPoolGone: func(s *scene) { s.pool = s.mod(builders.PoolFrom(s.pool).Deleting(s.now)); serve(s) },
		ReasonPoolMismatch: func(s *scene) {
			s.add(builders.MakePool(ns, "other"))
			s.claim = s.add(builders.MakeClaim(ns, "c1").Pool("other"))
			s.serve()
		},
		ReasonTemplateGone: func(s *scene) { s.del(builders.TemplateFrom(s.template)); serve(s) },
		ReasonTemplateMismatch: func(s *scene) {
			s.add(builders.MakeTemplate(ns, "node").Image("node:v1"))
			s.pool = s.mod(builders.PoolFrom(s.pool).Template("node"))
			serve(s)
		},
		ReasonNotAMember: func(s *scene) { s.member = s.mod(builders.SandboxFrom(s.member).Owners()); serve(s) },
		ReasonBlueprintChanged: func(s *scene) {
			s.create("c1")
			s.choose()
			s.mod(builders.Bound(s.member, s.claim, s.template).Image("odd:v1"))
		},
	}
}

func TestEveryReasonHasAHistory(t *testing.T) {
	all := histories()
	for _, reason := range Reasons() {
		t.Run(string(reason), func(t *testing.T) {
			tell, ok := all[reason]
			if !ok {
				t.Fatal("no history is called by this name: add one")
			}
			s := newScene(t, "Recreate")
			tell(s)
			binds := s.h.Judge().Binds
			if len(binds) == 0 {
				t.Fatal("there is no bind")
			}
			last := binds[len(binds)-1]
			if !slices.ContainsFunc(last.Findings, func(f Finding) bool { return f.Reason == reason }) {
				t.Errorf("called %v", last.Findings)
			}
			orderOfArrival(t, s)
		})
	}
	if len(all) != len(Reasons()) {
		t.Errorf("%d histories for %d reasons", len(all), len(Reasons()))
	}
}

// What the same cast does when nothing is wrong has no reason.
func TestNothingWrongHasNoReason(t *testing.T) {
	s := newScene(t, "Recreate")
	s.node(map[string]any{"status": map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}})
	serve(s)
	for _, b := range s.h.Judge().Binds {
		if len(b.Findings) > 0 {
			t.Errorf("called %v", b.Findings)
		}
	}
}
