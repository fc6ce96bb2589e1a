package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

var (
	podResource  = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodeResource = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
)

// crowd is many ready members in pools of one template. They are stored as
// agent-sandbox and Freshbind would have written them, while neither is there.
type crowd struct {
	ns       *scenario.Namespace
	pods     dynamic.ResourceInterface
	template *unstructured.Unstructured
	pools    []*unstructured.Unstructured
	perPool  int
	withPods bool
}

// crowdPool is the first one, and crowdNode the one that all Pods are on.
const crowdTemplate, crowdPool, crowdNode = "python", "p0", "node-0"

// populate makes a namespace with so many pools, full of members.
func (w *world) populate(ctx context.Context, name string, pools, perPool int, withPods bool) (*crowd, error) {
	cfg := rest.CopyConfig(w.Cluster.Config())
	cfg.QPS = -1
	c := &crowd{perPool: perPool, withPods: withPods, pools: make([]*unstructured.Unstructured, pools)}
	var err error
	if c.ns, err = scenario.CreateNamespace(ctx, cfg, w.Version, name, scenario.Enforce()); err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	c.pods = client.Resource(podResource).Namespace(name)
	if err := c.ns.Create(ctx, builders.MakeTemplate(name, crowdTemplate).APIVersion(w.Version).Image("sandbox:v1").Obj()); err != nil {
		return nil, err
	}
	if c.template, err = c.ns.Resource(upstream.SandboxTemplates).Get(ctx, crowdTemplate, metav1.GetOptions{}); err != nil {
		return nil, fmt.Errorf("get template of %s: %w", name, err)
	}
	blueprint, err := agentsandbox.RenderMember(c.template)
	if err != nil {
		return nil, fmt.Errorf("render template of %s: %w", name, err)
	}
	for i := range pools {
		pool := builders.MakePool(name, fmt.Sprintf("p%d", i)).APIVersion(w.Version).Template(crowdTemplate).
			Replicas(int64(perPool)).Strategy(scenario.Recreate).Obj()
		if c.pools[i], err = c.ns.Resource(upstream.SandboxWarmPools).Create(ctx, pool, metav1.CreateOptions{}); err != nil {
			return nil, fmt.Errorf("create pool of %s: %w", name, err)
		}
	}
	return c, c.populate(ctx, w.Cluster, blueprint.Hash())
}

// populate makes the first member as every one is made, and stores all others as
// its copies.
func (c *crowd) populate(ctx context.Context, cluster *controlplane.Cluster, stamp string) error {
	first := builders.MakeMember(c.pools[0], c.template).Name(memberName(0, 0)).Label(settings.StampKey, stamp).Obj()
	if err := c.bear(ctx, c.ns, first); err != nil {
		return err
	}
	member, pod, err := c.ready(ctx, first.GetName())
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i, pool := range c.pools {
		for k := range c.perPool {
			if i == 0 && k == 0 {
				continue
			}
			g.Go(func() error {
				copied := copyOf(member, pool, memberName(i, k))
				if err := cluster.Store(ctx, upstream.Sandboxes, copied); err != nil || pod == nil {
					return err
				}
				return cluster.Store(ctx, podResource.GroupResource(), copyOf(pod, copied, copied.GetName()))
			})
		}
	}
	return g.Wait()
}

func memberName(pool, number int) string { return fmt.Sprintf("p%d-%d", pool, number) }

// copyOf is what an owner would have as well, by that name.
func copyOf(original, owner *unstructured.Unstructured, name string) *unstructured.Unstructured {
	out := original.DeepCopy()
	out.SetName(name)
	out.SetUID(uuid.NewUUID())
	out.SetOwnerReferences([]metav1.OwnerReference{builders.ControllerRef(owner)})
	labels := out.GetLabels()
	if _, ok := labels[builders.LabelNameHash]; ok {
		labels[builders.LabelNameHash] = builders.NameHash(name)
		labels[builders.LabelPool] = owner.GetLabels()[builders.LabelPool]
	} else {
		labels[builders.LabelPool] = builders.NameHash(owner.GetName())
	}
	out.SetLabels(labels)
	return out
}

// ready waits until the Pod of the first member runs, and returns both as stored.
func (c *crowd) ready(ctx context.Context, name string) (member, pod *unstructured.Unstructured, err error) {
	if c.withPods {
		err = scenario.Poll(ctx, filling, func(ctx context.Context) (bool, error) {
			var err error
			if pod, err = c.pods.Get(ctx, name, metav1.GetOptions{}); err != nil {
				return false, err
			}
			phase, _, _ := unstructured.NestedString(pod.Object, "status", "phase")
			return phase == string(corev1.PodRunning), nil
		})
		if err != nil {
			return nil, nil, fmt.Errorf("wait until pod %s runs: %w", name, err)
		}
	}
	if member, err = c.ns.Resource(upstream.Sandboxes).Get(ctx, name, metav1.GetOptions{}); err != nil {
		return nil, nil, fmt.Errorf("get member of %s: %w", c.ns.Name, err)
	}
	return member, pod, nil
}

// bear creates one member, makes it ready and gives it its Pod.
func (c *crowd) bear(ctx context.Context, as *scenario.Namespace, member *unstructured.Unstructured) error {
	sandboxes := as.Resource(upstream.Sandboxes)
	born, err := sandboxes.Create(ctx, member, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create member of %s: %w", c.ns.Name, err)
	}
	ready, err := readyPatch()
	if err != nil {
		return err
	}
	if _, err = sandboxes.Patch(ctx, born.GetName(), types.MergePatchType, ready, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("make member of %s ready: %w", c.ns.Name, err)
	}
	if !c.withPods {
		return nil
	}
	pod := builders.MakePod(born).Stored(crowdNode).Label(settings.StampKey, born.GetLabels()[settings.StampKey]).Obj()
	if _, err := c.pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create pod of %s: %w", c.ns.Name, err)
	}
	return nil
}

// waitComplete waits until Freshbind says of every pool that it is up to date.
func (c *crowd) waitComplete(ctx context.Context) error {
	m := &many{ns: c.ns, count: len(c.pools), perPool: c.perPool}
	return m.waitComplete(ctx, "")
}
