package recreate

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/advice"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/members"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

// situation is what a plan depends on, and the objects that it is about.
type situation struct {
	freshness.PoolState
	pool     *unstructured.Unstructured
	template *unstructured.Unstructured
	members  []*members.Member
	// revisions are those that the members are built from, "" where none is known.
	revisions []string
	// gone are members that were seen to be available, and are not there any more.
	gone []types.UID
	// live: its mode was read live.
	live bool
	// paths are where the newest unknown member differs.
	paths []string
}

// situation judges the members that the cache shows; nil when the template does
// not exist, so that nothing can be said of them.
func (p *Pools) situation(ctx context.Context, m *memory, pool, template *unstructured.Unstructured) (*situation, error) {
	if template == nil {
		return nil, nil
	}
	inspection, err := p.inspect(ctx, m, pool, template)
	if err != nil {
		return nil, err
	}
	shown := p.view.Members(pool)
	s := &situation{pool: pool, template: template, members: shown, revisions: make([]string, len(shown))}
	s.PoolState = inputs(pool)
	s.Strategy, s.Now = inspection.Strategy(), p.clock.Now()
	s.Members = make([]freshness.MemberState, len(shown))
	for i, member := range shown {
		if s.Members[i], s.revisions[i], err = p.state(ctx, m, inspection, member); err != nil {
			return nil, err
		}
		s.Hideable = s.Hideable && agentsandbox.Hideable(member)
	}
	p.recall(m, s, inspection)
	p.observe(m, s)
	was := pool.GetAnnotations()[platform.AttributionKey] == inspection.Revision()
	if s.Suspended = freshness.Incomprehensible(was, s.Members, s.Replicas, s.Rollout.Started); s.Suspended {
		s.paths, err = s.unknownPaths(ctx, inspection)
	}
	return s, err
}

// inspect goes on with what the pool's members were compared with before when
// nothing of it has changed, so that none is compared again.
func (p *Pools) inspect(ctx context.Context, m *memory, pool, template *unstructured.Unstructured) (*agentsandbox.Inspection, error) {
	inspection, err := p.platform.Inspect(ctx, pool, template)
	if err != nil {
		return nil, fmt.Errorf("rendering template %s: %w", template.GetName(), err)
	}
	if !inspection.Same(m.inspection) {
		m.inspection = inspection
	}
	return m.inspection, nil
}

// state is what the plan depends on of one member, and the revision that it is
// built from.
func (p *Pools) state(
	ctx context.Context, m *memory, inspection *agentsandbox.Inspection, member *members.Member,
) (freshness.MemberState, string, error) {
	j, err := inspection.Member(ctx, member)
	if err != nil {
		return freshness.MemberState{}, "", fmt.Errorf("judging member %s: %w", member.Name, err)
	}
	edited := member.Generation > 1
	if pod := p.view.podOf(member); pod != nil && j.Class == freshness.Current {
		if j.Class, err = inspection.Pod(member, pod); err != nil {
			return freshness.MemberState{}, "", fmt.Errorf("judging the pod of member %s: %w", member.Name, err)
		}
		edited = edited || pod.Exchanged(j.Class)
	}
	state := freshness.MemberState{
		Class: j.Class, ReadySince: member.ReadySince(), Created: member.Created(), Shown: member.Shown(),
		Edited: edited, ByPool: member.CreatedByPool(), Leaving: member.Deleting() || m.leaving[member.UID],
	}
	state.WriteFailed, state.BackedOff = m.failed(member.UID, p.clock.Now())
	if p.strays != "" || state.ReadySince.IsZero() {
		state.Gated, state.Stray = p.podState(member)
	}
	return state, j.Found, nil
}

// podState tells whether the member's Pod is held back from scheduling, and
// whether it is a scheduler's that is to go.
func (p *Pools) podState(member *members.Member) (gated, stray bool) {
	pod := p.view.pods.Special(types.NamespacedName{Namespace: member.GetNamespace(), Name: member.PodName()})
	if pod == nil {
		return false, false
	}
	return pod.Gated(), p.strays != "" && pod.Scheduler() == p.strays && !member.NamesScheduler()
}

// recall carries on with the rollout in force, or begins one.
func (p *Pools) recall(m *memory, s *situation, inspection *agentsandbox.Inspection) {
	if !m.read {
		m.read = true
		m.rollout, m.template = recorded(p.stored(s.pool), s.Now)
		m.rollout = m.rollout.Resume()
	}
	seen := edition{uid: s.template.GetUID(), generation: s.template.GetGeneration()}
	if m.turned(seen, inspection.Revision()) {
		m.changed, m.offered = s.Now, 0
	}
	m.template = seen
	if name := s.template.GetName(); !m.rollout.Is(inspection.Revision(), name, inspection.Restarted()) {
		m.rollout = m.rollout.Follow(inspection.Revision(), name, inspection.Restarted(), s.Now)
	}
	s.Rollout = m.rollout
}

// turned reports whether others may have seen a template, since it was last seen
// here, that differs from what some members are built from, and dropped them:
// another revision, or versions in between that were not seen here.
func (m *memory) turned(seen edition, revision string) bool {
	if m.template.generation == 0 {
		return false
	}
	replaced := m.template.uid != "" && m.template.uid != seen.uid
	missed := seen.generation != m.template.generation && seen.generation != m.template.generation+1
	return replaced || missed || m.rollout.Revision != revision
}

// unknownPaths are where the newest unknown member differs from the template.
func (s *situation) unknownPaths(ctx context.Context, inspection *agentsandbox.Inspection) ([]string, error) {
	newest := -1
	for i, m := range s.Members {
		if m.Class == freshness.Unknown && (newest < 0 || m.Created.After(s.Members[newest].Created)) {
			newest = i
		}
	}
	if newest < 0 {
		return nil, nil
	}
	return inspection.Differences(ctx, s.members[newest])
}

// inputs reads what the pool says. What cannot be parsed counts as not said.
func inputs(pool *unstructured.Unstructured) freshness.PoolState {
	said := pool.GetAnnotations()
	s := freshness.PoolState{
		Replicas: agentsandbox.Replicas(pool),
		Paused:   said[advice.PausedKey] == "true",
		Hideable: !agentsandbox.Recreates(pool),
		Deadline: freshness.DefaultDeadline,
	}
	s.MaxUnavailable = freshness.MaxUnavailable(said[advice.MaxUnavailableKey], s.Replicas)
	if d, err := time.ParseDuration(said[advice.ProgressDeadlineKey]); err == nil && d > 0 {
		s.Deadline = d
	}
	if d, err := time.ParseDuration(said[advice.MinReadySecondsKey] + "s"); err == nil && d > 0 {
		s.MinReady = d
	}
	return s
}

// recorded reads back the rollout that the pool's annotations tell of; a zero
// one when they tell of none that is understood.
func recorded(said map[string]string, now time.Time) (freshness.Rollout, edition) {
	status, err := platform.ParseRolloutStatus(said[platform.RolloutStatusKey])
	if err != nil || status.UpdateRevision == "" {
		return freshness.Rollout{}, edition{}
	}
	return freshness.Rollout{
		Revision: status.UpdateRevision, Template: status.Template, Restarted: status.RestartedAt.Time,
		Started: status.StartTime.Time, Progressed: status.ProgressTime.Time, Fresh: now,
		State:     freshness.State(said[platform.RolloutStateKey]),
		HeldUp:    said[platform.RolloutReasonKey] == string(freshness.Queued),
		Replacing: status.Replacing,
	}, edition{generation: status.ObservedTemplateGeneration}
}
