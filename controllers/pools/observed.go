package pools

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/members"
)

// memberStatus is what a member was when its pool was last planned.
type memberStatus struct{ ready, available, current bool }

// memberStatuses is what the members are now.
func (s *poolState) memberStatuses() map[types.UID]memberStatus {
	out := make(map[types.UID]memberStatus, len(s.Members))
	for i, state := range s.Members {
		out[s.members[i].UID] = memberStatus{!state.ReadySince.IsZero(), s.Available(state), state.Class == freshness.Current}
	}
	return out
}

// observe compares the members with those of the last plan: what became
// available takes the place of one that was deleted, even when a claim took it
// since.
func (p *Controller) observe(m *poolRecord, s *poolState) {
	// Only after the members were listed, so that none counts that will be seen
	// to become ready.
	m.readied = m.readied.Union(p.follow(m.pool, true))
	if m.lastSeen == nil {
		return
	}
	are := s.memberStatuses()
	for uid, is := range are {
		was := m.lastSeen[uid]
		switch {
		case m.leaving[uid]:
		case is.available && !was.available:
			// An old one was there before, and replaces none.
			if is.current {
				s.Filled++
			}
		case was.available && !is.available:
			s.Overtaken++
		}
	}
	s.observeGone(m, are)
	s.observeUnseen(m, are)
	// What left since may have left before them, even when both are seen at once.
	if !m.unseen && !s.unseenDeletes(m) {
		s.Overtaken = 0
	}
}

// observeGone counts the members of the last plan that others took since.
func (s *poolState) observeGone(m *poolRecord, are map[types.UID]memberStatus) {
	for uid, was := range m.lastSeen {
		if _, present := are[uid]; present || m.leaving[uid] {
			continue
		}
		switch {
		case was.available:
			s.Overtaken++
		case was.current && (was.ready || m.readied.Has(uid)):
			s.Filled++
			s.Overtaken++
		case was.ready || m.readied.Has(uid):
			// The template changed meanwhile. It may have been of use before, and what it
			// left is not to be taken for what the rollout did since.
			s.Overtaken++
		default:
			continue
		}
		s.gone = append(s.gone, uid)
		if was.current {
			s.Rollout.Fresh, s.Rollout.Progressed = s.Now, s.Now
		}
	}
}

// observeUnseen counts the members that came, became ready and went between two
// plans.
func (s *poolState) observeUnseen(m *poolRecord, are map[types.UID]memberStatus) {
	for uid := range m.readied {
		_, present := are[uid]
		_, known := m.lastSeen[uid]
		if _, before := m.gone.Get(uid); !present && !known && !before && !m.leaving[uid] {
			s.gone = append(s.gone, uid)
			s.Filled++
			s.Overtaken++
		}
	}
}

// unseenDeletes reports whether the cache shows a member that was deleted: what it
// shows to have left before went first.
func (s *poolState) unseenDeletes(m *poolRecord) bool {
	return len(m.leaving) > 0 && slices.ContainsFunc(s.members, func(member entry) bool {
		return m.leaving[member.UID] && !member.Deleting()
	})
}

// planned keeps what the next plan depends on.
func (p *Controller) planned(m *poolRecord, s *poolState, plan freshness.Plan) {
	if now := s.pool.GetResourceVersion(); m.version == "" || older(m.version, now) {
		m.version = now
	}
	held := plan.Waiting > 0 && plan.Rollout.Replacing.Deleted() == 0
	m.rollout = plan.Rollout.Held(held, s.Now)
	m.unseen = s.unseenDeletes(m)
	m.lastSeen, m.readied = nil, nil
	for _, uid := range s.gone {
		m.gone.Add(uid, nil)
	}
	awaits := m.rollout.Replacing.Awaited() > 0
	if !awaits {
		p.follow(m.pool, false)
		m.gone.Clear()
	}
	if !awaits && len(m.leaving)+len(m.failures)+len(m.doubted) == 0 {
		return
	}
	are := s.memberStatuses()
	keepPresent(m.leaving, are)
	keepPresent(m.failures, are)
	keepPresent(m.doubted, are)
	if awaits {
		m.lastSeen = are
	}
}

// keepPresent drops what is remembered of members that are gone.
func keepPresent[V, S any](of map[types.UID]V, are map[types.UID]S) {
	maps.DeleteFunc(of, func(uid types.UID, _ V) bool {
		_, present := are[uid]
		return !present
	})
}

// account is what the pool has of the budget for all pools.
func (m *poolRecord) account(stalled bool) Account {
	return Account{m.rollout.Replacing.Deleted(), stalled}
}

const (
	// readyKept bounds how many members are remembered of a pool that became ready
	// since it was last planned, goneKept of those that were counted and are gone:
	// an event may come later than the list that showed what it tells of.
	readyKept, goneKept = 4096, 1024
)

// noteReady is told of every member that the cache shows to have become ready.
func (p *Controller) noteReady(member *members.Member) {
	_, uid := member.Pool()
	p.mu.Lock()
	defer p.mu.Unlock()
	ready, followed := p.ready[uid]
	if followed && ready.Len() < readyKept {
		ready.Insert(member.UID)
	}
}

// follow has members of the pool remembered that become ready, as long as it
// replaces any, and returns those that did since it was last called.
func (p *Controller) follow(pool types.UID, follow bool) sets.Set[types.UID] {
	p.mu.Lock()
	defer p.mu.Unlock()
	ready := p.ready[pool]
	delete(p.ready, pool)
	if follow {
		p.ready[pool] = sets.New[types.UID]()
	}
	return ready
}

// backoff is how often in a row a member could not be written to, and until when
// it is left alone.
type backoff struct {
	times int
	until time.Time
}

const (
	// firstBackoff is how long a member is left alone after a write to it was
	// refused; each further time takes twice as long, up to longestBackoff.
	firstBackoff   = time.Second
	longestBackoff = 2 * time.Minute
)

// backoffs are those of members.
type backoffs map[types.UID]backoff

func (b backoffs) note(uid types.UID, now time.Time) (first bool) {
	f := b[uid]
	wait := min(firstBackoff<<min(f.times, 10), longestBackoff)
	b[uid] = backoff{f.times + 1, now.Add(wait)}
	return f.times == 0
}

// failed reports whether the last try of a member failed, and whether the next one has to
// wait.
func (b backoffs) failed(uid types.UID, now time.Time) (failed, wait bool) {
	f, failed := b[uid]
	return failed, f.until.After(now)
}

// next is when the first member may be tried again; 0 for none.
func (b backoffs) next(now time.Time) time.Duration {
	again := time.Duration(0)
	for _, f := range b {
		if f.until.After(now) {
			again = sooner(again, f.until.Sub(now))
		}
	}
	return again
}
