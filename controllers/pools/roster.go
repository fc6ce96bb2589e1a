package pools

import (
	"context"
	"fmt"
	"slices"
	"time"
	"unique"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/members"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// roster is what the idle members of a pool are beside what is in force. It is kept
// from one look to the next: a pool may have 10,000 members, and an event is about
// one of them.
type roster struct {
	by *platform.Inspection
	// entries and states are of the same members, the oldest first.
	entries []entry
	states  []freshness.MemberState
	// version counts the changes of what a plan depends on.
	version int
}

// entry is one member, and what was found out about it beside its state.
type entry struct {
	members.WithPod
	// revision is the one that it is built from; "" where none is known. doubt is why
	// it has to be judged by live reads; "" for nothing. There are many members, and
	// few of either.
	revision, doubt             unique.Handle[string]
	hideable, stamped, enforced bool
	// podLacksStamp: it has a Pod of its own without one.
	podLacksStamp bool
}

// roll judges those members that are another version by now, or in another Pod, than
// when they were judged last.
func (p *Controller) roll(ctx context.Context, m *poolRecord, inspection *platform.Inspection, pool *unstructured.Unstructured) (*roster, error) {
	r := m.roster
	if r == nil || r.by != inspection {
		r = &roster{by: inspection}
	}
	// It is lost with an error half-way: what it has may be of no version then.
	m.roster = nil
	shown := p.view.members.OfPool(pool.GetUID())
	entries, states := r.entries, r.states
	if !r.isOf(shown) {
		entries, states = make([]entry, 0, len(shown)), make([]freshness.MemberState, 0, len(shown))
		r.version++
	}
	entries, states = entries[:0], states[:0]
	old := 0
	for _, is := range shown {
		var known bool
		if old, known = r.find(is, old); known && r.entries[old].WithPod == is {
			entries, states = append(entries, r.entries[old]), append(states, r.states[old])
			continue
		}
		if !idle(pool, is) {
			continue
		}
		e, state, err := p.judge(ctx, inspection, is)
		if err != nil {
			return nil, err
		}
		if known && (!e.says(r.entries[old]) || state != r.states[old]) {
			r.version++
		}
		entries, states = append(entries, e), append(states, state)
	}
	r.entries, r.states = entries, states
	m.roster = r
	return r, nil
}

// place notes which members are on nodes that are to be empty.
func (r *roster) place(nodes worseNodes) {
	for i := range r.states {
		if on := nodes.onCordoned(r.entries[i].WithPod); on != r.states[i].OnCordonedNode {
			r.states[i].OnCordonedNode = on
			r.version++
		}
	}
}

// asWritten are the states of members with what came of writes to them.
func (m *poolRecord) asWritten(r *roster, now time.Time) []freshness.MemberState {
	if len(m.leaving)+len(m.failures) == 0 {
		return r.states
	}
	states := slices.Clone(r.states)
	for i := range states {
		uid := r.entries[i].UID
		states[i].Leaving = states[i].Leaving || m.leaving[uid]
		states[i].WriteFailed, states[i].BackedOff = m.failures.failed(uid, now)
	}
	return states
}

// asHidden are the states of members with when each was first seen to be hidden, which
// nothing that is stored tells.
func (m *poolRecord) asHidden(r *roster, of []freshness.MemberState, now time.Time) []freshness.MemberState {
	states, hidden := slices.Clone(of), map[types.UID]time.Time{}
	for i := range states {
		if states[i].Shown {
			continue
		}
		uid := r.entries[i].UID
		since, before := m.hidden[uid]
		if !before {
			since = now
		}
		states[i].HiddenSince, hidden[uid] = since, since
	}
	m.hidden = hidden
	return states
}

// idle reports whether a Sandbox that a pool has was made for it, and no claim has
// it.
func idle(pool *unstructured.Unstructured, is members.WithPod) bool {
	return is.GetNamespace() == pool.GetNamespace() && is.Pooled
}

// find returns where a member is that comes no sooner than from.
func (r *roster) find(is members.WithPod, from int) (at int, known bool) {
	for at = from; at < len(r.entries); at++ {
		was := r.entries[at].Member
		if was == is.Member || was.UID == is.UID {
			return at, true
		}
		if members.ByAge(was, is.Member) > 0 {
			break
		}
	}
	return at, false
}

// isOf reports whether those are the members, whatever their versions.
func (r *roster) isOf(shown []members.WithPod) bool {
	if len(shown) != len(r.entries) {
		return false
	}
	for i, is := range shown {
		if e := r.entries[i].WithPod; e.Member != is.Member && (e.UID != is.UID || !is.Pooled) {
			return false
		}
	}
	return true
}

// says reports whether a plan comes to the same of both.
func (e entry) says(o entry) bool {
	e.WithPod, o.WithPod = members.WithPod{}, members.WithPod{}
	return e == o
}

// judge is what the plan depends on of one member, but for what is remembered of
// writes to it.
func (p *Controller) judge(ctx context.Context, inspection *platform.Inspection, is members.WithPod) (entry, freshness.MemberState, error) {
	member := is.Member
	j, err := inspection.Member(ctx, member)
	if err != nil {
		return entry{}, freshness.MemberState{}, fmt.Errorf("judging member %s: %w", member.Name, err)
	}
	edited := member.Generation > 1
	alone := j.Class
	if j, err = inspection.Pod(ctx, member, is.Pod, j); err != nil {
		return entry{}, freshness.MemberState{}, fmt.Errorf("judging the pod of member %s: %w", member.Name, err)
	}
	edited = edited || is.Pod != nil && alone != j.Class && is.Pod.Exchanged(j.Class)
	e := entry{
		WithPod: is, revision: unique.Make(j.Found), doubt: unique.Make(""), hideable: member.Hideable, stamped: member.Stamp() != "",
		enforced: member.Labels[settings.EnforcementKey] != "", podLacksStamp: is.Pod != nil && is.Pod.LacksStamp(member),
	}
	if is.Pod != nil && j.Class == freshness.Current && !member.Deleting() {
		e.doubt = unique.Make(is.Pod.Doubt(member, inspection.Revision()))
	}
	state := freshness.MemberState{
		Class: j.Class, ReadySince: member.ReadySince(), Created: member.Created(), Shown: member.Shown,
		Edited: edited, ByPool: member.CreatedByPool(), Leaving: member.Deleting(),
	}
	if p.formerScheduler != "" || state.ReadySince.IsZero() {
		state.Gated, state.OnFormerScheduler = p.podState(is)
	}
	return e, state, nil
}

// podState tells whether the member's Pod is held back from scheduling, and
// whether it is a scheduler's that is to go.
func (p *Controller) podState(is members.WithPod) (gated, onFormerScheduler bool) {
	if is.Pod == nil {
		return false, false
	}
	return is.Pod.Gated(), p.formerScheduler != "" && is.Pod.Scheduler() == p.formerScheduler && !is.NamesScheduler()
}
