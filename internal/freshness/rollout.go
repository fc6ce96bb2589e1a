package freshness

import (
	"slices"
	"time"
)

// Rollout is what has to be remembered from one plan to the next.
type Rollout struct {
	// Revision is the one being rolled out and Template the name of the template
	// that has it, "" when that is not known; Restarted is what the pool said of a
	// restart when it began.
	Revision, Template string
	Restarted          time.Time
	// Started is when this rollout began, Progressed when a member of it last
	// became ready, Fresh when a ready one was last seen.
	Started, Progressed, Fresh time.Time
	// HeldUp: it waits for other pools' rollouts, or for their pace, which is nobody's
	// fault.
	HeldUp bool
	State  State
	// Replacing are the members that were deleted and are not replaced yet.
	Replacing Replacements
	// AwaitMissing: the next plan awaits everything else that is missing. Not
	// before: what left since the last plan may have gone before deletes did.
	AwaitMissing bool
	// Inherited: a leader before stored it. What else is missing may have gone before
	// the deletes, unseen by that leader, and is taken to have.
	Inherited bool
}

// Is reports whether it is the rollout of that revision.
func (r Rollout) Is(revision, template string, restarted time.Time) bool {
	return r.Revision == revision && (r.Template == template || r.Template == "") && r.Restarted.Equal(restarted)
}

// Begin is a rollout that begins now.
func Begin(revision, template string, restarted, now time.Time) Rollout {
	return Rollout{
		Revision: revision, Template: template, Restarted: restarted, Started: now, Progressed: now, Fresh: now, State: Progressing,
	}
}

// Follow is the rollout that begins while this one still replaces members. What a leader
// before deleted stays inherited: it makes no difference to that what is rolled out.
func (r Rollout) Follow(revision, template string, restarted, now time.Time) Rollout {
	next := Begin(revision, template, restarted, now)
	next.Replacing, next.AwaitMissing, next.Inherited = r.Replacing, true, r.Inherited
	return next
}

// Source is an object that says what members are built from.
type Source struct {
	Created time.Time
	// Generation is 1 while nobody has edited it.
	Generation int64
}

// From is the rollout of what these say. If nobody has edited any of them, or asked for a
// restart, it began when the last was created: nothing else can have made younger members.
func (r Rollout) From(sources ...Source) Rollout {
	var last time.Time
	for _, s := range sources {
		if s.Generation != 1 {
			return r
		}
		if s.Created.After(last) {
			last = s.Created
		}
	}
	if r.Restarted.IsZero() && last.Before(r.Started) {
		r.Started = last
	}
	return r
}

// By is the rollout as it can be known now: nothing of it is later. What another leader
// wrote can be, and what this one did before its clock was set back. Members would count
// as born before it, and its deadline would never come.
func (r Rollout) By(now time.Time) Rollout {
	r.Started, r.Progressed, r.Fresh = notAfter(r.Started, now), notAfter(r.Progressed, now), notAfter(r.Fresh, now)
	return r
}

// notAfter compares what clocks show, however much time has passed.
func notAfter(at, now time.Time) time.Time {
	if at.Round(0).After(now.Round(0)) {
		return now
	}
	return at
}

// Resume goes on with a rollout that a leader before stored, and awaits what else
// is missing.
func (r Rollout) Resume() Rollout {
	r.AwaitMissing, r.Inherited = r.State != Complete, true
	return r
}

// longestHold bounds how long members in replacement hold up other pools while none
// becomes ready: a pool's deadline is whatever its owner says.
const longestHold = 10 * time.Minute

// Stalled reports whether nobody expects any more that what was deleted is replaced:
// nothing became ready for the pool's deadline, or for ten minutes where that is longer.
func (r Rollout) Stalled(deadline time.Duration, now time.Time) bool {
	return deadline > 0 && r.Replacing.Deleted() > 0 && r.stallsIn(deadline, now) <= 0
}

// stallsIn is how long that takes.
func (r Rollout) stallsIn(deadline time.Duration, now time.Time) time.Duration {
	return r.lastProgress().Add(min(deadline, longestHold)).Sub(now)
}

// lastProgress is when a member last became ready, or the rollout began.
func (r Rollout) lastProgress() time.Time {
	if r.Started.After(r.Progressed) {
		return r.Started
	}
	return r.Progressed
}

// State is the outcome of a rollout so far. The set is closed.
type State string

const (
	// Complete: every member is of the revision, and what was deleted is replaced.
	Complete State = "Complete"
	// Progressing: some members are still to be replaced, or wait for their
	// replacement.
	Progressing State = "Progressing"
	// Failed: no member of the revision became ready for the pool's progress
	// deadline.
	Failed State = "Failed"
	// Paused: the pool asked for it, with members still to be replaced.
	Paused State = "Paused"
)

// Held says whether the rollout has to wait for others now. Time that it was
// held up does not count as without progress.
func (r Rollout) Held(up bool, now time.Time) Rollout {
	if r.HeldUp && !up {
		r.Progressed = now
	}
	r.HeldUp = up
	return r
}

// States returns all states, for closed label sets.
func States() []State { return []State{Complete, Progressing, Failed, Paused} }

// suspicious is how many unknown members in a row are enough to doubt, not them,
// but what is known.
const suspicious = 5

// SuspendsAttribution reports whether a pool's newest members are all unknown
// although they were born since the template last changed: then something that
// is not understood builds them (a webhook that injects a field), and to replace
// them would only make more. It stays so, while claims take them, until one is
// born that is current. since is when that change was seen, was what this
// reported of the same revision before. Only what a pool's controller made counts:
// whoever else makes members chooses what they are built from.
func SuspendsAttribution(was bool, members []MemberState, replicas int, since time.Time) bool {
	if was {
		return !slices.ContainsFunc(members, func(m MemberState) bool {
			return m.isEvidence() && m.Class == Current && m.bornSince(since)
		})
	}
	// The newest that speaks against it; of equal age, the first.
	against := -1
	for i, m := range members {
		if m.isEvidence() && !m.bornUnknown(since) && (against < 0 || m.Created.After(members[against].Created)) {
			against = i
		}
	}
	enough, newer := min(suspicious, replicas), 0
	for i, m := range members {
		if m.isEvidence() && m.bornUnknown(since) && newerThan(members, i, against) {
			newer++
		}
	}
	return enough > 0 && newer >= enough
}

// isEvidence reports whether what the member is built from says something about those
// that are born now.
func (m MemberState) isEvidence() bool {
	return m.Class != Unusable && m.Class != Unclassified && !m.Edited && m.ByPool
}

// bornUnknown reports whether the member is unknown, and has been since its birth.
func (m MemberState) bornUnknown(since time.Time) bool {
	return m.Class == Unknown && m.bornSince(since)
}

// newerThan reports whether a member is newer than another one; none when its index
// is negative.
func newerThan(members []MemberState, i, other int) bool {
	if other < 0 {
		return true
	}
	order := members[i].Created.Compare(members[other].Created)
	return order > 0 || order == 0 && i < other
}
