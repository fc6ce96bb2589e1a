package kruise

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What a Sandbox has beside Pod and volumes counts where it says anything.
func TestOwnFields(t *testing.T) {
	type object = map[string]any
	type list = []any
	for name, tc := range map[string]struct{ spec, want object }{
		"nothing":          {object{}, object{}},
		"null":             {object{"runtimes": nil}, object{}},
		"an empty list":    {object{"runtimes": list{}}, object{}},
		"an empty object":  {object{"pauseStrategy": object{}}, object{}},
		"a list":           {object{"runtimes": list{"r"}}, object{"runtimes": list{"r"}}},
		"an object":        {object{"pauseStrategy": object{"type": "x"}}, object{"pauseStrategy": object{"type": "x"}}},
		"an empty text":    {object{"pauseStrategy": ""}, object{"pauseStrategy": ""}},
		"a reference":      {object{"templateRef": object{"name": "t"}}, object{"templateRef": "t"}},
		"one to nothing":   {object{"templateRef": object{"name": ""}}, object{}},
		"another's fields": {object{"replicas": int64(1)}, object{}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ownOf(tc.spec)); diff != "" {
				t.Errorf("ownOf() (-want,+got):\n%s", diff)
			}
		})
	}
	b, err := blueprintOf(object{"template": podTemplate(image)})
	const want = `{"podTemplate":{"spec":{"containers":[{"image":"` + image + `","name":"main"}]}}}`
	if err != nil || string(b.JSON()) != want {
		t.Errorf("a Pod alone is %s, error %v, want %s", b.JSON(), err, want)
	}
}

func TestWhatAClaimMayAskFor(t *testing.T) {
	resources := map[string]any{"requests": map[string]any{"cpu": "2", "odd": "some", "none": "0"}}
	for name, tc := range map[string]struct {
		by                         ask
		empty, image, cpu, another bool
	}{
		"nothing":      {ask{}, true, false, false, false},
		"an image":     {ask{image: image}, false, true, false, false},
		"resources":    {ask{resources: resources}, false, false, true, true},
		"nobody knows": {ask{unspecified: true}, false, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := []bool{tc.by.empty(), tc.by.allowsImage(image), tc.by.allowsAmount("requests", "cpu", "2000m"), tc.by.allowsAmount("requests", "none", "0")}
			if diff := cmp.Diff([]bool{tc.empty, tc.image, tc.cpu, tc.another}, got); diff != "" {
				t.Errorf("empty, image, cpu, another (-want,+got):\n%s", diff)
			}
		})
	}
	by := ask{resources: resources}
	if (ask{}).allowsImage("") || by.allowsAmount("requests", "odd", "0") || by.allowsAmount("requests", "none", "some") || by.allowsAmount("requests", "cpu", "3") {
		t.Error("an image without a name, what is no amount, or another one is allowed")
	}
}

// What the claim asked for is put back to what it was, and nothing else.
func TestUndone(t *testing.T) {
	type object = map[string]any
	amounts := func(cpu, memory string) object {
		out := object{}
		for name, amount := range map[string]string{"cpu": cpu, "memory": memory} {
			if amount != "" {
				out[name] = amount
			}
		}
		return out
	}
	any1 := ask{unspecified: true}
	for name, tc := range map[string]struct {
		by           ask
		c, was, want object
	}{
		"an image":              {any1, object{"image": "b"}, object{"image": "a"}, object{"image": "a"}},
		"one that was not":      {any1, object{"image": "b"}, object{}, object{"image": "b"}},
		"one that nobody asked": {ask{}, object{"image": "b"}, object{"image": "a"}, object{"image": "b"}},
		"an amount":             {any1, object{"resources": object{"requests": amounts("2", "")}}, object{"resources": object{"requests": amounts("1", "")}}, object{"resources": object{"requests": amounts("1", "")}}},
		"one that was none":     {any1, object{"resources": object{"requests": amounts("2", "")}}, object{}, object{"resources": object{}}},
		"one beside another":    {any1, object{"resources": object{"requests": amounts("2", "1Gi")}}, object{}, object{"resources": object{"requests": amounts("", "1Gi")}}},
		"one in place of one":   {any1, object{"resources": object{"requests": amounts("2", "")}}, object{"resources": object{"requests": amounts("", "1Gi")}}, object{"resources": object{"requests": object{}}}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.by.undo(tc.c, tc.was)
			if diff := cmp.Diff(tc.want, tc.c); diff != "" {
				t.Errorf("undo() (-want,+got):\n%s", diff)
			}
		})
	}
}

// Only the same container has been what it is now.
func TestUndoneOfContainers(t *testing.T) {
	of := func(containers ...any) *unstructured.Unstructured {
		u := made(kindSandbox, "m")
		set(u, map[string]any{"spec": map[string]any{"containers": containers}}, "spec", "template")
		return u
	}
	type object = map[string]any
	sized := object{"image": "b", "resources": object{"requests": object{"cpu": "2"}}}
	for name, tc := range map[string]struct{ now, before, want *unstructured.Unstructured }{
		"the same":        {of(object{"name": "a", "image": "b"}), of(object{"name": "a", "image": "a"}), of(object{"name": "a", "image": "a"})},
		"another":         {of(object{"name": "a", "image": "b"}), of(object{"name": "b", "image": "a"}), of(object{"name": "a", "image": "b"})},
		"none any more":   {of(), of(object{"image": "a"}), of()},
		"none before":     {of(sized), of(), of(sized)},
		"neither has any": {of(), of(), of()},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := undone(tc.now, tc.before, ask{unspecified: true})
			if err != nil {
				t.Fatal(err)
			}
			want, err := contentOf(tc.want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want.JSON()), string(got.JSON())); diff != "" {
				t.Errorf("undone() (-want,+got):\n%s", diff)
			}
		})
	}
}

// A template is given what the claim may have changed, as far as it did.
func TestCarried(t *testing.T) {
	of := func(containers ...any) *unstructured.Unstructured {
		u := made(kindSet, "pool")
		set(u, map[string]any{"spec": map[string]any{"containers": containers}}, "spec", "template")
		return u
	}
	type object = map[string]any
	requests := func(amounts object) object { return object{"requests": amounts} }
	by := ask{image: "b", resources: requests(object{"cpu": "2"})}
	for name, tc := range map[string]struct {
		by                      ask
		template, sandbox, want *unstructured.Unstructured
	}{
		"an image":             {by, of(object{"image": "a"}), of(object{"image": "b"}), of(object{"image": "b"})},
		"another image":        {by, of(object{"image": "a"}), of(object{"image": "c"}), of(object{"image": "a"})},
		"no image":             {ask{unspecified: true}, of(object{"image": "a"}), of(object{}), of(object{"image": "a"})},
		"an amount":            {by, of(object{}), of(object{"resources": requests(object{"cpu": "2000m"})}), of(object{"resources": requests(object{"cpu": "2000m"})})},
		"another amount":       {by, of(object{}), of(object{"resources": requests(object{"cpu": "3"})}), of(object{})},
		"no container":         {by, of(object{"image": "a"}), of(), of(object{"image": "a"})},
		"no container for any": {by, of(), of(object{"image": "b"}), of()},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, carried(tc.template, tc.sandbox, tc.by)); diff != "" {
				t.Errorf("carried() (-want,+got):\n%s", diff)
			}
		})
	}
}
