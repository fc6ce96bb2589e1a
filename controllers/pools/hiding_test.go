package pools

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"

	"github.com/freshbind/freshbind/test/builders"
)

// A member that cannot be hidden or shown is named, holds up no other, and is tried
// again.
func TestMembersThatCannotBeHiddenOrShown(t *testing.T) {
	cases := map[string]struct {
		template *unstructured.Unstructured
		paused   string
		hidden   bool
		verb     string
	}{
		"hide": {template: v1, paused: "true", verb: "hide"},
		"show": {template: v2, paused: "false", hidden: true, verb: "show"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pool := rollingPool("python", 4, "paused", tc.paused)
			// With a fresh member there is no need to let claims have stale ones.
			objs := []*unstructured.Unstructured{pool, v2, of(pool, v2, "fresh").Obj()}
			for i := range 3 {
				m := of(pool, tc.template, fmt.Sprintf("m%02d", i))
				if tc.hidden {
					m.NoLabel(builders.LabelTemplateRef)
				}
				objs = append(objs, m.Obj())
			}
			r := newHarness(t, history{v1, v2}, objs...)
			recorder := events.NewFakeRecorder(100)
			r.events = recorder
			r.refuse[tc.verb+" m01"] = apierrors.NewForbidden(schema.GroupResource{Resource: "sandboxes"}, "m01", errors.New("denied by a webhook"))
			warnings := func() []string {
				var out []string
				for len(recorder.Events) > 0 {
					if e := <-recorder.Events; strings.HasPrefix(e, corev1.EventTypeWarning) {
						out = append(out, e)
					}
				}
				return out
			}
			want := []string{tc.verb + " m00", tc.verb + " m01", tc.verb + " m02"}
			writes, again := r.step(pool)
			if diff := cmp.Diff(want, writes); diff != "" {
				t.Errorf("writes (-want,+got):\n%s", diff)
			}
			if again > firstBackoff || again == 0 {
				t.Errorf("comes back after %s, want it within %s", again, firstBackoff)
			}
			want = []string{"Warning FailedUpdate cannot " + tc.verb + ` member m01; will try again, and goes on with the others: ` +
				`hiding or showing member m01: sandboxes "m01" is forbidden: denied by a webhook`}
			if diff := cmp.Diff(want, warnings()); diff != "" {
				t.Errorf("warnings (-want,+got):\n%s", diff)
			}
			if writes, _ := r.step(pool); len(writes) > 0 {
				t.Errorf("writes %v, want it to wait", writes)
			}
			clear(r.refuse)
			r.clock.SetTime(now.Add(firstBackoff))
			writes, _ = r.step(pool)
			if diff := cmp.Diff([]string{tc.verb + " m01"}, writes); diff != "" {
				t.Errorf("then writes (-want,+got):\n%s", diff)
			}
			if again := warnings(); len(again) > 0 {
				t.Errorf("then warns of %v", again)
			}
		})
	}
}
