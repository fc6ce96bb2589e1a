package fakekruise

import "k8s.io/apimachinery/pkg/runtime/schema"

// Group is that of all kinds.
const Group = "agents.kruise.io"

// Who writes, in a default installation.
const (
	ControllerUser = "system:serviceaccount:sandbox-system:sandbox-controller-manager"
	ServerUser     = "system:serviceaccount:sandbox-system:sandbox-manager"
)

// The resources.
var (
	Sets      = resource("sandboxsets")
	Sandboxes = resource("sandboxes")
	Claims    = resource("sandboxclaims")
	Templates = resource("sandboxtemplates")

	pods = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
)

func resource(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: Group, Version: "v1alpha1", Resource: plural}
}

const (
	prefix = Group + "/"

	labelPool     = prefix + "sandbox-pool"
	labelTemplate = prefix + "sandbox-template"
	labelClaimed  = prefix + "sandbox-claimed"
	labelHash     = prefix + "template-hash"
	labelClaim    = prefix + "claim-name"
	labelCreated  = prefix + "created-by"

	keyOwner          = prefix + "owner"
	keyLock           = prefix + "lock"
	keyClaimedAt      = prefix + "claim-timestamp"
	keyPriority       = prefix + "sandbox-priority"
	keyCleanup        = prefix + "cleanup"
	keyCleanupEnabled = prefix + "cleanup-enabled"

	scaleDown = "__manager_scale_down"
	yes, no   = "true", "false"
)

// The phases of a Sandbox.
const (
	phasePending   = "Pending"
	phaseRunning   = "Running"
	phaseFailed    = "Failed"
	phaseRecycling = "Recycling"
)
