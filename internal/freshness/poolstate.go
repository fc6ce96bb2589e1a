package freshness

import "time"

// MemberState is one idle member, as it was last seen.
type MemberState struct {
	Class Class
	// ReadySince is when it became ready; zero when it is not.
	ReadySince time.Time
	Created    time.Time
	// Shown: the platform offers it to claims. HiddenSince is when it was seen that it
	// does not any more.
	Shown       bool
	HiddenSince time.Time
	// Leaving: its deletion has begun, or was asked for.
	Leaving bool
	// Gated: somebody else decides when its Pod may be scheduled.
	Gated bool
	// OnFormerScheduler: its Pod was sent to a scheduler that is to go. It runs on, but is not
	// left behind.
	OnFormerScheduler bool
	// OnCordonedNode: its node is to be empty, and its Pod goes with it alone.
	OnCordonedNode bool
	// Edited: it was written to after it was born, so that what it is now says
	// nothing about those that are still to be born.
	Edited bool
	// ByPool: the pool's own controller created it.
	ByPool bool
	// WriteFailed: the last attempt to write to it has failed; BackedOff: the next
	// one has to wait.
	WriteFailed, BackedOff bool
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
	// HiddenFirst is how long a member that claims are not given has to have been hidden
	// before it is deleted: who does not see yet that it is hidden asks for it until then.
	HiddenFirst time.Duration
	// Withholds: claims are not given stale members, whoever replaces them.
	Withholds bool
	// Suspended: unknown members are not to be replaced.
	Suspended bool
	Members   []MemberState
	// Rollout is what the plan before this one left.
	Rollout Rollout
	// Granted is how many members may be in replacement now, because all pools share
	// one budget.
	Granted int
	// Deletes is how many may be deleted now, because they share one pace.
	Deletes int
	// Filled is how many members have become available since the plan before this
	// one, Overtaken how many left that were available, before its deletes did.
	Filled, Overtaken int
	Now               time.Time
}

// bornSince reports whether the member was certainly born since a time, and never
// written to. Births are known to the second: one of the same second may have
// been before.
func (m MemberState) bornSince(at time.Time) bool {
	return !m.Edited && !m.Created.Before(at)
}

// mayGo reports whether the member could be one to delete, in whatever pool it is.
func (m MemberState) mayGo() bool {
	return m.Class != Current || m.OnFormerScheduler || m.OnCordonedNode
}

// before orders members to replace: first those whose nodes somebody waits for, then by
// age.
func (m MemberState) before(o MemberState) int {
	switch {
	case m.OnCordonedNode && !o.OnCordonedNode:
		return -1
	case o.OnCordonedNode && !m.OnCordonedNode:
		return 1
	}
	return m.Created.Compare(o.Created)
}

func (s *PoolState) availableAt(m MemberState) (bool, time.Duration) {
	if m.Leaving || m.Class == Unusable || m.ReadySince.IsZero() {
		return false, 0
	}
	// Another clock tells since when it is ready. Where that is ahead nobody waits for
	// longer than for one that became ready now.
	wait := min(m.ReadySince.Add(s.MinReady).Sub(s.Now), s.MinReady)
	return wait <= 0, max(wait, 0)
}

// Available reports whether a claim could be given the member now, or could if it
// were not hidden.
func (s *PoolState) Available(m MemberState) bool {
	available, _ := s.availableAt(m)
	return available
}

// Missing is how many more members would have to be available for the pool to
// have as many as it asks for. Those that are hidden are available, too.
func (s *PoolState) Missing() int {
	n := s.Replicas
	for _, m := range s.Members {
		if s.Available(m) {
			n--
		}
	}
	return max(n, 0)
}
