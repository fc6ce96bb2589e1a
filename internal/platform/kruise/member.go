package kruise

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/fields"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/revision"
)

// member reads a Sandbox as it was before the write, or as it is to be created.
func (s stored) member(w platform.Write) (freshness.Member, error) {
	sandbox := w.Judged()
	content, proposed, err := s.contents(w)
	if err != nil {
		return freshness.Member{}, fmt.Errorf("reading sandbox %s: %w", sandbox.GetName(), err)
	}
	m := freshness.Member{
		Name: sandbox.GetName(), UID: string(sandbox.GetUID()), Controller: poolOf(sandbox), Template: templateRef(sandbox),
		// What is locked for that the SandboxSet deletes next, without another look.
		Deleting:   sandbox.GetDeletionTimestamp() != nil || sandbox.GetAnnotations()[ownerAnnotation] == scaleDown,
		Generation: sandbox.GetGeneration(), Content: content, Proposed: proposed,
		PodName: sandbox.GetName(), ProposedPodName: sandbox.GetName(), Created: sandbox.GetCreationTimestamp().Time,
	}
	if ip := podInfo(sandbox, "podIP"); ip != "" {
		m.PodIPs = []string{ip}
	}
	if m.Controller.UID == "" {
		m.Controller = claimOf(sandbox)
	}
	m.Used = s.used(w, sandbox)
	if w.Operation == freshness.Return && isReturning(sandbox) {
		m.Controller, m.Used = s.givenBack(w), s.set != nil && !s.recycles()
	}
	if m.Template != "" {
		// It says nothing of what is in the Pod, at any generation.
		m.Generation = 0
	}
	return m, nil
}

// used reports whether somebody had it, and it did not come back to a pool that recycles.
func (s stored) used(w platform.Write, sandbox *unstructured.Unstructured) bool {
	switch w.Operation {
	case freshness.Stored:
		return claimOf(sandbox).UID != "" || isClaimed(sandbox)
	case freshness.Bind, freshness.Idle:
		// What comes back is not back yet, which passes.
		return w.Operation == freshness.Bind && isReturning(sandbox) || wasUsed(sandbox) && (claimOf(sandbox).UID != "" || isClaimed(sandbox) || !s.recycles())
	}
	return false
}

// givenBack is the SandboxSet that is to have a used Sandbox. Without one of another UID it
// is the one of that name.
func (s stored) givenBack(w platform.Write) freshness.Owner {
	pool := backTo(w.New)
	if pool.UID == "" && s.set != nil {
		pool.UID = string(s.set.GetUID())
	}
	return pool
}

func (s stored) recycles() bool { return s.set != nil && recycles(s.set, s.template) }

// contents are what a Sandbox is built from, and what it is to be after the write. What
// refers to a template has the Pod that is in force, as long as it goes on to refer to it:
// the one that it has shows whether that is so. Without one the pool has to refer to that
// template, too.
func (s stored) contents(w platform.Write) (content, proposed revision.Blueprint, err error) {
	content, proposed, err = s.ownContents(w)
	built := w.Operation != freshness.ColdStart && w.Operation != freshness.Birth
	if err == nil && leavesPod(w.Judged()) && s.inForce() != nil && (built || s.refers()) && proposed.Equal(content) {
		content, err = contentOf(referring(w.Judged(), s.inForce()))
		proposed = content
	}
	return content, proposed, err
}

// ownContents are both by what the Sandbox says itself.
func (s stored) ownContents(w platform.Write) (content, proposed revision.Blueprint, err error) {
	switch w.Operation {
	case freshness.Bind, freshness.Return:
		if content, err = contentOf(w.Judged()); err != nil {
			return content, proposed, err
		}
		if w.Operation == freshness.Return {
			proposed, err = contentOf(w.New)
		} else {
			proposed, err = undone(w.New, w.Old, s.asks())
		}
	case freshness.ColdStart:
		content, err = contentOf(w.New)
		if by := s.asksCold(); err == nil && !by.empty() && s.inForce() != nil {
			content, err = undone(w.New, s.inForce(), by)
		}
		proposed = content
	default:
		content, err = Objects{}.ContentOf(w.New)
		proposed = content
	}
	return content, proposed, err
}

// asks are what the claim may change of the member that it takes.
func (s stored) asks() ask {
	if s.claim == nil {
		return ask{unspecified: true}
	}
	return asked(s.claim)
}

// wants is the claim of a write, as stored; nil when it does not exist. Without the hint
// of a SandboxClaim, which its own labels can empty and not take away, it has no object:
// it is for whom the Sandbox says, and may have as many as it likes of any pool.
func (s stored) wants(w platform.Write) *freshness.Claim {
	if _, isClaim := w.New.GetLabels()[claimNameLabel]; !isClaim || w.Claim.UID == "" {
		if w.Operation == freshness.Bind && w.Claim.UID == "" {
			return nil
		}
		return &freshness.Claim{UID: w.Claim.UID, AnyPool: true}
	}
	if s.claim == nil {
		return nil
	}
	return &freshness.Claim{UID: string(s.claim.GetUID()), Deleting: s.claim.GetDeletionTimestamp() != nil, Pool: poolAsked(s.claim)}
}

// podInfo is what the status of a Sandbox shows of its Pod.
func podInfo(sandbox *unstructured.Unstructured, field string) string {
	return fields.String(sandbox.Object, "status", "podInfo", field)
}

// volumesOf are the names of an object's volumeClaimTemplates.
func volumesOf(obj *unstructured.Unstructured) []string {
	if obj == nil {
		return nil
	}
	spec, _ := obj.Object["spec"].(map[string]any)
	var names []string
	for _, v := range fields.Objects(spec, "volumeClaimTemplates") {
		names = append(names, fields.String(v, "metadata", "name"))
	}
	return names
}
