package scheduler

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/freshbind/freshbind/internal/managed"
	"github.com/freshbind/freshbind/internal/placement"
	"github.com/freshbind/freshbind/internal/platform"
)

// FormerScheduler deletes Pods that wait for a second scheduler which is not there any
// more. They never ran; their Sandboxes, a pool's or a claim's, make others, which
// the cluster's own scheduler places. Only Freshbind ever sent them there, so that
// no mode holds it back.
type FormerScheduler struct {
	cache  client.Reader
	client client.Client
	// live reads Sandboxes, those of claims too.
	live      client.Reader
	sandboxes schema.GroupVersionKind
	scheduler string
	platform  Platform
	// leads is asked before each delete: whether this process leads for certain.
	leads func() bool
}

// Platform tells whose a Pod is, and what a Sandbox says of it.
type Platform interface {
	platform.Owners
	platform.Metadata
	platform.Describer
}

// errNotLeading leaves a Pod to the next leader.
var errNotLeading = errors.New("the lease was not renewed in time, so another leader may be at work")

// SetupFormerScheduler adds the controller, which runs on the leader, to the manager.
func SetupFormerScheduler(mgr manager.Manager, informers cache.Cache, sandboxes schema.GroupVersionKind, p Platform, scheduler string, leads func() bool) error {
	s := &FormerScheduler{cache: informers, client: mgr.GetClient(), live: mgr.GetAPIReader(), sandboxes: sandboxes, scheduler: scheduler, platform: p, leads: leads}
	err := managed.Controller(mgr, "formerscheduler", controller.Options{}).
		WatchesRawSource(source.Kind(informers, client.Object(object(podKind)), &handler.EnqueueRequestForObject{},
			predicate.NewPredicateFuncs(s.waits))).
		Complete(s)
	if err != nil {
		return fmt.Errorf("setting up the controller of pods of a former scheduler: %w", err)
	}
	return nil
}

func (s *FormerScheduler) waits(obj client.Object) bool {
	pod, ok := obj.(*unstructured.Unstructured)
	owner := metav1.GetControllerOfNoCopy(obj)
	return ok && owner != nil && s.platform.IsMember(owner) && pod.GetDeletionTimestamp() == nil &&
		placement.SchedulerName(pod) == s.scheduler && placement.NodeName(pod) == ""
}

// Reconcile deletes exactly the version that was seen: one that gets a node
// meanwhile has become another.
func (s *FormerScheduler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	pod := object(podKind)
	if err := s.cache.Get(ctx, req.NamespacedName, pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !s.waits(pod) {
		return reconcile.Result{}, nil
	}
	sandbox := object(s.sandboxes)
	owner := types.NamespacedName{Namespace: pod.GetNamespace(), Name: s.platform.MemberOf(pod)}
	if err := s.live.Get(ctx, owner, sandbox); err != nil {
		if apierrors.IsNotFound(err) {
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("reading sandbox %s of a pod of a former scheduler: %w", owner, err)
	}
	// Another Pod would say the same.
	if s.platform.DescribeMember(sandbox).Scheduler != "" {
		return reconcile.Result{}, nil
	}
	if !s.leads() {
		return reconcile.Result{}, errNotLeading
	}
	err := s.client.Delete(ctx, pod, client.Preconditions{
		UID: ptr.To(pod.GetUID()), ResourceVersion: ptr.To(pod.GetResourceVersion()),
	})
	if apierrors.IsForbidden(err) {
		return reconcile.Result{}, fmt.Errorf("deleting pod %s, which waits for scheduler %s, which is not there any more; the chart grants it with legacy.secondScheduler=true: %w", req, s.scheduler, err)
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return reconcile.Result{}, fmt.Errorf("deleting pod of a former scheduler %s: %w", req, err)
	}
	logf.FromContext(ctx).V(2).Info("Deleted a pod that waited for the second scheduler", "deleted", err == nil)
	return reconcile.Result{}, nil
}
