// Package agentsandbox knows kubernetes-sigs/agent-sandbox: what a write means,
// what a template renders to, which status moves a claim on. It works for
// v0.3.10 to v1.0, whose members are Sandbox objects, and for v0.1 and v0.2,
// whose members are bare Pods; the answers follow from what a write looks like,
// never from a configured version.
//
// Facts without another source are read off upstream's controllers at the tags
// v0.1.0, v0.1.1, v0.2.1, v0.4.6, v0.5.6 and v1.0.3.
package agentsandbox

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Name is the platform's name in metrics and messages.
const Name = "agent-sandbox"

// The API groups of agent-sandbox and of its extensions, and kinds of theirs.
const (
	CoreGroup       = "agents.x-k8s.io"
	ExtensionsGroup = "extensions.agents.x-k8s.io"

	kindSandbox = "Sandbox"
	kindClaim   = "SandboxClaim"
	kindPool    = "SandboxWarmPool"
)

// The resources that verdicts depend on.
var (
	Sandboxes = schema.GroupResource{Group: CoreGroup, Resource: "sandboxes"}
	Claims    = schema.GroupResource{Group: ExtensionsGroup, Resource: "sandboxclaims"}
	Templates = schema.GroupResource{Group: ExtensionsGroup, Resource: "sandboxtemplates"}
	Pools     = schema.GroupResource{Group: ExtensionsGroup, Resource: "sandboxwarmpools"}
	Pods      = schema.GroupResource{Resource: "pods"}
	nodes     = schema.GroupResource{Resource: "nodes"}
)

// Versions are the API versions of both groups, the preferred one first.
var Versions = []string{"v1beta1", "v1alpha1"}

const (
	// TemplateRefHashLabel carries a hash of the template's name. Without it
	// the claim controller passes a member over, with no API call.
	TemplateRefHashLabel = "agents.x-k8s.io/sandbox-template-ref-hash"

	// podTemplateHashLabel is on every member built by v0.4.6 or later. Those
	// releases write a claim's choice into the claim before they bind.
	podTemplateHashLabel = "agents.x-k8s.io/sandbox-pod-template-hash"
	// templateHashLabel is what v0.5.2 and later compare first in its place.
	templateHashLabel     = "agents.x-k8s.io/sandbox-template-hash"
	claimUIDLabel         = "agents.x-k8s.io/claim-uid"
	templateRefAnnotation = "agents.x-k8s.io/sandbox-template-ref"
	podNameAnnotation     = "agents.x-k8s.io/pod-name"
	// sandboxNameKey is an annotation of the claim (v0.5.0 on) or a label
	// (v0.4.6), and names the chosen member.
	sandboxNameKey = "agents.x-k8s.io/sandbox-name"
)
