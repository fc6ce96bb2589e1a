package app

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"
)

func TestWebhookConfigFollowsTheAPIServer(t *testing.T) {
	with := []string{"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"}
	cases := map[string]struct {
		args    []string
		kinds   []string
		restamp bool
	}{
		"by default":             {nil, with, false},
		"with mutating policies": {[]string{"--mutating-policies"}, with, false},
		"without":                {[]string{"--mutating-policies=false"}, with[:4], true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			cmd := newWebhookConfigCommand(genericiooptions.IOStreams{Out: &out})
			cmd.SetArgs(append([]string{"--service-name=freshbind"}, tc.args...))
			if err := cmd.Execute(); err != nil {
				t.Fatal(err)
			}
			var kinds []string
			for document := range strings.SplitSeq(out.String(), "\n---\n") {
				var meta struct{ Kind string }
				if err := yaml.Unmarshal([]byte(document), &meta); err != nil {
					t.Fatal(err)
				}
				if !slices.Contains(kinds, meta.Kind) {
					kinds = append(kinds, meta.Kind)
				}
			}
			if diff := cmp.Diff(tc.kinds, kinds); diff != "" {
				t.Errorf("kinds (-want,+got):\n%s", diff)
			}
			if got := strings.Contains(out.String(), "name: restamp-pod.freshbind.dev"); got != tc.restamp {
				t.Errorf("a webhook that puts stamps back: %t, want %t", got, tc.restamp)
			}
		})
	}
}
