package agentsandbox

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

func TestStamps(t *testing.T) {
	v1 := builders.MakeTemplate("ns", "python").Image("sandbox:v1").Obj()
	v2 := builders.MakeTemplate("ns", "python").Image("sandbox:v2").EnvPolicy("Allowed").Obj()
	hash := func(template *unstructured.Unstructured) string {
		b, err := RenderMember(template)
		if err != nil {
			t.Fatal(err)
		}
		return b.Hash()
	}
	podHash := func(pod *unstructured.Unstructured) string {
		own, err := podOf(pod)
		if err != nil {
			t.Fatal(err)
		}
		return own.Content.Hash()
	}
	claim := builders.MakeClaim("ns", "c1").Obj()
	stale, _ := running(v1)
	fresh, _ := running(v2)
	enforcing := builders.MakePool("ns", "python").Annotation(settings.EnforcementKey, "enforce").Obj()
	p := newPlatform(newStore(claim, enforcing, v2, fresh), history{v2, v1})
	v3 := builders.TemplateFrom(v2).PodSpec("mine", "schedulerName").Obj()
	byHand, _ := running(v3)
	placed := newPlatform(newStore(claim, enforcing, v3, byHand), history{v3})
	stranger := builders.ControllerRef(fresh)
	stranger.Kind = "Router"
	cold := builders.MakeColdStart(claim, v2).Obj()
	given := newPlatform(newStore(claim, v2, cold), history{v2})

	cases := map[string]struct {
		find func(context.Context, *unstructured.Unstructured) (platform.Stamp, error)
		obj  *unstructured.Unstructured
		want platform.Stamp
	}{
		"member":                  {p.SandboxRevision, fresh, platform.Stamp{Hash: hash(v2), Enforcement: "enforce"}},
		"member of a late cache":  {p.SandboxRevision, stale, platform.Stamp{Hash: hash(v1), Enforcement: "enforce"}},
		"cold start":              {p.SandboxRevision, builders.MakeColdStart(claim, v2).Obj(), platform.Stamp{Hash: hash(v2), Enforcement: "enforce"}},
		"pod":                     {p.PodRevision, builders.MakePod(fresh).Stored("node-1").Obj(), platform.Stamp{Hash: hash(v2), Enforcement: "enforce", Sendable: true}},
		"pod older than its spec": {p.PodRevision, builders.MakePod(stale).Stored("node-1").Obj(), platform.Stamp{Hash: hash(v1), Enforcement: "enforce", Sendable: true}},
		"pod whose template names a scheduler": {
			placed.PodRevision, builders.MakePod(byHand).Obj(), platform.Stamp{Hash: hash(v3), Enforcement: "enforce"},
		},
		"pod of a claim's": {
			given.PodRevision, builders.MakePod(cold).Obj(), platform.Stamp{Hash: hash(v2)},
		},
		"pod of a stranger":   {p.PodRevision, builders.MakePod(fresh).Owners(stranger).Obj(), platform.Stamp{}},
		"pod of nobody":       {p.PodRevision, builders.MakePod(fresh).Owners().Obj(), platform.Stamp{}},
		"pod of what is gone": {p.PodRevision, builders.MakePod(builders.SandboxFrom(fresh).Name("gone").Obj()).Obj(), platform.Stamp{Hash: podHash(builders.MakePod(fresh).Obj())}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := tc.find(t.Context(), tc.obj)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(platform.Stamp{}, "Namespace")); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// A Pod that is what its stamped Sandbox says needs no template, and one that may be
// something else is looked at in full.
func TestReadsForThePodOfAStampedSandbox(t *testing.T) {
	v2 := builders.MakeTemplate("ns", "python").Image("sandbox:v2").Obj()
	pool := builders.MakePool("ns", "python").Obj()
	member, _ := running(v2)
	stamped := func() *builders.Sandbox {
		return builders.SandboxFrom(member).Label(settings.StampKey, "v1-said").Label(settings.EnforcementKey, "enforce")
	}
	pod := builders.MakePod(member).Stored("node-1").Obj()
	cold := builders.MakeColdStart(builders.MakeClaim("ns", "c1").Obj(), v2).Obj()
	b, err := RenderMember(v2)
	if err != nil {
		t.Fatal(err)
	}
	inFull := []string{"sandbox/python-abc", "sandboxtemplate/python", "sandboxwarmpool/python"}
	otherMember, _ := running(builders.TemplateFrom(v2).Image("sandbox:v3").Obj())
	edited := builders.MakePod(otherMember).Stored("node-1").Obj()
	other, err := platform.ReadPod(edited)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		sandbox, pod *unstructured.Unstructured
		want         platform.Stamp
		reads        []string
	}{
		"what it says": {stamped().Obj(), pod, platform.Stamp{Hash: "v1-said", Enforcement: "enforce", Sendable: true}, []string{"sandbox/python-abc"}},
		"that of a claim's": {
			builders.SandboxFrom(cold).Label(settings.StampKey, "v1-said").Obj(), builders.MakePod(cold).Stored("node-1").Obj(), platform.Stamp{Hash: "v1-said"}, []string{"sandbox/c1"},
		},
		"its scheduler, too": {
			stamped().PodSpec("mine", "schedulerName").Obj(), builders.PodFrom(pod).Set("mine", "spec", "schedulerName").Obj(), platform.Stamp{Hash: "v1-said", Enforcement: "enforce"}, []string{"sandbox/python-abc"},
		},
		"something else":     {stamped().Obj(), edited, platform.Stamp{Hash: other.Content.Hash(), Sendable: true}, inFull},
		"the Sandbox edited": {stamped().Generation(2).Obj(), pod, platform.Stamp{Hash: b.Hash(), Sendable: true}, inFull},
		"not stamped":        {member, pod, platform.Stamp{Hash: b.Hash(), Sendable: true}, inFull},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStore(pool, v2, tc.sandbox)
			got, err := newPlatform(s, history{v2}).PodRevision(t.Context(), tc.pod)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(platform.Stamp{}, "Namespace")); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
			if _, err := got.Namespace.Labels(); err != nil {
				t.Fatal(err)
			}
			reads := slices.DeleteFunc(slices.Sorted(slices.Values(s.read)), func(key string) bool { return key == "namespace/ns" })
			if diff := cmp.Diff(tc.reads, slices.Compact(reads)); diff != "" {
				t.Errorf("reads (-want,+got):\n%s", diff)
			}
		})
	}
}

// A cold start says whose it is from the beginning.
func TestAColdStartIsBoundWhenItIsCreated(t *testing.T) {
	v2 := builders.MakeTemplate("ns", "python").Obj()
	claim := builders.MakeClaim("ns", "c1").Obj()
	member, _ := running(v2)
	p := newPlatform(newStore(claim, v2, builders.MakePool("ns", "python").Obj()), history{v2})
	for name, tc := range map[string]struct {
		sandbox *unstructured.Unstructured
		want    string
	}{
		"a cold start": {builders.MakeColdStart(claim, v2).Obj(), string(claim.GetUID())},
		"a member":     {member, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := p.NewSandbox(t.Context(), tc.sandbox)
			if err != nil || got.BoundTo != tc.want {
				t.Errorf("NewSandbox() = bound to %q, %v, want %q", got.BoundTo, err, tc.want)
			}
		})
	}
}
