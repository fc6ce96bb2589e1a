package platform

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
)

// RolloutStatus is the outcome of a pool's rollout so far, in the words of a
// Deployment's status. It is the JSON in the annotation RolloutStatusKey.
type RolloutStatus struct {
	// ObservedTemplateGeneration is the template's metadata.generation that the
	// rest of it is about.
	ObservedTemplateGeneration int64 `json:"observedTemplateGeneration"`
	// UpdateRevision is the template-spec-hash of the revision rolled out, Template
	// the name of the template that has it.
	UpdateRevision string `json:"updateRevision"`
	Template       string `json:"template,omitempty"`
	// Replicas counts idle members that are not being deleted.
	Replicas             int `json:"replicas"`
	ReadyReplicas        int `json:"readyReplicas"`
	UpdatedReplicas      int `json:"updatedReplicas"`
	UpdatedReadyReplicas int `json:"updatedReadyReplicas"`
	// ClaimableReplicas are ready, and a claim that comes now may be given them.
	ClaimableReplicas int `json:"claimableReplicas"`
	StaleReplicas     int `json:"staleReplicas"`
	// UnknownReplicas equal no known revision of the template.
	UnknownReplicas int `json:"unknownReplicas"`
	// StartTime is when the rollout began, ProgressTime when a member of its
	// revision last became ready.
	StartTime    metav1.Time `json:"startTime"`
	ProgressTime metav1.Time `json:"progressTime"`
	// RestartedAt is the restart that it carries out, if any.
	RestartedAt metav1.Time `json:"restartedAt,omitzero"`
	// Replacing are the members that were deleted, or are about to be, and are not
	// replaced yet. Whoever leads next starts with them.
	Replacing  freshness.Replacements `json:"replacing,omitempty"`
	Conditions []metav1.Condition     `json:"conditions,omitempty"`
}

// The types of conditions of a rollout.
const (
	// ConditionProgressing is that of a Deployment: False once the rollout made
	// no progress for its deadline.
	ConditionProgressing = "Progressing"
	// ConditionAttributionSuspended is True while nobody understands what the
	// pool's members are built from.
	ConditionAttributionSuspended = "AttributionSuspended"
)

// ParseRolloutStatus reads the annotation; "" is an empty status.
func ParseRolloutStatus(annotation string) (RolloutStatus, error) {
	var s RolloutStatus
	if annotation == "" {
		return s, nil
	}
	if err := json.Unmarshal([]byte(annotation), &s); err != nil {
		return RolloutStatus{}, fmt.Errorf("reading annotation %s: %w", settings.RolloutStatusKey, err)
	}
	if !s.Replacing.Valid() {
		return RolloutStatus{}, fmt.Errorf("reading annotation %s: replacing: every number must be between 0 and %d", settings.RolloutStatusKey, freshness.MaxReplacing)
	}
	return s, nil
}
