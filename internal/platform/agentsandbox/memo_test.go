package agentsandbox

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

func version(uid string, generation int64, resourceVersion, image string) *unstructured.Unstructured {
	template := builders.MakeTemplate("ns", "t").Image(image).Obj()
	template.SetUID(types.UID(uid))
	template.SetGeneration(generation)
	template.SetResourceVersion(resourceVersion)
	return template
}

func TestMemoTellsTemplatesApart(t *testing.T) {
	cases := map[string]struct {
		first, second *unstructured.Unstructured
		same          bool
	}{
		"annotated: one generation":    {version("u", 1, "1", "a"), version("u", 1, "2", "a"), true},
		"another generation":           {version("u", 1, "1", "a"), version("u", 2, "2", "b"), false},
		"an earlier one, from a cache": {version("u", 2, "2", "b"), version("u", 1, "1", "a"), false},
		"another of that name":         {version("u", 1, "1", "a"), version("v", 1, "2", "b"), false},
		"no UID":                       {version("", 1, "1", "a"), version("", 1, "2", "b"), false},
		"after a restore of etcd":      {version("u", 2, "2", "a"), version("u", 2, "2", "b"), false},
		"an edit undone":               {version("u", 1, "1", "a"), version("u", 3, "3", "a"), true},
		"no generation":                {version("u", 0, "1", "a"), version("u", 0, "2", "b"), false},
		"another version of the API":   {version("u", 1, "1", "a"), inVersion(version("u", 1, "1", "b"), "v0"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var m Memo
			for range 2 {
				first, err := m.Render(tc.first)
				if err != nil {
					t.Fatal(err)
				}
				second, err := m.Render(tc.second)
				if err != nil {
					t.Fatal(err)
				}
				want, err := RenderMember(tc.second)
				if err != nil {
					t.Fatal(err)
				}
				if !second.Equal(want) || first.Equal(second) != tc.same {
					t.Errorf("Render() = %s and %s, want %s last", first.JSON(), second.JSON(), want.JSON())
				}
			}
		})
	}
}

func inVersion(u *unstructured.Unstructured, v string) *unstructured.Unstructured {
	u.SetAPIVersion(ExtensionsGroup + "/" + v)
	return u
}

// A tenant writes large templates again and again, some with another content.
func TestMemoIsBoundedInBytes(t *testing.T) {
	var m Memo
	annotated := version("u", 1, "0", strings.Repeat("x", 100_000))
	for i := range 140 {
		annotated.SetResourceVersion(fmt.Sprint(i))
		if _, err := m.Render(annotated); err != nil {
			t.Fatal(err)
		}
	}
	if got := m.templates.Len(); got != 1 {
		t.Errorf("%d entries for one generation", got)
	}
	one, _ := m.templates.Get("u")
	if len(one) != 1 {
		t.Errorf("%d renderings of one generation", len(one))
	}
	for i := range 30 {
		if _, err := m.Render(version("u", int64(i), "1", fmt.Sprint(i, strings.Repeat("x", 100_000)))); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Render(version(fmt.Sprint("u", i), 1, "1", strings.Repeat("x", 1_000_000))); err != nil {
			t.Fatal(err)
		}
		if got := m.templates.Bytes(); got > memoBytes {
			t.Fatalf("%d bytes are held", got)
		}
	}
	one, _ = m.templates.Get("u")
	if last := version("u", 29, "1", fmt.Sprint(29, strings.Repeat("x", 100_000))); len(one) != memoEach || !reflect.DeepEqual(one[0].spec, last.Object["spec"]) {
		t.Errorf("%d renderings of one template, and the last one not first", len(one))
	}
}

// What a template says may be large and no part of what is built from it.
func TestMemoCountsAllThatItKeeps(t *testing.T) {
	const large = 100_000
	var m Memo
	template := version("u", 1, "1", "a")
	template.Object["spec"].(map[string]any)["networkPolicy"] = strings.Repeat("x", large)
	if _, err := m.Render(template); err != nil {
		t.Fatal(err)
	}
	if got := m.templates.Bytes(); got < large {
		t.Errorf("%d bytes are counted, want more than %d", got, large)
	}
}

// Whoever holds a template that was rendered may change their copy of it.
func TestMemoKeepsNothingOfOthers(t *testing.T) {
	var m Memo
	template := version("u", 1, "1", "a")
	for _, image := range []string{"a", "b"} {
		spec := template.Object["spec"].(map[string]any)["podTemplate"].(map[string]any)["spec"].(map[string]any)
		spec["containers"].([]any)[0].(map[string]any)["image"] = image
		want, err := RenderMember(template)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := m.Render(template); err != nil || !got.Equal(want) {
			t.Errorf("Render() of image %s = %s, %v", image, got.JSON(), err)
		}
	}
}

func TestListsOfPathsAreParsedOnceAndBounded(t *testing.T) {
	var m pathsMemo
	pool := func(list string) *unstructured.Unstructured {
		return builders.MakePool("ns", "p").Annotation(settings.InjectedPathsKey, list).Obj()
	}
	const path = "podTemplate.spec.nodeName"
	for range 2 {
		if got := m.injected(pool(path)).String(); got != path {
			t.Errorf("injected() = %q", got)
		}
	}
	if m.lists.Len() != 1 {
		t.Errorf("%d lists are kept, want 1", m.lists.Len())
	}
	if got := m.injected(nil).Len() + m.injected(pool("nonsense")).Len() + m.injected(pool("")).Len(); got != 0 {
		t.Errorf("%d paths out of nothing", got)
	}
	kept := m.lists.Len()
	if kept != 2 {
		t.Errorf("%d lists are kept, want the two that are not empty", kept)
	}
	for _, n := range []int{revision.MaxPathBytes + 1, 30 * revision.MaxPathBytes} {
		if got := m.injected(pool(path + strings.Repeat(" ", n-len(path)))); got.Len() != 0 {
			t.Errorf("%d paths of a list of %d bytes, which is too long", got.Len(), n)
		}
	}
	if m.lists.Len() != kept {
		t.Error("a list that is too long is kept")
	}
	if m.injected(pool(path + strings.Repeat(" ", revision.MaxPathBytes-len(path)))); m.lists.Len() != kept+1 {
		t.Error("a list that is as long as may be is not kept")
	}
	for i := range 500 {
		m.injected(pool(path + strings.Repeat(" ", revision.MaxPathBytes-1000+i-len(path))))
	}
	if got := m.lists.Bytes(); got > pathsBytes {
		t.Errorf("%d bytes are held", got)
	}
}
