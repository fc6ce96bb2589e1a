package integration

import (
	"context"
	"fmt"
	"testing"
)

// asked is how many calls for advice Freshbind has had.
func (w *world) asked(t *testing.T) int {
	t.Helper()
	return int(w.metric(t, "controller_runtime_webhook_requests_total", `webhook="/advise"`))
}

// adviceHook fails open: when Freshbind does not answer in time, nothing is said.
const adviceHook = "advise.freshbind.dev"

// advised has somebody do what changes nothing, until Freshbind has had the time to say
// something on it, and returns how many calls the last time cost.
func (w *world) advised(t *testing.T, do func()) (asked int) {
	t.Helper()
	for range maxAttempts {
		before, unanswered := w.asked(t), w.unanswered(t, adviceHook)
		do()
		late := int(w.unanswered(t, adviceHook) - unanswered)
		if asked = w.asked(t) - before; late == 0 {
			return asked
		}
		// What came too late is counted in the end.
		(&stage{t: t, w: w}).eventually("the late calls counted", func(context.Context) (string, bool) {
			n := w.asked(t) - before
			return fmt.Sprintf("%d, %d of them late", n, late), n >= late
		})
	}
	t.Fatalf("Freshbind did not answer in time, %d times", maxAttempts)
	return 0
}
