package kruise

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
)

func byRef(c *cluster) {
	set(c.set(), map[string]any{"templateRef": map[string]any{"name": "tpl"}, "replicas": int64(1)}, "spec")
	template := made(kindTemplate, "tpl")
	template.Object["spec"] = map[string]any{"template": podTemplate(image)}
	c.add(Templates.Resource, template)
	c.member = memberOf(c.set(), "m")
	c.written = takenFor(c.member, "uid-c", "c")
	unstructured.RemoveNestedField(c.written.Object, "spec", "template")
	c.pod().SetOwnerReferences(podOf(c.member, image).GetOwnerReferences())
}

// coldByRef has a pool that refers to a template, and a cold start that does.
func coldByRef(c *cluster) {
	byRef(c)
	c.member, c.written = nil, coldFor(c.set(), "uid-c", "c")
	unstructured.RemoveNestedField(c.written.Object, "spec", "template")
	delete(c.objs, pods.Resource+"/m")
}

func runtimes(u *unstructured.Unstructured) {
	set(u, []any{map[string]any{"name": "r"}}, "spec", "runtimes")
}

// From a SandboxTemplate comes the Pod, and the rest from the SandboxSet.
func TestBindsByReference(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*cluster)
		want   freshness.Reason
	}{
		"stale runtimes": {func(c *cluster) { byRef(c); runtimes(c.set()) }, freshness.UnknownRevision},
		"with runtimes": {func(c *cluster) {
			byRef(c)
			for _, of := range []*unstructured.Unstructured{c.set(), c.member, c.written} {
				runtimes(of)
			}
		}, freshness.Fresh},
		"runtimes of the template": {func(c *cluster) { byRef(c); runtimes(c.template()) }, freshness.Fresh},
		"and the pool is inline": {func(c *cluster) {
			byRef(c)
			unstructured.RemoveNestedField(c.set().Object, "spec", "templateRef")
			set(c.set(), podTemplate(image), "spec", "template")
			set(c.member, "pool", "spec", "templateRef", "name")
			set(c.written, "pool", "spec", "templateRef", "name")
		}, freshness.Fresh},
		"cold": {coldByRef, freshness.Fresh},
		"cold to what changed": {func(c *cluster) {
			coldByRef(c)
			container(c.template())["image"] = newer
		}, freshness.Fresh},
		"cold, stale runtimes": {func(c *cluster) { coldByRef(c); runtimes(c.set()) }, freshness.UnknownRevision},
		"cold to a namesake of the pool": {func(c *cluster) {
			coldly(c)
			c.written.Object["spec"] = map[string]any{"templateRef": map[string]any{"name": "pool"}}
		}, freshness.UnknownRevision},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			tc.change(c)
			v, err := judged(t, c)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, v.Reason); diff != "" {
				t.Errorf("reason (-want,+got), for %q:\n%s", v.Detail, diff)
			}
		})
	}
}
