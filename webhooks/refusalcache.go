package webhooks

import (
	"time"

	"k8s.io/utils/clock"

	"github.com/freshbind/freshbind/internal/bounded"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
)

const (
	// refusalKeptFor is how long an answer waits for its question: the API server
	// asks the mutating webhooks first, and the others at once after them.
	refusalKeptFor = time.Second
	// refusalBytes bounds what is remembered, some 700 bytes each.
	refusalBytes = 1 << 20
)

// RefusalCache remembers for a moment that a cold start is going to be refused. The
// mutating webhook has just found so, from live reads that it made after the
// request had come, and controllers try again every 200 ms: the same reads once
// more would tell the same. Each answer is given once, so that each attempt is
// read for, and none but refusals are: what is let through is always read for
// anew. A nil *RefusalCache keeps nothing.
type RefusalCache struct {
	clock    clock.PassiveClock
	refusals *bounded.Cache[platform.Question, cachedRefusal]
}

type cachedRefusal struct {
	freshness.Verdict
	at time.Time
}

// NewRefusalCache returns an empty cache.
func NewRefusalCache(c clock.PassiveClock) *RefusalCache {
	return &RefusalCache{clock: c, refusals: bounded.NewCache[platform.Question, cachedRefusal](refusalBytes)}
}

// note takes note of a refusal to come. question names all that the verdict
// depends on in the object itself.
func (f *RefusalCache) note(question platform.Question, v freshness.Verdict) {
	if f == nil || v.Allowed {
		return
	}
	f.refusals.Add(question, cachedRefusal{v, f.clock.Now()}, len(question)+len(v.Detail)+len(v.Found)+len(v.Expected))
}

// take returns the refusal, and forgets it.
func (f *RefusalCache) take(question platform.Question) (freshness.Verdict, bool) {
	if f == nil {
		return freshness.Verdict{}, false
	}
	r, known := f.refusals.Get(question)
	f.refusals.Remove(question)
	return r.Verdict, known && f.clock.Since(r.at) < refusalKeptFor
}
