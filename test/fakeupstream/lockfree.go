package fakeupstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/upstream"
)

// attempts is how many members v0.5.0 tries in one pass.
const attempts = 3

// offered are the members of each pool that wait to be taken, oldest first.
type offered struct {
	mu    sync.Mutex
	names map[string][]string
}

func (o *offered) add(pool, name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.names == nil {
		o.names = map[string][]string{}
	}
	if !slices.Contains(o.names[pool], name) {
		o.names[pool] = append(o.names[pool], name)
	}
}

func (o *offered) take(pool string) (string, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	waiting := o.names[pool]
	if len(waiting) == 0 {
		return "", false
	}
	o.names[pool] = waiting[1:]
	return waiting[0], true
}

// errTriggered ends the pass in which an adoption begun before was completed.
var errTriggered = errors.New("triggered adoption completion: retry")

// takeLockFree completes what the claim says was begun, else takes members off
// the queue. nil says that no member is left, or that the pass has tried enough.
func (c *Controller) takeLockFree(ctx context.Context, claim *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if err := c.resume(ctx, claim); err != nil {
		return nil, err
	}
	pool := wantedPool(claim)
	for range attempts {
		member, err := c.candidate(pool)
		if member == nil || err != nil {
			return nil, err
		}
		claim.SetAnnotations(with(claim.GetAnnotations(), builders.SandboxName, member.GetName()))
		named, err := c.resource(upstream.SandboxClaims).Update(ctx, claim, metav1.UpdateOptions{})
		if err != nil {
			c.offered.add(pool, member.GetName())
			return nil, err
		}
		*claim = *named
		bound, err := c.complete(ctx, member, claim)
		switch {
		case err == nil:
			return bound, nil
		case apierrors.IsNotFound(err):
			continue
		}
		c.offered.add(pool, member.GetName())
		if !apierrors.IsConflict(err) {
			return nil, err
		}
	}
	return nil, nil
}

// resume goes on with the member that the claim names. NotFound and Conflict
// lead on to other members.
func (c *Controller) resume(ctx context.Context, claim *unstructured.Unstructured) error {
	name := claim.GetAnnotations()[builders.SandboxName]
	if name == "" {
		return nil
	}
	member, err := c.sandboxes.get(name)
	if ignoreNotFound(err) != nil {
		return err
	}
	if err != nil || poolOf(member) != "" && (!adoptable(member) || poolOf(member) != wantedPool(claim)) {
		return c.forget(ctx, claim)
	}
	if poolOf(member) == "" {
		return nil
	}
	switch _, err := c.complete(ctx, member, claim); {
	case err == nil:
		return errTriggered
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil
	default:
		return fmt.Errorf("failed to complete adoption of %q: %w", name, err)
	}
}

// forget takes back a choice that came to nothing.
func (c *Controller) forget(ctx context.Context, claim *unstructured.Unstructured) error {
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:null}}}`, builders.SandboxName)
	stored, err := c.resource(upstream.SandboxClaims).Patch(ctx, claim.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("failed to remove invalid sandbox reference: %w", err)
	}
	*claim = *stored
	return nil
}

// candidate takes the next member off the queue that is ready, as far as is
// known, else the first that is not. Those that cannot be taken fall out of it.
func (c *Controller) candidate(pool string) (*unstructured.Unstructured, error) {
	var unready []*unstructured.Unstructured
	for {
		name, ok := c.offered.take(pool)
		if !ok {
			break
		}
		member, err := c.sandboxes.get(name)
		switch {
		case apierrors.IsNotFound(err):
			continue
		case err != nil:
			c.offered.add(pool, name)
			return nil, err
		case !adoptable(member) || poolOf(member) != pool:
			continue
		case ready(member):
			c.putBack(pool, unready)
			return member, nil
		}
		unready = append(unready, member)
	}
	if len(unready) == 0 {
		return nil, nil
	}
	c.putBack(pool, unready[1:])
	return unready[0], nil
}

func (c *Controller) putBack(pool string, members []*unstructured.Unstructured) {
	for _, m := range members {
		c.offered.add(pool, m.GetName())
	}
}

// complete hands the member over, whoever has it by now: the patch names no
// version.
func (c *Controller) complete(ctx context.Context, member, claim *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	template, err := c.templateFor(claim)
	if err != nil {
		return nil, err
	}
	bound := builders.Bound(member, claim, template).Obj()
	owners, _, _ := unstructured.NestedSlice(bound.Object, "metadata", "ownerReferences")
	podMetadata, _, _ := unstructured.NestedMap(bound.Object, "spec", "podTemplate", "metadata")
	patch, err := json.Marshal(map[string]any{
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
	if err != nil {
		return nil, fmt.Errorf("encode patch of sandbox %s: %w", member.GetName(), err)
	}
	return c.resource(upstream.Sandboxes).Patch(ctx, member.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
}

func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}
