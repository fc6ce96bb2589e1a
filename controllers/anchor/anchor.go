// Package anchor ties Freshbind's admission configuration, which is cluster-wide,
// to the namespace that Freshbind runs in: whoever deletes the namespace must not
// be left with webhooks that nobody answers.
package anchor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/managed"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/webhooks"
)

const (
	// interval is how often we check whether somebody has replaced an object.
	interval = time.Minute
	// deletedInterval is that while the namespace is being deleted.
	deletedInterval = 5 * time.Second
)

// Anchor makes a namespace the owner of objects, and deletes them when the namespace is being
// deleted. The garbage collector does so only when the namespace is gone. Before that its Service
// and its Pods go, and a finalizer in it may hold it for ever.
type Anchor struct {
	client client.Writer
	reader client.Reader
	// configuration is the name of both webhook configurations, which are among the objects.
	configuration string
	objects       []*metav1.PartialObjectMetadata
	// failing is the failure that was logged last.
	failing string
}

// Setup adds the anchor to the manager, which watches namespaces. namespace is the one that
// this runs in, scope what is installed.
func Setup(mgr manager.Manager, namespace string, admission platform.Admission, scope webhooks.Scope) error {
	err := managed.Controller(mgr, "anchor", controller.Options{}).
		For(&corev1.Namespace{}, builder.WithPredicates(comesOrGoes(namespace))).
		Complete(New(mgr.GetAPIReader(), mgr.GetClient(), admission, scope))
	if err != nil {
		return fmt.Errorf("setting up the anchor of the admission configuration: %w", err)
	}
	return nil
}

// comesOrGoes: this namespace is there, or its deletion has begun.
func comesOrGoes(namespace string) predicate.Funcs {
	ours := predicate.NewPredicateFuncs(func(o client.Object) bool { return o.GetName() == namespace })
	ours.UpdateFunc = func(e event.UpdateEvent) bool {
		return e.ObjectNew.GetName() == namespace && e.ObjectOld.GetDeletionTimestamp() == nil && e.ObjectNew.GetDeletionTimestamp() != nil
	}
	return ours
}

// New returns an anchor of what is installed of a platform.
func New(reader client.Reader, writer client.Writer, admission platform.Admission, scope webhooks.Scope) *Anchor {
	a := &Anchor{client: writer, reader: reader, configuration: webhooks.ConfigurationOf(admission)}
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
// is being deleted itself. A failure to do the former is logged once, and tried again: nothing
// else depends on it.
func (a *Anchor) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var ns corev1.Namespace
	if err := a.reader.Get(ctx, req.NamespacedName, &ns); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	at, err := a.served(ctx, ns.Name)
	if err != nil {
		return reconcile.Result{}, err
	}
	if at == elsewhere {
		// Whoever has installed Freshbind anew in another namespace has objects of the same names.
		return reconcile.Result{RequeueAfter: interval}, nil
	}
	if ns.DeletionTimestamp != nil {
		err := a.each(ctx, "deleting", func(ctx context.Context, o *metav1.PartialObjectMetadata) error { return a.drop(ctx, o, &ns, at) })
		return reconcile.Result{RequeueAfter: deletedInterval}, err
	}
	err = a.each(ctx, "anchoring", func(ctx context.Context, o *metav1.PartialObjectMetadata) error { return a.hold(ctx, o, &ns) })
	if err == nil {
		a.failing = ""
	} else if ctx.Err() == nil && err.Error() != a.failing {
		a.failing = err.Error()
		logf.FromContext(ctx).Error(err, "The admission configuration may stay behind when the namespace is deleted")
	}
	return reconcile.Result{RequeueAfter: interval}, nil
}

// place is where the webhooks that are installed are served.
type place int

const (
	// unknown: there are none, or they are called by URL.
	unknown place = iota
	here
	elsewhere
)

// served reports whether the webhooks that are installed are served in this namespace.
func (a *Anchor) served(ctx context.Context, namespace string) (place, error) {
	var m admissionregistrationv1.MutatingWebhookConfiguration
	var v admissionregistrationv1.ValidatingWebhookConfiguration
	for _, o := range []client.Object{&m, &v} {
		if err := a.reader.Get(ctx, client.ObjectKey{Name: a.configuration}, o); client.IgnoreNotFound(err) != nil {
			return unknown, fmt.Errorf("getting the webhook configuration %s: %w", a.configuration, err)
		}
	}
	var called []admissionregistrationv1.WebhookClientConfig
	for _, w := range m.Webhooks {
		called = append(called, w.ClientConfig)
	}
	for _, w := range v.Webhooks {
		called = append(called, w.ClientConfig)
	}
	at := unknown
	for _, c := range called {
		switch {
		case c.Service == nil:
		case c.Service.Namespace == namespace:
			return here, nil
		default:
			at = elsewhere
		}
	}
	return at, nil
}

// each does something to each object that is there. What fails with one holds up no other.
func (a *Anchor) each(ctx context.Context, doing string, do func(context.Context, *metav1.PartialObjectMetadata) error) error {
	var errs []error
	for _, o := range a.objects {
		o := o.DeepCopy()
		err := a.reader.Get(ctx, client.ObjectKeyFromObject(o), o)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err == nil {
			err = do(ctx, o)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %s %s: %w", doing, o.Kind, o.Name, err))
		}
	}
	return errors.Join(errs...)
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

// drop deletes what the namespace, and nobody else, owns, as the garbage collector would. It does
// not wait for an owner where the webhooks are served here for certain: what was installed a
// moment ago has none.
func (a *Anchor) drop(ctx context.Context, o *metav1.PartialObjectMetadata, ns *corev1.Namespace, at place) error {
	others := slices.ContainsFunc(o.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID != ns.UID })
	if others || len(o.OwnerReferences) == 0 && at != here {
		logf.FromContext(ctx).V(1).Info("Left with the namespace that Freshbind runs in, which does not own it alone", "kind", o.Kind, "name", o.Name)
		return nil
	}
	// An owner that comes meanwhile changes the version.
	err := a.client.Delete(ctx, o, client.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion})
	if err == nil {
		logf.FromContext(ctx).Info("Deleted with the namespace that Freshbind runs in", "kind", o.Kind, "name", o.Name)
	}
	return client.IgnoreNotFound(err)
}
