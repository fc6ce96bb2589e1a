package pools

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
	"github.com/freshbind/freshbind/internal/settings"
)

// poolState is what a plan depends on, and the objects that it is about.
type poolState struct {
	freshness.PoolState
	pool     *unstructured.Unstructured
	template *unstructured.Unstructured
	// members are those of Members, as the caches show them.
	members []entry
	roster  *roster
	// gone are members that were seen to be available, and are not there any more.
	gone []types.UID
	// bare: members may be Pods, which no cache shows.
	bare bool
	// live: its mode was read live; withheld: that kept something from being written.
	live, withheld bool
	// deleted is how many members were deleted, or may have been.
	deleted int
	// differences are those of the newest unknown member.
	differences []revision.Difference
}

// deletes is how many members were deleted; none when there was nothing to plan on.
func (s *poolState) deletes() int {
	if s == nil {
		return 0
	}
	return s.deleted
}

// look judges the members that the cache shows; nil when the template does not
// exist, or does not tell what they are built from, so that nothing can be said of
// them.
func (p *Controller) look(ctx context.Context, m *poolRecord, pool, template *unstructured.Unstructured) (*poolState, error) {
	if template == nil {
		return nil, nil
	}
	inspection, err := p.inspect(ctx, m, pool, template)
	if err != nil {
		return nil, err
	}
	if inspection.Revision() == "" {
		return nil, nil
	}
	r, err := p.roll(ctx, m, inspection, pool)
	if err != nil {
		return nil, err
	}
	nodes, err := p.view.nodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for nodes that are to be empty: %w", err)
	}
	r.place(nodes)
	s := &poolState{pool: pool, template: template, roster: r, members: r.entries, bare: p.view.hasBarePods(pool.GroupVersionKind())}
	s.PoolState = inputs(pool, p.view.objects.Pool(pool))
	s.Strategy, s.Now = inspection.Strategy(), p.clock.Now()
	s.Members = m.asWritten(r, s.Now)
	if s.HiddenFirst > 0 {
		s.Members = m.asHidden(r, s.Members, s.Now)
	}
	for i := range s.members {
		s.Hideable = s.Hideable && s.members[i].hideable
	}
	return s, nil
}

// compare adds what has become of the members since the last plan. It adds to what
// it is given, and so is called once for each plan.
func (p *Controller) compare(ctx context.Context, m *poolRecord, s *poolState) (err error) {
	inspection := s.roster.by
	p.followRollout(m, s, inspection)
	p.observe(m, s)
	was := s.pool.GetAnnotations()[settings.AttributionKey] == inspection.Revision()
	if s.Suspended = freshness.SuspendsAttribution(was, s.Members, s.Replicas, s.Rollout.Started); s.Suspended {
		s.differences, err = s.ofUnknown(ctx, inspection)
	}
	return err
}

// inspect goes on with what the pool's members were compared with before when
// nothing of it has changed, so that none is compared again.
func (p *Controller) inspect(ctx context.Context, m *poolRecord, pool, template *unstructured.Unstructured) (*platform.Inspection, error) {
	inspection, err := p.platform.Inspect(ctx, pool, template)
	if err != nil {
		return nil, fmt.Errorf("rendering template %s: %w", template.GetName(), err)
	}
	if !inspection.Same(m.inspection) {
		m.inspection = inspection
	}
	return m.inspection, nil
}

// loadRollout reads what the pool says of its rollout, once.
func (p *Controller) loadRollout(m *poolRecord, pool *unstructured.Unstructured) {
	if m.read {
		return
	}
	m.read = true
	m.rollout, m.template = recorded(p.stored(pool), p.clock.Now())
	m.rollout = m.rollout.Resume()
}

func versionOf(template *unstructured.Unstructured) templateVersion {
	return templateVersion{uid: template.GetUID(), generation: template.GetGeneration()}
}

// isAfter reports whether a template that a cache shows may be an older one. Of another
// one of that name, or of another name, nobody knows.
func (t templateVersion) isAfter(shown templateVersion) bool {
	if t.uid != "" && t.uid != shown.uid {
		return true
	}
	return t.generation > shown.generation
}

// followRollout carries on with the rollout in force, or begins one.
func (p *Controller) followRollout(m *poolRecord, s *poolState, inspection *platform.Inspection) {
	seen := versionOf(s.template)
	if m.turned(seen, inspection.Revision()) {
		m.changed, m.offered = s.Now, 0
	}
	m.template = seen
	if name := s.template.GetName(); !m.rollout.Is(inspection.Revision(), name, inspection.Restarted()) {
		m.rollout = m.rollout.Follow(inspection.Revision(), name, inspection.Restarted(), s.Now).From(sourceOf(s.pool), sourceOf(s.template))
	}
	s.Rollout = m.rollout
}

func sourceOf(obj *unstructured.Unstructured) freshness.Source {
	return freshness.Source{Created: obj.GetCreationTimestamp().Time, Generation: obj.GetGeneration()}
}

// turned reports whether others may have seen a template, since it was last seen
// here, that differs from what some members are built from, and dropped them:
// another revision, or versions in between that were not seen here.
func (m *poolRecord) turned(seen templateVersion, revision string) bool {
	if m.template.generation == 0 {
		return false
	}
	replaced := m.template.uid != "" && m.template.uid != seen.uid
	missed := seen.generation != m.template.generation && seen.generation != m.template.generation+1
	return replaced || missed || m.rollout.Revision != revision
}

// ofUnknown are the differences of the newest unknown member from the template.
func (s *poolState) ofUnknown(ctx context.Context, inspection *platform.Inspection) ([]revision.Difference, error) {
	newest := -1
	for i, m := range s.Members {
		if m.Class == freshness.Unknown && (newest < 0 || m.Created.After(s.Members[newest].Created)) {
			newest = i
		}
	}
	if newest < 0 {
		return nil, nil
	}
	return inspection.Differences(ctx, s.members[newest].Member)
}

// inputs reads what the pool says.
func inputs(pool *unstructured.Unstructured, is platform.Pool) freshness.PoolState {
	annotations := settings.Pool(pool.GetAnnotations())
	return freshness.PoolState{
		Replicas: is.Replicas, Paused: annotations.Paused(), Hideable: !is.Recreates, Withholds: is.Withholds, HiddenFirst: is.HiddenFirst,
		Deadline: annotations.Deadline(), MaxUnavailable: annotations.MaxUnavailable(is.Replicas), MinReady: annotations.MinReady(),
	}
}

// recorded reads back the rollout from the pool's annotations; a zero one when they
// have none that is understood.
func recorded(annotations map[string]string, now time.Time) (freshness.Rollout, templateVersion) {
	status, err := platform.ParseRolloutStatus(annotations[settings.RolloutStatusKey])
	if err != nil || status.UpdateRevision == "" {
		return freshness.Rollout{}, templateVersion{}
	}
	return freshness.Rollout{
		Revision: status.UpdateRevision, Template: status.Template, Restarted: status.RestartedAt.Time,
		Started: status.StartTime.Time, Progressed: status.ProgressTime.Time, Fresh: now,
		State:     freshness.State(annotations[settings.RolloutStateKey]),
		HeldUp:    annotations[settings.RolloutReasonKey] == string(freshness.Queued),
		Replacing: status.Replacing,
	}.By(now), templateVersion{generation: status.ObservedTemplateGeneration}
}
