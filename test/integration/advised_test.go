package integration

import "testing"

// adviceHook fails open: when Freshbind does not answer in time, nothing is said.
const adviceHook = "advise.freshbind.dev"

// asked is how often the API server has asked Freshbind for advice, answered or not.
func (w *world) asked(t *testing.T) int {
	t.Helper()
	return int(w.apiServer(t).Sum("apiserver_admission_webhook_request_total", `name="`+adviceHook+`"`))
}

// advised has somebody do what changes nothing, or what they can do again, until Freshbind has
// had the time to say something on it, and returns how many calls the last time cost.
func (w *world) advised(t *testing.T, do func()) (asked int) {
	t.Helper()
	w.inTime(t, func() {
		before := w.asked(t)
		do()
		asked = w.asked(t) - before
	}, adviceHook)
	return asked
}
