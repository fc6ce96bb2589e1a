package integration

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// Claims with env and volumeClaimTemplates always start cold. They start when
// the template that the controller knows is current, and are repaired while it
// is old; what runs is what the stored template and claim say.
func TestColdStartsWithTheClaimsOwn(t *testing.T) {
	cases := map[string]struct {
		template func(*builders.Template)
		claim    func(*builders.Claim)
		check    func(t *testing.T, sandbox *unstructured.Unstructured)
	}{
		"env Allowed, default container": {
			func(b *builders.Template) { b.EnvPolicy("Allowed") },
			func(c *builders.Claim) { c.Env("", "MINE", "1") },
			wantEnv("containers", 0, "MINE", "1"),
		},
		"env Allowed, named container": {
			func(b *builders.Template) { b.EnvPolicy("Allowed").Container("side", "side:1") },
			func(c *builders.Claim) { c.Env("side", "MINE", "1") },
			wantEnv("containers", 1, "MINE", "1"),
		},
		"env Allowed, init container": {
			func(b *builders.Template) { b.EnvPolicy("Allowed").InitContainer("init", "init:1") },
			func(c *builders.Claim) { c.Env("init", "MINE", "1") },
			wantEnv("initContainers", 0, "MINE", "1"),
		},
		"env Overrides, default container": {
			func(b *builders.Template) { b.EnvPolicy("Overrides").Env("MINE", "template") },
			func(c *builders.Claim) { c.Env("", "MINE", "claim") },
			wantEnv("containers", 0, "MINE", "claim"),
		},
		"env Overrides, named container": {
			func(b *builders.Template) { b.EnvPolicy("Overrides").Container("side", "side:1", "MINE", "template") },
			func(c *builders.Claim) { c.Env("side", "MINE", "claim") },
			wantEnv("containers", 1, "MINE", "claim"),
		},
		"env Overrides, init container": {
			func(b *builders.Template) {
				b.EnvPolicy("Overrides").InitContainer("init", "init:1", "MINE", "template")
			},
			func(c *builders.Claim) { c.Env("init", "MINE", "claim") },
			wantEnv("initContainers", 0, "MINE", "claim"),
		},
		"volumes Allowed": {
			func(b *builders.Template) { b.VolumeClaimPolicy("Allowed").VolumeClaim("data", "1Gi") },
			func(c *builders.Claim) { c.VolumeClaim("more", "2Gi") },
			wantVolumes("data 1Gi", "more 2Gi"),
		},
		"volumes Overrides": {
			func(b *builders.Template) { b.VolumeClaimPolicy("Overrides").VolumeClaim("data", "1Gi") },
			func(c *builders.Claim) { c.VolumeClaim("data", "2Gi") },
			wantVolumes("data 2Gi"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := sharedWorld(t).enforced(t)
			p := s.pool(scenario.Pool{Replicas: 0, Strategy: scenario.Recreate}, tc.template)
			claim := builders.MakeClaim(s.Name, "c1").Pool(p.Name)
			tc.claim(claim)
			before := s.turnedAway()
			see := s.hold(upstream.SandboxTemplates)
			s.image(p, "sandbox:v2")
			s.must(s.Create(t.Context(), claim.Obj()))
			s.must(s.WaitClaims(t.Context(), within, "c1"))
			see()
			if s.turnedAway().Minus(before).Repaired == 0 {
				t.Error("nothing was repaired while the controller's template was old")
			}
			sandbox, err := s.SandboxOf(t.Context(), "c1")
			s.must(err)
			if image := scenario.ImageOf(sandbox); image != "sandbox:v2" {
				t.Errorf("runs image %s, want sandbox:v2", image)
			}
			tc.check(t, sandbox)
			s.fresh(1)
		})
	}
}

func wantEnv(list string, container int, name, value string) func(*testing.T, *unstructured.Unstructured) {
	return func(t *testing.T, sandbox *unstructured.Unstructured) {
		t.Helper()
		containers, _, _ := unstructured.NestedSlice(sandbox.Object, "spec", "podTemplate", "spec", list)
		env, _, _ := unstructured.NestedSlice(containers[container].(map[string]any), "env")
		for _, e := range env {
			if fmt.Sprint(e) == fmt.Sprint(map[string]any{"name": name, "value": value}) {
				return
			}
		}
		t.Errorf("%s[%d] has env %v, want %s=%s", list, container, env, name, value)
	}
}

func wantVolumes(want ...string) func(*testing.T, *unstructured.Unstructured) {
	return func(t *testing.T, sandbox *unstructured.Unstructured) {
		t.Helper()
		list, _, _ := unstructured.NestedSlice(sandbox.Object, "spec", "volumeClaimTemplates")
		var got []string
		for _, v := range list {
			m, _ := v.(map[string]any)
			name, _, _ := unstructured.NestedString(m, "metadata", "name")
			size, _, _ := unstructured.NestedString(m, "spec", "resources", "requests", string(corev1.ResourceStorage))
			got = append(got, name+" "+size)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("volumes are %v, want %v", got, want)
		}
	}
}

// With every stamp forged, nothing changes: no verdict reads one.
func TestForgedStamps(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	p := s.pool(scenario.Pool{Replicas: 4, Strategy: scenario.Recreate})
	built := hashOf(t, s.get(upstream.SandboxTemplates, p.Template))
	members := s.full(p, "")
	for _, m := range members {
		s.stamped(m.Name, built)
	}

	forged := hashOf(t, builders.TemplateFrom(s.get(upstream.SandboxTemplates, p.Template)).Image("sandbox:v2").Obj())
	// Somebody with every right takes the policy away first.
	removed := s.w.withoutStampPolicy(t)
	defer removed()
	for _, m := range members {
		s.eventually("forging the stamp of "+m.Name, func(ctx context.Context) (string, bool) {
			_, err := s.Resource(upstream.Sandboxes).Patch(ctx, m.Name, mergePatch, stampPatch(forged), patchOptions)
			return fmt.Sprint(err), err == nil
		})
	}
	s.w.delay(upstream.SandboxTemplates, lag)
	s.image(p, "sandbox:v2")
	s.claim(p, scenario.Names("c", 4)...)
	if sum := s.fresh(4); sum.Classes[checker.Stale] > 0 {
		t.Errorf("%d stale binds", sum.Classes[checker.Stale])
	}
}

// A stamp that a CREATE carries is replaced by the true one.
func TestAStampAtCreateIsReplaced(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	p := s.pool(scenario.Pool{Replicas: 0, Strategy: scenario.Recreate})
	template, pool := s.get(upstream.SandboxTemplates, p.Template), s.get(upstream.SandboxWarmPools, p.Name)
	for name, image := range map[string]string{"true": "sandbox:v1", "odd": "other:v1"} {
		made := builders.MakeMember(pool, template).Name(name).Image(image).Label(stampKey, "v1-forged").Obj()
		made.SetUID("")
		var stored *unstructured.Unstructured
		s.w.inTime(t, func() {
			var err error
			stored, err = s.Resource(upstream.Sandboxes).Create(t.Context(), made, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			s.must(err)
		}, stampHooks...)
		want := hashOf(t, template)
		if image != "sandbox:v1" {
			want = hashOf(t, builders.TemplateFrom(template).Image(image).Obj())
		}
		if got := stored.GetLabels()[stampKey]; got != want {
			t.Errorf("%s: stamped %q, want %s", name, got, want)
		}
	}
}
