// Package eventnote keeps the notes of events within what the API server takes. It refuses
// an event with a longer one, and nobody would see it: notes have names and paths of tenants.
package eventnote

import (
	"fmt"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
)

// Limit is how long a note may be, in bytes
// (k8s.io/kubernetes/pkg/apis/core/validation/events.go, NoteLengthLimit).
const Limit = 1024

// Recorder cuts the notes of what it hands to r where they are too long.
func Recorder(r events.EventRecorder) events.EventRecorder { return recorder{r} }

type recorder struct{ events.EventRecorder }

// Eventf cuts the formatted note.
func (r recorder) Eventf(regarding, related runtime.Object, eventType, reason, action, note string, args ...any) {
	r.EventRecorder.Eventf(regarding, related, eventType, reason, action, "%s", Truncate(fmt.Sprintf(note, args...)))
}

const cutMark = "…"

// Truncate cuts s on a rune if it is longer than a note may be.
func Truncate(s string) string {
	if len(s) <= Limit {
		return s
	}
	cut := Limit - len(cutMark)
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + cutMark
}
