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
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/webhooks"
)

// interval is how often we check whether somebody has replaced an object.
const interval = time.Minute

// Anchor makes a namespace the owner of objects, and deletes them when it is being deleted.
// The garbage collector would do so only when the namespace is gone. Until then its Service
// and its Pods go, and a finalizer in it may hold it for ever.
type Anchor struct {
	client  client.Writer
	reader  client.Reader
	objects []*metav1.PartialObjectMetadata
	// failing is the failure that was logged last.
	failing string
}

// Setup adds the anchor to the manager, which watches namespaces. namespace is the one that
// this runs in, scope what is installed.
func Setup(mgr manager.Manager, namespace string, admission platform.Admission, scope webhooks.Scope) error {
	ours := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == namespace })
	err := builder.ControllerManagedBy(mgr).Named("anchor").
		For(&corev1.Namespace{}, builder.WithPredicates(ours)).
		Complete(New(mgr.GetAPIReader(), mgr.GetClient(), admission, scope))
	if err != nil {
		return fmt.Errorf("setting up the anchor of the admission configuration: %w", err)
	}
	return nil
}

// New returns an anchor of what is installed of a platform.
func New(reader client.Reader, writer client.Writer, admission platform.Admission, scope webhooks.Scope) *Anchor {
	a := &Anchor{client: writer, reader: reader}
	mutating, validating := webhooks.Configurations(admission, webhooks.Endpoint{}, scope)
	objects := []client.Object{mutating, validating}
	for _, c := range webhooks.FloorConfigurations(admission, webhooks.Endpoint{}, scope) {
		objects = append(objects, c)
	}
	for _, o := range append(objects, webhooks.NewPolicies(admission, scope).Objects()...) {
		m := &metav1.PartialObjectMetadata{}
		m.SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
		m.Name = o.GetName()
		a.objects = append(a.objects, m)
	}
	return a
}

// Reconcile makes the namespace an owner of each object that is there, or deletes those if it
// is being deleted itself. Only the latter returns its failures, to be tried again soon. The
// others are logged once: nothing else depends on them.
func (a *Anchor) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var ns corev1.Namespace
	err := a.reader.Get(ctx, req.NamespacedName, &ns)
	switch {
	case err != nil:
		err = fmt.Errorf("getting the namespace %s: %w", req.Name, err)
	case ns.DeletionTimestamp != nil:
		return reconcile.Result{}, a.each(ctx, "deleting", a.drop, &ns)
	default:
		err = a.each(ctx, "anchoring", a.hold, &ns)
	}
	if err == nil {
		a.failing = ""
	} else if ctx.Err() == nil && err.Error() != a.failing {
		a.failing = err.Error()
		logf.FromContext(ctx).Error(err, "The admission configuration may stay behind when the namespace is deleted")
	}
	return reconcile.Result{RequeueAfter: interval}, nil
}

// each does something to each object that is there.
func (a *Anchor) each(ctx context.Context, doing string, do func(context.Context, *metav1.PartialObjectMetadata, *corev1.Namespace) error, ns *corev1.Namespace) error {
	for _, o := range a.objects {
		o := o.DeepCopy()
		err := a.reader.Get(ctx, client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err == nil {
			err = do(ctx, o, ns)
		}
		if err != nil {
			return fmt.Errorf("%s %s %s: %w", doing, o.Kind, o.Name, err)
		}
	}
	return nil
}

func (a *Anchor) hold(ctx context.Context, o *metav1.PartialObjectMetadata, ns *corev1.Namespace) error {
	if slices.ContainsFunc(o.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == ns.UID }) {
		return nil
	}
	before := o.DeepCopy()
	o.OwnerReferences = append(o.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: ns.Name, UID: ns.UID})
	// The owners are one list to a merge patch: somebody else's must not get lost.
	return a.client.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// drop deletes what the namespace owns and nobody else, as the garbage collector would. Whoever
// installs Freshbind anew in another namespace has objects of the same names.
func (a *Anchor) drop(ctx context.Context, o *metav1.PartialObjectMetadata, ns *corev1.Namespace) error {
	others := slices.ContainsFunc(o.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID != ns.UID })
	if len(o.OwnerReferences) == 0 || others {
		return nil
	}
	uid := o.GetUID()
	err := a.client.Delete(ctx, o, client.Preconditions{UID: &uid})
	if err == nil {
		logf.FromContext(ctx).Info("Deleted with the namespace that Freshbind runs in", "kind", o.Kind, "name", o.Name)
	}
	return client.IgnoreNotFound(err)
}
