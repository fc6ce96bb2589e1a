package checker

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/test/builders"
)

func TestDeadMembers(t *testing.T) {
	run(t, map[string]story{
		"the sandbox was being deleted": {want: []string{"c1: DeadMember"}, tell: func(s *scene) {
			s.create("c1")
			s.choose()
			s.member = s.mod(builders.SandboxFrom(s.member).Deleting(s.now))
			s.bind()
		}},
		"the Pod was being deleted before the choice": {want: []string{"c1: DeadMember"}, tell: func(s *scene) {
			s.pod = s.mod(builders.PodFrom(s.pod).Deleting(s.now))
			s.create("c1")
			s.serve()
		}},
		"the Pod was deleted while the bind was under way": {want: []string{"c1: Raced"}, tell: func(s *scene) {
			s.create("c1")
			s.choose()
			s.pod = s.mod(builders.PodFrom(s.pod).Deleting(s.now))
			s.bind()
		}},
		"the Pod had failed": {want: []string{"c1: DeadMember"}, tell: func(s *scene) {
			s.podPhase(corev1.PodFailed)
			s.create("c1")
			s.serve()
		}},
		"the Pod had succeeded": {want: []string{"c1: DeadMember"}, tell: func(s *scene) {
			s.podPhase(corev1.PodSucceeded)
			s.create("c1")
			s.serve()
		}},
		"the Pod was gone": {want: []string{"c1: DeadMember"}, tell: func(s *scene) {
			s.del(builders.PodFrom(s.pod))
			s.create("c1")
			s.serve()
		}},
		"the Pod was replaced": {want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.del(builders.PodFrom(s.pod))
			s.pod = s.add(builders.PodFrom(s.pod).UID("second"))
			s.create("c1")
			s.serve()
		}},
		"a Pod of that name which is not the sandbox's": {want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.add(builders.PodFrom(s.pod).UID("stranger").Owners().Phase(corev1.PodFailed))
			s.create("c1")
			s.serve()
		}},
		"the sandbox's Pod was released": {want: []string{"c1: DeadMember"}, tell: func(s *scene) {
			s.pod = s.mod(builders.PodFrom(s.pod).Owners().Phase(corev1.PodFailed))
			s.create("c1")
			s.serve()
		}},
		"the Pod named by the annotation": {want: []string{"c1: DeadMember"}, tell: func(s *scene) {
			s.member = s.mod(builders.SandboxFrom(s.member).PodName("other"))
			s.add(builders.PodFrom(s.pod).Name("other").Phase(corev1.PodFailed))
			s.create("c1")
			s.serve()
		}},
		"a member that never had a Pod": {want: []string{"c1: NotYet"}, tell: func(s *scene) {
			s.member = s.add(builders.MakeMember(s.pool, s.template).Name("python-m2"))
			s.create("c1")
			s.serve()
		}},
		"a member whose Pod was made while the bind was under way": {want: []string{"c1: Raced"}, tell: func(s *scene) {
			s.member = s.add(builders.MakeMember(s.pool, s.template).Name("python-m2"))
			s.create("c1")
			s.choose()
			s.add(builders.MakePod(s.member).Stored("node"))
			s.bind()
		}},
		"the Pod was replaced while the bind was under way": {want: []string{"c1: Raced"}, tell: func(s *scene) {
			s.del(builders.PodFrom(s.pod))
			s.create("c1")
			s.choose()
			s.pod = s.add(builders.PodFrom(s.pod).UID("second"))
			s.bind()
		}},
		"the Pod fails after the bind": {want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.create("c1")
			s.serve()
			s.podPhase(corev1.PodFailed)
		}},
	})
}

func TestOneToOneOnce(t *testing.T) {
	run(t, map[string]story{
		"a claim that holds two sandboxes": {want: []string{"c1: Fresh", "c1: Duplicate"}, tell: func(s *scene) {
			s.create("c1")
			s.serve()
			s.birth("python-m2")
			s.choose()
			s.bind()
		}},
		"a warm and a cold sandbox": {want: []string{"c1: Fresh", "c1: Duplicate"}, tell: func(s *scene) {
			s.create("c1")
			s.serve()
			s.add(builders.MakeColdStart(s.claim, s.template))
		}},
		"a second sandbox after the first is gone": {want: []string{"c1: Fresh", "c1: Fresh"}, tell: func(s *scene) {
			s.create("c1")
			s.serve()
			s.del(builders.SandboxFrom(s.member))
			s.birth("python-m2")
			s.choose()
			s.bind()
		}},
		"a second sandbox while the first is being deleted": {want: []string{"c1: Fresh", "c1: Fresh"}, tell: func(s *scene) {
			s.create("c1")
			s.serve()
			s.mod(builders.SandboxFrom(s.member).Deleting(s.now))
			s.birth("python-m2")
			s.choose()
			s.bind()
		}},
		"a sandbox taken from another claim": {want: []string{"c1: Fresh", "c2: Duplicate"}, tell: func(s *scene) {
			s.create("c1")
			s.serve()
			s.create("c2")
			s.bind()
		}},
		"a sandbox with two claims": {want: []string{"c1: Fresh", "c2: Duplicate"}, tell: func(s *scene) {
			s.create("c1")
			s.serve()
			first := s.claim
			s.create("c2")
			both := []metav1.OwnerReference{builders.ControllerRef(first), builders.ControllerRef(s.claim)}
			s.mod(builders.SandboxFrom(s.member).Owners(both...))
		}},
		"a used sandbox that was put back into its pool": {want: []string{"c1: Fresh", "c2: UsedMember"}, tell: func(s *scene) {
			member := s.member
			s.create("c1")
			s.serve()
			s.member = s.mod(builders.SandboxFrom(member).Generation(1))
			s.create("c2")
			s.serve()
		}},
		"a used sandbox that comes back to the same claim": {want: []string{"c1: Fresh", "c1: UsedMember ForeignMember"}, tell: func(s *scene) {
			s.create("c1")
			s.serve()
			s.member = s.mod(builders.SandboxFrom(s.member).Owners())
			s.bind()
		}},
	})
}

func TestForeignMembers(t *testing.T) {
	secondPool := func(s *scene) {
		s.pool = s.add(builders.MakePool(ns, "other").Strategy("Recreate"))
		s.birth("other-m1")
	}
	run(t, map[string]story{
		"a member of another pool": {want: []string{"c1: ForeignMember"}, tell: func(s *scene) {
			secondPool(s)
			s.create("c1")
			s.serve()
		}},
		"nobody's sandbox": {want: []string{"c1: ForeignMember"}, tell: func(s *scene) {
			s.member = s.mod(builders.SandboxFrom(s.member).Owners())
			s.create("c1")
			s.serve()
		}},
		"a sandbox of something else": {want: []string{"c1: ForeignMember"}, tell: func(s *scene) {
			ref := builders.ControllerRef(s.pool)
			ref.APIVersion, ref.Kind = "apps/v1", "Deployment"
			s.member = s.mod(builders.SandboxFrom(s.member).Owners(ref))
			s.create("c1")
			s.serve()
		}},
		"a pool reference of an older API version": {want: []string{"c1: Fresh"}, tell: func(s *scene) {
			ref := builders.ControllerRef(s.pool)
			ref.APIVersion = "extensions.agents.x-k8s.io/v1alpha1"
			s.member = s.mod(builders.SandboxFrom(s.member).Owners(ref))
			s.create("c1")
			s.serve()
		}},
		"a claim of another namespace": {want: []string{"c1: ForeignMember"}, tell: func(s *scene) {
			s.claim = s.add(builders.MakeClaim("elsewhere", "c1"))
			s.serve()
		}},
		"a member of the pool's predecessor": {want: []string{"c1: ForeignMember"}, tell: func(s *scene) {
			s.del(builders.PoolFrom(s.pool))
			s.add(builders.PoolFrom(s.pool).UID("second"))
			s.create("c1")
			s.serve()
		}},
		"pool replaced while the bind was under way": {want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.create("c1")
			s.choose()
			s.del(builders.PoolFrom(s.pool))
			s.add(builders.PoolFrom(s.pool).UID("second"))
			s.bind()
		}},
		"a stale member of another pool, of a dead Pod": {strategy: "Recreate", want: []string{"c1: ForeignMember DeadMember Stale"}, tell: func(s *scene) {
			secondPool(s)
			s.update("sandbox:v2")
			s.podPhase(corev1.PodFailed)
			s.create("c1")
			s.serve()
		}},
	})
}

// What runs is the Pod: a member whose spec was edited says nothing about it.
func TestEditedMembers(t *testing.T) {
	edit := func(s *scene, change func(*builders.Sandbox)) {
		b := builders.SandboxFrom(s.member).Generation(2)
		change(b)
		s.member = s.mod(b)
	}
	run(t, map[string]story{
		"edited to the new template, the Pod is old": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.update("sandbox:v2")
			edit(s, func(b *builders.Sandbox) { b.Image("sandbox:v2") })
			s.create("c1")
			s.serve()
		}},
		"edited to the new template before it came, while the bind was under way": {strategy: "Recreate", want: []string{"c1: Raced"},
			tell: func(s *scene) {
				edit(s, func(b *builders.Sandbox) { b.Image("sandbox:v2") })
				s.create("c1")
				s.choose()
				s.update("sandbox:v2")
				s.bind()
			}},
		"edited to the new template, and the Pod replaced": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.update("sandbox:v2")
			edit(s, func(b *builders.Sandbox) { b.Image("sandbox:v2") })
			s.del(builders.PodFrom(s.pod))
			s.pod = s.add(builders.MakePod(s.member).UID("second").Stored("node"))
			s.create("c1")
			s.serve()
		}},
		"edited away from the template": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			edit(s, func(b *builders.Sandbox) { b.Image("odd:v1") })
			s.create("c1")
			s.serve()
		}},
		"only pod metadata was edited": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			edit(s, func(b *builders.Sandbox) { b.Set("b", "spec", "podTemplate", "metadata", "labels", "a") })
			s.create("c1")
			s.serve()
		}},
		"a field removed from template and spec, but not from the Pod": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).RuntimeClass("gvisor"))
			s.birth("python-m2")
			s.template = s.mod(builders.TemplateFrom(s.template).RuntimeClass(""))
			edit(s, func(b *builders.Sandbox) { b.Unset("spec", "podTemplate", "spec", "runtimeClassName") })
			s.create("c1")
			s.serve()
		}},
		"a bind that changes the blueprint": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.create("c1")
			s.choose()
			s.member = s.mod(builders.Bound(s.member, s.claim, s.template).Image("odd:v1"))
		}},
	})
}
