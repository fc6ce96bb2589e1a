package webhooks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"gomodules.xyz/jsonpatch/v2"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

func TestRestamp(t *testing.T) {
	const path = "/metadata/labels/freshbind.dev~1template-spec-hash"
	plain := builders.MakePod(member)
	stamped := func(hash string) *builders.Pod { return builders.PodFrom(plain.Obj()).Label(settings.StampKey, hash) }
	cases := map[string]struct {
		old, obj *builders.Pod
		mode     settings.Mode
		want     []jsonpatch.JsonPatchOperation
	}{
		"changed":   {stamped("v1-a"), stamped("v1-b"), settings.Enforce, []jsonpatch.JsonPatchOperation{{Operation: "add", Path: path, Value: "v1-a"}}},
		"removed":   {stamped("v1-a"), plain, settings.Enforce, []jsonpatch.JsonPatchOperation{{Operation: "add", Path: path, Value: "v1-a"}}},
		"added":     {plain, stamped("v1-b"), settings.Enforce, []jsonpatch.JsonPatchOperation{{Operation: "remove", Path: path}}},
		"as it was": {stamped("v1-a"), stamped("v1-a"), settings.Enforce, nil},
		"audited":   {stamped("v1-a"), stamped("v1-b"), settings.Audit, nil},
		"tightened by its pool": {
			stamped("v1-a").Label(settings.EnforcementKey, "enforce"), stamped("v1-b"), settings.Audit,
			[]jsonpatch.JsonPatchOperation{{Operation: "add", Path: path, Value: "v1-a"}},
		},
		"all removed": {stamped("v1-a"), builders.PodFrom(plain.Obj()).Unset("metadata", "labels"), settings.Enforce, []jsonpatch.JsonPatchOperation{{Operation: "add", Path: "/metadata/labels", Value: map[string]any{settings.StampKey: "v1-a"}}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			resp := Restamp{Modes: modes(t, tc.mode, nil)}.Handle(t.Context(), request(t, admissionv1.Update, tc.old.Obj(), tc.obj.Obj()))
			if !resp.Allowed {
				t.Fatalf("refused: %v", resp.Result)
			}
			if diff := cmp.Diff(tc.want, resp.Patches); diff != "" {
				t.Errorf("patches (-want,+got):\n%s", diff)
			}
		})
	}
}

// Where mutating policies are served there is no webhook for what they do.
func TestRestampIsInstalledOnRequest(t *testing.T) {
	find := func(s Scope) *admissionregistrationv1.MutatingWebhook {
		mutating, _ := Configurations(agentsandbox.Admission(), Endpoint{URL: "https://h:1"}, s)
		for i := range mutating.Webhooks {
			if mutating.Webhooks[i].Name == restampHook("").Name {
				return &mutating.Webhooks[i]
			}
		}
		return nil
	}
	if find(Scope{Self: "us"}) != nil {
		t.Error("installed without being asked for")
	}
	hook := find(Scope{Self: "us", Restamp: true, Exempt: []string{"ours"}})
	if hook == nil {
		t.Fatal("not installed")
	}
	conditions := map[string]string{}
	for _, c := range hook.MatchConditions {
		conditions[c.Name] = c.Expression
	}
	want := map[string]string{
		"not-freshbind":   `request.userInfo.username != "us"`,
		"changes-a-stamp": stampChanges[0].Expression,
	}
	if diff := cmp.Diff(want, conditions); diff != "" {
		t.Errorf("conditions (-want,+got):\n%s", diff)
	}
	wantScope := &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: "kubernetes.io/metadata.name", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"kube-system", "ours"},
		}},
	}
	if diff := cmp.Diff(wantScope, hook.NamespaceSelector); diff != "" {
		t.Errorf("namespaces (-want,+got):\n%s", diff)
	}
	if *hook.FailurePolicy != admissionregistrationv1.Ignore {
		t.Errorf("failurePolicy %s, want Ignore: no write of a Pod may fail for a stamp", *hook.FailurePolicy)
	}
}
