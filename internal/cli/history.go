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
	sure = true
	for _, r := range history {
		since := r.Since.Truncate(second)
		switch {
		case since.After(at):
			if r.Again && !r.first.After(at) {
				sure = false
			}
			continue
		case since.Equal(at):
			sure = false
		}
		if !ok || since.After(found.Since.Truncate(second)) || since.Equal(found.Since.Truncate(second)) && r.Number > found.Number {
			found, ok = r, true
		}
	}
	return found, sure && ok, ok
}

func byHash(history []Revision, hash string) (Revision, bool) {
	for _, r := range history {
		if r.Hash == hash {
			return r, true
		}
	}
	return Revision{}, false
}
