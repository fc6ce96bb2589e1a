package auditlog

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/freshbind/freshbind/internal/checker"
)

const (
	// slack is by how much the clocks of API servers may differ.
	slack = int64(100 * time.Millisecond / time.Microsecond)
	// step is after how many writes the history is told how far it is, and forgets what is over.
	step = 10_000
)

// ErrNothing means that there is no write in the log that could be judged.
var ErrNothing = errors.New("no write to the objects of a warm-pool system is in it with what was stored")

// Platforms are the warm-pool systems of whose Sandboxes or claims there are writes in the log.
func (l *Log) Platforms() []string {
	return slices.DeleteFunc(checker.Platforms(), func(p string) bool { return !l.coverage.has(p) })
}

// History returns what was stored of a warm-pool system, for the checker, and what is missing of it. No platform means the
// first of Platforms. Calling it ends the log.
func (l *Log) History(platform string, options checker.Options) (*checker.History, Missing, error) {
	if platform == "" {
		platform = slices.Concat(l.Platforms(), checker.Platforms())[0]
	}
	missing := l.coverage.missing(platform)
	options.Partial = true
	h := checker.NewHistory(options)
	l.order()
	l.versions = slices.DeleteFunc(l.versions, func(v version) bool {
		return v.object.kind.Platform != "" && v.object.kind.Platform != platform
	})
	if len(l.versions) == 0 {
		return h, missing, fmt.Errorf("%w", ErrNothing)
	}
	f := feeder{log: l, h: h}
	if err := f.run(); err != nil {
		return nil, missing, err
	}
	return h, missing, nil
}

// feeder tells a history what happened.
type feeder struct {
	log    *Log
	h      *checker.History
	behind checker.RV
	// texts are those of the versions that are told now, and decoded the specs that several of them have, of which room
	// says how many bytes more may be kept.
	texts   map[uint32]string
	decoded map[uint32]map[string]any
	room    int
}

// maxDecoded bounds the specs, in bytes of JSON, that are kept decoded at a time: those take several times as much.
const maxDecoded = 4 << 20

func (f *feeder) run() error {
	// From here on, versions alone hold what was read, and each lets go of it when it has been told.
	f.log.objects, f.log.specs = nil, nil
	start := checker.RV(strconv.FormatUint(f.log.versions[0].rv, 10))
	// What was there before the log began has no CREATE in it. Its first version is a start, and not the event that it
	// looks like.
	if err := f.before(); err != nil {
		return err
	}
	for _, r := range append(checker.Resources(), checker.Namespaces) {
		if err := f.h.Add(checker.Event{Type: checker.Synced, Resource: r, RV: start, SeenAt: f.log.coverage.since}); err != nil {
			return err
		}
	}
	for at := 0; at < len(f.log.versions); at += step {
		some := f.log.versions[at:min(at+step, len(f.log.versions))]
		if err := f.all(some); err != nil {
			return err
		}
		if err := f.progress(&some[len(some)-1], at+step >= len(f.log.versions)); err != nil {
			return err
		}
	}
	return nil
}

// before tells of what was there before the log began.
func (f *feeder) before() error {
	var first []*version
	for i := range f.log.versions {
		v := &f.log.versions[i]
		if v.object.last == nil && v.what == changed && v.object.births == 0 && v.object.created.Before(f.log.coverage.since.Truncate(time.Second)) {
			first = append(first, v)
			v.object.last = v
		}
	}
	for some := range slices.Chunk(first, step) {
		if err := f.read(some); err != nil {
			return err
		}
		for _, v := range some {
			if err := f.emit(v, checker.Listed); err != nil {
				return err
			}
		}
	}
	return nil
}

// all tells of versions that follow each other.
func (f *feeder) all(some []version) error {
	left := make([]*version, 0, len(some))
	for i := range some {
		if v := &some[i]; v.object.last != v {
			left = append(left, v)
		}
	}
	if err := f.read(left); err != nil {
		return err
	}
	for _, v := range left {
		if err := f.next(v); err != nil {
			return err
		}
	}
	return nil
}

// read gets what is known of the versions that are told next.
func (f *feeder) read(some []*version) (err error) {
	numbers := make([]uint32, 0, 2*len(some))
	for _, v := range some {
		numbers = append(numbers, v.details, v.spec)
	}
	f.decoded, f.room = map[uint32]map[string]any{}, maxDecoded
	f.texts, err = f.log.texts.read(numbers)
	return err
}

// next tells of a version as what it is: new, changed, gone, or known only to be so from now on.
func (f *feeder) next(v *version) error {
	o := v.object
	prev := o.last
	if v.what == goneUnordered && (prev == nil || prev.what == goneUnordered) {
		return nil // nothing else is known of it, or another DELETE is told
	}
	what := checker.Modified
	switch {
	case v.what == goneUnordered:
		what = checker.Deleted
	case prev == nil && v.what == created:
		what = checker.Added
	case prev == nil, f.missed(prev, v):
		what = checker.Listed
	}
	if err := f.emit(v, what); err != nil {
		return err
	}
	o.last = v
	return nil
}

// missed reports whether there was a write between two versions of which the log does not hold the result: one that it
// names, or one that the generation counts.
func (f *feeder) missed(prev, v *version) bool {
	o := v.object
	if o.kind.Resource != checker.Pods && prev.generation > 0 && v.generation > prev.generation+1 {
		return true
	}
	return f.log.lost.between(o, prev.received, v.done)
}

func (f *feeder) progress(v *version, end bool) error {
	rv := checker.RV(strconv.FormatUint(v.rv, 10))
	for _, r := range checker.Resources() {
		if err := f.h.Add(checker.Event{Type: checker.Progress, Resource: r, RV: rv, SeenAt: time.UnixMicro(v.done)}); err != nil {
			return err
		}
	}
	if f.behind != "" && !end {
		f.h.Prune(f.behind)
	}
	f.behind = rv
	return nil
}

func (f *feeder) emit(v *version, what checker.EventType) error {
	e := checker.Event{Type: what, SeenAt: time.UnixMicro(v.done), By: *v.by}
	if v.what == goneUnordered {
		e.After = checker.RV(strconv.FormatInt(v.generation, 10))
	}
	u, err := f.object(v)
	if err != nil {
		return err
	}
	e.Object = u
	if v.spec != 0 {
		e.SpecKey = strconv.FormatUint(uint64(v.spec), 36)
		if v.object.kind.Resource == checker.Pods {
			e.PodSpec = f.texts[v.spec]
		}
	}
	if err := f.h.Add(e); err != nil {
		return fmt.Errorf("%s %s/%s: %w", v.object.kind.Plural, v.object.namespace, v.object.name, err)
	}
	return nil
}
