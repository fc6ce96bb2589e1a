package checker

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/test/builders"
)

// Upstream's claim has what is controlled by its UID, whatever else the reference says.
func TestOwnersByUID(t *testing.T) {
	plain := func(claim *unstructured.Unstructured) metav1.OwnerReference {
		ref := builders.ControllerRef(claim)
		ref.Controller = nil
		return ref
	}
	// forged controllers have the claim's UID under another name.
	forged := func(s *scene, apiVersion, kind string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: "nobody", UID: s.claim.GetUID(), Controller: ptr.To(true)}
	}
	nobody := func(s *scene) metav1.OwnerReference { return forged(s, "example.com/v1", "Nobody") }
	own := func(s *scene, refs ...metav1.OwnerReference) {
		s.member = s.mod(builders.SandboxFrom(s.member).Owners(refs...))
	}
	stale := func(apiVersion, kind string, want ...string) story {
		return story{strategy: "Recreate", want: want, tell: func(s *scene) {
			s.update("sandbox:v2")
			s.create("c1")
			own(s, forged(s, apiVersion, kind))
		}}
	}
	run(t, map[string]story{
		"a reference of another kind":           stale("example.com/v1", "Nobody", "c1: OwnerMismatch Stale"),
		"a group without a version":             stale("extensions.agents.x-k8s.io", "SandboxClaim", "c1: Stale"),
		"an apiVersion that cannot be parsed":   stale("a/b/c", "Nobody", "c1: OwnerMismatch Stale"),
		"a pool's reference with a claim's UID": stale("extensions.agents.x-k8s.io/v1beta1", "SandboxWarmPool", "c1: OwnerMismatch Stale"),
		"and then the real one in its place": {strategy: "Recreate", want: []string{"c1: OwnerMismatch Stale"}, tell: func(s *scene) {
			s.update("sandbox:v2")
			s.create("c1")
			own(s, nobody(s))
			own(s, builders.ControllerRef(s.claim))
		}},
		"the claim's reference beside the forged one": {strategy: "Recreate", want: []string{"c1: OwnerMismatch"}, tell: func(s *scene) {
			s.create("c1")
			own(s, plain(s.claim), nobody(s))
		}},
		"held by a forged reference, and another one": {strategy: "Recreate", want: []string{"c1: OwnerMismatch", "c1: Duplicate"}, tell: func(s *scene) {
			s.create("c1")
			own(s, nobody(s))
			s.add(builders.MakeColdStart(s.claim, s.template))
		}},
		"an owner that is no claim": {strategy: "Recreate", want: nil, tell: func(s *scene) {
			s.create("c1")
			other := nobody(s)
			other.UID = "somebody"
			own(s, other)
		}},
		"two claims in one write": {strategy: "Recreate", want: []string{"c1: OwnerMismatch", "c2: OwnerMismatch"}, tell: func(s *scene) {
			s.create("c1")
			first := s.claim
			s.create("c2")
			own(s, plain(first), builders.ControllerRef(s.claim))
		}},
		"two claims in one CREATE": {strategy: "Recreate", want: []string{"c1: OwnerMismatch", "c2: OwnerMismatch"}, tell: func(s *scene) {
			s.create("c1")
			first := s.claim
			s.create("c2")
			s.add(builders.MakeColdStart(first, s.template).Owners(builders.ControllerRef(first), plain(s.claim)))
		}},
		"the pool stays its controller": {strategy: "Recreate", want: []string{"c1: OwnerMismatch"}, tell: func(s *scene) {
			s.create("c1")
			own(s, builders.ControllerRef(s.pool), plain(s.claim))
		}},
	})
}

// outlive has the Pod of the scene's member be another Sandbox's first.
func (s *scene) outlive() {
	before := builders.ControllerRef(s.member)
	before.UID = "uid-before"
	s.pod = s.mod(builders.PodFrom(s.pod).Owners(before))
	s.pod = s.mod(builders.PodFrom(s.pod).Owners())
	s.pod = s.mod(builders.PodFrom(s.pod).Owners(builders.ControllerRef(s.member)))
}

func TestThePodIsEvidenceOfItsOwn(t *testing.T) {
	run(t, map[string]story{
		"made again by hand, from the template before": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			old := s.pod
			s.update("sandbox:v2")
			s.birth("python-m2")
			s.del(builders.PodFrom(s.pod))
			s.add(builders.PodFrom(old).Name(s.member.GetName()).UID("by-hand").Owners(builders.ControllerRef(s.member)))
			serve(s)
		}},
		"made again by hand, with another command": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.del(builders.PodFrom(s.pod))
			pod := builders.PodFrom(s.pod).UID("by-hand")
			s.add(pod.Set([]any{map[string]any{"name": "c", "image": "sandbox:v1", "command": []any{"sh"}}}, "spec", "containers"))
			serve(s)
		}},
		"kubectl set image": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.mod(builders.PodFrom(s.pod).Set([]any{map[string]any{"name": "c", "image": "odd:v1"}}, "spec", "containers"))
			serve(s)
		}},
		"kubectl debug": {strategy: "Recreate", want: []string{"c1: UsedMember"}, tell: func(s *scene) { debug(s); serve(s) }},
		"kubectl debug, where the generation rises": {strategy: "Recreate", want: []string{"c1: UsedMember"}, tell: func(s *scene) {
			s.pod = s.mod(builders.PodFrom(s.pod).Generation(2))
			debug(s)
			serve(s)
		}},
		"kubectl debug in a pool that tolerates": {strategy: "OnReplenish", want: []string{"c1: UsedMember"}, tell: func(s *scene) {
			debug(s)
			serve(s)
		}},
		"kubectl debug in a stale Pod of a pool that tolerates": {strategy: "OnReplenish", want: []string{"c1: UsedMember Tolerated"}, tell: func(s *scene) {
			debug(s)
			s.update("sandbox:v2")
			serve(s)
		}},
		"kubectl debug while the bind was under way": {strategy: "OnReplenish", want: []string{"c1: Raced"}, tell: func(s *scene) {
			s.create("c1")
			s.choose()
			debug(s)
			s.bind()
		}},
		"kubectl debug after the bind": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) { serve(s); debug(s) }},
		"kubectl debug in a Pod that is another by now": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			first := s.pod
			debug(s)
			s.del(builders.PodFrom(s.pod))
			s.pod = s.add(builders.PodFrom(first).UID("second"))
			serve(s)
		}},
		"a cold start adopts a Pod that somebody debugged": {strategy: "OnReplenish", want: []string{"c1: UsedMember"}, tell: func(s *scene) {
			s.pod = s.add(builders.PodFrom(s.pod).Name("c1").UID("orphan").Owners())
			debug(s)
			s.create("c1")
			s.add(builders.MakeColdStart(s.claim, s.template))
		}},
		"it outlived another sandbox, and was taken over": {strategy: "Recreate", want: []string{"c1: DeadMember"}, tell: func(s *scene) {
			s.outlive()
			serve(s)
		}},
		"taken over after the bind": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) { serve(s); s.outlive() }},
		"edited so that its generation rose": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.mod(builders.PodFrom(s.pod).Generation(2).Set(int64(60), "spec", "activeDeadlineSeconds"))
			serve(s)
		}},
		"what the cluster added to it": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.mod(builders.PodFrom(s.pod).Set("gvisor", "spec", "runtimeClassName"))
			serve(s)
		}},
		"its first Pod is of the template before, its spec is not": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).Env("A", "1"))
			s.member = s.add(builders.MakeMember(s.pool, s.template).Name("python-m2"))
			s.pod = s.add(builders.PodFrom(s.pod).Name("python-m2").Owners(builders.ControllerRef(s.member)))
			serve(s)
		}},
		"a cold start adopts a Pod of the template before": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.add(builders.PodFrom(s.pod).Name("c1").UID("orphan").Owners())
			s.update("sandbox:v2")
			s.create("c1")
			s.add(builders.MakeColdStart(s.claim, s.template))
		}},
		"a cold start adopts a Pod of this template": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.add(builders.PodFrom(s.pod).Name("c1").UID("orphan").Owners())
			s.create("c1")
			s.add(builders.MakeColdStart(s.claim, s.template))
		}},
		"a Pod of that name that is going": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.add(builders.PodFrom(s.pod).Name("c1").UID("orphan").Owners().Deleting(s.now))
			s.update("sandbox:v2")
			s.create("c1")
			s.add(builders.MakeColdStart(s.claim, s.template))
		}},
		"a Pod of that name that somebody has": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.add(builders.PodFrom(s.pod).Name("c1").UID("held").Owners(metav1.OwnerReference{Kind: "Job", UID: "j", Controller: ptr.To(true)}))
			s.update("sandbox:v2")
			s.create("c1")
			s.add(builders.MakeColdStart(s.claim, s.template))
		}},
	})
}

func TestWhatPoolsSay(t *testing.T) {
	say := func(key, value string) func(s *scene) {
		return func(s *scene) { s.pool = s.mod(builders.PoolFrom(s.pool).Annotation(key, value)) }
	}
	injected := func(paths string) func(s *scene) {
		return func(s *scene) {
			say("freshbind.dev/injected-paths", paths)(s)
			s.member = s.add(builders.MakeMember(s.pool, s.template).Name("python-m2").PodSpec([]any{
				map[string]any{"name": "c", "image": "sandbox:v1", "env": env("PROXY", "1")},
				map[string]any{"name": "proxy", "image": "proxy:v1"},
			}, "containers"))
			s.add(builders.MakePod(s.member).Stored("node"))
			serve(s)
		}
	}
	const both = "podTemplate.spec.containers[name=proxy], podTemplate.spec.containers[*].env[name=PROXY]"
	restart := func(strategy, at string, then func(*scene)) story {
		return story{strategy: strategy, tell: func(s *scene) {
			s.member = s.mod(builders.SandboxFrom(s.member).Created(time.Date(2026, 1, 2, 9, 0, 0, 0, time.UTC)))
			s.member = s.add(builders.MakeMember(s.pool, s.template).Name("python-m2").Created(time.Date(2026, 1, 2, 9, 0, 0, 0, time.UTC)))
			s.add(builders.MakePod(s.member).Stored("node"))
			if then == nil {
				say("freshbind.dev/restarted-at", at)(s)
				serve(s)
				return
			}
			then(s)
		}}
	}
	want := func(s story, verdicts ...string) story {
		s.want = verdicts
		return s
	}
	const later, earlier = "2026-01-02T09:30:00Z", "2026-01-02T08:30:00Z"
	run(t, map[string]story{
		"created before the restart": want(restart("Recreate", later, nil), "c1: Stale"),
		"created in its second":      want(restart("Recreate", "2026-01-02T09:00:00Z", nil), "c1: Stale"),
		"created after the restart":  want(restart("Recreate", earlier, nil), "c1: Fresh"),
		"a restart that lies ahead":  want(restart("Recreate", "2100-01-01T00:00:00Z", nil), "c1: Fresh"),
		"a restart whose time has come": want(restart("Recreate", "", func(s *scene) {
			say("freshbind.dev/restarted-at", s.now.Add(time.Hour).Format(time.RFC3339))(s)
			s.wait(time.Hour + skew + time.Second)
			serve(s)
		}), "c1: Stale"),
		"a restart that is due by some clocks": want(restart("Recreate", "", func(s *scene) {
			say("freshbind.dev/restarted-at", s.now.Add(time.Hour).Format(time.RFC3339))(s)
			s.wait(time.Hour - time.Second)
			serve(s)
		}), "c1: Fresh"),
		"a restart that means nothing":       want(restart("Recreate", "now", nil), "c1: Fresh"),
		"a restart of a pool that tolerates": want(restart("OnReplenish", later, nil), "c1: Tolerated"),
		"a restart while it was under way":   want(restart("Recreate", "", func(s *scene) { s.create("c1"); s.choose(); say("freshbind.dev/restarted-at", later)(s); s.bind() }), "c1: Raced"),
		"a restart that was taken back": want(restart("Recreate", "", func(s *scene) {
			say("freshbind.dev/restarted-at", later)(s)
			say("freshbind.dev/restarted-at", "")(s)
			serve(s)
		}), "c1: Fresh"),
		"injected leaves on the list": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: injected(both)},
		"injected leaves, by value":   {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: injected(`podTemplate.spec.containers[name="proxy"],podTemplate.spec.containers[0].env[name=PRO*].value="1" podTemplate.spec.containers[0].env[*].name=PROX*`)},
		"one of them is not":          {strategy: "Recreate", want: []string{"c1: Stale"}, tell: injected("podTemplate.spec.containers[name=proxy]")},
		"another value":               {strategy: "Recreate", want: []string{"c1: Stale"}, tell: injected("podTemplate.spec.containers[name=proxy],podTemplate.spec.containers[0].env[name=PROXY].value=2")},
		"nothing on the list":         {strategy: "Recreate", want: []string{"c1: Stale"}, tell: injected("")},
		"a list excuses no leaf that differs": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			say("freshbind.dev/injected-paths", "podTemplate.spec.containers[*].image")(s)
			s.update("sandbox:v2")
			serve(s)
		}},
		"an annotation to roll beside spec Recreate": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			say("freshbind.dev/rollout-strategy", "RollingUpdate")(s)
			say("freshbind.dev/admit", "any")(s)
			s.update("sandbox:v2")
			serve(s)
		}},
	})
}
