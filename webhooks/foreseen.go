package webhooks

import (
	"time"

	"k8s.io/utils/clock"

	"github.com/freshbind/freshbind/internal/bounded"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
)

const (
	// foreseenFor is how long an answer waits for its question: the API server
	// asks the mutating webhooks first, and the others at once after them.
	foreseenFor = time.Second
	// foreseenBytes bounds what is remembered, some 700 bytes each.
	foreseenBytes = 1 << 20
)

// Foreseen remembers for a moment that a cold start is going to be refused. The
// mutating webhook has just found so, from live reads that it made after the
// request had come, and controllers try again every 200 ms: the same reads once
// more would tell the same. Each answer is given once, so that each attempt is
// read for, and none but refusals are: what is let through is always read for
// anew. A nil *Foreseen foresees nothing.
type Foreseen struct {
	clock    clock.PassiveClock
	refusals *bounded.Cache[platform.Question, foreseen]
}

type foreseen struct {
	freshness.Verdict
	at time.Time
}

// NewForeseen returns an empty memory.
func NewForeseen(c clock.PassiveClock) *Foreseen {
	return &Foreseen{clock: c, refusals: bounded.NewCache[platform.Question, foreseen](foreseenBytes)}
}

// note takes note of a refusal to come. question names all that the verdict
// depends on in the object itself.
func (f *Foreseen) note(question platform.Question, v freshness.Verdict) {
	if f == nil || v.Allowed {
		return
	}
	f.refusals.Add(question, foreseen{v, f.clock.Now()}, len(question)+len(v.Detail)+len(v.Found)+len(v.Expected))
}

// take returns the refusal, and forgets it.
func (f *Foreseen) take(question platform.Question) (freshness.Verdict, bool) {
	if f == nil {
		return freshness.Verdict{}, false
	}
	r, known := f.refusals.Get(question)
	f.refusals.Remove(question)
	return r.Verdict, known && f.clock.Since(r.at) < foreseenFor
}
