package agentsandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/test/builders"
)

func variable(name, value string) map[string]any { return map[string]any{"name": name, "value": value} }

// upstreamEnv searches the list for each variable, as agent-sandbox does.
func upstreamEnv(list []any, add []map[string]any, policy string) ([]any, bool) {
	for _, e := range add {
		i := slices.IndexFunc(list, func(v any) bool { return v.(map[string]any)["name"] == e["name"] })
		switch {
		case i < 0:
			list = append(list, e)
		case policy == "Overrides":
			list[i] = e
		default:
			return nil, false
		}
	}
	return list, true
}

func FuzzEnvIsSetAsUpstreamSetsIt(f *testing.F) {
	f.Add(false, []byte("ab"), []byte("cd"))
	f.Add(false, []byte("ab"), []byte("cc"))
	f.Add(true, []byte("abab"), []byte("bcbc"))
	f.Add(true, []byte(""), []byte("ba"))
	f.Fuzz(func(t *testing.T, overrides bool, has, adds []byte) {
		policy := "Allowed"
		if overrides {
			policy = "Overrides"
		}
		var list, copied []any
		for i, name := range has {
			list = append(list, variable(string('a'+rune(name%8)), fmt.Sprint("template ", i)))
			copied = append(copied, list[i])
		}
		var add []map[string]any
		for i, name := range adds {
			add = append(add, variable(string('a'+rune(name%8)), fmt.Sprint("claim ", i)))
		}
		want, wantSet := upstreamEnv(copied, add, policy)
		container := map[string]any{"env": list}
		err := setEnv(container, add, policy)
		var refused *unrenderableError
		if wantSet != (err == nil) || err != nil && !errors.As(err, &refused) {
			t.Fatalf("setEnv() = %v, want it set: %t", err, wantSet)
		}
		if diff := cmp.Diff(want, container["env"]); wantSet && diff != "" {
			t.Errorf("env (-want,+got):\n%s", diff)
		}
	})
}

// A claim of the largest size that is stored has fewer. Were each searched for in the
// list of all, this would take many minutes.
func TestRenderColdOfManyNames(t *testing.T) {
	const many = 100_000
	var vars, volumes []any
	for i := range many {
		vars = append(vars, variable(fmt.Sprint("V", i), "x"))
		volumes = append(volumes, map[string]any{"metadata": map[string]any{"name": fmt.Sprint("v", i)}})
	}
	claim := builders.MakeClaim("ns", "c1").Set(vars, "spec", "env").Set(volumes, "spec", "volumeClaimTemplates").Obj()
	spec, err := coldSpec(template().EnvPolicy("Allowed").VolumeClaimPolicy("Allowed").Obj(), claim)
	if err != nil {
		t.Fatal(err)
	}
	container := objects(spec["podTemplate"].(map[string]any)["spec"].(map[string]any), "containers")[0]
	got := []int{len(objects(container, "env")), len(objects(spec, "volumeClaimTemplates"))}
	if diff := cmp.Diff([]int{many, many}, got); diff != "" {
		t.Errorf("variables and volumes (-want,+got):\n%s", diff)
	}
}

// Each recorded revision is rendered with the claim again.
func TestRevisionsAreNotRenderedForNobody(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	source := template().Obj()
	p := newPlatform(newStore(), nil)
	p.History = recordedTemplates{source}
	if known, err := p.known(ctx, source, builders.MakeClaim("ns", "c1").Obj()); !errors.Is(err, context.Canceled) {
		t.Errorf("known() = %d revisions, error %v, want that nobody waits for them", len(known), err)
	}
}

// recordedTemplates are revisions that were recorded with their templates.
type recordedTemplates []*unstructured.Unstructured

func (h recordedTemplates) Revisions(context.Context, *unstructured.Unstructured) ([]platform.Recorded, error) {
	var out []platform.Recorded
	for _, t := range h {
		out = append(out, platform.Recorded{Template: t})
	}
	return out, nil
}
