package pools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// The reasons and the action of events about rollouts.
const (
	eventStarted   = "RolloutStarted"
	eventComplete  = "RolloutComplete"
	eventDeadline  = "ProgressDeadlineExceeded"
	eventHidden    = "MembersHidden"
	eventReplaced  = "MembersReplaced"
	eventMoved     = "MembersMoved"
	eventSuspended = "AttributionSuspended"
	// Those of ReplicaSets, for members that cannot be written to.
	eventFailedDelete = "FailedDelete"
	eventFailedUpdate = "FailedUpdate"

	actionRollout = "Rollout"
)

// countsEvery bounds how often counts alone are written: claims change them all
// the time.
const countsEvery = 5 * time.Second

// readBack is how long the cache is given to show what was written. After it,
// what somebody else made of it is put right.
const readBack = 2 * time.Second

// publish writes onto the pool what its claims may be given and how its rollout
// goes, when that changed, and what is about to be deleted, so that whoever leads
// next knows of it; nothing of a pool of bare Pods, which no cache shows. It
// returns when to come back, 0 for never.
func (p *Controller) publish(ctx context.Context, m *poolRecord, s *poolState, plan freshness.Plan) (time.Duration, error) {
	status := p.status(s, plan)
	raw, err := json.Marshal(status)
	if err != nil {
		return 0, fmt.Errorf("marshalling rollout status: %w", err)
	}
	want := summary(s, plan)
	if m.bare {
		for key := range want {
			want[key] = ""
		}
		raw = nil
	}
	annotations := s.pool.GetAnnotations()
	// The cache may not show yet what was written a moment ago.
	if s.Now.Sub(m.writtenAt) < readBack {
		annotations = m.written
	}
	words := differs(want, annotations) || len(plan.Delete) > 0
	want[settings.RolloutStatusKey] = string(raw)
	switch {
	case !words && annotations[settings.RolloutStatusKey] == string(raw):
		return 0, nil
	case !words && s.Now.Sub(m.writtenAt) < countsEvery:
		return m.writtenAt.Add(countsEvery).Sub(s.Now), nil
	}
	if may, err := p.mayWrite(ctx, s); err != nil || !may {
		return 0, err
	}
	if err := p.annotate(ctx, s.pool, want); err != nil {
		return 0, err
	}
	if !m.bare {
		p.recordEvents(s, plan, annotations, want)
	}
	m.written, m.writtenAt = want, s.Now
	return 0, nil
}

// summary is what a plan says of the pool, its status as JSON left out.
func summary(s *poolState, plan freshness.Plan) map[string]string {
	out := map[string]string{
		settings.AdmitKey:           string(plan.Admit),
		settings.RolloutStateKey:    string(plan.Rollout.State),
		settings.RolloutReasonKey:   string(plan.Cause),
		settings.RolloutRevisionKey: plan.Rollout.Revision,
		settings.AttributionKey:     "",
	}
	if s.Suspended {
		out[settings.AttributionKey] = plan.Rollout.Revision
	}
	return out
}

func (p *Controller) annotate(ctx context.Context, pool *unstructured.Unstructured, annotations map[string]string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pool.GetUID(), "annotations": nullable(annotations),
	}})
	if err != nil {
		return fmt.Errorf("marshalling rollout annotations: %w", err)
	}
	if !p.leads() {
		return errNotLeading
	}
	err = p.client.Patch(ctx, named(pool), client.RawPatch(types.MergePatchType, patch))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing the rollout's outcome: %w", err)
	}
	return nil
}

func differs(want, annotations map[string]string) bool {
	for key, value := range want {
		if annotations[key] != value {
			return true
		}
	}
	return false
}

// nullable turns "" into null, which removes a key.
func nullable(m map[string]string) map[string]any {
	out := map[string]any{}
	for key, value := range m {
		out[key] = value
		if value == "" {
			out[key] = nil
		}
	}
	return out
}

func (p *Controller) status(s *poolState, plan freshness.Plan) platform.RolloutStatus {
	c, r := plan.Counts, plan.Rollout
	status := platform.RolloutStatus{
		ObservedTemplateGeneration: s.template.GetGeneration(),
		UpdateRevision:             r.Revision,
		Template:                   r.Template,
		Replicas:                   c.Replicas,
		ReadyReplicas:              c.Ready,
		UpdatedReplicas:            c.Updated,
		UpdatedReadyReplicas:       c.UpdatedReady,
		ClaimableReplicas:          c.Claimable,
		StaleReplicas:              c.Stale,
		UnknownReplicas:            c.Unknown,
		StartTime:                  metav1.NewTime(wholeSecond(r.Started)),
		ProgressTime:               metav1.NewTime(r.Progressed.Truncate(time.Second)),
		RestartedAt:                metav1.NewTime(r.Restarted),
		Replacing:                  r.Replacing,
	}
	if old, err := platform.ParseRolloutStatus(s.pool.GetAnnotations()[settings.RolloutStatusKey]); err == nil {
		status.Conditions = old.Conditions
	}
	progressing := metav1.Condition{
		Type: platform.ConditionProgressing, Status: metav1.ConditionTrue, Reason: string(plan.Cause), Message: message(s, plan),
		ObservedGeneration: s.template.GetGeneration(), LastTransitionTime: metav1.NewTime(s.Now.Truncate(time.Second)),
	}
	switch r.State {
	case freshness.Failed:
		progressing.Status = metav1.ConditionFalse
	case freshness.Paused:
		progressing.Status = metav1.ConditionUnknown
	}
	meta.SetStatusCondition(&status.Conditions, progressing)
	suspended := metav1.Condition{
		Type: platform.ConditionAttributionSuspended, Status: metav1.ConditionFalse, Reason: "MembersUnderstood",
		ObservedGeneration: s.template.GetGeneration(), LastTransitionTime: metav1.NewTime(s.Now.Truncate(time.Second)),
	}
	if s.Suspended {
		suspended.Status, suspended.Reason = metav1.ConditionTrue, string(freshness.AttributionSuspended)
		suspended.Message = suspension(s)
		// Claims may have taken every member that showed the paths.
		if was := meta.FindStatusCondition(status.Conditions, suspended.Type); len(s.differences) == 0 && was != nil && was.Status == suspended.Status {
			suspended.Message = was.Message
		}
	}
	meta.SetStatusCondition(&status.Conditions, suspended)
	return status
}

// wholeSecond rounds up: what was born before the rollout began must not look as
// if it was born since.
func wholeSecond(at time.Time) time.Time {
	if down := at.Truncate(time.Second); down.Before(at) {
		return down.Add(time.Second)
	}
	return at
}

func message(s *poolState, plan freshness.Plan) string {
	left := s.Replicas - plan.Counts.Updated
	switch plan.Cause {
	case freshness.MembersUpToDate:
		return "every member is of " + plan.Rollout.Revision
	case freshness.ProgressDeadlineExceeded:
		return overdue(s, plan)
	case freshness.RolloutPaused:
		return "paused by annotation"
	case freshness.Queued:
		return fmt.Sprintf("%d of %d members to go; waits for other pools, or for the pace of deletes", max(left, 0), s.Replicas)
	case freshness.StaleByStrategy:
		return "stale members stay until claims take them: the pool's strategy is " + string(s.Strategy)
	case freshness.AttributionSuspended:
		return suspension(s)
	}
	return fmt.Sprintf("%d of %d members to go", max(left, 0), s.Replicas)
}

// overdue says why a rollout failed, and what became of the older members.
func overdue(s *poolState, plan freshness.Plan) string {
	why := fmt.Sprintf("no member of %s became ready for %s", plan.Rollout.Revision, s.Deadline)
	if n := plan.Counts.WriteFailed; n > 0 {
		why = fmt.Sprintf("%d members cannot be written to, and %s", n, why)
	}
	if !freshness.ServesStale(s.Strategy, plan.Admit == freshness.AdmitAny) {
		return fmt.Sprintf("%s; claims do not get the %d older members", why, plan.Counts.Stale)
	}
	return fmt.Sprintf("%s; %d older members keep serving", why, plan.Counts.Stale)
}

// suspension says what to copy into the pool's inputs.
func suspension(s *poolState) string {
	var more, lacking []string
	for _, d := range s.differences {
		if d.Got == "" {
			lacking = append(lacking, d.Root)
		} else {
			more = append(more, d.Root)
		}
	}
	said := "the newest members equal no revision of the template"
	if len(lacking) > 0 {
		said += "; they lack these fields of the template: " + listed(lacking)
	}
	if len(more) > 0 {
		said += "; if these fields are meant to be there, set " + settings.InjectedPathsKey + ": " + listed(more)
	}
	return said
}

// maxListed bounds a list of paths in bytes, so that two fit into the note of an event.
const maxListed = 350

// listed are as many of the paths as there is room for.
func listed(paths []string) string {
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	n, size := 0, 0
	for n < len(paths) && size+len(paths[n]) < maxListed {
		size += len(paths[n]) + 1
		n++
	}
	if n == 0 {
		return fmt.Sprintf("%d, too long to be listed", len(paths))
	}
	text := strings.Join(paths[:n], ",")
	if left := len(paths) - n; left > 0 {
		text += fmt.Sprintf(" and %d more", left)
	}
	return text
}

// recordEvents records events for what changed between what was and what is written.
func (p *Controller) recordEvents(s *poolState, plan freshness.Plan, was, is map[string]string) {
	note := func(kind, reason, format string, args ...any) {
		p.events.Eventf(s.pool, nil, kind, reason, actionRollout, format, args...)
	}
	before, state := was[settings.RolloutStateKey], is[settings.RolloutStateKey]
	revision := is[settings.RolloutRevisionKey]
	if revision != was[settings.RolloutRevisionKey] && state != string(freshness.Complete) {
		note(corev1.EventTypeNormal, eventStarted, "rolling out %s: %d of %d members have it", revision, plan.Counts.Updated, s.Replicas)
	}
	switch {
	case state == before:
	case state == string(freshness.Complete) && before != "":
		note(corev1.EventTypeNormal, eventComplete, "every member is of %s", revision)
	case state == string(freshness.Failed):
		note(corev1.EventTypeWarning, eventDeadline, "%s", overdue(s, plan))
	}
	if is[settings.AttributionKey] != "" && was[settings.AttributionKey] != is[settings.AttributionKey] {
		note(corev1.EventTypeWarning, eventSuspended, "%s", suspension(s))
	}
}
