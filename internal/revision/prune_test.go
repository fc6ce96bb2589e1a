package revision

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestPrune(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"all is known":            {"{hostname: a, containers: [{name: c, ports: [{containerPort: 80}]}]}", "{hostname: a, containers: [{name: c, ports: [{containerPort: 80}]}]}"},
		"a wrong name":            {"{hostnam: a, hostname: b}", "{hostname: b}"},
		"another case":            {"{containers: [{name: c, ImagePullPolicy: Always}]}", "{containers: [{name: c}]}"},
		"at any depth":            {"{volumes: [{name: v, projected: {sources: [{secret: {name: s, nam: t}}]}}]}", "{volumes: [{name: v, projected: {sources: [{secret: {name: s}}]}}]}"},
		"keys of maps are free":   {"{nodeSelector: {anything: a}, overhead: {cpu: 1}}", "{nodeSelector: {anything: a}, overhead: {cpu: 1}}"},
		"what has another type":   {"{containers: {name: c}, hostname: [a, {b: c}]}", "{containers: {name: c}, hostname: [a, {b: c}]}"},
		"an object for a list":    {"{containers: {a: {b: c}}}", "{containers: {a: {b: c}}}"},
		"elements of another one": {"{containers: [a, null]}", "{containers: [a, null]}"},
		"null":                    {"{hostname: null, hostnam: null}", "{hostname: null}"},
		"nothing":                 {"null", "null"},
	} {
		t.Run(name, func(t *testing.T) {
			read := func(text string) (out any) {
				if err := yaml.Unmarshal([]byte(text), &out); err != nil {
					t.Fatal(err)
				}
				return out
			}
			if diff := cmp.Diff(read(tc.want), Prune(read(tc.in))); diff != "" {
				t.Errorf("Prune() (-want,+got):\n%s", diff)
			}
		})
	}
}
