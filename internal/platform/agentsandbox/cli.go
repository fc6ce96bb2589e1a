package agentsandbox

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

// launchTypeLabel says "warm" or "cold" on a claim's Sandbox (v0.5.0 on).
const launchTypeLabel = "agents.x-k8s.io/launch-type"

// Holdings are the names under which a claim may have a sandbox.
func (Objects) Holdings(claim *unstructured.Unstructured) []string { return holdings(claim, nil) }

// Held is nil: a claim has nothing beside what it names.
func (Objects) Held(*unstructured.Unstructured) labels.Selector { return nil }

// Asked returns the pool and the template that a claim asks for itself; "" for
// what it leaves open.
func (Objects) Asked(claim *unstructured.Unstructured) (pool, template string) {
	c := claimOf(claim)
	return c.Pool, c.Template
}

// LaunchType says how a claim came by its Sandbox, "warm" or "cold". Releases
// without the label name a cold start after its claim.
func (Objects) LaunchType(sandbox, claim *unstructured.Unstructured) string {
	if launchType := sandbox.GetLabels()[launchTypeLabel]; launchType != "" {
		return launchType
	}
	if sandbox.GetName() == claim.GetName() {
		return "cold"
	}
	return "warm"
}

// Restore puts the whole spec back: all of it is the template.
func (Objects) Restore(template, earlier *unstructured.Unstructured) error {
	spec, _, err := unstructured.NestedMap(earlier.Object, "spec")
	if err != nil {
		return fmt.Errorf("reading spec of template %s as it was: %w", template.GetName(), err)
	}
	template.Object["spec"] = spec
	return nil
}
