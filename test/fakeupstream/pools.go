package fakeupstream

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/upstream"
)

// reconcilePool makes the pool as large as it wants to be. Deletes name the
// member only, without preconditions, as in every release.
func (c *Controller) reconcilePool(ctx context.Context, name string) error {
	pool, err := c.pools.get(name)
	if err != nil || pool.GetDeletionTimestamp() != nil {
		return ignoreNotFound(err)
	}
	template, err := c.templates.get(templateOf(pool))
	if err != nil {
		return fmt.Errorf("get template of pool %s: %w", name, err)
	}
	members, err := c.membersOf(pool)
	if err != nil {
		return err
	}
	if c.recreates(pool) {
		for _, m := range members {
			if c.stale(m, pool, template) {
				if err := c.delete(ctx, m.GetName()); err != nil {
					return err
				}
			}
		}
		members = slices.DeleteFunc(members, func(m *unstructured.Unstructured) bool { return c.stale(m, pool, template) })
	}
	replicas, _, _ := unstructured.NestedInt64(pool.Object, "spec", "replicas")
	missing := int(replicas) - len(members) - c.expected(name)
	var errs []error
	for range max(missing, 0) {
		errs = append(errs, c.create(ctx, pool, template))
	}
	slices.SortStableFunc(members, func(a, b *unstructured.Unstructured) int {
		return b.GetCreationTimestamp().Compare(a.GetCreationTimestamp().Time)
	})
	for _, excess := range members[:min(max(-missing, 0), len(members))] {
		errs = append(errs, c.delete(ctx, excess.GetName()))
	}
	return errors.Join(errs...)
}

func (c *Controller) membersOf(pool *unstructured.Unstructured) ([]*unstructured.Unstructured, error) {
	all, err := c.sandboxes.list()
	return slices.DeleteFunc(all, func(s *unstructured.Unstructured) bool {
		return !metav1.IsControlledBy(s, pool) || s.GetDeletionTimestamp() != nil
	}), err
}

// recreates: v0.3.10 knows no strategies.
func (c *Controller) recreates(pool *unstructured.Unstructured) bool {
	strategy, _, _ := unstructured.NestedString(pool.Object, "spec", "updateStrategy", "type")
	return c.style == LockFree && strategy == "Recreate"
}

// stale compares as v0.5.0 does: by the template's name, by the hash of the pod
// template, and, where that differs, by the pod's spec alone.
func (c *Controller) stale(member, pool, template *unstructured.Unstructured) bool {
	labels := member.GetLabels()
	if labels[builders.LabelTemplateRef] != builders.NameHash(template.GetName()) {
		return true
	}
	if labels[builders.LabelPodTemplateHash] == builders.PodTemplateHash(template) {
		return false
	}
	return !reflect.DeepEqual(podSpec(member), podSpec(builders.MakeMember(pool, template).Obj()))
}

func podSpec(sandbox *unstructured.Unstructured) map[string]any {
	spec, _, _ := unstructured.NestedMap(sandbox.Object, "spec", "podTemplate", "spec")
	return spec
}

// create makes a member from the template as it is known.
func (c *Controller) create(ctx context.Context, pool, template *unstructured.Unstructured) error {
	made, err := c.resource(upstream.Sandboxes).Create(ctx, c.style.Member(pool, template), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create member of pool %s: %w", pool.GetName(), err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, err := c.sandboxes.get(made.GetName()); err != nil {
		c.unseen[made.GetName()] = pool.GetName()
	}
	return nil
}

func (c *Controller) seen(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.unseen, name)
}

func (c *Controller) expected(pool string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, of := range c.unseen {
		if of == pool {
			n++
		}
	}
	return n
}

func (c *Controller) delete(ctx context.Context, name string) error {
	err := c.resource(upstream.Sandboxes).Delete(ctx, name, metav1.DeleteOptions{})
	if ignoreNotFound(err) != nil {
		return fmt.Errorf("delete member %s: %w", name, err)
	}
	return nil
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Member is what the release's pool controller creates.
func (s Style) Member(pool, template *unstructured.Unstructured) *unstructured.Unstructured {
	member := builders.MakeMember(pool, template)
	if s == OneWrite {
		member.NoLabel(builders.LabelPodTemplateHash).Unset("metadata", "annotations", builders.AnnotationTemplate).
			Unset("spec", "podTemplate", "metadata", "labels", builders.LabelPool).
			Unset("spec", "podTemplate", "metadata", "labels", builders.LabelPodTemplateHash)
	} else {
		member.NoLabel(builders.LabelTemplateHash).NoLabel(builders.LabelCreatedBy).
			Unset("spec", "podTemplate", "metadata", "labels", builders.LabelTemplateHash)
	}
	return stripped(member.Obj())
}

// stripped leaves the UID to the API server.
func stripped(u *unstructured.Unstructured) *unstructured.Unstructured {
	unstructured.RemoveNestedField(u.Object, "metadata", "uid")
	return u
}
