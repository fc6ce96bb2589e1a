package checker

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// entry is one version of an object, or a run of versions that do not differ in anything judged.
type entry[S any] struct {
	first, last RV
	seen        time.Time // when the recorder saw the first of them
	state       S
	gone        bool
	// inexact entries come from a LIST: versions between after and first are not known, after may be empty. Or they are a
	// deletion somewhere between the two.
	inexact bool
	after   RV
	by      string // who wrote the first of them, where that is known
}

// timeline holds the versions of one object, or of one name, in the order of their resourceVersions.
type timeline[S any] struct{ entries []entry[S] }

// at returns the version in force at rv.
func (t *timeline[S]) at(rv RV) (*entry[S], bool) {
	if t == nil {
		return nil, false
	}
	i, _ := slices.BinarySearchFunc(t.entries, rv, func(e entry[S], rv RV) int {
		if rv.Before(e.first) {
			return 1
		}
		return -1
	})
	if i == 0 {
		return nil, false
	}
	return &t.entries[i-1], true
}

// before returns the last version older than rv.
func (t *timeline[S]) before(rv RV) (*entry[S], bool) {
	if t == nil {
		return nil, false
	}
	for i := len(t.entries) - 1; i >= 0; i-- {
		if t.entries[i].first.Before(rv) {
			return &t.entries[i], true
		}
	}
	return nil, false
}

// within returns the versions that were in force at some moment of [from, to).
func (t *timeline[S]) within(from, to RV) []*entry[S] {
	if t == nil {
		return nil
	}
	var out []*entry[S]
	for i := range t.entries {
		e := &t.entries[i]
		ended := i+1 < len(t.entries) && !from.Before(t.entries[i+1].first)
		if e.first.Before(to) && !ended {
			out = append(out, e)
		}
	}
	return out
}

// certain reports whether what is in force at rv is known, that is, whether rv does not lie where events were missed.
func (t *timeline[S]) certain(rv RV) bool {
	return t == nil || !slices.ContainsFunc(t.entries, func(e entry[S]) bool {
		return e.inexact && e.after.Before(rv) && rv.Before(e.first)
	})
}

// missed reports whether there may have been a version at rv, before the first one that is known.
func (t *timeline[S]) missed(rv RV) bool {
	if t == nil || len(t.entries) == 0 {
		return false
	}
	first := t.entries[0]
	return first.inexact && first.after.Before(rv) && rv.Before(first.first)
}

func (t *timeline[S]) latest() (*entry[S], bool) {
	if t == nil || len(t.entries) == 0 {
		return nil, false
	}
	return &t.entries[len(t.entries)-1], true
}

// add appends a version; same merges it with the latest run when nothing judged changed. An event that is not newer than
// what is known (a watch that resumed, a LIST that found nothing new) changes nothing.
func (t *timeline[S]) add(e entry[S], same func(a, b S) bool) (changed bool) {
	prev, ok := t.latest()
	if ok && !prev.last.Before(e.first) {
		return false
	}
	if ok && e.inexact {
		e.after = maxRV(e.after, prev.last)
	}
	e.last = e.first
	if ok && !e.inexact && !e.gone && !prev.gone && same != nil && same(prev.state, e.state) {
		prev.last = e.first
		return true
	}
	t.entries = append(t.entries, e)
	return true
}

// object is the history of one object with a UID.
type object[S any] struct {
	uid             types.UID
	namespace, name string
	created         time.Time // metadata.creationTimestamp
	specKey         string    // of the latest version
	born            bool      // its CREATE was seen
	line            timeline[S]
}

// mayBeGone reports whether the version in force just before rv may have been deleted by then.
func (t *timeline[S]) mayBeGone(rv RV) bool {
	last, ok := t.latest()
	return ok && last.gone && (last.first.Before(rv) || last.inexact && last.after.Before(rv))
}

// end returns the RV of the object's deletion.
func (o *object[S]) end() (RV, bool) {
	last, ok := o.line.latest()
	if !ok || !last.gone {
		return "", false
	}
	return last.first, true
}

// bornAt returns the RV and time of the object's CREATE, if that was seen.
func (o *object[S]) bornAt() (RV, time.Time, bool) {
	if o == nil || !o.born || len(o.line.entries) == 0 {
		return "", time.Time{}, false
	}
	return o.line.entries[0].first, o.line.entries[0].seen, true
}
