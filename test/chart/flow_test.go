package chart

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A thousand deletes must not queue before a read that an admission call waits
// for.
func TestAdmissionReadsHaveAPriorityLevelOfTheirOwn(t *testing.T) {
	type flow struct {
		Verbs      string
		Precedence string
		Level      string
	}
	got := map[string]flow{}
	levels := map[string]bool{}
	for _, o := range render(t, certManager) {
		switch o.GetKind() {
		case "PriorityLevelConfiguration":
			levels[o.GetName()] = true
		case "FlowSchema":
			rules, _, _ := unstructured.NestedSlice(o.Object, "spec", "rules")
			resources, _, _ := unstructured.NestedSlice(rules[0].(map[string]any), "resourceRules")
			verbs, _, _ := unstructured.NestedStringSlice(resources[0].(map[string]any), "verbs")
			precedence, _, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "matchingPrecedence")
			level, _, _ := unstructured.NestedString(o.Object, "spec", "priorityLevelConfiguration", "name")
			got[o.GetName()] = flow{strings.Join(verbs, ","), fmt.Sprint(precedence), level}
		}
	}
	want := map[string]flow{release: {"get", "900", release}, release + "-controllers": {"*", "901", release + "-controllers"}}
	if diff := cmp.Diff(want, got); diff != "" || len(levels) != 2 {
		t.Errorf("levels %v, schemas (-want,+got):\n%s", levels, diff)
	}
}
