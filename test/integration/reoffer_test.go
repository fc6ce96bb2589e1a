package integration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// agent-sandbox itself keeps trying to take members for a claim that has a
// sandbox already, because it does not see that one. What it was refused for
// the claim's fault is there for others, as if nobody had tried.
func TestMembersRefusedForAClaimsFaultAreOffered(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	p := s.pool(scenario.Pool{Replicas: 5, Strategy: scenario.Recreate})
	s.full(p, "")

	claim, seeClaims := s.unseenClaim(p, "confused")
	seeSandboxes := s.hold(upstream.Sandboxes)
	held := builders.MakeColdStart(claim, s.get(upstream.SandboxTemplates, p.Template)).Name("held").Obj()
	held.SetUID("")
	s.must(s.answered(func() error { return s.Create(t.Context(), held) }))
	_, err := s.Resource(upstream.SandboxClaims).Patch(t.Context(), claim.GetName(), mergePatch,
		[]byte(`{"status":{"sandbox":{"name":"held"}}}`), patchOptions, "status")
	s.must(err)
	seeClaims()
	s.eventually("binds refused for the claim's fault", func(context.Context) (string, bool) {
		refused := s.decisions(denied("bind"))
		return fmt.Sprint(refused), len(refused) >= 10
	})
	seeSandboxes()
	s.must(s.WaitClaims(t.Context(), within, "confused"))
	for _, d := range s.decisions(denied("bind")) {
		if d.Reason != "ClaimHoldsAnother" {
			t.Errorf("bind of %s was refused for %s, want ClaimHoldsAnother", d.Sandbox, d.Reason)
		}
	}

	s.atRest(p)
	s.claim(p, scenario.Names("c", 5)...)
	sum, findings := s.judged()
	if sum.Warm != 5 {
		t.Errorf("%d claims warm, want 5: %s", sum.Warm, sum)
	}
	for _, b := range findings {
		t.Errorf("not fresh: %s", b)
	}
}

// Members of A that were refused while B was in force, and that Freshbind could
// not delete in time, are fresh once A is back: claims get just those.
func TestRefusedMembersAreOfferedWhenTheirRevisionReturns(t *testing.T) {
	s := sharedWorld(t).enforced(t)
	p := s.pool(scenario.Pool{Replicas: 3, Strategy: scenario.OnReplenish})
	s.patch(upstream.SandboxWarmPools, p.Name, `{"metadata":{"annotations":{"freshbind.dev/rollout-strategy":"Recreate"}}}`)
	ofA := map[string]bool{}
	for _, m := range s.full(p, "sandbox:v1") {
		ofA[m.Name] = true
	}
	s.forbidDeletes(s.full(p, "")[0].Name)
	s.image(p, "sandbox:v2")
	s.claim(p, "b")
	refused := map[string]bool{}
	for _, d := range s.decisions(denied("bind")) {
		refused[d.Sandbox] = true
	}
	if diff := cmp.Diff(ofA, refused); diff != "" {
		t.Fatalf("members of A, and those that were refused while B was in force (-want,+got):\n%s", diff)
	}

	offered := s.watchOffers()
	s.image(p, "sandbox:v1")
	s.eventually("every member offered again", func(context.Context) (string, bool) {
		return fmt.Sprint(offered()), len(offered()) >= len(ofA)
	})
	s.atRest(p)
	claims := scenario.Names("a", len(ofA))
	s.claim(p, claims...)
	got := map[string]bool{}
	for _, name := range claims {
		sandbox, err := s.SandboxOf(t.Context(), name)
		s.must(err)
		got[sandbox.GetName()] = true
	}
	if diff := cmp.Diff(ofA, got); diff != "" {
		t.Errorf("members of A, and what the claims got (-want,+got):\n%s", diff)
	}
	s.fresh(1 + len(claims))
}

// watchOffers collects the names of ready members that were offered to
// agent-sandbox once more: the node is taken out of their status.
func (s *stage) watchOffers() func() map[string]bool {
	s.t.Helper()
	var mu sync.Mutex
	node, offered := map[string]bool{}, map[string]bool{}
	s.observe(s.Resource(upstream.Sandboxes), func(_ watch.EventType, sandbox *unstructured.Unstructured) {
		name, _, _ := unstructured.NestedString(sandbox.Object, "status", "nodeName")
		mu.Lock()
		defer mu.Unlock()
		if name != "" {
			node[sandbox.GetName()] = true
		} else if node[sandbox.GetName()] {
			offered[sandbox.GetName()] = true
		}
	})
	return func() map[string]bool {
		mu.Lock()
		defer mu.Unlock()
		return maps.Clone(offered)
	}
}

// forbidDeletes makes every delete that Freshbind tries in the namespace fail;
// member is one to try it with.
func (s *stage) forbidDeletes(member string) {
	s.t.Helper()
	ctx, meta := s.t.Context(), metav1.ObjectMeta{Name: "forbid-deletes-" + s.Name}
	registration := s.kube().AdmissionregistrationV1()
	_, err := registration.ValidatingAdmissionPolicies().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{upstream.Sandboxes.Group}, APIVersions: []string{"*"}, Resources: []string{upstream.Sandboxes.Resource},
					},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{Expression: fmt.Sprintf("request.userInfo.username != %q", fixture.User)}},
		},
	}, createOptions)
	s.must(err)
	_, err = registration.ValidatingAdmissionPolicyBindings().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        meta.Name,
			ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			MatchResources: &admissionregistrationv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{corev1.LabelMetadataName: s.Name},
			}},
		},
	}, createOptions)
	s.must(err)
	s.t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		if err := errors.Join(registration.ValidatingAdmissionPolicyBindings().Delete(ctx, meta.Name, metav1.DeleteOptions{}),
			registration.ValidatingAdmissionPolicies().Delete(ctx, meta.Name, metav1.DeleteOptions{})); err != nil {
			s.t.Error(err)
		}
	})

	freshbind, err := s.w.Cluster.User(fixture.User)
	s.must(err)
	client, err := dynamic.NewForConfig(freshbind)
	s.must(err)
	s.eventually("deletes by Freshbind fail", func(ctx context.Context) (string, bool) {
		err := client.Resource(upstream.Sandboxes.WithVersion(s.Version)).Namespace(s.Name).
			Delete(ctx, member, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		return fmt.Sprint(err), isInvalid(err)
	})
}

// hold keeps agent-sandbox from seeing what happens to a resource, until the
// test ends or the returned function is called.
func (s *stage) hold(r schema.GroupResource) (see func()) {
	proxy := s.w.Controllers.Proxy()
	proxy.Hold(r.Group, r.Resource)
	see = func() { proxy.Release(r.Group, r.Resource) }
	s.t.Cleanup(see)
	return see
}

// unseenClaim creates a claim while agent-sandbox sees none.
func (s *stage) unseenClaim(p scenario.Pool, name string) (claim *unstructured.Unstructured, see func()) {
	s.t.Helper()
	see = s.hold(upstream.SandboxClaims)
	s.must(s.CreateClaims(s.t.Context(), p, name))
	return s.get(upstream.SandboxClaims, name), see
}
