package integration

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	ctx, roles := s.t.Context(), s.kube().RbacV1().ClusterRoles()
	role, err := roles.Get(ctx, "freshbind", metav1.GetOptions{})
	s.must(err)
	less := role.DeepCopy()
	for i, rule := range less.Rules {
		if slices.Contains(rule.Resources, upstream.SandboxWarmPools.Resource) {
			less.Rules[i].Verbs = slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return verb == "get" })
		}
	}
	less, err = roles.Update(ctx, less, metav1.UpdateOptions{})
	s.must(err)
	s.mayReadPools(false)
	return func() {
		less.Rules = role.Rules
		_, err := roles.Update(ctx, less, metav1.UpdateOptions{})
		s.must(err)
		s.mayReadPools(true)
	}
}

// mayReadPools waits until the API server, which watches roles, goes by them.
func (s *stage) mayReadPools(want bool) {
	s.t.Helper()
	reviews := s.kube().AuthorizationV1().SubjectAccessReviews()
	s.eventually("the API server goes by the role", func(ctx context.Context) (string, bool) {
		review, err := reviews.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: fixture.User, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Verb: "get", Group: upstream.SandboxWarmPools.Group, Resource: upstream.SandboxWarmPools.Resource, Namespace: s.Name,
			},
		}}, metav1.CreateOptions{})
		s.must(err)
		return fmt.Sprintf("allowed: %t", review.Status.Allowed), review.Status.Allowed == want
	})
}
