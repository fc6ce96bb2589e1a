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
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- late.Start(ctx) }()
		late.Eventf(claimReference("a"), claimReference("member"), corev1.EventTypeWarning, "Stale", "Bind", "100%% of %s", "it")
		late.Eventf(claimReference("b"), nil, corev1.EventTypeNormal, "Repaired", "ColdStart", "b")
		// What says not what it is has no event, and harms no other.
		late.Eventf(&unstructured.Unstructured{}, nil, corev1.EventTypeNormal, "Repaired", "ColdStart", "nobody")
		time.Sleep(5 * time.Second)
		// Without a pause between them the first waits for as long as any may.
		for i := range 12 {
			late.Eventf(claimReference(fmt.Sprint(i)), nil, corev1.EventTypeNormal, "Repaired", "ColdStart", "")
			time.Sleep(500 * time.Millisecond)
		}
		// What was not due is not lost.
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		want := []string{
			"1s: a with member, Warning Stale Bind: 100% of it",
			"1.04s: b, Normal Repaired ColdStart: b",
			"10s: 0, Normal Repaired ColdStart: ",
			"10.5s: 1, Normal Repaired ColdStart: ",
		}
		for i := range 10 {
			want = append(want, fmt.Sprintf("11s: %d, Normal Repaired ColdStart: ", i+2))
		}
		if diff := cmp.Diff(want, rec.lines); diff != "" {
			t.Errorf("recorded (-want +got):\n%s", diff)
		}
	})
}

func TestLateEventsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &recordedEvents{start: time.Now()}
		late := newLateEvents(rec)
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
