package platform

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A Pod may have as a whole what follows from the rest of it, and nothing else.
func TestWholePodPaths(t *testing.T) {
	type object = map[string]any
	type list = []any
	container := func(name string, requests, limits object) object {
		return object{"name": name, "resources": object{"requests": requests, "limits": limits}}
	}
	two := func(requests, limits object) list {
		return list{container("c", requests, limits), container("d", requests, limits)}
	}
	requests := func(name string) string { return podSpecPath + `resources.requests["` + name + `"]` }
	limits := func(name string) string { return podSpecPath + `resources.limits["` + name + `"]` }
	for name, tc := range map[string]struct {
		whole, spec object
		want        []string
	}{
		"nothing":                      {object{}, object{"containers": two(object{"cpu": "1"}, nil)}, nil},
		"requests of its containers":   {object{"requests": object{"cpu": "2", "memory": "1"}}, object{"containers": two(object{"cpu": "1000m"}, nil)}, []string{requests("cpu")}},
		"other requests":               {object{"requests": object{"cpu": "3"}}, object{"containers": two(object{"cpu": "1"}, nil)}, nil},
		"requests of init containers":  {object{"requests": object{"cpu": "5"}}, object{"containers": two(object{"cpu": "1"}, nil), "initContainers": list{container("i", object{"cpu": "5"}, nil)}}, []string{requests("cpu")}},
		"requests of its limits":       {object{"requests": object{"cpu": "4"}, "limits": object{"cpu": "4"}}, object{"containers": two(nil, nil)}, []string{requests("cpu")}},
		"requests unlike its limits":   {object{"requests": object{"cpu": "3"}, "limits": object{"cpu": "4"}}, object{"containers": two(nil, nil)}, nil},
		"limits of its containers":     {object{"requests": object{"cpu": "1"}, "limits": object{"cpu": "4"}}, object{"containers": two(object{"cpu": "2"}, object{"cpu": "2"})}, []string{limits("cpu")}},
		"limits like its requests":     {object{"requests": object{"cpu": "5"}, "limits": object{"cpu": "5"}}, object{"containers": two(object{"cpu": "2"}, object{"cpu": "2"})}, []string{limits("cpu")}},
		"limits below its requests":    {object{"requests": object{"cpu": "3"}, "limits": object{"cpu": "3"}}, object{"containers": two(object{"cpu": "2"}, object{"cpu": "2"})}, nil},
		"other limits":                 {object{"requests": object{"cpu": "1"}, "limits": object{"cpu": "5"}}, object{"containers": two(object{"cpu": "2"}, object{"cpu": "2"})}, nil},
		"limits that no container has": {object{"requests": object{"cpu": "3"}, "limits": object{"memory": "5"}}, object{"containers": two(object{"cpu": "2"}, object{"cpu": "2"})}, nil},
		"requests of nothing":          {object{"requests": object{"cpu": "0"}}, object{"containers": two(nil, nil)}, nil},
		"limits of huge pages":         {object{"requests": object{"hugepages-2Mi": "4"}, "limits": object{"hugepages-2Mi": "4"}}, object{"containers": two(object{"hugepages-2Mi": "2"}, object{"hugepages-2Mi": "2"})}, []string{requests("hugepages-2Mi"), limits("hugepages-2Mi")}},
		"more huge pages":              {object{"requests": object{"hugepages-2Mi": "5"}, "limits": object{"hugepages-2Mi": "5"}}, object{"containers": two(object{"hugepages-2Mi": "2"}, object{"hugepages-2Mi": "2"})}, []string{requests("hugepages-2Mi")}},
		"what nobody can read":         {object{"requests": object{"cpu": "2"}}, object{"containers": list{object{"name": int64(1)}}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			tc.spec["resources"] = tc.whole
			if diff := cmp.Diff(tc.want, wholePodPaths(tc.spec)); diff != "" {
				t.Errorf("wholePodPaths() (-want,+got):\n%s", diff)
			}
		})
	}
}
