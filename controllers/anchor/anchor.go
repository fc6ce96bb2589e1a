// Package anchor ties Freshbind's admission configuration, which is cluster-wide,
// to the namespace that Freshbind runs in: whoever deletes the namespace must not
// be left with webhooks that nobody answers.
package anchor

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/webhooks"
)

// interval is how often we check whether somebody has replaced an object.
const interval = time.Minute

// Anchor makes a namespace the owner of objects.
type Anchor struct {
	client    client.Writer
	reader    client.Reader
	namespace string
	clock     clock.WithTicker
	objects   []*metav1.PartialObjectMetadata
}

// Setup adds the anchor to the manager. namespace is the one that this runs in,
// scope what is installed.
func Setup(mgr manager.Manager, namespace string, admission platform.Admission, scope webhooks.Scope) error {
	a := New(mgr.GetAPIReader(), mgr.GetClient(), namespace, admission, scope, clock.RealClock{})
	if err := mgr.Add(a); err != nil {
		return fmt.Errorf("adding the anchor of the admission configuration: %w", err)
	}
	return nil
}

// New returns an anchor in a namespace.
func New(reader client.Reader, writer client.Writer, namespace string, admission platform.Admission, scope webhooks.Scope, c clock.WithTicker) *Anchor {
	a := &Anchor{client: writer, reader: reader, namespace: namespace, clock: c}
	mutating, validating := webhooks.Configurations(admission, webhooks.Endpoint{}, scope)
	objects := append([]client.Object{mutating, validating}, webhooks.NewPolicies(admission, scope).Objects()...)
	for _, c := range webhooks.FloorConfigurations(admission, webhooks.Endpoint{}, scope) {
		objects = append(objects, c)
	}
	for _, o := range objects {
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
		m.Name = o.GetName()
		a.objects = append(a.objects, m)
	}
	return a
}

// Start looks after the objects until ctx ends. A failure is logged once and
// tried again: nothing else depends on it.
func (a *Anchor) Start(ctx context.Context) error {
	log := logf.FromContext(ctx).WithName("anchor")
	tick := a.clock.NewTicker(interval)
	defer tick.Stop()
	failing := ""
	for {
		err := a.Hold(ctx)
		if err == nil {
			failing = ""
		} else if ctx.Err() == nil && err.Error() != failing {
			failing = err.Error()
			log.Error(err, "The admission configuration may stay behind when the namespace is deleted", "namespace", a.namespace)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C():
		}
	}
}

// Hold makes the namespace an owner of each object that is there.
func (a *Anchor) Hold(ctx context.Context) error {
	var ns corev1.Namespace
	if err := a.reader.Get(ctx, types.NamespacedName{Name: a.namespace}, &ns); err != nil {
		return fmt.Errorf("getting the namespace %s: %w", a.namespace, err)
	}
	for _, o := range a.objects {
		if err := a.hold(ctx, o.DeepCopy(), &ns); err != nil {
			return fmt.Errorf("anchoring %s %s: %w", o.Kind, o.Name, err)
		}
	}
	return nil
}

func (a *Anchor) hold(ctx context.Context, o *metav1.PartialObjectMetadata, ns *corev1.Namespace) error {
	switch err := a.reader.Get(ctx, client.ObjectKeyFromObject(o), o); {
	case apierrors.IsNotFound(err), meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return err
	}
	if slices.ContainsFunc(o.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == ns.UID }) {
		return nil
	}
	before := o.DeepCopy()
	o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: ns.Name, UID: ns.UID})
	// The owners are one list to a merge patch: somebody else's must not get lost.
	return a.client.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}
