package freshness

import (
	"cmp"
	"slices"
	"sort"
	"time"
)

// Cause says why a rollout is in its state, in the words of Deployments where
// they have some. The set is closed.
type Cause string

const (
	// MembersUpToDate: nothing is left to replace and every member is ready.
	MembersUpToDate Cause = "MembersUpToDate"
	// MembersUpdating: members are being replaced, or not ready yet.
	MembersUpdating Cause = "MembersUpdating"
	// Queued: other pools' rollouts come first, or no more may be deleted at the moment.
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
	// Delete are the members to replace now, the most urgent first. Waiting is how
	// many there were besides if more were granted, and Wanted how many more of all
	// would be in replacement: not one that was not available, and is counted already.
	Delete, Hide, Show []int
	Waiting, Wanted    int
	// Admit is what the pool has to say; "" for nothing.
	Admit  Admit
	Counts Counts
	Cause  Cause
	// Rollout counts what Delete names as deleted.
	Rollout Rollout
	// Stalled: nothing became ready for so long that what was deleted is not
	// expected to be replaced any more.
	Stalled bool
	// Again is when time alone changes the plan; 0 for never.
	Again time.Duration
	// before is what the plan was made of, without its deletes.
	before *planner
}

// Replacing is what is being replaced when, of the members to delete, only these
// were.
func (p Plan) Replacing(deleted []int) Replacements { return p.before.deleting(deleted) }

// Counts are of members that are not leaving.
type Counts struct {
	Replicas, Ready, Updated, UpdatedReady, Claimable, Stale, Unknown int
	// WriteFailed are those to replace that could not be written to.
	WriteFailed int
}

// MakePlan plans the next step for a pool:
//
//   - a Unusable member goes at once, under every strategy;
//   - Recreate: every member that is not Current goes at once;
//   - RollingUpdate: members that are not Current and not ready go at once, and
//     of the ready ones the oldest
//     MaxUnavailable - Rollout.Replacing.Deleted()
//     So the number of those that were deleted and are not replaced by available
//     ones, which have been ready for MinReady, never exceeds MaxUnavailable, and
//     a template whose members never get ready stops the rollout there. Members
//     that claims took do not count: they would hold up a pool in use for ever.
//     After Deadline without progress nothing more is deleted;
//   - OnReplenish and PlatformOwned: what is Former goes at once, nothing else;
//   - a member on a former scheduler that is ready goes under every strategy, in such steps;
//   - one on a node that is to be empty does, too, before others and in a paused pool;
//   - no more than Granted are in replacement, or than are already, and no more than
//     Deletes go.
//
// Where HiddenFirst says so a member that claims are not given is hidden for that long
// before it is deleted.
//
// Hidden is what claims must not be given now; whether a member waits for a grant
// makes no difference. Under RollingUpdate, while older members serve because none
// of the revision in force is ready, those of it that are not ready are hidden,
// too, until they are.
//
// An Unknown member that was born of the revision in force waits until another
// one was born that is Current: its replacement would be no better.
//
// Deleting, not hiding, stops while the pool is paused; only what is Unusable goes.
//
// A rollout is Complete when nothing is left to replace, and as many members have
// become available since as were missing or deleted.
func MakePlan(s PoolState) Plan {
	p := planner{PoolState: s, missing: s.Missing(), awaits: s.Rollout.Replacing.Awaited() > 0}
	p.Rollout = p.Rollout.By(s.Now)
	p.Rollout.Replacing = s.Rollout.Replacing.Postpone(s.Overtaken).Fill(s.Filled).Limit(p.missing)
	if s.Rollout.Inherited {
		r := p.Rollout.Replacing
		p.Rollout.Replacing, p.Rollout.Inherited = r.Postpone(p.missing-r.Awaited()), false
	}
	if s.Rollout.AwaitMissing {
		p.awaits = p.awaits || p.missing > 0
		p.Rollout.Replacing, p.Rollout.AwaitMissing = p.Rollout.Replacing.Await(p.missing), false
	}
	p.policy = p.ReplacementPolicy()
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
	plan   Plan
	policy ReplacementPolicy
	// missing is how many members are not available that should be.
	missing int
	// awaits: something was to become available.
	awaits bool
}

func (p *planner) outdated(m MemberState) bool { return p.policy.Outdated(m) }

// progress notes what became ready. Time starts anew when a pool that was at rest
// has something to replace, and after a pause.
func (p *planner) progress() Rollout {
	r := p.Rollout
	for _, m := range p.Members {
		if m.Class != Current || m.Leaving || m.ReadySince.IsZero() {
			continue
		}
		r.Fresh = p.Now
		// What takes the place of a member that a claim took brings a rollout no further.
		if p.awaits && m.ReadySince.After(r.Progressed) {
			r.Progressed = notAfter(m.ReadySince, p.Now)
		}
	}
	if r.State == Paused && !p.Paused || r.State == Complete && p.left() > 0 {
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
		if m.WriteFailed && (p.outdated(m) || m.Class == Unusable || m.OnCordonedNode) {
			c.WriteFailed++
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
		case Stale, Former:
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
		if p.outdated(m) {
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
	// What is Former nobody can be given, whatever is admitted.
	if !slices.ContainsFunc(p.Members, p.mayServe) {
		return
	}
	wait := p.plan.Rollout.Fresh.Add(noneFresh).Sub(p.Now)
	if wait <= 0 {
		p.plan.Admit = AdmitAny
	}
	p.again(wait)
}

func (p *planner) rolls() bool { return p.Strategy == Recreate || p.Strategy == RollingUpdate }

// upToDate: nothing is left to do, and what was deleted has been replaced. A rollout
// that was complete stays so while claims take members.
func (p *planner) upToDate(left int) bool {
	r := p.plan.Rollout
	settled := r.Replacing.Awaited() == 0 && (p.plan.Counts.Unknown == 0 || p.Suspended)
	return left == 0 && (settled || r.State == Complete)
}

func (p *planner) outcome() {
	r, left := &p.plan.Rollout, p.left()
	overdue := time.Duration(1)
	if p.Deadline > 0 {
		overdue = r.lastProgress().Add(p.Deadline).Sub(p.Now)
	}
	if p.plan.Stalled = r.Stalled(p.Deadline, p.Now); p.Deadline > 0 && r.Replacing.Deleted() > 0 {
		// Other pools get what this one has of the budget by a plan only.
		p.again(r.stallsIn(p.Deadline, p.Now))
	}
	switch {
	case p.upToDate(left):
		r.State, p.plan.Cause = Complete, MembersUpToDate
		if p.Suspended && p.plan.Counts.Unknown > 0 {
			p.plan.Cause = AttributionSuspended
		}
	case !p.rolls() && !p.policy.heldByPause(p.Members):
		r.State, p.plan.Cause = Progressing, StaleByStrategy
		if left == 0 || p.Withholds {
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

func (p *planner) replace() {
	r := &p.plan.Rollout.Replacing
	// With nothing in replacement it failed for want of deletes, not of what they
	// would bring.
	p.policy.Failed = p.plan.Rollout.State == Failed && r.Deleted() > 0
	before := *p
	if p.plan.before = &before; !slices.ContainsFunc(p.Members, MemberState.mayGo) {
		return
	}
	wanted := p.inOrder(func(m MemberState) bool { return m.Class == Unusable && p.policy.DeletesNow(m) })
	stuck := p.inOrder(func(m MemberState) bool { return m.Class != Unusable && p.stuck(m) })
	// The youngest may stand in place of members that were deleted before.
	slices.Reverse(stuck)
	wanted = append(wanted, stuck...)
	wanted = append(wanted, p.inOrder(func(m MemberState) bool { return p.Available(m) && p.policy.DeletesNow(m) })...)
	steps := p.inOrder(p.stepwise)
	steps = steps[:min(len(steps), max(0, p.MaxUnavailable-p.deleting(wanted).Deleted()))]
	wanted = append(wanted, steps...)
	slices.SortStableFunc(wanted, func(a, b int) int {
		return cmp.Compare(p.costs(a), p.costs(b))
	})
	already := r.Deleted()
	p.plan.Wanted = max(0, p.deleting(wanted).Deleted()-already)
	most := max(already, p.Granted)
	n := sort.Search(min(len(wanted), p.Deletes), func(n int) bool { return p.deleting(wanted[:n+1]).Deleted() > most })
	p.plan.Delete, p.plan.Waiting = wanted[:n], len(wanted)-n
	*r = p.deleting(p.plan.Delete)
}

// costs is 1 for a member that is available, which goes after those that are not.
func (p *planner) costs(i int) int {
	if p.Available(p.Members[i]) {
		return 1
	}
	return 0
}

// deleting is what is being replaced once those members are deleted.
func (p *planner) deleting(members []int) Replacements {
	if len(members) == 0 {
		return p.plan.Rollout.Replacing
	}
	available, unavailable, stuck := 0, 0, 0
	for _, m := range p.Members {
		if p.stuck(m) {
			stuck++
		}
	}
	for _, i := range members {
		available += p.costs(i)
		unavailable += 1 - p.costs(i)
		if p.stuck(p.Members[i]) {
			stuck--
		}
	}
	return p.plan.Rollout.Replacing.Delete(p.missing, unavailable, available, stuck)
}

// stuck: the member is not available, and goes before it ever is.
func (p *planner) stuck(m MemberState) bool {
	return !m.Leaving && !p.Available(m) && p.policy.DeletesNow(m)
}

// stepwise reports whether the member is to be replaced and has to wait for its
// turn.
func (p *planner) stepwise(m MemberState) bool {
	if m.Leaving || m.ReadySince.IsZero() || p.policy.DeletesNow(m) {
		return false
	}
	return p.outdated(m) && p.Strategy == RollingUpdate && p.policy.replaces() || m.OnFormerScheduler && !p.Paused || m.OnCordonedNode
}

// inOrder returns members to replace, those that somebody waits for and the oldest
// first. Those that could not be written to wait for their next turn.
func (p *planner) inOrder(which func(MemberState) bool) []int {
	var out []int
	for i, m := range p.Members {
		if !m.BackedOff && which(m) && p.hiddenLongEnough(m) {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int {
		return cmp.Or(p.Members[a].before(p.Members[b]), cmp.Compare(a, b))
	})
	return out
}
