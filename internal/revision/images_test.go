package revision

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func podSpecWith(t *testing.T, spec map[string]any) Blueprint {
	t.Helper()
	b, err := FromPodSpec(spec)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestImages(t *testing.T) {
	container := func(name, image string) any {
		return map[string]any{"name": name, "image": image, "env": []any{map[string]any{"name": "A", "value": "1"}}}
	}
	cases := map[string]struct {
		spec map[string]any
		want string
	}{
		"containers and init containers": {
			map[string]any{
				"hostNetwork": true, "initContainers": []any{container("setup", "setup:v1")},
				"containers": []any{container("b", "b:v1"), container("a", "a:v1")},
			},
			`{"podTemplate":{"spec":{"containers":[{"image":"b:v1","name":"b"},{"image":"a:v1","name":"a"}],"initContainers":[{"image":"setup:v1","name":"setup"}]}}}`,
		},
		"no image":      {map[string]any{"containers": []any{map[string]any{"name": "c"}}}, `{"podTemplate":{"spec":{"containers":[{"name":"c"}]}}}`},
		"no containers": {map[string]any{"hostNetwork": true}, `{}`},
		"nothing":       {map[string]any{}, `{}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, string(podSpecWith(t, tc.spec).Images().JSON())); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

// Digests of images are those of the whole: an older revision of which only
// digests are kept is recognised by its images all the same.
func TestImagesOfADigest(t *testing.T) {
	spec := func(image, env string) map[string]any {
		return map[string]any{"containers": []any{
			map[string]any{"name": "c", "image": image, "env": []any{map[string]any{"name": "A", "value": env}}},
		}}
	}
	kept := podSpecWith(t, spec("sandbox:v1", "1")).Redact()
	if !Equal(kept.Images(), podSpecWith(t, spec("sandbox:v1", "2")).Images(), PathSet{}) {
		t.Error("the same images differ")
	}
	if Equal(kept.Images(), podSpecWith(t, spec("sandbox:v2", "1")).Images(), PathSet{}) {
		t.Error("other images are the same")
	}
}
