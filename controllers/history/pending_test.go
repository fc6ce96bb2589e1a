package history

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/test/builders"
)

// Whoever holds the most loses a version, not who writes the next one, nor who has the
// largest template.
func TestOneNamespaceTakesNoVersionsFromOthers(t *testing.T) {
	p := newPending()
	add := func(template *unstructured.Unstructured, name string) {
		template = template.DeepCopy()
		template.SetName(name)
		p.add(client.ObjectKeyFromObject(template), template)
	}
	many := builders.MakeTemplate("greedy", "t").Env("A", strings.Repeat("x", 1<<18)).Obj()
	for i := range 100 {
		for range 3 {
			add(many, fmt.Sprint("t", i))
		}
	}
	few := builders.MakeTemplate("modest", "t").Env("A", strings.Repeat("x", 1<<19)).Obj()
	for range 5 {
		add(few, "a")
		add(few, "b")
	}
	got := map[string]int{}
	for key, list := range p.versions {
		if key.Namespace == "modest" {
			got[key.Name] = len(list)
		}
	}
	if diff := cmp.Diff(map[string]int{"a": 5, "b": 5}, got); diff != "" {
		t.Errorf("versions that wait (-want,+got):\n%s", diff)
	}
	if p.bytes > pendingBytes {
		t.Errorf("%d bytes wait", p.bytes)
	}
}

func TestPendingIsBounded(t *testing.T) {
	const each = 1 << 20
	cases := map[string]struct {
		templates, versions, bytes int
		// wantEach is how many versions of the template written last wait.
		wantEach int
	}{
		"a few":                       {templates: 3, versions: 3, bytes: 10, wantEach: 3},
		"many small ones of one":      {templates: 1, versions: 1000, bytes: 10, wantEach: pendingEach},
		"large ones of one":           {templates: 1, versions: 100, bytes: each, wantEach: 16},
		"large ones of many":          {templates: 100, versions: 5, bytes: each, wantEach: 2},
		"one that is larger than all": {templates: 1, versions: 2, bytes: pendingBytes, wantEach: 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := newPending()
			base := builders.MakeTemplate("ns", "t").Env("A", strings.Repeat("x", tc.bytes)).Obj()
			var key types.NamespacedName
			var latest *unstructured.Unstructured
			for i := range tc.templates {
				for range tc.versions {
					latest = base.DeepCopy()
					latest.SetName(fmt.Sprint("t", i))
					key = client.ObjectKeyFromObject(latest)
					p.add(key, latest)
					if p.bytes > pendingBytes {
						t.Fatalf("%d bytes wait", p.bytes)
					}
				}
			}
			list := p.of(key)
			if len(list) != tc.wantEach || list[len(list)-1] != latest {
				t.Errorf("%d versions wait, want %d with the latest as the last", len(list), tc.wantEach)
			}
			for key := range p.versions {
				p.forget(key)
			}
			if p.bytes != 0 || len(p.versions) != 0 {
				t.Errorf("%d bytes of %d templates wait after all were forgotten", p.bytes, len(p.versions))
			}
		})
	}
}
