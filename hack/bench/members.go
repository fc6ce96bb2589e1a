package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	// parallel is how many writes are in flight, as Freshbind has it in the end.
	parallel  = 64
	bareAgent = "bench-bare-loop"
	// filling is how long a pool may take to be full, or empty.
	filling = 5 * time.Minute
)

// filled is a pool of ready members without Pods.
type filled struct {
	ns *scenario.Namespace
	// loop is the same namespace for the bare loop.
	loop    *scenario.Namespace
	pool    scenario.Pool
	members []*unstructured.Unstructured
}

// fill makes a namespace with a template, a pool and its members.
func (w *world) fill(ctx context.Context, name string, members int, labels map[string]string) (*filled, error) {
	f := &filled{pool: scenario.Pool{
		Name: "python", Template: "python", Image: "sandbox:v1", Replicas: members, Strategy: scenario.Recreate,
	}}
	var err error
	if f.ns, err = scenario.CreateNamespace(ctx, w.Cluster.Config(), w.Version, name, labels); err != nil {
		return nil, err
	}
	bare := rest.CopyConfig(w.Cluster.Config())
	bare.UserAgent = bareAgent
	if f.loop, err = scenario.Use(bare, w.Version, name); err != nil {
		return nil, err
	}
	if labels != nil {
		if err := f.ns.WaitGuarded(ctx, guardWithin); err != nil {
			return nil, err
		}
	}
	if err := f.ns.CreatePool(ctx, f.pool); err != nil {
		return nil, err
	}
	controller, err := scenario.Use(w.upstream, w.Version, name)
	if err != nil {
		return nil, err
	}
	return f, f.bear(ctx, controller)
}

// bear creates the members as the pool controller does, and makes them ready as
// the controller of Sandboxes does.
func (f *filled) bear(ctx context.Context, controller *scenario.Namespace) error {
	pool, err := f.ns.Resource(upstream.SandboxWarmPools).Get(ctx, f.pool.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get pool %s: %w", f.ns.Name, err)
	}
	template, err := f.ns.Resource(upstream.SandboxTemplates).Get(ctx, f.pool.Template, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get template of %s: %w", f.ns.Name, err)
	}
	f.members = make([]*unstructured.Unstructured, f.pool.Replicas)
	sandboxes := controller.Resource(upstream.Sandboxes)
	return f.each(ctx, func(ctx context.Context, i int) error {
		born, err := sandboxes.Create(ctx, builders.MakeMember(pool, template).Obj(), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("create member of %s: %w", f.ns.Name, err)
		}
		ready, err := readyPatch()
		if err != nil {
			return err
		}
		f.members[i], err = sandboxes.Patch(ctx, born.GetName(), types.MergePatchType, ready, metav1.PatchOptions{}, "status")
		if err != nil {
			return fmt.Errorf("make member of %s ready: %w", f.ns.Name, err)
		}
		return nil
	})
}

// readyPatch makes a Sandbox ready. It names no version: others may have
// written to it meanwhile.
func readyPatch() ([]byte, error) {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []metav1.Condition{{
		Type: "Ready", Status: metav1.ConditionTrue, Reason: "DependenciesReady", LastTransitionTime: metav1.Now(),
	}}}})
	if err != nil {
		return nil, fmt.Errorf("marshal condition: %w", err)
	}
	return patch, nil
}

// each calls do for every member, so many at once.
func (f *filled) each(ctx context.Context, do func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i := range f.members {
		g.Go(func() error { return do(ctx, i) })
	}
	return g.Wait()
}

// deleteAll deletes exactly the versions that were written.
func (f *filled) deleteAll(ctx context.Context) error {
	sandboxes := f.loop.Resource(upstream.Sandboxes)
	return f.each(ctx, func(ctx context.Context, i int) error {
		m := f.members[i]
		err := sandboxes.Delete(ctx, m.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{
			UID: ptr.To(m.GetUID()), ResourceVersion: ptr.To(m.GetResourceVersion()),
		}})
		if err != nil {
			return fmt.Errorf("delete member %s/%s: %w", f.ns.Name, m.GetName(), err)
		}
		return nil
	})
}

// waitComplete waits until Freshbind has seen every member and has nothing left
// to do.
func (f *filled) waitComplete(ctx context.Context) error {
	err := scenario.Poll(ctx, filling, func(ctx context.Context) (bool, error) {
		pool, err := f.ns.Resource(upstream.SandboxWarmPools).Get(ctx, f.pool.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		return upToDate(pool, f.pool.Replicas), nil
	})
	if err != nil {
		return fmt.Errorf("wait until pool %s is complete: %w", f.ns.Name, err)
	}
	return nil
}

// upToDate reports whether the pool says that so many members are ready and
// none is to be replaced.
func upToDate(pool *unstructured.Unstructured, replicas int) bool {
	annotations := pool.GetAnnotations()
	status, err := platform.ParseRolloutStatus(annotations[settings.RolloutStatusKey])
	return err == nil && annotations[settings.RolloutStateKey] == string(freshness.Complete) && status.UpdatedReadyReplicas == replicas
}

// waitEmpty waits until no member is stored, and asks for one at most.
func (f *filled) waitEmpty(ctx context.Context) error {
	err := scenario.Poll(ctx, filling, func(ctx context.Context) (bool, error) {
		list, err := f.ns.Resource(upstream.Sandboxes).List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return false, err
		}
		return len(list.Items) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("wait until pool %s is empty: %w", f.ns.Name, err)
	}
	return nil
}

// remove takes pool and template away, so that nobody has to look at them.
func (f *filled) remove(ctx context.Context) error {
	err := f.ns.Resource(upstream.SandboxWarmPools).Delete(ctx, f.pool.Name, metav1.DeleteOptions{})
	if err == nil {
		err = f.ns.Resource(upstream.SandboxTemplates).Delete(ctx, f.pool.Template, metav1.DeleteOptions{})
	}
	if err != nil {
		return fmt.Errorf("remove pool %s: %w", f.ns.Name, err)
	}
	return nil
}
