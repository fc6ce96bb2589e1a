package cli

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/advice"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// State is where a pool's rollout is: that of the controller where it has said
// one of what is in force now, else what can be seen. The set is closed.
type State string

// The first four are the controller's own.
const (
	Complete    = State(freshness.Complete)
	Progressing = State(freshness.Progressing)
	Failed      = State(freshness.Failed)
	Paused      = State(freshness.Paused)
	// Suspended: members equal no known revision, and it is not them who are
	// doubted.
	Suspended State = "AttributionSuspended"
	// StaleByStrategy: stale members stay, as the pool's strategy says.
	StaleByStrategy State = "StaleByStrategy"
	// StaleInAudit: stale members stay, as nothing is enforced.
	StaleInAudit State = "StaleInAudit"
	// Pending: the controller has not told of this revision yet.
	Pending State = "Pending"
	// Filling: no member is stale, some are missing or not ready.
	Filling State = "Filling"
	// TemplateGone: there is nothing to compare with.
	TemplateGone State = "TemplateGone"
	// Unreadable: template or pool cannot be understood.
	Unreadable State = "Unreadable"
)

// Words says the state of a pool.
func (p *Pool) Words() string {
	switch p.State {
	case Progressing, Pending, Filling:
		return fmt.Sprintf("%s %d/%d", p.State, p.Updated, p.Replicas)
	case Failed:
		return "Failed (deadline)"
	case Suspended:
		return "Suspended (unknown members)"
	case StaleByStrategy:
		return "Stale by strategy"
	case StaleInAudit:
		return "Stale (mode audit)"
	case TemplateGone:
		return "Template is gone"
	}
	return string(p.State)
}

// Tone of a state.
func (s State) Tone() Tone {
	switch s {
	case Complete:
		return Good
	case Failed, TemplateGone, Unreadable:
		return Bad
	}
	return Busy
}

// settle finds the state.
func (p *Pool) settle(template *unstructured.Unstructured, restarted time.Time) {
	if template == nil {
		p.State, p.Message = TemplateGone, fmt.Sprintf("template %s does not exist", p.Template)
		return
	}
	if p.Mode == settings.Audit || !p.statusIsCurrent(template, restarted) {
		p.State = p.seen()
	}
	// A member that became stale a moment ago is not in what was told.
	if p.State == Complete && p.left() > 0 {
		p.State = p.seen()
	}
}

// statusIsCurrent takes the controller's word, if it is about what is in force now.
func (p *Pool) statusIsCurrent(template *unstructured.Unstructured, restarted time.Time) bool {
	annotations := p.Object.GetAnnotations()
	status, err := platform.ParseRolloutStatus(annotations[settings.RolloutStatusKey])
	if err != nil || annotations[settings.RolloutStateKey] == "" || status.UpdateRevision != p.Revision ||
		status.ObservedTemplateGeneration != template.GetGeneration() || !status.RestartedAt.Time.Equal(restarted) {
		return false
	}
	p.State = State(annotations[settings.RolloutStateKey])
	switch freshness.Cause(annotations[settings.RolloutReasonKey]) {
	case freshness.StaleByStrategy:
		p.State = StaleByStrategy
	case freshness.AttributionSuspended:
		p.State = Suspended
	}
	if c := meta.FindStatusCondition(status.Conditions, platform.ConditionProgressing); c != nil {
		p.Message = c.Message
		p.Since = later(c.LastTransitionTime, status.StartTime)
	}
	return true
}

// later: a rollout that went well from beginning to end never changes its
// condition, so that its own beginning counts.
func later(a, b metav1.Time) metav1.Time {
	if a.Before(&b) {
		return b
	}
	return a
}

// seen is what can be said without the controller.
func (p *Pool) seen() State {
	switch {
	case p.left() == 0 && p.UpdatedReady >= p.Replicas:
		return Complete
	case p.left() == 0:
		return Filling
	case p.StalePolicy == advice.Kept:
		return StaleByStrategy
	case p.StalePolicy == advice.KeptInAudit:
		return StaleInAudit
	case p.Object.GetAnnotations()[settings.PausedKey] == "true":
		return Paused
	case p.Mode == settings.Enforce:
		return Pending
	}
	return Progressing
}
