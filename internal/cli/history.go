package cli

import (
	"slices"
	"time"
)

// second is the precision of the times that are stored.
const second = time.Second

// inForceAt finds the revision that was in force at a time. sure is false when
// what is recorded leaves room: another one came within the same second, or was
// in force again later and may have been before. ok is false when history does
// not reach back that far.
func inForceAt(history []Revision, at time.Time) (found Revision, sure, ok bool) {
	at = at.Truncate(second)
	doubt, candidates := false, 0
	for _, r := range history {
		since := r.Since.Truncate(second)
		if since.After(at) {
			doubt = doubt || r.Again && !r.first.After(at)
			continue
		}
		candidates++
		if was := found.Since.Truncate(second); !ok || since.After(was) || since.Equal(was) && r.Number > found.Number {
			found, ok = r, true
		}
	}
	same := candidates > 1 && found.Since.Truncate(second).Equal(at)
	return found, ok && !doubt && !same, ok
}

// CompareInForce compares since when the revisions in force of two templates are that: above
// 0 where that of the first came later, 0 where what is recorded does not tell.
func CompareInForce(first, second []Revision) int {
	return inForceSince(first).Compare(inForceSince(second))
}

// HasEarlier reports whether there was another revision than the one in force.
func HasEarlier(history []Revision) bool {
	return slices.ContainsFunc(history, func(r Revision) bool { return !r.InForce })
}

// inForceSince is when the revision in force came. One that is not recorded yet came after
// all others.
func inForceSince(history []Revision) time.Time {
	i := slices.IndexFunc(history, func(r Revision) bool { return r.InForce })
	if i < 0 {
		return notRecorded
	}
	return history[i].Since.Truncate(second)
}

// notRecorded is later than all that is.
var notRecorded = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

func byHash(history []Revision, hash string) (Revision, bool) {
	for _, r := range history {
		if r.Hash == hash {
			return r, true
		}
	}
	return Revision{}, false
}
