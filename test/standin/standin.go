// Package standin plays the claim controllers of agent-sandbox releases that no
// Go module gives: v0.3.10 and v0.5.0. It sends the writes that those send to
// take a member, in their order, and goes on after an error as they do; it has
// none of their other work (status, traces, metrics, network policies).
//
// It is handed the template and the members it believes in, which may be older
// than what is stored: that is what a late cache does.
package standin

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/upstream"
)

// Style is how a release takes a member.
type Style string

const (
	// OneWrite (v0.3.10): one PUT of the Sandbox with its resourceVersion.
	OneWrite Style = "one write"
	// LockFree (v0.5.0): the claim names the member, then a merge PATCH of the
	// Sandbox without resourceVersion.
	LockFree Style = "lock-free"
)

// Controller serves claims of one namespace.
type Controller struct {
	Client    dynamic.Interface
	Namespace string
	// Version is the API version that it writes.
	Version string
	Style   Style
	// Template returns the template as it knows it.
	Template func() *unstructured.Unstructured

	queue []*unstructured.Unstructured
}

// Offer queues a member, as it was seen.
func (c *Controller) Offer(members ...*unstructured.Unstructured) {
	for _, m := range members {
		c.queue = append(c.queue, m.DeepCopy())
	}
}

// backoff is that of a workqueue: 5 ms, doubled with every failure.
var backoff = wait.Backoff{Duration: 5 * time.Millisecond, Factor: 2, Steps: 14, Cap: 20 * time.Second}

// Serve reconciles the claim, with backoff, until it has a sandbox, and returns
// that sandbox's name. The error is the last pass's.
func (c *Controller) Serve(ctx context.Context, claim string) (string, error) {
	var sandbox string
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, backoff, func(ctx context.Context) (bool, error) {
		sandbox, last = c.reconcile(ctx, claim)
		return last == nil, nil
	})
	if err != nil {
		return "", fmt.Errorf("serve claim %s: %w, at last: %w", claim, err, last)
	}
	return sandbox, nil
}

func (c *Controller) reconcile(ctx context.Context, name string) (string, error) {
	claim, err := c.claims().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	take := c.takeInOneWrite
	if c.Style == LockFree {
		take = c.takeLockFree
	}
	sandbox, err := take(ctx, claim)
	if sandbox != "" || err != nil {
		return sandbox, err
	}
	cold := builders.MakeColdStart(claim, c.Template()).Obj()
	if _, err := c.sandboxes().Create(ctx, cold, metav1.CreateOptions{}); err != nil {
		return "", fmt.Errorf("sandbox create error: %w", err)
	}
	return cold.GetName(), nil
}

// takeInOneWrite goes through all candidates: NotFound and Conflict lead to the
// next one, any other error ends the pass, and the next begins with the same.
// "" says that there is none left.
func (c *Controller) takeInOneWrite(ctx context.Context, claim *unstructured.Unstructured) (string, error) {
	for _, member := range c.queue {
		bound := builders.SandboxFrom(member).NoLabel(builders.LabelPool).NoLabel(builders.LabelTemplateRef).
			Owners(builders.ControllerRef(claim)).
			Set(string(claim.GetUID()), "spec", "podTemplate", "metadata", "labels", builders.LabelClaimUID).Obj()
		_, err := c.sandboxes().Update(ctx, bound, metav1.UpdateOptions{})
		switch {
		case err == nil:
			return member.GetName(), nil
		case apierrors.IsNotFound(err), apierrors.IsConflict(err):
			continue
		}
		return "", err
	}
	return "", nil
}

// attempts is how many members v0.5.0 tries in one pass.
const attempts = 3

// takeLockFree takes members off its queue. One that is answered NotFound never
// comes back, any other does.
func (c *Controller) takeLockFree(ctx context.Context, claim *unstructured.Unstructured) (string, error) {
	for range attempts {
		if len(c.queue) == 0 {
			break
		}
		member := c.queue[0]
		c.queue = c.queue[1:]
		named := builders.ClaimFrom(claim).Annotation(builders.SandboxName, member.GetName()).Obj()
		stored, err := c.claims().Update(ctx, named, metav1.UpdateOptions{})
		if err != nil {
			c.Offer(member)
			return "", err
		}
		claim = stored
		switch err = c.patch(ctx, member, claim); {
		case err == nil:
			return member.GetName(), nil
		case apierrors.IsNotFound(err):
			continue
		}
		c.Offer(member)
		if !apierrors.IsConflict(err) {
			return "", err
		}
	}
	return "", nil
}

func (c *Controller) patch(ctx context.Context, member, claim *unstructured.Unstructured) error {
	bound := builders.Bound(member, claim, c.Template()).Obj()
	owners, _, _ := unstructured.NestedSlice(bound.Object, "metadata", "ownerReferences")
	podMetadata, _, _ := unstructured.NestedMap(bound.Object, "spec", "podTemplate", "metadata")
	return c.mergePatch(ctx, member.GetName(), map[string]any{
		"metadata": map[string]any{
			"ownerReferences": owners,
			"labels": map[string]any{
				builders.LabelPool: nil, builders.LabelPodTemplateHash: nil,
				builders.LabelLaunchType: "warm", builders.LabelClaimUID: string(claim.GetUID()),
			},
			"annotations": map[string]any{builders.AnnotationPodName: member.GetName()},
		},
		"spec": map[string]any{"podTemplate": map[string]any{"metadata": podMetadata}},
	})
}

func (c *Controller) claims() dynamic.ResourceInterface {
	return c.Client.Resource(upstream.SandboxClaims.WithVersion(c.Version)).Namespace(c.Namespace)
}

func (c *Controller) sandboxes() dynamic.ResourceInterface {
	return c.Client.Resource(upstream.Sandboxes.WithVersion(c.Version)).Namespace(c.Namespace)
}

func (c *Controller) mergePatch(ctx context.Context, sandbox string, patch map[string]any) error {
	body, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode patch of sandbox %s: %w", sandbox, err)
	}
	_, err = c.sandboxes().Patch(ctx, sandbox, types.MergePatchType, body, metav1.PatchOptions{})
	return err
}
