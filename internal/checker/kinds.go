package checker

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

// The warm-pool systems whose binds can be judged.
const (
	AgentSandbox = "agent-sandbox"
	Kruise       = "openkruise-agents"
)

// Platforms are the warm-pool systems whose binds can be judged, one of them at a time.
func Platforms() []string { return []string{AgentSandbox, Kruise} }

// Kind is a kind of object that a judgement reads.
type Kind struct {
	// Platform is one of Platforms; empty for Kubernetes' own.
	Platform            string
	Group, Name, Plural string
	// Resource is what the judgement takes it for.
	Resource Resource
}

// Kinds lists all kinds that a judgement reads.
func Kinds() []Kind { return append([]Kind(nil), kinds...) }

var kinds = []Kind{
	{AgentSandbox, groupExtensions, "SandboxTemplate", "sandboxtemplates", Templates},
	{AgentSandbox, groupExtensions, "SandboxWarmPool", "sandboxwarmpools", Pools},
	{AgentSandbox, groupExtensions, "SandboxClaim", "sandboxclaims", Claims},
	{AgentSandbox, groupCore, "Sandbox", "sandboxes", Sandboxes},
	{Kruise, groupKruise, "SandboxTemplate", "sandboxtemplates", Templates},
	{Kruise, groupKruise, "SandboxSet", "sandboxsets", Pools},
	{Kruise, groupKruise, "SandboxClaim", "sandboxclaims", Claims},
	{Kruise, groupKruise, "Sandbox", "sandboxes", Sandboxes},
	{"", "", "Pod", "pods", Pods},
	{"", "", "Namespace", "namespaces", Namespaces},
	{"", "", "Node", "nodes", Nodes},
}

// ResourceOf returns the recorded resource of an object, by group and kind; "" for any other object.
func ResourceOf(u *unstructured.Unstructured) Resource {
	gvk := u.GroupVersionKind()
	return resourceOf[[2]string{gvk.Group, gvk.Kind}]
}

var resourceOf = func() map[[2]string]Resource {
	out := map[[2]string]Resource{}
	for _, k := range kinds {
		out[[2]string{k.Group, k.Name}] = k.Resource
	}
	return out
}()
