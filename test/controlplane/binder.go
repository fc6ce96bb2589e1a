package controlplane

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// binder stands in for a scheduler: it binds each pending pod to the next
// usable node, asking nothing about room, taints or affinity.
type binder struct {
	client kubernetes.Interface
	pods   corelisters.PodLister
	nodes  corelisters.NodeLister
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
	turn   int
}

// startBinder runs a binder, under the scheduler's identity, until the cluster or
// stopBinder stops it.
func (c *Cluster) startBinder() error {
	cfg, err := c.User("system:kube-scheduler")
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("make client for binding pods: %w", err)
	}
	unbound := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(
		func(options *metav1.ListOptions) {
			options.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", "").String()
		}))
	all := informers.NewSharedInformerFactory(client, 0)
	b := &binder{
		client: client,
		pods:   unbound.Core().V1().Pods().Lister(),
		nodes:  all.Core().V1().Nodes().Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
	}
	enqueue := func(object any) {
		if name, err := cache.ObjectToName(object); err == nil {
			b.queue.Add(name)
		}
	}
	if _, err := unbound.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
	}); err != nil {
		return fmt.Errorf("watch pods to bind: %w", err)
	}
	binding, stop := context.WithCancel(c.background)
	c.stopBinder = stop
	c.goRun(func(context.Context) {
		defer unbound.Shutdown()
		defer all.Shutdown()
		all.Start(binding.Done())
		all.WaitForCacheSync(binding.Done())
		unbound.Start(binding.Done())
		context.AfterFunc(binding, b.queue.ShutDown)
		b.run(binding)
	})
	return nil
}

func (b *binder) run(ctx context.Context) {
	for {
		name, stop := b.queue.Get()
		if stop {
			return
		}
		if err := b.bind(ctx, name); err != nil {
			b.queue.AddRateLimited(name)
		} else {
			b.queue.Forget(name)
		}
		b.queue.Done(name)
	}
}

// bind returns an error when the pod has to be tried again.
func (b *binder) bind(ctx context.Context, name cache.ObjectName) error {
	pod, err := b.pods.Pods(name.Namespace).Get(name.Name)
	if apierrors.IsNotFound(err) || err == nil && !bindable(pod) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get pod: %w", err)
	}
	node, err := b.next()
	if err != nil {
		return err
	}
	err = b.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("bind pod: %w", err)
	}
	return nil
}

func bindable(pod *corev1.Pod) bool {
	return pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0 &&
		pod.Spec.SchedulerName == corev1.DefaultSchedulerName
}

// next is the name of the node whose turn it is.
func (b *binder) next() (string, error) {
	nodes, err := b.nodes.List(labels.Everything())
	if err != nil {
		return "", fmt.Errorf("list nodes: %w", err)
	}
	nodes = slices.DeleteFunc(nodes, func(node *corev1.Node) bool { return !usable(node) })
	if len(nodes) == 0 {
		return "", errors.New("no usable node")
	}
	slices.SortFunc(nodes, func(a, b *corev1.Node) int { return strings.Compare(a.Name, b.Name) })
	b.turn++
	return nodes[b.turn%len(nodes)].Name, nil
}
