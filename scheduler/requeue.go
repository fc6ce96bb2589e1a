package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/freshbind/freshbind/internal/managed"
	"github.com/freshbind/freshbind/internal/settings"
)

const (
	byRefusal = "freshbind.refused"
	// batchPeriod is how long events are gathered that concern the same pods.
	batchPeriod = 50 * time.Millisecond
	// requeueAgain is how long a scheduler may take to look at a pod before it is
	// asked once more: the replica that it asked may have been late as well.
	requeueAgain = 2 * time.Second
)

// RefusedPod is a refused pod to look at.
type RefusedPod struct {
	types.NamespacedName
	// Node: some node stays that was leaving.
	Node bool
}

// Requeuer has schedulers look again at pods against which nothing speaks any more. Of
// all that a verdict depends on they watch nothing: without a change to the pod, or to
// anything else that they do watch, they come back after five minutes
// (scheduling_queue.go, podMaxInUnschedulablePodsDuration).
// Which ones were refused their conditions say, so that it needs no memory.
type Requeuer struct {
	cache   client.Reader
	client  client.Client
	members Members
	metrics *Metrics
	clock   clock.PassiveClock
}

// Watched are the kinds in Informers whose changes can turn a refusal.
type Watched struct {
	Informers                   cache.Cache
	Pools, Templates, Sandboxes schema.GroupVersionKind
}

var (
	podKind  = corev1.SchemeGroupVersion.WithKind("Pod")
	nodeKind = corev1.SchemeGroupVersion.WithKind("Node")
)

// SetupRequeuer adds the controller, which runs on the leader, to the manager.
func SetupRequeuer(mgr manager.Manager, w Watched, members Members, m *Metrics) error {
	n := &Requeuer{cache: w.Informers, client: mgr.GetClient(), members: members, metrics: m, clock: clock.RealClock{}}
	if err := w.Informers.IndexField(context.Background(), object(podKind), byRefusal, refusals); err != nil {
		return fmt.Errorf("indexing refused pods: %w", err)
	}
	b := managed.Controller(mgr, "requeue", controller.TypedOptions[RefusedPod]{}).
		WatchesRawSource(source.TypedKind(w.Informers, client.Object(object(podKind)), enqueueRefused())).
		WatchesRawSource(source.TypedKind(w.Informers, client.Object(object(nodeKind)), n.nodes())).
		WatchesRawSource(source.TypedKind(mgr.GetCache(), client.Object(&corev1.Namespace{}), n.around(client.Object.GetName),
			predicate.LabelChangedPredicate{}))
	sandboxes := &metav1.PartialObjectMetadata{}
	sandboxes.SetGroupVersionKind(w.Sandboxes)
	b = b.WatchesRawSource(source.TypedKind(mgr.GetCache(), client.Object(sandboxes), n.around(client.Object.GetNamespace)))
	for _, kind := range []schema.GroupVersionKind{w.Pools, w.Templates} {
		b = b.WatchesRawSource(source.TypedKind(w.Informers, client.Object(object(kind)), n.around(client.Object.GetNamespace)))
	}
	if err := b.Complete(n); err != nil {
		return fmt.Errorf("setting up the controller that requeues refused pods: %w", err)
	}
	return nil
}

func object(kind schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u
}

// refusals indexes the pods that are refused.
func refusals(obj client.Object) []string {
	if u, ok := obj.(*unstructured.Unstructured); ok && refusal(u) != "" {
		return []string{"true"}
	}
	return nil
}

// refusal returns what the scheduler says of a pod that it was refused nodes for.
func refusal(pod *unstructured.Unstructured) string {
	if node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName"); node != "" || pod.GetDeletionTimestamp() != nil {
		return ""
	}
	conditions, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
	for _, v := range conditions {
		c, _ := v.(map[string]any)
		message, _ := c["message"].(string)
		if c["type"] == string(corev1.PodScheduled) && c["status"] == string(corev1.ConditionFalse) && strings.Contains(message, mark) {
			return message
		}
	}
	return ""
}

type queue = workqueue.TypedRateLimitingInterface[RefusedPod]

func enqueueRefused() handler.TypedEventHandler[client.Object, RefusedPod] {
	add := func(obj client.Object, q queue) {
		if len(refusals(obj)) > 0 {
			q.Add(RefusedPod{NamespacedName: client.ObjectKeyFromObject(obj)})
		}
	}
	return handler.TypedFuncs[client.Object, RefusedPod]{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { add(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { add(e.ObjectNew, q) },
	}
}

// around looks at the refused pods of the namespace that something changed in.
func (n *Requeuer) around(namespace func(client.Object) string) handler.TypedEventHandler[client.Object, RefusedPod] {
	add := func(ctx context.Context, obj client.Object, q queue) {
		n.enqueue(ctx, q, RefusedPod{}, client.InNamespace(namespace(obj)))
	}
	return handler.TypedFuncs[client.Object, RefusedPod]{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, e.Object, q) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { add(ctx, e.ObjectNew, q) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, e.Object, q) },
	}
}

// nodes looks at every refused pod when a node has come to stay. The scheduler
// sees that itself, and may have asked a cache that did not.
func (n *Requeuer) nodes() handler.TypedEventHandler[client.Object, RefusedPod] {
	return handler.TypedFuncs[client.Object, RefusedPod]{
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if becameBetter(e.ObjectOld, e.ObjectNew) {
				n.enqueue(ctx, q, RefusedPod{Node: true})
			}
		},
	}
}

// enqueue has no error to return: a cache that cannot be listed has not started,
// and delivers every pod when it does.
func (n *Requeuer) enqueue(ctx context.Context, q queue, as RefusedPod, where ...client.ListOption) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(podKind.GroupVersion().WithKind("PodList"))
	where = append(where, client.MatchingFields{byRefusal: "true"}, client.UnsafeDisableDeepCopy)
	if err := n.cache.List(ctx, list, where...); err != nil {
		return
	}
	for i := range list.Items {
		as.NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
		q.AddAfter(as, batchPeriod)
	}
}

// Reconcile touches the pod when it would not be refused any more.
func (n *Requeuer) Reconcile(ctx context.Context, req RefusedPod) (reconcile.Result, error) {
	pod := object(podKind)
	if err := n.cache.Get(ctx, req.NamespacedName, pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	message := refusal(pod)
	switch {
	case message == "", !req.Node && !strings.Contains(message, StaleMember):
		return reconcile.Result{}, nil
	case req.Node && strings.Contains(message, NodeLeaving):
		return reconcile.Result{}, n.requeue(ctx, pod)
	}
	disposition, err := n.members.Of(ctx, pod)
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("judging refused pod %s: %w", req.NamespacedName, err)
	}
	if disposition.ToBeDeleted {
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: requeueAgain}, n.requeue(ctx, pod)
}

func (n *Requeuer) requeue(ctx context.Context, pod *unstructured.Unstructured) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": pod.GetUID(), "annotations": map[string]string{settings.RequeuedAtKey: n.clock.Now().UTC().Format(time.RFC3339Nano)},
	}})
	if err != nil {
		return fmt.Errorf("marshalling the annotation: %w", err)
	}
	to := object(podKind)
	to.SetNamespace(pod.GetNamespace())
	to.SetName(pod.GetName())
	if err := n.client.Patch(ctx, to, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("requeuing pod %s: %w", pod.GetName(), err)
	}
	n.metrics.requeues.Inc()
	logf.FromContext(ctx).V(2).Info("Requeued pod", "namespace", pod.GetNamespace(), "pod", pod.GetName())
	return nil
}
