package checker

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/test/builders"
)

// startCold makes the Sandbox that a claim controller creates from the template it knows, with what the claim adds.
func startCold(s *scene, from *unstructured.Unstructured, change func(*builders.Sandbox)) {
	b := builders.MakeColdStart(s.claim, from)
	if change != nil {
		change(b)
	}
	s.add(b)
}

func env(pairs ...string) []any {
	var out []any
	for i := 0; i < len(pairs); i += 2 {
		out = append(out, map[string]any{"name": pairs[i], "value": pairs[i+1]})
	}
	return out
}

func containers(image string, pairs ...string) []any {
	c := map[string]any{"name": "c", "image": image}
	if len(pairs) > 0 {
		c["env"] = env(pairs...)
	}
	return []any{c}
}

func TestColdStarts(t *testing.T) {
	run(t, map[string]story{
		"from the template in force": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.create("c1")
			startCold(s, s.template, nil)
		}},
		"from an old template, claim after the update": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			old := s.template
			s.update("sandbox:v2")
			s.create("c1")
			startCold(s, old, nil)
		}},
		"from an old template, update after the claim": {strategy: "Recreate", want: []string{"c1: Raced"}, tell: func(s *scene) {
			old := s.template
			s.create("c1")
			s.update("sandbox:v2")
			startCold(s, old, nil)
		}},
		"the claim's controller wrote its status after the update": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			old := s.template
			s.create("c1")
			s.update("sandbox:v2")
			s.claim = s.mod(builders.ClaimFrom(s.claim).Ready(false))
			startCold(s, old, nil)
		}},
		"its controller wrote before the update, somebody else after it": {strategy: "Recreate", want: []string{"c1: Raced"}, tell: func(s *scene) {
			old := s.template
			s.create("c1")
			s.claim = s.mod(builders.ClaimFrom(s.claim).Ready(false))
			s.update("sandbox:v2")
			s.claim = s.mod(builders.ClaimFrom(s.claim).Annotation("nudge", "1"))
			startCold(s, old, nil)
		}},
		"somebody else wrote to the claim after the update": {strategy: "Recreate", want: []string{"c1: Raced"}, tell: func(s *scene) {
			old := s.template
			s.create("c1")
			s.update("sandbox:v2")
			s.claim = s.mod(builders.ClaimFrom(s.claim).Annotation("nudge", "1"))
			startCold(s, old, nil)
		}},
		"tolerated where the pool serves older ones": {want: []string{"c1: Tolerated"}, tell: func(s *scene) {
			old := s.template
			s.update("sandbox:v2")
			s.create("c1")
			startCold(s, old, nil)
		}},
	})
}

func TestColdStartsWithEnv(t *testing.T) {
	run(t, map[string]story{
		"env under Allowed": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).Env("A", "1").EnvPolicy("Allowed"))
			s.claim = s.add(builders.MakeClaim(ns, "c1").Env("", "B", "2"))
			startCold(s, s.template, func(b *builders.Sandbox) { b.PodSpec(containers("sandbox:v1", "A", "1", "B", "2"), "containers") })
		}},
		"env under Allowed, old template": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			old := s.mod(builders.TemplateFrom(s.template).EnvPolicy("Allowed"))
			s.template = s.mod(builders.TemplateFrom(old).Image("sandbox:v2"))
			s.claim = s.add(builders.MakeClaim(ns, "c1").Env("", "B", "2"))
			startCold(s, old, func(b *builders.Sandbox) { b.PodSpec(containers("sandbox:v1", "B", "2"), "containers") })
		}},
		"env under Overrides": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).Env("A", "1", "B", "1").EnvPolicy("Overrides"))
			s.claim = s.add(builders.MakeClaim(ns, "c1").Env("c", "A", "2").Env("", "C", "3"))
			startCold(s, s.template, func(b *builders.Sandbox) {
				b.PodSpec(containers("sandbox:v1", "A", "2", "B", "1", "C", "3"), "containers")
			})
		}},
		"an override of what the template says twice": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).Env("A", "1", "A", "2").EnvPolicy("Overrides"))
			s.claim = s.add(builders.MakeClaim(ns, "c1").Env("", "A", "3"))
			startCold(s, s.template, func(b *builders.Sandbox) { b.PodSpec(containers("sandbox:v1", "A", "3", "A", "2"), "containers") })
		}},
		"a claim that overrides what it said itself": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).EnvPolicy("Overrides"))
			s.claim = s.add(builders.MakeClaim(ns, "c1").Env("", "A", "1").Env("", "A", "2"))
			startCold(s, s.template, func(b *builders.Sandbox) { b.PodSpec(containers("sandbox:v1", "A", "2"), "containers") })
		}},
		"env for a named and an init container": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).Container("d", "side:v1").InitContainer("i", "init:v1").EnvPolicy("Allowed"))
			s.claim = s.add(builders.MakeClaim(ns, "c1").Env("i", "A", "1").Env("d", "B", "2"))
			startCold(s, s.template, func(b *builders.Sandbox) {
				b.PodSpec([]any{map[string]any{"name": "i", "image": "init:v1", "env": env("A", "1")}}, "initContainers")
				b.PodSpec([]any{map[string]any{"name": "c", "image": "sandbox:v1"},
					map[string]any{"name": "d", "image": "side:v1", "env": env("B", "2")}}, "containers")
			})
		}},
		"entries that name the first container come before those that name none": {strategy: "Recreate", want: []string{"c1: Fresh"},
			tell: func(s *scene) {
				s.template = s.mod(builders.TemplateFrom(s.template).EnvPolicy("Allowed"))
				s.claim = s.add(builders.MakeClaim(ns, "c1").Env("", "A", "1").Env("c", "B", "2"))
				startCold(s, s.template, func(b *builders.Sandbox) { b.PodSpec(containers("sandbox:v1", "B", "2", "A", "1"), "containers") })
			}},
		"the claim's env was left out": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).EnvPolicy("Allowed"))
			s.claim = s.add(builders.MakeClaim(ns, "c1").Env("", "B", "2"))
			startCold(s, s.template, nil)
		}},
		"the claim's env was changed while the start was under way": {strategy: "Recreate", want: []string{"c1: Raced"}, tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).EnvPolicy("Allowed"))
			s.claim = s.add(builders.MakeClaim(ns, "c1").Env("", "B", "2"))
			s.claim = s.mod(builders.ClaimFrom(s.claim).Set([]any{map[string]any{"name": "B", "value": "3"}}, "spec", "env"))
			startCold(s, s.template, func(b *builders.Sandbox) { b.PodSpec(containers("sandbox:v1", "B", "2"), "containers") })
		}},
		"the claim's env was changed before its controller wrote": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).EnvPolicy("Allowed"))
			s.claim = s.add(builders.MakeClaim(ns, "c1").Env("", "B", "2"))
			s.claim = s.mod(builders.ClaimFrom(s.claim).Set([]any{map[string]any{"name": "B", "value": "3"}}, "spec", "env"))
			s.claim = s.mod(builders.ClaimFrom(s.claim).Ready(false))
			startCold(s, s.template, func(b *builders.Sandbox) { b.PodSpec(containers("sandbox:v1", "B", "2"), "containers") })
		}},
		"an override that the template in force refuses": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).Env("B", "1").EnvPolicy("Allowed"))
			s.claim = s.add(builders.MakeClaim(ns, "c1").Env("", "B", "2"))
			startCold(s, s.template, func(b *builders.Sandbox) { b.PodSpec(containers("sandbox:v1", "B", "2"), "containers") })
		}},
		"env for a container that the template in force has not": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).EnvPolicy("Allowed"))
			s.claim = s.add(builders.MakeClaim(ns, "c1").Env("gone", "B", "2"))
			startCold(s, s.template, nil)
		}},
		"env that the template in force refuses": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			old := s.mod(builders.TemplateFrom(s.template).EnvPolicy("Allowed"))
			s.template = s.mod(builders.TemplateFrom(old).EnvPolicy("Disallowed"))
			s.claim = s.add(builders.MakeClaim(ns, "c1").Env("", "B", "2"))
			startCold(s, old, func(b *builders.Sandbox) { b.PodSpec(containers("sandbox:v1", "B", "2"), "containers") })
		}},
	})
}

func TestColdStartsWithVolumes(t *testing.T) {
	run(t, map[string]story{
		"volumes under Allowed": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).VolumeClaim("data", "1Gi").VolumeClaimPolicy("Allowed"))
			s.claim = s.add(builders.MakeClaim(ns, "c1").VolumeClaim("own", "2Gi"))
			both := builders.TemplateFrom(s.template).VolumeClaim("own", "2Gi").Obj()
			startCold(s, both, nil)
		}},
		"volumes under Overrides": {strategy: "Recreate", want: []string{"c1: Fresh"}, tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).VolumeClaim("data", "1Gi").VolumeClaimPolicy("Overrides"))
			s.claim = s.add(builders.MakeClaim(ns, "c1").VolumeClaim("data", "2048Mi"))
			startCold(s, builders.MakeTemplate(ns, "python").VolumeClaim("data", "2Gi").Obj(), nil)
		}},
		"an override of a volume that the template in force refuses": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.template = s.mod(builders.TemplateFrom(s.template).VolumeClaim("data", "1Gi").VolumeClaimPolicy("Allowed"))
			s.claim = s.add(builders.MakeClaim(ns, "c1").VolumeClaim("data", "2Gi"))
			startCold(s, builders.MakeTemplate(ns, "python").VolumeClaim("data", "2Gi").Obj(), nil)
		}},
		"volumes that the template in force refuses": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			s.claim = s.add(builders.MakeClaim(ns, "c1").VolumeClaim("data", "2Gi"))
			startCold(s, builders.MakeTemplate(ns, "python").VolumeClaim("data", "2Gi").Obj(), nil)
		}},
		"volumes under Overrides, old template": {strategy: "Recreate", want: []string{"c1: Stale"}, tell: func(s *scene) {
			old := s.mod(builders.TemplateFrom(s.template).VolumeClaimPolicy("Overrides"))
			s.template = s.mod(builders.TemplateFrom(old).VolumeClaim("logs", "1Gi"))
			s.claim = s.add(builders.MakeClaim(ns, "c1").VolumeClaim("data", "2Gi"))
			startCold(s, builders.TemplateFrom(old).VolumeClaim("data", "2Gi").Obj(), nil)
		}},
	})
}
