package integration

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// A pool that could not be looked at for long is looked at soon after it can be again:
// nothing tells Freshbind when that is.
func TestAPoolIsLookedAtSoonAfterManyFailures(t *testing.T) {
	t.Parallel()
	w := ownWorld(t, scenario.WorldOptions{})
	s := w.enforced(t)
	p := s.pool(scenario.Pool{Replicas: 2, Strategy: scenario.OnReplenish})
	s.annotate(p, rolloutStrategy, scenario.Recreate)

	restore := s.forbidPools()
	s.image(p, "sandbox:v2")
	// controller-runtime's own limiter would leave the pool alone for 1,000 s after so
	// many, more than anything here is waited for.
	const failures = 20
	for i := range failures {
		before := s.poolFailures()
		s.annotate(p, "probe", strconv.Itoa(i))
		s.eventually("Freshbind fails to look at the pool", func(context.Context) (string, bool) {
			got := s.poolFailures()
			return fmt.Sprintf("%g failures, %g before", got, before), got > before
		})
	}
	restore()
	s.full(p, "sandbox:v2")
}

func (s *stage) poolFailures() float64 {
	s.t.Helper()
	return s.w.metric(s.t, "controller_runtime_reconcile_errors_total", `controller="pools"`)
}

// forbidPools takes the right to read one pool from Freshbind, until the returned function
// is called.
func (s *stage) forbidPools() (restore func()) {
	s.t.Helper()
	ctx := s.t.Context()
	admin, err := client.New(s.w.Cluster.Config(), client.Options{})
	s.must(err)
	pools := upstream.SandboxWarmPools
	right := authorizationv1.ResourceAttributes{Verb: "get", Group: pools.Group, Resource: pools.Resource, Namespace: s.Name}
	role := &rbacv1.ClusterRole{}
	s.must(admin.Get(ctx, client.ObjectKey{Name: "freshbind"}, role))
	rules := role.DeepCopy().Rules
	for i, rule := range role.Rules {
		if slices.Contains(rule.Resources, pools.Resource) {
			role.Rules[i].Verbs = slices.DeleteFunc(rule.Verbs, func(verb string) bool { return verb == right.Verb })
		}
	}
	s.must(admin.Update(ctx, role))
	s.must(fixture.WaitRight(ctx, admin, right, false))
	return func() {
		role.Rules = rules
		s.must(admin.Update(ctx, role))
		s.must(fixture.WaitRight(ctx, admin, right, true))
	}
}
