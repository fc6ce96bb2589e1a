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
		"elements of another one": {"{containers: [a, null]}", "{containers: [a, null]}"},
		"null":                    {"{hostname: null, hostnam: null}", "{hostname: null}"},
		"nothing":                 {"null", "null"},
	} {
		t.Run(name, func(t *testing.T) {
			var in, want any
			for text, into := range map[string]*any{tc.in: &in, tc.want: &want} {
				if err := yaml.Unmarshal([]byte(text), into); err != nil {
					t.Fatal(err)
				}
			}
			if tc.in == tc.want {
				want = in
			}
			if diff := cmp.Diff(want, Prune(in)); diff != "" {
				t.Errorf("Prune() (-want,+got):\n%s", diff)
			}
		})
	}
}
