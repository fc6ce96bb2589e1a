package history

import (
	"context"
	"fmt"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
)

// Recorder writes a ControllerRevision for every version of a template that its
// watch delivers, not only for the last one: a revision that was in force for a
// moment may have members.
type Recorder struct {
	client  client.Client
	live    client.Reader
	members schema.GroupVersionKind
	limit   int
	digests bool
	memo    agentsandbox.Memo

	mu sync.Mutex
	// pending are the versions not yet recorded, in the order of the watch.
	pending map[types.NamespacedName][]*unstructured.Unstructured
}

// Options configure a Recorder.
type Options struct {
	// Templates and Members are the kinds to watch and to look for use in.
	Templates, Members schema.GroupVersionKind
	// Limit is how many unused revisions are kept; at least 1.
	Limit int
	// Digests keeps digests of values in place of the values.
	Digests bool
}

// Setup adds a Recorder to the manager.
func Setup(mgr manager.Manager, o Options) error {
	r := &Recorder{
		client: mgr.GetClient(), live: mgr.GetAPIReader(), members: o.Members, limit: o.Limit, digests: o.Digests,
		pending: map[types.NamespacedName][]*unstructured.Unstructured{},
	}
	template := &unstructured.Unstructured{}
	template.SetGroupVersionKind(o.Templates)
	err := ctrl.NewControllerManagedBy(mgr).Named("history").
		Watches(template, handler.Funcs{
			CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { r.note(e.Object, q) },
			UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { r.note(e.ObjectNew, q) },
		}).Complete(r)
	if err != nil {
		return fmt.Errorf("setting up the history controller: %w", err)
	}
	return nil
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

func (r *Recorder) note(obj client.Object, q queue) {
	template, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return
	}
	key := client.ObjectKeyFromObject(template)
	r.mu.Lock()
	r.pending[key] = append(r.pending[key], template)
	r.mu.Unlock()
	q.Add(reconcile.Request{NamespacedName: key})
}

// Reconcile records the pending versions of one template, the oldest first.
func (r *Recorder) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	for {
		template := r.oldest(req.NamespacedName)
		if template == nil {
			return reconcile.Result{}, nil
		}
		if err := r.record(ctx, template); err != nil {
			return reconcile.Result{}, err
		}
		r.done(req.NamespacedName)
	}
}

func (r *Recorder) oldest(key types.NamespacedName) *unstructured.Unstructured {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pending[key]) == 0 {
		return nil
	}
	return r.pending[key][0]
}

func (r *Recorder) done(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending[key] = r.pending[key][1:]; len(r.pending[key]) == 0 {
		delete(r.pending, key)
	}
}

// record makes the template's revision the newest one of its history.
func (r *Recorder) record(ctx context.Context, template *unstructured.Unstructured) error {
	rendered, err := r.memo.Render(template)
	if err != nil {
		// A template that nothing can be built from has no members to name.
		ctrl.LoggerFrom(ctx).Info("Template has no revision", "template", template.GetName(), "reason", err.Error())
		return nil
	}
	list, err := revisionsOf(ctx, r.live, template)
	if err != nil {
		return err
	}
	var newest int64
	var same *appsv1.ControllerRevision
	for i := range list {
		newest = max(newest, list[i].Revision)
		if list[i].Labels[platform.StampKey] == rendered.Hash() {
			same = &list[i]
		}
	}
	if same != nil {
		return r.renumber(ctx, same, newest)
	}
	cr, err := encode(template, rendered, newest+1, r.digests)
	if err != nil {
		return err
	}
	if err := r.client.Create(ctx, cr); err != nil && !apierrors.IsAlreadyExists(err) && !isGone(err) {
		return fmt.Errorf("recording revision %s: %w", cr.Name, err)
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
		client.MatchingLabels{platform.StampKey: cr.Labels[platform.StampKey]})
	if err != nil {
		return false, fmt.Errorf("looking for members of revision %s: %w", cr.Name, err)
	}
	return len(list.Items) > 0, nil
}
