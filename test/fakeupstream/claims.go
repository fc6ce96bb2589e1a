package fakeupstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/upstream"
)

func (c *Controller) reconcileClaim(ctx context.Context, name string) error {
	claim, err := c.claims.get(name)
	if err != nil || claim.GetDeletionTimestamp() != nil {
		return ignoreNotFound(err)
	}
	sandbox, err := c.sandboxFor(ctx, claim)
	return errors.Join(err, c.report(ctx, claim, sandbox, err))
}

// sandboxFor finds what the claim has, or gives it a member, or makes it a
// sandbox of its own.
func (c *Controller) sandboxFor(ctx context.Context, claim *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if has, err := c.held(claim); has != nil || err != nil {
		return has, err
	}
	take := c.takeInOneWrite
	if c.style == LockFree {
		take = c.takeLockFree
	}
	sandbox, err := take(ctx, claim)
	if sandbox != nil || err != nil {
		return sandbox, err
	}
	template, err := c.templateFor(claim)
	if err != nil {
		return nil, err
	}
	cold := builders.MakeColdStart(claim, template)
	if c.style == OneWrite {
		cold.NoLabel(builders.LabelClaimUID)
	}
	made, err := c.resource(upstream.Sandboxes).Create(ctx, stripped(cold.Obj()), metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("sandbox create error: %w", err)
	}
	return made, nil
}

// held is the Sandbox that the claim has, as far as is known: the one in its
// status, or the one of its own name.
func (c *Controller) held(claim *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if name, _, _ := unstructured.NestedString(claim.Object, "status", "sandbox", "name"); name != "" {
		sandbox, err := c.sandboxes.get(name)
		if ignoreNotFound(err) != nil {
			return nil, err
		}
		if err == nil && metav1.IsControlledBy(sandbox, claim) {
			return sandbox, nil
		}
	}
	if c.style == LockFree {
		if sandbox, err := c.namedBy(claim); sandbox != nil || err != nil {
			return sandbox, err
		}
	}
	sandbox, err := c.sandboxes.get(claim.GetName())
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, err
	case !metav1.IsControlledBy(sandbox, claim):
		return nil, fmt.Errorf("sandbox %q is not controlled by the claim", sandbox.GetName())
	}
	return sandbox, nil
}

// namedBy is the Sandbox that the claim names, when it has it.
func (c *Controller) namedBy(claim *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	name := claim.GetAnnotations()[builders.SandboxName]
	if name == "" {
		return nil, nil
	}
	sandbox, err := c.sandboxes.get(name)
	if err != nil || !metav1.IsControlledBy(sandbox, claim) {
		return nil, ignoreNotFound(err)
	}
	return sandbox, nil
}

// templateFor is the template that the claim names, or its pool does.
func (c *Controller) templateFor(claim *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	name := templateOf(claim)
	if c.style == LockFree {
		pool, err := c.pools.get(wantedPool(claim))
		if err != nil {
			return nil, fmt.Errorf("get pool of claim %s: %w", claim.GetName(), err)
		}
		name = templateOf(pool)
	}
	template, err := c.templates.get(name)
	if err != nil {
		return nil, fmt.Errorf("get template of claim %s: %w", claim.GetName(), err)
	}
	return template, nil
}

// wantedPool is the pool that a claim asks for; "" for any.
func wantedPool(claim *unstructured.Unstructured) string {
	if name, ok, _ := unstructured.NestedString(claim.Object, "spec", "warmPoolRef", "name"); ok {
		return name
	}
	name, _, _ := unstructured.NestedString(claim.Object, "spec", "warmpool")
	if name == "default" {
		return ""
	}
	return name
}

// report writes the claim's status: as a whole under optimistic lock (v0.3.10),
// or as a merge patch.
func (c *Controller) report(ctx context.Context, claim, sandbox *unstructured.Unstructured, failure error) error {
	condition := map[string]any{"type": "Ready", "status": "False", "reason": "SandboxNotReady", "message": "Sandbox is not ready"}
	status := map[string]any{}
	switch {
	case failure != nil:
		condition["reason"], condition["message"] = "ReconcilerError", "Error seen: "+failure.Error()
	case ready(sandbox):
		condition["status"], condition["reason"], condition["message"] = "True", "SandboxReady", "Sandbox is ready"
	}
	if sandbox != nil {
		status["sandbox"] = map[string]any{"name": sandbox.GetName()}
	}
	status["conditions"] = []any{condition}
	if reflect.DeepEqual(status, settled(claim)) {
		return nil
	}
	condition["lastTransitionTime"] = time.Now().UTC().Format(time.RFC3339)
	if c.style == OneWrite {
		claim.Object["status"] = status
		_, err := c.resource(upstream.SandboxClaims).UpdateStatus(ctx, claim, metav1.UpdateOptions{})
		return err
	}
	if sandbox == nil {
		status["sandbox"] = nil
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("encode status of claim %s: %w", claim.GetName(), err)
	}
	_, err = c.resource(upstream.SandboxClaims).Patch(ctx, claim.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	return err
}

// settled is a claim's status without times.
func settled(claim *unstructured.Unstructured) map[string]any {
	status, _, _ := unstructured.NestedMap(claim.Object, "status")
	conditions, _, _ := unstructured.NestedSlice(status, "conditions")
	for _, condition := range conditions {
		if m, ok := condition.(map[string]any); ok {
			delete(m, "lastTransitionTime")
		}
	}
	if len(conditions) > 0 {
		status["conditions"] = conditions
	}
	return status
}
