package kruise

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What is put back is what members are built from, all of it, and nothing else.
func TestRestore(t *testing.T) {
	of := func(kind string, spec map[string]any) *unstructured.Unstructured {
		u := made(kind, "x")
		u.Object["spec"] = spec
		return u
	}
	fields := []any{map[string]any{"name": "r"}}
	for name, tc := range map[string]struct {
		now, earlier *unstructured.Unstructured
		want         map[string]any
	}{
		"an image": {
			of(kindSet, map[string]any{"replicas": int64(9), "scaleStrategy": "s", "template": podTemplate(newer)}),
			of(kindSet, map[string]any{"replicas": int64(1), "updateStrategy": "u", "template": podTemplate(image)}),
			map[string]any{"replicas": int64(9), "scaleStrategy": "s", "template": podTemplate(image)},
		},
		"what was added goes": {
			of(kindSet, map[string]any{"template": podTemplate(image), "volumeClaimTemplates": fields, "runtimes": fields, "persistentContents": fields, "pauseStrategy": "p"}),
			of(kindSet, map[string]any{"template": podTemplate(image)}),
			map[string]any{"template": podTemplate(image)},
		},
		"what went comes": {
			of(kindSet, map[string]any{"template": podTemplate(image)}),
			of(kindSet, map[string]any{"template": podTemplate(image), "volumeClaimTemplates": fields, "runtimes": fields, "persistentContents": fields, "pauseStrategy": "p"}),
			map[string]any{"template": podTemplate(image), "volumeClaimTemplates": fields, "runtimes": fields, "persistentContents": fields, "pauseStrategy": "p"},
		},
		"a reference in place of a template": {
			of(kindSet, map[string]any{"replicas": int64(2), "template": podTemplate(image)}),
			of(kindSet, map[string]any{"templateRef": map[string]any{"name": "tpl"}}),
			map[string]any{"replicas": int64(2), "templateRef": map[string]any{"name": "tpl"}},
		},
		"a template in place of a reference": {
			of(kindSet, map[string]any{"templateRef": map[string]any{"name": "tpl"}}),
			of(kindSet, map[string]any{"template": podTemplate(image)}),
			map[string]any{"template": podTemplate(image)},
		},
		"of a template its Pod": {
			of(kindTemplate, map[string]any{"template": podTemplate(newer), "runtimes": fields}),
			of(kindTemplate, map[string]any{"template": podTemplate(image), "volumeClaimTemplates": fields}),
			map[string]any{"template": podTemplate(image), "runtimes": fields},
		},
		"of an empty one": {of(kindTemplate, nil), of(kindTemplate, map[string]any{"template": podTemplate(image)}), map[string]any{"template": podTemplate(image)}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := (Commands{}).Restore(tc.now, tc.earlier); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, tc.now.Object["spec"]); diff != "" {
				t.Errorf("spec (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestWhatCannotBeRestored(t *testing.T) {
	good, bad := made(kindSet, "x"), made(kindSet, "x")
	bad.Object["spec"] = "x"
	for name, tc := range map[string]struct{ now, earlier *unstructured.Unstructured }{"it is no object": {bad, good}, "it was no object": {good, bad}} {
		if err := (Commands{}).Restore(tc.now, tc.earlier); err == nil {
			t.Errorf("%s: it is restored to %v", name, tc.now.Object["spec"])
		}
	}
}
