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

// What is printed for another platform stands beside the rest, and changes nothing of it.
func TestWebhookConfigOfOtherPlatforms(t *testing.T) {
	printed := func(args ...string) map[string]string {
		t.Helper()
		var out bytes.Buffer
		cmd := newWebhookConfigCommand(genericiooptions.IOStreams{Out: &out})
		cmd.SetArgs(append([]string{"--service-name=freshbind", "--enforced-namespaces=tier=prod"}, args...))
		if err := cmd.Execute(); err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for document := range strings.SplitSeq(out.String(), "\n---\n") {
			var meta struct {
				Kind     string
				Metadata struct{ Name string }
			}
			if err := yaml.Unmarshal([]byte(document), &meta); err != nil {
				t.Fatal(err)
			}
			key := meta.Kind + " " + meta.Metadata.Name
			if _, twice := all[key]; twice {
				t.Errorf("%s is printed twice", key)
			}
			all[key] = strings.TrimSuffix(strings.TrimPrefix(document, "---\n"), "\n")
		}
		return all
	}
	without, with := printed("--mutating-policies=false"), printed("--mutating-policies=false", "--platform-kruise", "--kruise-controller-users=me")
	var added []string
	for key, text := range with {
		if _, was := without[key]; was {
			continue
		}
		added = append(added, key)
		if !strings.Contains(key, "-kruise") || strings.Contains(text, "agents.x-k8s.io") || !strings.Contains(text, "freshbind-kruise") && !strings.Contains(text, "-kruise") {
			t.Errorf("%s is not of that platform alone:\n%s", key, text)
		}
		if strings.Contains(key, "WebhookConfiguration") && (strings.Contains(text, "path: /bind") || !strings.Contains(text, "path: /kruise/")) {
			t.Errorf("%s asks on the paths of another platform:\n%s", key, text)
		}
	}
	slices.Sort(added)
	policies := func(names ...string) []string {
		var out []string
		for _, name := range names {
			out = append(out, "ValidatingAdmissionPolicy "+name)
		}
		return out
	}
	want := slices.Concat([]string{
		"MutatingWebhookConfiguration freshbind-kruise", "ValidatingWebhookConfiguration freshbind-kruise", "ValidatingWebhookConfiguration freshbind-kruise-by-floor-0",
		"ValidatingAdmissionPolicyBinding freshbind-own-writes-kruise", "ValidatingAdmissionPolicyBinding freshbind-own-members-kruise",
		"ValidatingAdmissionPolicyBinding freshbind-pools-kruise",
	}, policies("freshbind-stamp-kruise", "freshbind-born-kruise", "freshbind-used-kruise", "freshbind-pools-kruise", "freshbind-own-writes-kruise", "freshbind-own-members-kruise"))
	for _, name := range []string{"freshbind-stamp-kruise", "freshbind-born-kruise", "freshbind-used-kruise"} {
		for _, place := range []string{"", "-by-pool", "-by-floor-0"} {
			want = append(want, "ValidatingAdmissionPolicyBinding "+name+place)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, added); diff != "" {
		t.Errorf("added (-want,+got):\n%s", diff)
	}
	for key, text := range without {
		if diff := cmp.Diff(text, with[key]); diff != "" {
			t.Errorf("%s changes (-without,+with):\n%s", key, diff)
		}
	}
	if all := with["MutatingWebhookConfiguration freshbind-kruise"]; !strings.Contains(all, `"me"`) {
		t.Errorf("members are made by somebody else than was said:\n%s", all)
	}
}

// Each setting has one meaning, in a file and as a flag.
func TestGuardedPlatforms(t *testing.T) {
	for with, want := range map[bool][]string{false: {"agent-sandbox"}, true: {"agent-sandbox", "openkruise-agents"}} {
		var names []string
		for _, g := range guarded(with) {
			names = append(names, g.Name)
		}
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("guarded(%t) (-want,+got):\n%s", with, diff)
		}
	}
}
