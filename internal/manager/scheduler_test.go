package manager

import (
	"testing"

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
		if got := [2]string{o.sendsTo(), o.formerSchedulerOf(platform.Admission{SendsPods: true})}; got != want {
			t.Errorf("mode %s: sends to and fetches from %q, want %q", mode, got, want)
		}
		if got := o.formerSchedulerOf(platform.Admission{}); got != "" {
			t.Errorf("mode %s: Pods that nobody sent away are fetched from %q", mode, got)
		}
	}
}
