package rollout

import (
	"slices"

	"github.com/freshbind/freshbind/internal/freshness"
)

// carriedOut is one way in which a plan ends.
type carriedOut struct {
	act    act
	state  state
	broken Promise
	// writes: some member was written to.
	writes bool
}

// carryOut makes a plan and carries it out, in each way that there is: all of it; without
// a word, where the pool says nothing new; or only until another replica leads.
func (e *explorer) carryOut(from *state) []carriedOut {
	s := *from
	g, plan := e.planner.step(e.variant, &s)
	over := from.isOver(e.bounds)
	s.keep(&g, plan)
	quiet := s
	offered := s.publish(e.variant, plan)
	var out []carriedOut
	says := s.stored != quiet.stored || s.readStored != quiet.readStored
	if e.bounds.Leaders && says && len(plan.Delete) == 0 && s.words() == quiet.words() {
		out = append(out, e.write(plansQuietly, quiet, &g, plan, len(plan.Delete), over))
	}
	all := e.write(plans, s, &g, plan, len(plan.Delete), over)
	all.broken = max(all.broken, offered)
	out = append(out, all)
	if !e.bounds.Leaders || !all.writes {
		return out
	}
	for n := range min(len(plan.Delete), 2) {
		part := e.write(plansAndEnds, s, &g, plan, n, over)
		part.state.takeOver(e.variant, part.state.shown)
		out = append(out, part)
	}
	if len(plan.Delete) == 0 {
		s.takeOver(e.variant, s.shown)
		out = append(out, carriedOut{act: plansAndEnds, state: s})
	}
	return out
}

// words are what the pool says at once when it is new.
func (s *state) words() [4]uint8 {
	return [4]uint8{s.cause, s.admit, s.stored.state, s.stored.revision}
}

// keep is what (*pools.Controller).planned does.
func (s *state) keep(g *glance, plan *freshness.Plan) {
	r := plan.Rollout.Held(plan.Waiting > 0 && plan.Rollout.Replacing.Deleted() == 0, now)
	s.remember(&r)
	s.unseen, s.stalled, s.gone = s.waitsForDeletes(), plan.Stalled, gone{}
	s.planned = r.Replacing.Awaited() > 0
	for i := range s.members {
		m := &s.members[i]
		m.readied, m.lastPlan, m.wasCurrent = false, unplanned, false
	}
	if !s.planned {
		return
	}
	for k, is := range g.members {
		if is.class == noMember {
			continue
		}
		m := &s.members[g.at[k]]
		m.wasCurrent = is.class == isCurrent
		if m.lastPlan = plannedUnready; is.since != neverReady && !is.leaving {
			m.lastPlan = plannedReady
		}
	}
}

// publish writes onto the pool how its rollout goes, before anything is deleted.
func (s *state) publish(v *Variant, plan *freshness.Plan) Promise {
	was, broken := s.admit, Kept
	if s.admit = admitsNothing; plan.Admit == freshness.AdmitFresh {
		s.admit = admitsFresh
	} else if plan.Admit == freshness.AdmitAny {
		s.admit = admitsAny
		if was != admitsAny {
			broken = s.offered()
		}
	}
	if (was == admitsAny) != (s.admit == admitsAny) {
		s.startOver()
	}
	s.cause = indexOf(causes, plan.Cause)
	r := plan.Rollout
	s.stored, s.readStored = progressOf(&r), s.read
	s.stored.heldUp, s.stored.freshLongAgo, s.stored.await, s.stored.inherited = false, false, false, false
	if v.StoresNothing {
		s.stored.groups = [maxGroups]group{}
	}
	return broken
}

// startOver counts anew how often members are hidden and shown.
func (s *state) startOver() {
	for i := range s.members {
		s.members[i].reshown = false
	}
}

// write is what (*pools.Controller).write does, with only the first deletes done.
func (e *explorer) write(of act, s state, g *glance, plan *freshness.Plan, deletes int, over bool) carriedOut {
	out := carriedOut{act: of}
	var went []int
	for _, k := range plan.Delete[:deletes] {
		m := &s.members[g.at[k]]
		// Its delete names the version that was judged.
		if !m.stored.there || s.changed(g.at[k]) {
			continue
		}
		out.broken = max(out.broken, s.deleted(g.at[k], e.bounds, over))
		m.leaving = true
		went = append(went, k)
	}
	out.writes = len(went) > 0
	s.unseen = s.unseen || len(went) > 0
	if len(plan.Delete) > 0 {
		r := s.memory.asRollout()
		if r.Replacing.Deleted() == len(plan.Delete) && len(went) > 0 {
			r.Progressed, r.Started = now, now
		}
		if r.Replacing = plan.Replacing(went); e.variant.Forgets {
			r.Replacing = nil
		}
		s.remember(&r)
	}
	if of == plansAndEnds {
		out.state = s
		return out
	}
	for _, k := range plan.Hide {
		out.writes = s.patch(g.at[k], wasHidden, &out.broken) || out.writes
	}
	for _, k := range e.shows(g, plan) {
		out.writes = s.patch(g.at[k], wasShown, &out.broken) || out.writes
	}
	out.state = s
	return out
}

// shows are the members to show.
func (e *explorer) shows(g *glance, plan *freshness.Plan) []int {
	if e.variant.ShowsNothing {
		return nil
	}
	shows := plan.Show
	if e.variant.OffersWaiting && plan.Waiting > 0 {
		for k, is := range g.members {
			if is.class == isStale && !is.shown && !is.leaving {
				shows = append(slices.Clone(shows), k)
			}
		}
	}
	return shows
}

// patch hides or shows the version of a member that was judged.
func (s *state) patch(slot int, w what, broken *Promise) bool {
	m := &s.members[slot]
	if !m.stored.there || s.changed(slot) {
		return false
	}
	if m.reshown {
		*broken = max(*broken, Steady)
	}
	m.reshown = w == wasShown
	m.stored = m.stored.becomes(w)
	s.push(slot, w)
	return true
}

// takeOver is another leader. It begins with what is stored, and only when its cache shows
// all of it; of the template it may show any edit.
func (s *state) takeOver(v *Variant, shown uint8) {
	for s.pends() > 0 && !v.Unlisted {
		s.see()
	}
	for i := range s.members {
		m := &s.members[i]
		m.leaving, m.readied, m.lastPlan, m.wasCurrent = false, false, unplanned, false
		if s.stored.overdue && !s.memory.overdue && m.since != neverReady {
			m.since = lately
		}
	}
	s.shown, s.planned, s.unseen, s.gone = shown, false, false, gone{}
	s.stalled = s.stored.says(freshness.Failed)
	s.memory, s.read = s.stored, s.readStored
	s.memory.heldUp = causes[s.cause] == freshness.Queued
	r := s.memory.asRollout().Resume()
	s.memory.await, s.memory.inherited = r.AwaitMissing, r.Inherited && !v.InheritsNothing
}
