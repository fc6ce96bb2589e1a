package history

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// create writes a new revision. One of an earlier template of that name may
// still be there, until the garbage collector has found it: its place is taken,
// for the collector's visit would leave the revision in force unrecorded.
func (r *Recorder) create(ctx context.Context, cr *appsv1.ControllerRevision) error {
	err := r.client.Create(ctx, cr.DeepCopy())
	switch {
	case err == nil, isGone(err):
		return nil
	case !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("recording revision %s: %w", cr.Name, err)
	}
	var found appsv1.ControllerRevision
	err = r.live.Get(ctx, client.ObjectKeyFromObject(cr), &found)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("reading revision %s: %w", cr.Name, err)
	}
	if err == nil {
		if !sameTemplateName(&found, cr) {
			return fmt.Errorf("recording revision %s: something else has this name", cr.Name)
		}
		if err := r.delete(ctx, &found); err != nil {
			return err
		}
	}
	if err := r.client.Create(ctx, cr.DeepCopy()); err != nil && !isGone(err) {
		return fmt.Errorf("recording revision %s in place of another: %w", cr.Name, err)
	}
	return nil
}

// sameTemplateName compares what controls two revisions by name: the UID of a
// template that was created again is another one.
func sameTemplateName(a, b *appsv1.ControllerRevision) bool {
	x, y := metav1.GetControllerOf(a), metav1.GetControllerOf(b)
	return x != nil && y != nil && x.Kind == y.Kind && x.Name == y.Name
}

// replace puts one revision in the place of another: the data of a revision
// cannot be updated. A failure in between leaves a hole in the history; that of
// the revision in force is filled when its delete is seen.
func (r *Recorder) replace(ctx context.Context, old, cr *appsv1.ControllerRevision) error {
	if err := r.delete(ctx, old); err != nil {
		return err
	}
	return r.create(ctx, cr)
}

// delete deletes exactly the version that was read.
func (r *Recorder) delete(ctx context.Context, cr *appsv1.ControllerRevision) error {
	err := r.client.Delete(ctx, cr, client.Preconditions{UID: &cr.UID, ResourceVersion: ptr.To(cr.ResourceVersion)})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting revision %s: %w", cr.Name, err)
	}
	return nil
}

// redact puts digests in the place of the values that older revisions hold and
// may not keep: those of a namespace that went back to mode audit.
func (r *Recorder) redact(ctx context.Context, list []appsv1.ControllerRevision, template *unstructured.Unstructured, keep bool) error {
	if keep {
		return nil
	}
	for i := range list {
		old := &list[i]
		if !hasValues(old) {
			continue
		}
		recorded, err := decode(old, r.renders)
		if err != nil {
			// It names nothing, and holds values.
			if err := r.delete(ctx, old); err != nil {
				return err
			}
			continue
		}
		cr, err := r.encode(template, recorded.Rendered, old.Revision, true)
		if err != nil {
			return err
		}
		if err := r.replace(ctx, old, cr); err != nil {
			return err
		}
		if err := r.live.Get(ctx, client.ObjectKeyFromObject(cr), old); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading revision %s: %w", cr.Name, err)
		}
	}
	return nil
}
