package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// binder has members of a crowd's first pool bound by agent-sandbox, each for a claim of
// its own, in dry runs: with everything that a bind costs but the write to etcd.
type binder struct {
	sandboxes dynamic.ResourceInterface
	// members are as stored, bound as agent-sandbox writes them.
	members, bound []*unstructured.Unstructured
}

func (w *world) binder(ctx context.Context, c *crowd) (*binder, error) {
	cfg := rest.CopyConfig(w.upstream)
	cfg.QPS = -1
	as, err := scenario.Use(cfg, w.Version, c.ns.Name)
	if err != nil {
		return nil, err
	}
	b := &binder{
		sandboxes: as.Resource(upstream.Sandboxes),
		members:   make([]*unstructured.Unstructured, c.perPool), bound: make([]*unstructured.Unstructured, c.perPool),
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for i := range c.perPool {
		g.Go(func() error {
			claim, err := c.claim(ctx, i)
			if err != nil {
				return err
			}
			if b.members[i], err = b.sandboxes.Get(ctx, memberName(0, i), metav1.GetOptions{}); err != nil {
				return fmt.Errorf("get member: %w", err)
			}
			b.bound[i] = builders.Bound(b.members[i], claim, c.template).Obj()
			return nil
		})
	}
	return b, g.Wait()
}

// claim is the one that has a member of the first pool, made if it is not there.
func (c *crowd) claim(ctx context.Context, number int) (*unstructured.Unstructured, error) {
	claims, name := c.ns.Resource(upstream.SandboxClaims), claimOf(memberName(0, number))
	claim, err := claims.Get(ctx, name, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return claim, err
	}
	made := builders.ClaimFrom(c.ns.Claim(scenario.Pool{Name: crowdPool, Template: crowdTemplate}, name)).Names(memberName(0, number)).Obj()
	if claim, err = claims.Create(ctx, made, metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create claim: %w", err)
	}
	return claim, nil
}

// claimOf names the claim that a member is bound to.
func claimOf(member string) string { return "c-" + member }

// bind has one member bound, and says how long that took.
func (b *binder) bind(ctx context.Context, number int) (time.Duration, error) {
	start := time.Now()
	_, err := b.try(ctx, b.bound[number])
	return time.Since(start), err
}

// try returns what would be stored.
func (b *binder) try(ctx context.Context, bound *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	stored, err := b.sandboxes.Update(ctx, bound, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, fmt.Errorf("bind member: %w", err)
	}
	return stored, nil
}
