package recreate

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/advice"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

// situation is what a plan depends on, and the objects that it is about.
type situation struct {
	freshness.PoolState
	pool     *unstructured.Unstructured
	template *unstructured.Unstructured
	members  []*unstructured.Unstructured
	// revisions are those that the members are built from, "" where none is known.
	revisions []string
	// paths are where the newest unknown member differs.
	paths []string
}

// situation judges the members that the cache shows; nil when the template does
// not exist, so that nothing can be said of them.
func (p *Pools) situation(ctx context.Context, m *memory, pool, template *unstructured.Unstructured) (*situation, error) {
	members, err := p.view.Members(ctx, pool)
	if err != nil {
		return nil, err
	}
	if template == nil {
		return nil, nil
	}
	inspection, err := p.platform.Inspect(ctx, pool, template)
	if err != nil {
		return nil, fmt.Errorf("rendering template %s: %w", template.GetName(), err)
	}
	s := &situation{pool: pool, template: template, members: members}
	s.PoolState = inputs(pool)
	s.Strategy, s.Now = inspection.Strategy(), p.clock.Now()
	present := map[types.UID]bool{}
	for _, sandbox := range members {
		present[sandbox.GetUID()] = true
		v, err := inspection.Member(sandbox)
		if err != nil {
			return nil, err
		}
		state := freshness.MemberState{
			Class:      freshness.ClassOf(v),
			ReadySince: agentsandbox.ReadySince(sandbox),
			Created:    sandbox.GetCreationTimestamp().Time,
			Shown:      agentsandbox.Shown(sandbox),
			Edited:     sandbox.GetGeneration() > 1,
			Leaving:    sandbox.GetDeletionTimestamp() != nil || m.leaving[sandbox.GetUID()],
		}
		if state.Gated, state.Stray, err = p.podState(ctx, sandbox); err != nil {
			return nil, err
		}
		s.Members, s.revisions = append(s.Members, state), append(s.revisions, v.Found)
		s.Hideable = s.Hideable && agentsandbox.Hideable(sandbox)
	}
	for uid := range m.leaving {
		if !present[uid] {
			delete(m.leaving, uid)
		}
	}
	p.recall(m, s, inspection)
	was := pool.GetAnnotations()[platform.AttributionKey] == inspection.Revision()
	if s.Suspended = freshness.Incomprehensible(was, s.Members, s.Replicas, s.Rollout.Started); s.Suspended {
		s.paths, err = s.unknownPaths(inspection)
	}
	return s, err
}

// lacking is how many ready members the pool lacks when those are deleted that
// were granted. Whoever is not ready and waits for its turn takes the place of
// none that was replaced.
func (s *situation) lacking(plan freshness.Plan, granted int) int {
	n := s.Replicas - plan.Counts.Ready
	for k, i := range plan.Delete {
		ready := !s.Members[i].ReadySince.IsZero()
		switch {
		case k < granted && ready:
			n++
		case k >= granted && !ready:
			n--
		}
	}
	return n
}

// podState tells whether the member's Pod is held back from scheduling, and
// whether it is a scheduler's that is to go.
func (p *Pools) podState(ctx context.Context, member *unstructured.Unstructured) (gated, stray bool, err error) {
	if p.strays == "" && !agentsandbox.ReadySince(member).IsZero() {
		return false, false, nil
	}
	pod, err := p.view.podOf(ctx, member)
	if err != nil || pod == nil {
		return false, false, err
	}
	gates, _, err := unstructured.NestedSlice(pod.Object, "spec", "schedulingGates")
	stray = p.strays != "" && agentsandbox.SchedulerOf(pod) == p.strays && !agentsandbox.NamesScheduler(member)
	return len(gates) > 0, stray, err
}

// recall carries on with the rollout in force, or begins one.
func (p *Pools) recall(m *memory, s *situation, inspection *agentsandbox.Inspection) {
	if !m.read {
		m.read = true
		m.rollout, m.template = recorded(s.pool, s.Now)
	}
	seen := edition{uid: s.template.GetUID(), generation: s.template.GetGeneration()}
	// A template that came back to what it was has members that others dropped.
	if m.template.generation != 0 && (m.template.generation != seen.generation || m.template.uid != "" && m.template.uid != seen.uid) {
		m.changed, m.offered = s.Now, 0
	}
	m.template = seen
	if m.rollout.Revision != inspection.Revision() || !m.rollout.Restarted.Equal(inspection.Restarted()) {
		m.rollout = freshness.Begin(inspection.Revision(), inspection.Restarted(), s.Now)
	}
	s.Rollout = m.rollout
}

// unknownPaths are where the newest unknown member differs from the template.
func (s *situation) unknownPaths(inspection *agentsandbox.Inspection) ([]string, error) {
	newest := -1
	for i, m := range s.Members {
		if m.Class == freshness.Unknown && (newest < 0 || m.Created.After(s.Members[newest].Created)) {
			newest = i
		}
	}
	if newest < 0 {
		return nil, nil
	}
	return inspection.Differences(s.members[newest])
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
func recorded(pool *unstructured.Unstructured, now time.Time) (freshness.Rollout, edition) {
	status, err := platform.ParseRolloutStatus(pool.GetAnnotations()[platform.RolloutStatusKey])
	if err != nil || status.UpdateRevision == "" {
		return freshness.Rollout{}, edition{}
	}
	return freshness.Rollout{
		Revision: status.UpdateRevision, Restarted: status.RestartedAt.Time,
		Started: status.StartTime.Time, Progressed: status.ProgressTime.Time, Fresh: now,
		State:  freshness.State(pool.GetAnnotations()[platform.RolloutStateKey]),
		HeldUp: pool.GetAnnotations()[platform.RolloutReasonKey] == string(freshness.Queued),
	}, edition{generation: status.ObservedTemplateGeneration}
}
