package cli

import "time"

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

func byHash(history []Revision, hash string) (Revision, bool) {
	for _, r := range history {
		if r.Hash == hash {
			return r, true
		}
	}
	return Revision{}, false
}
