package history

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/managed"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// Recorder writes a ControllerRevision for every version of a template that its
// watch delivers, not only for the last one: a revision that was in force for a
// moment may have members.
type Recorder struct {
	client    client.Client
	live      client.Reader
	templates schema.GroupVersionKind
	// sharedKind is the kind of templates that pools refer to where they have one of their
	// own kind; "" for that kind.
	sharedKind string
	members    schema.GroupVersionKind
	limit      int
	renders    platform.Renderer
	values     *values
	pending    *pending
}

// Platform reads templates and pools.
type Platform interface {
	platform.Renderer
	platform.Pools
}

// Options configure a Recorder.
type Options struct {
	// Templates, Pools and Members are the kinds to watch and to look for use in,
	// SharedTemplates what pools can refer to besides; empty where that is nothing.
	Templates, SharedTemplates, Pools, Members schema.GroupVersionKind
	// Platform renders templates, and reads which one a pool refers to.
	Platform Platform
	// Limit is how many unused revisions are kept; at least 1.
	Limit int
	// Digests keeps digests of values in place of the values, in mode enforce, too.
	Digests bool
	// Enforced tells where values may be kept at all.
	Enforced Enforced
}

// workers are how many templates are recorded at once: a version takes some requests, one
// after the other, and whoever writes many templates makes others wait for few of them.
const workers = 5

// Setup adds a Recorder of each kind of templates to the manager.
func Setup(mgr manager.Manager, o Options) error {
	if err := setup(mgr, o, "history", o.Templates, ""); err != nil || o.SharedTemplates.Empty() {
		return err
	}
	return setup(mgr, o, "history-shared", o.SharedTemplates, o.SharedTemplates.Kind)
}

func setup(mgr manager.Manager, o Options, name string, templates schema.GroupVersionKind, sharedKind string) error {
	r := &Recorder{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), templates: templates, sharedKind: sharedKind, members: o.Members, limit: o.Limit, renders: o.Platform,
		values: &values{
			never: o.Digests, enforced: o.Enforced, cached: mgr.GetCache(), live: mgr.GetAPIReader(), pools: o.Pools, sharedKind: sharedKind, reads: o.Platform,
		},
		pending: newPending(),
	}
	err := managed.Controller(mgr, name, controller.Options{MaxConcurrentReconciles: workers}).
		Watches(objectOf(templates), handler.Funcs{
			CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { r.note(e.Object, q) },
			UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { r.noteUpdate(e, q) },
			DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) {
				r.pending.forget(client.ObjectKeyFromObject(e.Object))
			},
		}).
		Watches(&appsv1.ControllerRevision{}, handler.Funcs{
			DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { r.missed(e.Object, q) },
		}).
		Watches(objectOf(o.Pools), poolEvents(o.Platform, sharedKind)).
		Watches(&corev1.Namespace{}, namespaceEvents(mgr.GetCache(), templates)).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the controller %s: %w", name, err)
	}
	return nil
}

func objectOf(kind schema.GroupVersionKind) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	return obj
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func (r *Recorder) note(obj client.Object, q queue) {
	template, ok := obj.(*unstructured.Unstructured)
	if !ok || isDerived(template) {
		return
	}
	key := client.ObjectKeyFromObject(template)
	r.pending.add(key, template)
	q.Add(reconcile.Request{NamespacedName: key})
}

// isDerived reports whether the platform itself has made a template, of a pool's revision
// or of a snapshot: each is written once, and there may be thousands.
func isDerived(template *unstructured.Unstructured) bool {
	owner := metav1.GetControllerOfNoCopy(template)
	return owner != nil && schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).Group == template.GroupVersionKind().Group
}

// noteUpdate passes over writes of metadata: they are no version. When etcd is restored
// from a snapshot a later spec can have the generation of one that is no more.
func (r *Recorder) noteUpdate(e event.UpdateEvent, q queue) {
	sameUID := e.ObjectOld.GetUID() == e.ObjectNew.GetUID()
	if sameUID && e.ObjectOld.GetGeneration() == e.ObjectNew.GetGeneration() && reflect.DeepEqual(specOf(e.ObjectOld), specOf(e.ObjectNew)) {
		return
	}
	r.note(e.ObjectNew, q)
}

func specOf(obj client.Object) any {
	template, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	return template.Object["spec"]
}

// missed asks for the template of a revision that was deleted: it may be the one
// in force. The garbage collector takes those of a template that was replaced,
// some time after the next one of that name has come.
func (r *Recorder) missed(revision client.Object, q queue) {
	if owner := metav1.GetControllerOf(revision); owner != nil && owner.Kind == r.templates.Kind {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: revision.GetNamespace(), Name: owner.Name}})
	}
}

// Reconcile records the pending versions of one template, the oldest first, and
// without any the one in force. A version that cannot be recorded, as when a
// quota is exhausted, is tried again later; the latest is then recorded once
// more, so that it ends as the newest.
func (r *Recorder) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	waiting := r.pending.of(req.NamespacedName)
	if len(waiting) == 0 {
		return reconcile.Result{}, r.recordInForce(ctx, req.NamespacedName)
	}
	var errs []error
	var recorded []*unstructured.Unstructured
	for i, template := range waiting {
		err := r.record(ctx, template)
		if err != nil {
			errs = append(errs, err)
		} else if i < len(waiting)-1 || len(errs) == 0 {
			recorded = append(recorded, template)
		}
	}
	r.pending.done(req.NamespacedName, recorded)
	return reconcile.Result{}, errors.Join(errs...)
}

// recordInForce records the template as it is stored now.
func (r *Recorder) recordInForce(ctx context.Context, key types.NamespacedName) error {
	template := objectOf(r.templates)
	err := r.live.Get(ctx, key, template)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading template %s: %w", key, err)
	}
	if template.GetDeletionTimestamp() != nil || isDerived(template) {
		return nil
	}
	return r.record(ctx, template)
}

// record makes the template's revision the newest one of its history.
func (r *Recorder) record(ctx context.Context, template *unstructured.Unstructured) error {
	rendered, err := r.renders.Render(template)
	if err != nil {
		// A template that nothing can be built from has no members to name.
		ctrl.LoggerFrom(ctx).Info("Template has no revision", "template", template.GetName(), "reason", err.Error())
		return nil
	}
	keep, err := r.values.of(ctx, template)
	if err != nil {
		return err
	}
	list, err := revisionsOf(ctx, r.live, template)
	if err != nil {
		return err
	}
	var newest int64
	var same *appsv1.ControllerRevision
	for i := range list {
		newest = max(newest, list[i].Revision)
		if list[i].Labels[settings.StampKey] == rendered.Hash() {
			same = &list[i]
		}
	}
	if err := r.redact(ctx, list, template, keep); err != nil {
		return err
	}
	if same != nil && hasValues(same) == keep {
		return r.renumber(ctx, same, newest)
	}
	cr, err := r.encode(template, rendered, newest+1, !keep)
	if err != nil {
		return err
	}
	if same != nil {
		return r.replace(ctx, same, cr)
	}
	if err := r.create(ctx, cr); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).V(2).Info("Recorded revision", "revision", cr.Name, "number", cr.Revision)
	return r.prune(ctx, list, cr.Name)
}

// isGone: the namespace went away under us, and the template with it.
func isGone(err error) bool {
	return apierrors.HasStatusCause(err, "NamespaceTerminating") || apierrors.IsNotFound(err)
}

// renumber makes a revision that is in force again the newest, as Deployments do.
func (r *Recorder) renumber(ctx context.Context, cr *appsv1.ControllerRevision, newest int64) error {
	if cr.Revision == newest {
		return nil
	}
	cr.Revision = newest + 1
	if err := r.client.Update(ctx, cr); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("renumbering revision %s: %w", cr.Name, err)
	}
	return nil
}

// prune deletes the oldest revisions beyond the limit that no member has.
func (r *Recorder) prune(ctx context.Context, list []appsv1.ControllerRevision, current string) error {
	if len(list)+1 <= r.limit {
		return nil
	}
	var unused []*appsv1.ControllerRevision
	for i := range list {
		if list[i].Name == current {
			continue
		}
		used, err := r.inUse(ctx, &list[i])
		if err != nil {
			return err
		}
		if !used {
			unused = append(unused, &list[i])
		}
	}
	sortByNumber(unused)
	for len(unused)+1 > r.limit {
		cr := unused[0]
		unused = unused[1:]
		err := r.client.Delete(ctx, cr, client.Preconditions{UID: &cr.UID, ResourceVersion: ptr.To(cr.ResourceVersion)})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("deleting revision %s: %w", cr.Name, err)
		}
	}
	return nil
}

// inUse looks for a member with the revision's stamp. A forged stamp keeps a
// revision that nobody needs, nothing worse.
func (r *Recorder) inUse(ctx context.Context, cr *appsv1.ControllerRevision) (bool, error) {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(r.members)
	err := r.live.List(ctx, &list, client.InNamespace(cr.Namespace), client.Limit(1),
		client.MatchingLabels{settings.StampKey: cr.Labels[settings.StampKey]})
	if err != nil {
		return false, fmt.Errorf("looking for members of revision %s: %w", cr.Name, err)
	}
	return len(list.Items) > 0, nil
}
