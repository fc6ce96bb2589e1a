// Package kruise is what OpenKruise Agents does differently from other warm-pool
// systems.
//
// A SandboxSet is a pool, and the template of its members unless it refers to a
// SandboxTemplate. A member is a Sandbox whose controller is the SandboxSet. Who takes
// one stores it in a single PUT without that owner: a SandboxClaim's controller, or the
// E2B server, whose claims have no object at all. The annotation owner says for whom.
package kruise

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// Name is what metrics and messages call the platform.
	Name = "openkruise-agents"
	// Group is that of all its kinds.
	Group = "agents.kruise.io"
	// Suffix ends the names of what the API server is told of the platform.
	Suffix = "-kruise"
	// PathPrefix begins the paths on which it asks.
	PathPrefix = "/kruise"
	// ControllerUser makes the members of pools in a default installation.
	ControllerUser = "system:serviceaccount:sandbox-system:sandbox-controller-manager"

	version = "v1alpha1"

	kindSandbox = "Sandbox"
	kindSet     = "SandboxSet"
	kindClaim   = "SandboxClaim"
	// kindTemplate is that of what SandboxSets can refer to.
	kindTemplate = "SandboxTemplate"

	prefix = Group + "/"

	// ownerAnnotation is the UID of the SandboxClaim that has a Sandbox, or the id of a
	// user of E2B. Nobody but who takes it sets it.
	ownerAnnotation = prefix + "owner"
	// ownerLabel is what the claim leaves on spec.template.metadata, also when the Sandbox
	// goes back to its pool.
	ownerLabel = prefix + "owner"
	// scaleDown is the owner of what the SandboxSet is about to delete.
	scaleDown = "__manager_scale_down"
	// claimNameLabel is a hint only: labels of the claim's own can replace it.
	claimNameLabel = prefix + "claim-name"
	claimedLabel   = prefix + "sandbox-claimed"
	poolLabel      = prefix + "sandbox-pool"
	// templateLabel is what whoever looks for a member finds it by: the name of its
	// SandboxSet, or of the SandboxTemplate that it refers to.
	templateLabel = prefix + "sandbox-template"
	// hiddenTemplate is its value on members that nobody is to find. No object can have
	// that name. Without the label they would be found by poolLabel.
	hiddenTemplate = "freshbind_hidden"
	// lockAnnotation is on what somebody is about to take, or to delete.
	lockAnnotation = prefix + "lock"
	// createdByLabel tells the Pods of Sandboxes.
	createdByLabel, createdBySandbox = prefix + "created-by", "sandbox"
	// cleanupAnnotation has a used Sandbox go back to its pool.
	cleanupAnnotation = prefix + "cleanup-enabled"
	// letGoAnnotation is on a Sandbox that whoever has it no longer wants, and that may go
	// back.
	letGoAnnotation = prefix + "cleanup"

	yes = "true"

	// phaseRecycling: it is on its way back, and its metadata may be ahead of its status.
	phaseRecycling = "Recycling"
	// phaseCompleted of a SandboxClaim: its controller takes no more for it.
	phaseCompleted = "Completed"
)

// The resources; Pods and Nodes are the API server's own.
var (
	Sandboxes = schema.GroupResource{Group: Group, Resource: "sandboxes"}
	Sets      = schema.GroupResource{Group: Group, Resource: "sandboxsets"}
	Claims    = schema.GroupResource{Group: Group, Resource: "sandboxclaims"}
	Templates = schema.GroupResource{Group: Group, Resource: "sandboxtemplates"}

	pods  = schema.GroupResource{Resource: "pods"}
	nodes = schema.GroupResource{Resource: "nodes"}
)
