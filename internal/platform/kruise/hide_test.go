package kruise

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// What is hidden is found by nobody, and gets back what it had.
func TestHideAndShow(t *testing.T) {
	cases := map[string]struct {
		change func(*unstructured.Unstructured)
		want   string
	}{
		"a member":                    {func(*unstructured.Unstructured) {}, "pool"},
		"of a template by reference":  {labelled(templateLabel, "python"), "python"},
		"found by its pool":           {labelled(templateLabel, ""), "pool"},
		"of which nothing is known":   {func(m *unstructured.Unstructured) { labelled(templateLabel, "")(m); labelled(poolLabel, "")(m) }, ""},
		"with annotations of its own": {func(m *unstructured.Unstructured) { m.SetAnnotations(map[string]string{"example.com/a": "b"}) }, "pool"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := newCluster().member
			tc.change(m)
			o := Objects{}
			hid := patched(t, m, o.Hide(m))
			if !o.IsShown(m) || o.IsShown(hid) || hid.GetLabels()[poolLabel] != m.GetLabels()[poolLabel] {
				t.Fatalf("hidden it has labels %v", hid.GetLabels())
			}
			if is := o.DescribeMember(hid); is.Shown || !is.Hideable || !is.Pooled {
				t.Errorf("hidden it is %+v", is.MemberTraits)
			}
			if diff := cmp.Diff(hid, patched(t, hid, o.Hide(hid))); diff != "" {
				t.Errorf("hiding it once more (-want,+got):\n%s", diff)
			}
			// A cache keeps less of it, and has to come to the same.
			kept := platform.NewReducer(o).Member(hid, nil)
			if diff := cmp.Diff(string(o.Show(hid)), string(o.Show(kept))); diff != "" {
				t.Errorf("showing what a cache keeps (-want,+got):\n%s", diff)
			}
			shown := patched(t, hid, o.Show(hid))
			if got := shown.GetLabels()[templateLabel]; got != tc.want || !o.IsShown(shown) {
				t.Errorf("shown it is found by %q, want %q", got, tc.want)
			}
			if diff := cmp.Diff(m.GetAnnotations(), shown.GetAnnotations()); diff != "" && len(m.GetAnnotations())+len(shown.GetAnnotations()) > 0 {
				t.Errorf("annotations (-want,+got):\n%s", diff)
			}
			if diff := cmp.Diff(shown, patched(t, shown, o.Show(shown))); diff != "" {
				t.Errorf("showing it once more (-want,+got):\n%s", diff)
			}
		})
	}
}

// What somebody else writes keeps no member hidden.
func TestShowsWhateverIsNoted(t *testing.T) {
	for _, noted := range []string{"", "no label has this: {}", hiddenTemplate} {
		m := newCluster().member
		labelled(templateLabel, hiddenTemplate)(m)
		m.SetAnnotations(map[string]string{settings.ShownAsKey: noted})
		if got := patched(t, m, Objects{}.Show(m)).GetLabels()[templateLabel]; got != "pool" {
			t.Errorf("with %q it is found by %q", noted, got)
		}
	}
}

// A write that came between must win.
func TestPatchesAreOfOneVersion(t *testing.T) {
	m := newCluster().member
	m.SetResourceVersion("7")
	hid := patched(t, m, Objects{}.Hide(m))
	for name, patch := range map[string][]byte{"hide": Objects{}.Hide(m), "show": Objects{}.Show(hid), "neither": Objects{}.Show(m)} {
		var got struct {
			Metadata struct{ UID, ResourceVersion string }
		}
		if err := json.Unmarshal(patch, &got); err != nil || got.Metadata.UID != "uid-m" || got.Metadata.ResourceVersion != "7" {
			t.Errorf("%s: the patch is for %+v: %v", name, got.Metadata, err)
		}
	}
}

// labelled sets a label, "" for none.
func labelled(key, value string) func(*unstructured.Unstructured) {
	return func(m *unstructured.Unstructured) {
		labels := m.GetLabels()
		if labels[key] = value; value == "" {
			delete(labels, key)
		}
		m.SetLabels(labels)
	}
}

// patched is an object after a JSON merge patch of its labels and annotations.
func patched(t *testing.T, obj *unstructured.Unstructured, patch []byte) *unstructured.Unstructured {
	t.Helper()
	var by struct {
		Metadata struct{ Labels, Annotations map[string]*string }
	}
	if err := json.Unmarshal(patch, &by); err != nil {
		t.Fatal(err)
	}
	merge := func(into map[string]string, changes map[string]*string) map[string]string {
		for key, value := range changes {
			if value == nil {
				delete(into, key)
				continue
			}
			if into == nil {
				into = map[string]string{}
			}
			into[key] = *value
		}
		return into
	}
	out := obj.DeepCopy()
	out.SetLabels(merge(out.GetLabels(), by.Metadata.Labels))
	out.SetAnnotations(merge(out.GetAnnotations(), by.Metadata.Annotations))
	return out
}
