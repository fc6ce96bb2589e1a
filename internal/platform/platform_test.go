package platform

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/settings"
)

func TestWhatIsJudgedOfAWrite(t *testing.T) {
	before, after := makeBox("m", v1), makeBox("m", v2)
	if got := (Write{Old: before, New: after}).Judged(); got != before {
		t.Errorf("of an update %v is judged", got)
	}
	if got := (Write{New: after}).Judged(); got != after {
		t.Errorf("of a create %v is judged", got)
	}
}

// Templates of two kinds can have one name.
func TestPoolsReferToTemplatesOfTheirKind(t *testing.T) {
	for name, tc := range map[string]struct {
		pool Pool
		kind string
		want bool
	}{
		"of that name":                   {Pool{Template: "t"}, "", true},
		"of another name":                {Pool{Template: "u"}, "", false},
		"of that name, and another kind": {Pool{Template: "t", TemplateKind: "Fleet"}, "", false},
		"of that kind":                   {Pool{Template: "t", TemplateKind: "Fleet"}, "Fleet", true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.pool.RefersTo(tc.kind, "t"); got != tc.want {
				t.Errorf("RefersTo() = %t, want %t", got, tc.want)
			}
		})
	}
}

func TestParseRolloutStatus(t *testing.T) {
	for annotation, want := range map[string]RolloutStatus{"": {}, `{"replicas":3}`: {Replicas: 3}} {
		got, err := ParseRolloutStatus(annotation)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("ParseRolloutStatus(%q): error %v (-want,+got):\n%s", annotation, err, diff)
		}
	}
	for name, annotation := range map[string]string{
		"fewer than none are deleted": `{"updateRevision":"x","replacing":[{"deleted":-1}]}`,
		"fewer than none are ahead":   `{"updateRevision":"x","replacing":[{"ahead":-1,"deleted":1}]}`,
		"more than any pool has":      `{"updateRevision":"x","replacing":[{"deleted":1000001}]}`,
		"more groups than are kept":   `{"updateRevision":"x","replacing":[` + strings.Repeat(`{"deleted":1},`, 32) + `{"deleted":1}]}`,
	} {
		if _, err := ParseRolloutStatus(annotation); err == nil || !strings.Contains(err.Error(), settings.RolloutStatusKey) || !strings.Contains(err.Error(), "replacing") {
			t.Errorf("%s: %v, want an error that names the annotation and the field", name, err)
		}
	}
	if _, err := ParseRolloutStatus("{"); err == nil || !strings.Contains(err.Error(), settings.RolloutStatusKey) {
		t.Errorf("of what is no JSON: %v, want an error that names the annotation", err)
	}
}

// api has one object, or fails. It may not know the kind.
type api struct {
	object        *unstructured.Unstructured
	failed, finds error
}

func (a api) Get(_ context.Context, ref liveread.Ref) (*unstructured.Unstructured, error) {
	if a.failed != nil {
		return nil, a.failed
	}
	if a.object == nil {
		return nil, apierrors.NewNotFound(ref.GVR.GroupResource(), ref.Name)
	}
	return a.object, nil
}

func (a api) Resource(_ context.Context, gr schema.GroupResource) (schema.GroupVersionResource, error) {
	return gr.WithVersion("v1"), a.finds
}

// What does not exist is no error, and whatever else is no object is one.
func TestStored(t *testing.T) {
	labelled := makeBox("m", v2, set("b", "metadata", "labels", "a"))
	for name, tc := range map[string]struct {
		api  api
		want *unstructured.Unstructured
		err  error
	}{
		"there":            {api{object: labelled}, labelled, nil},
		"not there":        {api{}, nil, nil},
		"cannot be read":   {api{object: labelled, failed: errAway}, nil, errAway},
		"is not known yet": {api{object: labelled, finds: errAway}, nil, errAway},
	} {
		t.Run(name, func(t *testing.T) {
			s := Stored{Reader: liveread.NewReader(tc.api, nil), Resolver: tc.api}
			got, err := s.Get(t.Context(), schema.GroupResource{Group: boxDomain, Resource: "boxes"}, "ns", "m")
			if diff := cmp.Diff(tc.want, got); diff != "" || !errors.Is(err, tc.err) {
				t.Errorf("Get(): error %v, want %v (-want,+got):\n%s", err, tc.err, diff)
			}
			labels, err := s.NamespaceLabels(t.Context(), "ns")
			if has := labels["a"] == "b"; has != (tc.want != nil) || !errors.Is(err, tc.err) {
				t.Errorf("NamespaceLabels() = %v, error %v, want some: %t, error %v", labels, err, tc.want != nil, tc.err)
			}
		})
	}
}

// A Pod that was read is shared by those who read it.
func TestReadPodChangesNothing(t *testing.T) {
	pod := makePod("a", "image", set([]any{map[string]any{"name": "gate"}}, "spec", "schedulingGates"))
	was := pod.DeepCopy()
	got, err := ReadPod(pod)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(was, pod); diff != "" {
		t.Errorf("ReadPod() changed it (-was,+is):\n%s", diff)
	}
	without, err := ReadPod(makePod("a", "image"))
	if err != nil || got.Content.Hash() != without.Content.Hash() {
		t.Errorf("ReadPod() error = %v; its gate counts", err)
	}
}
