package manager

import (
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"

	"github.com/freshbind/freshbind/internal/config"
	"github.com/freshbind/freshbind/internal/platform"
)

// Pods are sent to the second scheduler in its mode only, and in all others are
// fetched back from it.
func TestWhoSchedulesMembers(t *testing.T) {
	for mode, want := range map[string][2]string{
		config.SchedulingNone: {"", "second"}, config.SchedulingExtender: {"", "second"}, config.SchedulingSecond: {"second", ""},
	} {
		o := Scheduling{Mode: mode, SchedulerName: "second"}
		sending := platform.Admission{Requests: map[platform.Requested]platform.Requests{platform.NewPods: {Rules: make([]admissionregistrationv1.RuleWithOperations, 1)}}}
		if got := [2]string{o.sendsTo(), o.formerSchedulerOf(sending)}; got != want {
			t.Errorf("mode %s: sends to and fetches from %q, want %q", mode, got, want)
		}
		if got := o.formerSchedulerOf(platform.Admission{}); got != "" {
			t.Errorf("mode %s: Pods that nobody sent away are fetched from %q", mode, got)
		}
	}
}
