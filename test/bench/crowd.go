package main

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

var podResource = schema.GroupVersionResource{Version: "v1", Resource: "pods"}

// crowd is many ready members in pools of one template. They are written as
// agent-sandbox and Freshbind would have written them, while neither is there.
type crowd struct {
	ns       *scenario.Namespace
	pods     dynamic.ResourceInterface
	template *unstructured.Unstructured
	pools    []*unstructured.Unstructured
	perPool  int
	withPods bool
}

const crowdTemplate = "python"

// gather makes a namespace with so many pools, full of members.
func (w *world) gather(ctx context.Context, name string, pools, perPool int, withPods bool) (*crowd, error) {
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
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i := range pools {
		g.Go(func() error { return c.found(ctx, i, blueprint.Hash()) })
	}
	return c, g.Wait()
}

// found creates one pool with its members.
func (c *crowd) found(ctx context.Context, i int, stamp string) error {
	pool := builders.MakePool(c.ns.Name, fmt.Sprintf("p%d", i)).APIVersion(c.ns.Version).Template(crowdTemplate).
		Replicas(int64(c.perPool)).Strategy(scenario.Recreate).Obj()
	var err error
	if c.pools[i], err = c.ns.Resource(upstream.SandboxWarmPools).Create(ctx, pool, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create pool of %s: %w", c.ns.Name, err)
	}
	for k := range c.perPool {
		member := builders.MakeMember(c.pools[i], c.template).Name(fmt.Sprintf("p%d-%d", i, k)).Label(platform.StampKey, stamp).Obj()
		if err := c.bear(ctx, c.ns, member); err != nil {
			return err
		}
	}
	return nil
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
	pod := builders.MakePod(born).Stored("node-0").Label(platform.StampKey, born.GetLabels()[platform.StampKey]).Obj()
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
