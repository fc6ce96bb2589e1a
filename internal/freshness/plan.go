package freshness

import (
	"cmp"
	"slices"
	"time"
)

// MemberState is one idle member, as it was last seen.
type MemberState struct {
	Class Class
	// ReadySince is when it became ready; zero when it is not.
	ReadySince time.Time
	Created    time.Time
	// Shown: the platform offers it to claims.
	Shown bool
	// Leaving: its deletion has begun, or was asked for.
	Leaving bool
	// Gated: somebody else decides when its Pod may be scheduled.
	Gated bool
	// Stray: its Pod was sent to a scheduler that is to go. It runs on, but is not
	// left behind.
	Stray bool
	// Edited: it was written to after it was born, so that what it is now says
	// nothing about those that are still to be born.
	Edited bool
}

// PoolState is what a plan depends on.
type PoolState struct {
	Strategy Strategy
	// Replicas is how many members the pool is to have.
	Replicas int
	// MaxUnavailable is resolved: a number of members, at least 1.
	MaxUnavailable int
	// MinReady is how long a member has to be ready to count as available.
	MinReady time.Duration
	// Deadline is how long a rollout may go without progress; 0 for ever.
	Deadline time.Duration
	Paused   bool
	// Hideable: the platform keeps members that are hidden. Where it replaces
	// stale members itself it takes hidden ones for stale.
	Hideable bool
	// Suspended: unknown members are not to be replaced.
	Suspended bool
	Members   []MemberState
	// Rollout is what the plan before this one left.
	Rollout Rollout
	Now     time.Time
}

// Cause says why a rollout is in its state, in the words of Deployments where
// they have some. The set is closed.
type Cause string

const (
	// MembersUpToDate: nothing is left to replace and every member is ready.
	MembersUpToDate Cause = "MembersUpToDate"
	// MembersUpdating: members are being replaced, or not ready yet.
	MembersUpdating Cause = "MembersUpdating"
	// Queued: other pools' rollouts come first.
	Queued Cause = "Queued"
	// ProgressDeadlineExceeded: no member became ready for too long.
	ProgressDeadlineExceeded Cause = "ProgressDeadlineExceeded"
	// RolloutPaused: the pool says so.
	RolloutPaused Cause = "RolloutPaused"
	// StaleByStrategy: what is stale stays until a claim takes it.
	StaleByStrategy Cause = "StaleByStrategy"
	// AttributionSuspended: nobody understands what the members are built from.
	AttributionSuspended Cause = "AttributionSuspended"
)

// Admit is what a pool under RollingUpdate has its claims given.
type Admit string

const (
	// AdmitFresh: members of the revision in force only.
	AdmitFresh Admit = "fresh"
	// AdmitAny: older ones too.
	AdmitAny Admit = "any"
)

// noneFresh is how long no ready member of the revision in force has to be seen
// before older ones are served.
const noneFresh = time.Second

// Plan is what to do now. Members are named by their index.
type Plan struct {
	// Delete are the members to replace, the most urgent first.
	Delete, Hide, Show []int
	// Admit is what the pool has to say; "" for nothing.
	Admit   Admit
	Counts  Counts
	Cause   Cause
	Rollout Rollout
	// Again is when time alone changes the plan; 0 for never.
	Again time.Duration
}

// Counts are of members that are not leaving.
type Counts struct {
	Replicas, Ready, Updated, UpdatedReady, Claimable, Stale, Unknown int
}

// MakePlan plans the next step for a pool:
//
//   - a Lost member goes at once, under every strategy;
//   - Recreate: every member that is not Current goes at once;
//   - RollingUpdate: members that are not Current and not ready go at once, and
//     of the ready ones the oldest
//     available - (Replicas - MaxUnavailable)
//     where available members have been ready for MinReady. So the number of
//     those that were deleted and are not replaced by available ones never
//     exceeds MaxUnavailable, and a template whose members never get ready stops
//     the rollout there. After Deadline without progress nothing is deleted;
//   - OnReplenish and PlatformOwned: nothing else goes;
//   - a Stray member that is ready goes under every strategy, in such steps.
//
// Hidden is what claims must not be given now. Under RollingUpdate, while older
// members serve because none of the revision in force is ready, those of it that
// are not ready are hidden, too.
//
// An Unknown member that was born of the revision in force waits until another
// one was born that is Current: its replacement would be no better.
//
// Deleting, not hiding, stops while the pool is paused.
func MakePlan(s PoolState) Plan {
	p := planner{PoolState: s, outlook: s.Outlook()}
	p.plan.Rollout = p.progress()
	p.count()
	p.admit()
	p.outcome()
	p.replace()
	p.show()
	return p.plan
}

type planner struct {
	PoolState
	plan    Plan
	outlook Outlook
	// available is how many members a claim could be given now, or that would
	// be there if they were not hidden.
	available int
}

// bornSince reports whether the member was certainly born since a time, and never
// written to. Births are known to the second: one of the same second may have
// been before.
func (m MemberState) bornSince(at time.Time) bool {
	return !m.Edited && !m.Created.Before(at)
}

func (p *planner) old(m MemberState) bool { return p.outlook.Old(m) }

func (s *PoolState) availableAt(m MemberState) (bool, time.Duration) {
	if m.Leaving || m.Class == Lost || m.ReadySince.IsZero() {
		return false, 0
	}
	wait := m.ReadySince.Add(s.MinReady).Sub(s.Now)
	return wait <= 0, max(wait, 0)
}

// progress notes what became ready.
func (p *planner) progress() Rollout {
	r := p.Rollout
	for _, m := range p.Members {
		if m.Class != Current || m.Leaving || m.ReadySince.IsZero() {
			continue
		}
		r.Fresh = p.Now
		if m.ReadySince.After(r.Progressed) {
			r.Progressed = m.ReadySince
		}
	}
	if r.State == Paused && !p.Paused {
		r.Progressed = p.Now
	}
	return r
}

func (p *planner) again(after time.Duration) {
	if after > 0 && (p.plan.Again == 0 || after < p.plan.Again) {
		p.plan.Again = after
	}
}

func (p *planner) count() {
	c := &p.plan.Counts
	for _, m := range p.Members {
		if m.Leaving {
			continue
		}
		c.Replicas++
		available, wait := p.availableAt(m)
		p.again(wait)
		if available {
			p.available++
		}
		if !m.ReadySince.IsZero() {
			c.Ready++
		}
		switch m.Class {
		case Current:
			c.Updated++
			if available {
				c.UpdatedReady++
			}
		case Stale:
			c.Stale++
		case Unknown:
			c.Unknown++
		}
	}
}

// left is how many members the rollout has still to replace.
func (p *planner) left() int {
	n := 0
	for _, m := range p.Members {
		if p.old(m) {
			n++
		}
	}
	return n
}

func (p *planner) admit() {
	if p.Strategy != RollingUpdate || p.left() == 0 {
		return
	}
	p.plan.Admit = AdmitFresh
	wait := p.plan.Rollout.Fresh.Add(noneFresh).Sub(p.Now)
	if wait <= 0 {
		p.plan.Admit = AdmitAny
	}
	p.again(wait)
}

func (p *planner) rolls() bool { return p.Strategy == Recreate || p.Strategy == RollingUpdate }

func (p *planner) outcome() {
	r, left := &p.plan.Rollout, p.left()
	upToDate := left == 0 && p.plan.Counts.UpdatedReady+p.unknownReady() >= p.Replicas
	overdue := time.Duration(1)
	if p.Deadline > 0 {
		overdue = later(r.Started, r.Progressed).Add(p.Deadline).Sub(p.Now)
	}
	switch {
	case left == 0 && (upToDate || r.State == Complete):
		r.State, p.plan.Cause = Complete, MembersUpToDate
		if p.Suspended && p.plan.Counts.Unknown > 0 {
			p.plan.Cause = AttributionSuspended
		}
	case !p.rolls():
		r.State, p.plan.Cause = Progressing, StaleByStrategy
		if left == 0 {
			p.plan.Cause = MembersUpdating
		}
	case p.Paused:
		r.State, p.plan.Cause = Paused, RolloutPaused
	case r.HeldUp:
		r.State, p.plan.Cause = Progressing, Queued
	case overdue <= 0:
		r.State, p.plan.Cause = Failed, ProgressDeadlineExceeded
	default:
		r.State, p.plan.Cause = Progressing, MembersUpdating
		if p.Deadline > 0 {
			p.again(overdue)
		}
	}
}

// unknownReady counts what has to do for up to date while nobody understands
// the pool.
func (p *planner) unknownReady() int {
	n := 0
	for _, m := range p.Members {
		if available, _ := p.availableAt(m); available && m.Class == Unknown && p.Suspended {
			n++
		}
	}
	return n
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (p *planner) replace() {
	p.outlook.Failed = p.plan.Rollout.State == Failed
	for i, m := range p.Members {
		if m.Class == Lost && p.outlook.Goes(m) {
			p.plan.Delete = append(p.plan.Delete, i)
		}
	}
	p.delete(p.inOrder(func(m MemberState) bool { return m.Class != Lost && p.outlook.Goes(m) }))
	ready := p.inOrder(p.stepwise)
	p.delete(ready[:min(len(ready), max(0, p.available-(p.Replicas-p.MaxUnavailable)))])
}

// stepwise reports whether the member is to be replaced and has to wait for its
// turn.
func (p *planner) stepwise(m MemberState) bool {
	if m.Leaving || m.ReadySince.IsZero() || p.outlook.Goes(m) {
		return false
	}
	return p.old(m) && p.Strategy == RollingUpdate && p.outlook.replaces() || m.Stray && !p.Paused
}

func (p *planner) delete(members []int) { p.plan.Delete = append(p.plan.Delete, members...) }

// inOrder returns members to replace, the oldest first.
func (p *planner) inOrder(which func(MemberState) bool) []int {
	var out []int
	for i, m := range p.Members {
		if which(m) {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int {
		return cmp.Or(p.Members[a].Created.Compare(p.Members[b].Created), cmp.Compare(a, b))
	})
	return out
}

// served reports whether claims may be given the member.
func (p *planner) served(m MemberState) bool {
	switch {
	case m.Class == Current && m.ReadySince.IsZero() && p.plan.Admit == AdmitAny && p.oldServe():
		// Whoever got it would wait, for ever if none of its revision starts.
		return false
	case m.Class == Current, m.Class == Unclassified, m.Class == Unknown && p.Suspended:
		return true
	case m.Class == Lost:
		return false
	}
	return ServesStale(p.Strategy, p.plan.Admit == AdmitAny)
}

// oldServe reports whether there is a ready one among the members to replace.
func (p *planner) oldServe() bool {
	return slices.ContainsFunc(p.Members, func(m MemberState) bool { return p.old(m) && !m.ReadySince.IsZero() })
}

func (p *planner) show() {
	goes := map[int]bool{}
	for _, i := range p.plan.Delete {
		goes[i] = true
	}
	for i, m := range p.Members {
		served := p.served(m)
		switch {
		case m.Leaving:
		case served && !m.Shown:
			p.plan.Show = append(p.plan.Show, i)
		case !served && m.Shown && p.Hideable && !goes[i]:
			p.plan.Hide = append(p.plan.Hide, i)
		}
		if served && !m.Leaving && !m.ReadySince.IsZero() {
			p.plan.Counts.Claimable++
		}
	}
}
