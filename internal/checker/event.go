package checker

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// API groups and keys of agent-sandbox (api/v1beta1/sandbox_types.go, extensions/api/v1beta1/sandboxclaim_types.go).
const (
	groupCore       = "agents.x-k8s.io"
	groupExtensions = "extensions.agents.x-k8s.io"

	labelPool         = "agents.x-k8s.io/warm-pool-sandbox"
	labelTemplateRef  = "agents.x-k8s.io/sandbox-template-ref-hash"
	keySandboxName    = "agents.x-k8s.io/sandbox-name"
	annotationPodName = "agents.x-k8s.io/pod-name"

	annotationTemplate = "agents.x-k8s.io/sandbox-template-ref"
	labelNameHash      = "agents.x-k8s.io/sandbox-name-hash"
)

// Inputs of Freshbind's users, the only keys of ours that the judge reads.
const (
	keyStrategy    = "freshbind.dev/rollout-strategy"
	keyAdmit       = "freshbind.dev/admit"
	keyEnforcement = "freshbind.dev/enforcement"
	keyRestarted   = "freshbind.dev/restarted-at"
	keyInjected    = "freshbind.dev/injected-paths"
	keyClaims      = "freshbind.dev/claims"
)

// Resource is a recorded resource, by its plural name.
type Resource string

// The recorded resources. Namespaces and Nodes are optional: without them modes, floors and leaving nodes are not known.
const (
	Templates  Resource = "sandboxtemplates"
	Pools      Resource = "sandboxwarmpools"
	Claims     Resource = "sandboxclaims"
	Sandboxes  Resource = "sandboxes"
	Pods       Resource = "pods"
	Namespaces Resource = "namespaces"
	Nodes      Resource = "nodes"
)

// Optional reports whether a judgement can do without the resource.
func (r Resource) Optional() bool { return r == Namespaces || r == Nodes }

// Resources lists what has to be recorded for a judgement.
func Resources() []Resource { return []Resource{Templates, Pools, Claims, Sandboxes, Pods} }

// EventType says what an Event tells.
type EventType string

const (
	// Listed is an object that a consistent LIST returned: this version was stored, what was before it is not known.
	Listed EventType = "LISTED"
	// Added is the first version of an object that its watch delivered.
	Added EventType = "ADDED"
	// Modified is a later version of it.
	Modified EventType = "MODIFIED"
	// Deleted carries the resourceVersion of the deletion.
	Deleted EventType = "DELETED"
	// Synced ends a LIST: RV is the list's. What the resource held before and the LIST did not return is gone.
	Synced EventType = "SYNCED"
	// Progress says that the resource's watch has delivered everything up to RV.
	Progress EventType = "PROGRESS"
	// Gap says that the resource's events between After and RV are lost. A LIST follows.
	Gap EventType = "GAP"
)

// Event is one line of a recording. Object is set for the first four types, Resource and RV for the others. After is set for
// a Gap, and for a Deleted of which no more is known than that it came after that one, up to the object's resourceVersion.
type Event struct {
	Type     EventType `json:"type"`
	Resource Resource  `json:"resource,omitempty"`
	After    RV        `json:"after,omitempty"`
	RV       RV        `json:"resourceVersion,omitempty"`
	SeenAt   time.Time `json:"seenAt"`
	// By is who wrote it, where that is known.
	By string `json:"by,omitempty"`
	// SpecKey, if set, stands for the object's spec: those of one resource with the same key are equal.
	SpecKey string `json:"-"`
	// PodSpec, if set, is a Pod's spec in JSON. Object need hold no more of it than nodeName and ephemeralContainers.
	PodSpec string                     `json:"-"`
	Object  *unstructured.Unstructured `json:"object,omitempty"`
}

// normalized fills Resource and RV from the object, and fails on an event that cannot be placed in the history.
func (e Event) normalized() (Event, error) {
	switch e.Type {
	case Listed, Added, Modified, Deleted:
		if e.Object == nil {
			return e, fmt.Errorf("event %s: object: required", e.Type)
		}
		e.Resource = ResourceOf(e.Object)
		if e.Resource == "" {
			return e, fmt.Errorf("event %s: object: %s is not a recorded kind", e.Type, e.Object.GroupVersionKind())
		}
		rv, err := ParseRV(e.Object.GetResourceVersion())
		if err != nil {
			return e, fmt.Errorf("event %s: %s %s/%s: metadata.resourceVersion: %w",
				e.Type, e.Resource, e.Object.GetNamespace(), e.Object.GetName(), err)
		}
		e.RV = rv
	case Synced, Progress, Gap:
		if e.Resource == "" {
			return e, fmt.Errorf("event %s: resource: required", e.Type)
		}
		if _, err := ParseRV(string(e.RV)); err != nil {
			return e, fmt.Errorf("event %s: resource %s: %w", e.Type, e.Resource, err)
		}
	default:
		return e, fmt.Errorf("event type %q is not known: use LISTED, ADDED, MODIFIED, DELETED, SYNCED, PROGRESS or GAP", e.Type)
	}
	return e, nil
}

// bare reports whether the event tells no more of the object than that it is gone.
func (e Event) bare() bool {
	if e.Type != Deleted || e.Object == nil {
		return false
	}
	_, spec := e.Object.Object["spec"]
	return !spec
}
