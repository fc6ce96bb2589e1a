package revision_test

import (
	"fmt"

	"github.com/freshbind/freshbind/internal/revision"
)

// podSpec is a pod spec of one container, as JSON decodes it.
func podSpec(image string, more map[string]any) map[string]any {
	container := map[string]any{"name": "python", "image": image}
	for key, value := range more {
		container[key] = value
	}
	return map[string]any{"containers": []any{container}}
}

// Two specs have one hash exactly if the Kubernetes API calls them equal.
func ExampleBlueprint_Hash() {
	whole, err := revision.FromPodSpec(podSpec("sandbox:v1", map[string]any{
		"resources": map[string]any{"limits": map[string]any{"cpu": "1"}},
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	milli, err := revision.FromPodSpec(podSpec("sandbox:v1", map[string]any{
		"resources": map[string]any{"limits": map[string]any{"cpu": "1000m"}}, "env": []any{},
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(whole.Hash() == milli.Hash())
	// Output: true
}

// What a sandbox has and its template has not is a difference, unless its path is
// allowed.
func ExampleCompare() {
	template, err := revision.FromPodSpec(podSpec("sandbox:v2", nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	sandbox, err := revision.FromPodSpec(podSpec("sandbox:v1", map[string]any{
		"env": []any{map[string]any{"name": "HTTP_PROXY", "value": "http://proxy"}},
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	allowed, err := revision.ParsePaths("podTemplate.spec.containers[name=python].env[name=HTTP_PROXY]")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(revision.Summary(revision.Compare(template, sandbox, allowed), 3))
	fmt.Println(len(revision.Compare(template, sandbox, revision.PathSet{})) > len(revision.Compare(template, sandbox, allowed)))
	// Output:
	// containers[name=python].image: "sandbox:v2" -> "sandbox:v1"
	// true
}
