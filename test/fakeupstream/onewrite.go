package fakeupstream

import (
	"cmp"
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/upstream"
)

// takeInOneWrite goes through all candidates of the cache: NotFound and Conflict
// lead to the next one, any other error ends the pass, and the next begins with
// the same. nil says that there is none left.
func (c *Controller) takeInOneWrite(ctx context.Context, claim *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	candidates, err := c.candidates(claim)
	if err != nil {
		return nil, err
	}
	for _, member := range candidates {
		if metav1.IsControlledBy(member, claim) {
			return member, nil
		}
		bound := builders.SandboxFrom(member).NoLabel(builders.LabelPool).NoLabel(builders.LabelTemplateRef).
			Owners(builders.ControllerRef(claim)).
			Set(string(claim.GetUID()), "spec", "podTemplate", "metadata", "labels", builders.LabelClaimUID).Obj()
		stored, err := c.resource(upstream.Sandboxes).Update(ctx, bound, metav1.UpdateOptions{})
		switch {
		case err == nil:
			return stored, nil
		case apierrors.IsNotFound(err), apierrors.IsConflict(err):
			continue
		}
		return nil, err
	}
	return nil, nil
}

// candidates are the Sandboxes that v0.3.10 would take, in its order: what the
// claim has, then ready ones, then the oldest. One that nobody owns will do.
func (c *Controller) candidates(claim *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	all, err := c.sandboxes.list()
	if err != nil {
		return nil, err
	}
	pool := wantedPool(claim)
	wanted := func(s *unstructured.Unstructured) bool {
		if metav1.IsControlledBy(s, claim) {
			return true
		}
		labels, owner := s.GetLabels(), metav1.GetControllerOf(s)
		return shown(s) && labels[builders.LabelTemplateRef] == builders.NameHash(templateOf(claim)) &&
			(owner == nil || owner.Kind == poolKind) &&
			(pool == "" || labels[builders.LabelPool] == builders.NameHash(pool))
	}
	all = slices.DeleteFunc(all, func(s *unstructured.Unstructured) bool { return !wanted(s) })
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int {
		return cmp.Or(
			first(metav1.IsControlledBy(a, claim), metav1.IsControlledBy(b, claim)),
			first(ready(a), ready(b)),
			a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time),
			cmp.Compare(a.GetName(), b.GetName()))
	})
	return all, nil
}

// first orders what is true before what is not.
func first(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
