package checker

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/test/builders"
)

// bareScene is the cast of v0.1.0 and v0.2.1: the member of the pool is a Pod.
type bareScene struct {
	*recording
	template, pool, pod, claim, sandbox *unstructured.Unstructured
}

func newBareScene(t testing.TB, strategy string) *bareScene {
	s := &bareScene{recording: newRecording(t)}
	s.template = s.add(builders.MakeTemplate(ns, "python").APIVersion(builders.V1Alpha1))
	pool := builders.MakePool(ns, "python").APIVersion(builders.V1Alpha1)
	if strategy != "" {
		pool.Annotation(keyStrategy, strategy)
	}
	s.pool = s.add(pool)
	s.pod = s.add(s.birth("python-m1"))
	return s
}

// birth is a Pod as the pool makes it: of the template, and nothing more.
func (s *bareScene) birth(name string) *builders.Pod {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
	u.SetNamespace(ns)
	u.SetName(name)
	u.SetUID(types.UID("uid-" + name))
	u.SetGeneration(1)
	spec, _, _ := unstructured.NestedMap(s.template.Object, "spec", "podTemplate", "spec")
	return builders.PodFrom(u).Set(spec, "spec").Stored("node").Created(s.now).Label("agents.x-k8s.io/pool", "hash").Owners(builders.ControllerRef(s.pool))
}

func (s *bareScene) update(image string) {
	s.template = s.mod(builders.TemplateFrom(s.template).Image(image))
}

func (s *bareScene) ask(name string) {
	s.claim = s.add(builders.MakeClaimV1Alpha1(ns, name, "python", ""))
}

// leave is the first write of a bind, and create the second one. The Sandbox says what the template says now.
func (s *bareScene) leave() {
	s.pod = s.mod(builders.PodFrom(s.pod).NoLabel("agents.x-k8s.io/pool").Owners())
}

func (s *bareScene) create() {
	s.sandbox = s.add(builders.MakeColdStart(s.claim, s.template).PodName(s.pod.GetName()))
}

// adopt is what the Sandbox's controller does next.
func (s *bareScene) adopt() {
	s.pod = s.mod(builders.PodFrom(s.pod).Owners(builders.ControllerRef(s.sandbox)))
}

func (s *bareScene) serve(claim string) {
	s.ask(claim)
	s.leave()
	s.create()
	s.adopt()
}

// cold is a cold start of v0.1.0, which adds nothing to what a template says.
func (s *bareScene) cold(template *unstructured.Unstructured) *builders.Sandbox {
	spec, _, _ := unstructured.NestedMap(template.Object, "spec", "podTemplate", "spec")
	return builders.MakeColdStart(s.claim, template).Set(spec, "spec", "podTemplate", "spec")
}

func TestBarePods(t *testing.T) {
	for name, tc := range map[string]struct {
		strategy string
		tell     func(s *bareScene)
		want     []string
	}{
		"fresh": {"Recreate", func(s *bareScene) { s.serve("c1") }, []string{"c1: Fresh"}},
		"of the template before, though its Sandbox says otherwise": {"Recreate", func(s *bareScene) {
			s.update("sandbox:v2")
			s.serve("c1")
		}, []string{"c1: Stale"}},
		"the pool serves old ones": {"", func(s *bareScene) { s.update("sandbox:v2"); s.serve("c1") }, []string{"c1: Tolerated"}},
		"an update that was undone": {"Recreate", func(s *bareScene) {
			s.update("sandbox:v2")
			s.update("sandbox:v1")
			s.serve("c1")
		}, []string{"c1: Fresh"}},
		"an update between the two writes": {"Recreate", func(s *bareScene) {
			s.ask("c1")
			s.leave()
			s.update("sandbox:v2")
			s.create()
		}, []string{"c1: Raced"}},
		"an update between the claim and the first write": {"Recreate", func(s *bareScene) {
			s.ask("c1")
			s.update("sandbox:v2")
			s.leave()
			s.create()
		}, []string{"c1: Stale"}},
		"another image in the Pod": {"Recreate", func(s *bareScene) {
			s.pod = s.mod(builders.PodFrom(s.pod).Set([]any{map[string]any{"name": "c", "image": "mine"}}, "spec", "containers"))
			s.serve("c1")
		}, []string{"c1: Stale"}},
		"created before the restart": {"Recreate", func(s *bareScene) {
			s.wait(2 * time.Second)
			s.pool = s.mod(builders.PoolFrom(s.pool).Annotation(keyRestarted, s.now.Format(time.RFC3339)))
			s.serve("c1")
		}, []string{"c1: Stale"}},
		"the Pod had ended": {"Recreate", func(s *bareScene) {
			s.pod = s.mod(builders.PodFrom(s.pod).Phase(corev1.PodFailed))
			s.serve("c1")
		}, []string{"c1: DeadMember"}},
		"the Pod ended between the two writes": {"Recreate", func(s *bareScene) {
			s.ask("c1")
			s.leave()
			s.pod = s.mod(builders.PodFrom(s.pod).Phase(corev1.PodFailed))
			s.create()
		}, []string{"c1: Raced"}},
		"the Pod was gone": {"Recreate", func(s *bareScene) {
			s.ask("c1")
			s.leave()
			s.del(builders.PodFrom(s.pod))
			s.mod(builders.ClaimFrom(s.claim).Set("x", "status", "seen"))
			s.create()
		}, []string{"c1: DeadMember Unjudged"}},
		"a Pod that was never there": {"Recreate", func(s *bareScene) {
			s.ask("c1")
			s.pod.SetName("nobody")
			s.create()
		}, []string{"c1: DeadMember Unjudged"}},
		"its node goes": {"Recreate", func(s *bareScene) {
			s.event(Event{Type: Synced, Resource: Nodes, RV: s.at()})
			node := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Node"}}
			node.SetName("node")
			s.add(builders.PodFrom(node).Deleting(s.now))
			s.serve("c1")
		}, []string{"c1: DeadMember"}},
		"somebody worked in it": {"Recreate", func(s *bareScene) {
			s.pod = s.mod(builders.PodFrom(s.pod).Set([]any{map[string]any{"name": "debug"}}, "spec", "ephemeralContainers"))
			s.serve("c1")
		}, []string{"c1: UsedMember"}},
		"of a pool of another template": {"Recreate", func(s *bareScene) {
			s.add(builders.MakeTemplate(ns, "node").APIVersion(builders.V1Alpha1).Image("node:v1"))
			s.claim = s.add(builders.MakeClaimV1Alpha1(ns, "c1", "node", ""))
			s.leave()
			s.create()
		}, []string{"c1: ForeignMember Stale"}},
		"of a pool that is gone": {"Recreate", func(s *bareScene) {
			s.del(builders.PoolFrom(s.pool))
			s.serve("c1")
		}, []string{"c1: ForeignMember"}},
		"of no pool": {"Recreate", func(s *bareScene) {
			s.pod = s.add(s.birth("loose").Label(labelNameHash, "x").Owners())
			s.ask("c1")
			s.create()
		}, []string{"c1: ForeignMember"}},
		"two claims take one Pod": {"Recreate", func(s *bareScene) {
			s.ask("c1")
			s.leave()
			s.create()
			s.ask("c2")
			s.create()
		}, []string{"c1: Fresh", "c2: Duplicate"}},
		"somebody had it before": {"Recreate", func(s *bareScene) {
			s.serve("c1")
			s.del(builders.SandboxFrom(s.sandbox))
			s.ask("c2")
			s.create()
		}, []string{"c1: Fresh", "c2: UsedMember"}},
		"a claim takes a second one": {"Recreate", func(s *bareScene) {
			s.serve("c1")
			s.pod = s.add(s.birth("python-m2"))
			s.leave()
			s.add(builders.MakeColdStart(s.claim, s.template).Name("c1-again").PodName(s.pod.GetName()))
		}, []string{"c1: Fresh", "c1: Duplicate"}},
		"a cold start that says no more than the template": {"Recreate", func(s *bareScene) { s.ask("c1"); s.add(s.cold(s.template)) }, []string{"c1: Fresh"}},
		"a stale one": {"Recreate", func(s *bareScene) {
			old := s.template
			s.update("sandbox:v2")
			s.ask("c1")
			s.add(s.cold(old))
		}, []string{"c1: Stale"}},
		"a cold start of v0.1.1": {"Recreate", func(s *bareScene) {
			s.template = s.mod(builders.TemplateFrom(s.template).Unset("spec", "networkPolicyManagement"))
			s.ask("c1")
			s.add(builders.MakeColdStart(s.claim, s.template))
		}, []string{"c1: Fresh"}},
		"a stale one of v0.1.1": {"Recreate", func(s *bareScene) {
			s.template = s.mod(builders.TemplateFrom(s.template).Unset("spec", "networkPolicyManagement"))
			old := s.template
			s.update("sandbox:v2")
			s.ask("c1")
			s.add(builders.MakeColdStart(s.claim, old))
		}, []string{"c1: Stale"}},
		"no DNS where agent-sandbox manages the network": {"Recreate", func(s *bareScene) {
			s.ask("c1")
			s.add(s.cold(s.template).PodSpec(false, "automountServiceAccountToken"))
		}, []string{"c1: Stale"}},
		"a release that adds to what a template says makes none such": {"Recreate", func(s *bareScene) {
			s.claim = s.add(builders.MakeClaim(ns, "c1"))
			s.add(s.cold(s.template))
		}, []string{"c1: Stale"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBareScene(t, tc.strategy)
			tc.tell(s)
			s.progress()
			if diff := cmp.Diff(tc.want, s.verdicts()); diff != "" {
				t.Errorf("verdicts (-want,+got):\n%s\n%s", diff, s.dump())
			}
		})
	}
}

// What a stale bind of a bare Pod says is the pool's, and names both revisions.
func TestABarePodsBindNamesPoolAndRevisions(t *testing.T) {
	s := newBareScene(t, "Recreate")
	first := s.template.GetResourceVersion()
	s.update("sandbox:v2")
	s.serve("c1")
	s.progress()
	b := s.h.Judge().Binds[0]
	got := []string{b.Pool, b.Strategy, string(b.Found.RV), string(b.Expected.RV), string(b.Findings[0].Reason)}
	if diff := cmp.Diff([]string{"python", "Recreate", first, s.template.GetResourceVersion(), "StaleRevision"}, got); diff != "" || !b.Warm {
		t.Errorf("warm %t; pool, strategy, revisions and reason (-want,+got):\n%s", b.Warm, diff)
	}
}

// The CRDs of v0.2.1 came while v0.1.1 was running: what its cold start lacks is named.
func TestAColdStartOfV011BesideNewerCRDs(t *testing.T) {
	s := newBareScene(t, "Recreate")
	s.template = s.mod(builders.TemplateFrom(s.template).Unset("spec", "networkPolicyManagement"))
	old := s.template
	s.template = s.mod(builders.TemplateFrom(old).Set("Managed", "spec", "networkPolicyManagement"))
	s.ask("c1")
	s.add(builders.MakeColdStart(s.claim, old))
	s.progress()
	b := s.h.Judge().Binds[0]
	if b.Expected.Digest == "" || !strings.Contains(b.Difference, "dnsPolicy") || len(b.Findings) != 1 || b.Findings[0].Class != Stale {
		t.Errorf("expected %+v, difference %q, findings %+v", b.Expected, b.Difference, b.Findings)
	}
}

// A log that begins in between, or lacks Pods, decides nothing.
func TestBarePodsOfWhichTooLittleIsKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  func(s *bareScene)
		want string
	}{
		"no write to the Pod":              {func(*bareScene) {}, "c1: Unjudged Unjudged"},
		"it had left when the log began":   {func(s *bareScene) { s.list(builders.PodFrom(s.pod).Label(labelNameHash, "x").Owners()) }, "c1: Unjudged"},
		"it was a member when the log did": {func(s *bareScene) { s.list(builders.PodFrom(s.pod)); s.leave() }, "c1: Fresh"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newBareScene(t, "Recreate")
			s.h.options.Partial = true
			known := s.h.pods[s.pod.GetUID()]
			delete(s.h.pods, known.uid)
			clear(s.h.podsOfName)
			tc.pod(s)
			s.ask("c1")
			s.create()
			s.progress()
			if diff := cmp.Diff([]string{tc.want}, s.verdicts()); diff != "" {
				t.Errorf("verdicts (-want,+got):\n%s\n%s", diff, s.dump())
			}
		})
	}
}

// What is over is forgotten, with who took which Pod.
func TestBarePodsAreForgotten(t *testing.T) {
	s := newBareScene(t, "Recreate")
	s.update("sandbox:v2")
	s.serve("c1")
	s.del(builders.ClaimFrom(s.claim))
	s.del(builders.SandboxFrom(s.sandbox))
	s.del(builders.PodFrom(s.pod))
	s.template = s.mod(builders.TemplateFrom(s.template).Annotation("a", "b"))
	s.progress()
	s.h.Prune(s.at())
	if n := len(s.h.takersOfPod) + len(s.h.pods) + len(s.h.podsOfName) + len(s.h.sandboxes) + len(s.h.binds); n > 0 {
		t.Errorf("%d things are kept", n)
	}
	if got := s.h.Judge().Namespace(ns).Classes[Stale]; got != 1 {
		t.Errorf("%d stale binds are counted, want 1", got)
	}
}
