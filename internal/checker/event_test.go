package checker

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/test/builders"
)

func TestRV(t *testing.T) {
	for _, bad := range []string{"", "0", "01", "-1", "1a", "18446744073709551616x"} {
		if _, err := ParseRV(bad); err == nil {
			t.Errorf("ParseRV(%q): want an error", bad)
		}
	}
	ordered := []RV{"", "1", "9", "10", "99", "18446744073709551615", "18446744073709551616", "99999999999999999999999"}
	for i, a := range ordered {
		for j, b := range ordered {
			if a.Before(b) != (i < j) {
				t.Errorf("%q before %q: got %v", a, b, a.Before(b))
			}
		}
	}
}

func TestAddRefusesWhatItCannotPlace(t *testing.T) {
	cases := map[string]struct {
		event Event
		want  string
	}{
		"no type":           {event: Event{}, want: "event type"},
		"no object":         {event: Event{Type: Added}, want: "object: required"},
		"another kind":      {event: Event{Type: Added, Object: &unstructured.Unstructured{Object: map[string]any{"kind": "Job"}}}, want: "Job"},
		"no version":        {event: Event{Type: Added, Object: builders.MakeTemplate(ns, "t").Obj()}, want: "metadata.resourceVersion"},
		"a gap of nothing":  {event: Event{Type: Gap, RV: "1"}, want: "resource: required"},
		"a bad list":        {event: Event{Type: Synced, Resource: Pods, RV: "0"}, want: "resource pods"},
		"another API group": {event: Event{Type: Added, Object: builders.MakeTemplate(ns, "t").Set("x/v1", "apiVersion").RV(1).Obj()}, want: "x/v1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := NewHistory(Options{}).Add(tc.event)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want an error that names %q", err, tc.want)
			}
		})
	}
}

func TestEventSurvivesJSON(t *testing.T) {
	want := Event{Type: Added, SeenAt: time.Date(2026, 1, 2, 3, 4, 5, 600, time.UTC),
		Object: builders.MakeTemplate(ns, "t").RV(7).PodSpec(int64(1<<53+1), "activeDeadlineSeconds").Obj()}
	raw, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Event
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("event (-want,+got):\n%s", diff)
	}
}

func TestSyncedAndSettled(t *testing.T) {
	h := NewHistory(Options{})
	for i, r := range Resources() {
		if _, ok := h.Synced(); ok {
			t.Fatalf("synced before %s was", r)
		}
		if err := h.Add(Event{Type: Synced, Resource: r, RV: RV([]string{"7", "8", "10", "9", "6"}[i])}); err != nil {
			t.Fatal(err)
		}
	}
	if rv, ok := h.Synced(); !ok || rv != "10" {
		t.Errorf("synced at %q, %v: want 10, true", rv, ok)
	}
	if !h.Settled("6") || h.Settled("7") {
		t.Error("want all events to have arrived up to 6, the least of the lists, and not up to 7")
	}
	if err := h.Add(Event{Type: Added, Object: builders.MakePod(builders.MakeColdStart(builders.MakeClaim(ns, "c").Obj(),
		builders.MakeTemplate(ns, "t").Obj()).Obj()).RV(12).Obj()}); err != nil {
		t.Fatal(err)
	}
	if rv := h.Watermark(); rv != "7" || h.progress[Pods] != "12" {
		t.Errorf("watermark %s, Pods at %s: want 7 and 12, an event says that all before it have arrived", rv, h.progress[Pods])
	}
}

// What cannot be decoded is not judged, and not taken for good or bad.
func TestUndecodableContent(t *testing.T) {
	run(t, map[string]story{
		"the member's": {strategy: "Recreate", want: []string{"c1: Unjudged"}, tell: func(s *scene) {
			s.member = s.mod(builders.SandboxFrom(s.member).PodSpec("not a list", "containers"))
			s.create("c1")
			s.serve()
		}},
		"the template's": {strategy: "Recreate", want: []string{"c1: Unjudged"}, tell: func(s *scene) {
			s.mod(builders.TemplateFrom(s.template).PodSpec("not a list", "containers"))
			s.create("c1")
			s.serve()
		}},
		"the template's volumes": {strategy: "Recreate", want: []string{"c1: Unjudged"}, tell: func(s *scene) {
			s.mod(builders.TemplateFrom(s.template).Set("none", "spec", "volumeClaimTemplates"))
			s.create("c1")
			s.serve()
		}},
		"the template's service": {strategy: "Recreate", want: []string{"c1: Unjudged"}, tell: func(s *scene) {
			s.mod(builders.TemplateFrom(s.template).Set("yes", "spec", "service"))
			s.create("c1")
			s.serve()
		}},
		"the claim's env": {strategy: "Recreate", want: []string{"c1: Unjudged"}, tell: func(s *scene) {
			s.claim = s.add(builders.MakeClaim(ns, "c1").Set("x", "spec", "env"))
			s.add(builders.MakeColdStart(s.claim, s.template))
		}},
	})
}
