package manager

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// recordedEvents says when each event was recorded, and about what.
type recordedEvents struct {
	start time.Time
	lines []string
}

func (r *recordedEvents) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	line := fmt.Sprintf("%s: %s", time.Since(r.start), regarding.(*corev1.ObjectReference).Name)
	if related != nil {
		line += " with " + related.(*corev1.ObjectReference).Name
	}
	r.lines = append(r.lines, fmt.Sprintf("%s, %s %s %s: ", line, eventType, reason, action)+fmt.Sprintf(note, args...))
}

func claimReference(name string) *unstructured.Unstructured {
	return reference(schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "Claim"}, "ns", name, "uid-"+name)
}

func TestEventsComeAfterTheBurstThatTheyAreAbout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &recordedEvents{start: time.Now()}
		late := newLateEvents(rec)
		repaired := func(after time.Duration, claim string) {
			time.AfterFunc(after, func() {
				late.Eventf(claimReference(claim), nil, corev1.EventTypeNormal, "Repaired", "ColdStart", "%s", claim)
			})
		}
		late.Eventf(claimReference("a"), claimReference("member"), corev1.EventTypeWarning, "Stale", "Bind", "100%% of %s", "it")
		repaired(0, "b")
		// What says not what it is has no event, and harms no other.
		late.Eventf(&unstructured.Unstructured{}, nil, corev1.EventTypeNormal, "Repaired", "ColdStart", "nobody")
		// Without a pause between them the first waits for as long as any may.
		for i := range 12 {
			repaired(5*time.Second+time.Duration(i)*500*time.Millisecond, fmt.Sprint(i))
		}
		repaired(20*time.Second, "c")
		// What is not due at the end is not lost.
		repaired(20*time.Second+100*time.Millisecond, "d")
		ctx, cancel := context.WithTimeout(t.Context(), 21*time.Second+50*time.Millisecond)
		defer cancel()
		if err := late.Start(ctx); err != nil {
			t.Error(err)
		}
		want := []string{
			"1s: a with member, Warning Stale Bind: 100% of it",
			"1.04s: b, Normal Repaired ColdStart: b",
			"10s: 0, Normal Repaired ColdStart: 0",
			"10.5s: 1, Normal Repaired ColdStart: 1",
			// A second after the last one; the others follow.
			"11s: 2, Normal Repaired ColdStart: 2",
			"11.5s: 3, Normal Repaired ColdStart: 3",
		}
		for i := range 8 {
			want = append(want, fmt.Sprintf("%s: %d, Normal Repaired ColdStart: %d", 11540*time.Millisecond+time.Duration(i)*eventGap, i+4, i+4))
		}
		want = append(want, "21.05s: c, Normal Repaired ColdStart: c", "21.05s: d, Normal Repaired ColdStart: d")
		if diff := cmp.Diff(want, rec.lines); diff != "" {
			t.Errorf("recorded (-want,+got):\n%s", diff)
		}
	})
}

func TestLateEventsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &recordedEvents{start: time.Now()}
		late := newLateEvents(rec)
		if late.NeedLeaderElection() {
			t.Error("replicas that do not lead record no events, and refuse all the same")
		}
		for i := range maxLateEvents + 5 {
			late.Eventf(claimReference(fmt.Sprint(i)), nil, corev1.EventTypeNormal, "Repaired", "ColdStart", "")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := late.Start(ctx); err != nil {
			t.Error(err)
		}
		if got := len(rec.lines); got != maxLateEvents {
			t.Errorf("recorded %d events, want %d", got, maxLateEvents)
		}
	})
}
