package integration

import (
	"context"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/webhooks"
)

func (s *policyStage) create(t *testing.T, b interface {
	Obj() *unstructured.Unstructured
}) *unstructured.Unstructured {
	t.Helper()
	obj := b.Obj()
	obj.SetUID("")
	if err := s.admin.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

func ownersOf(refs ...metav1.OwnerReference) string {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"ownerReferences": refs}})
	if err != nil {
		panic(err)
	}
	return string(patch)
}

// Upstream takes a claim's UID for the claim, whatever kind it comes under
// (metav1.IsControlledBy), and gives a Sandbox to whichever claim controls it.
func TestOwnersAreWhatUpstreamTakesThemFor(t *testing.T) {
	s := newPolicyStage(t, webhooks.Scope{})
	s.guarded(t)
	pool := s.create(t, builders.MakePool(s.enforced, "python").Replicas(0))
	claim := builders.ControllerRef(s.create(t, builders.MakeClaim(s.enforced, "c1")))
	other := builders.ControllerRef(s.create(t, builders.MakeClaim(s.enforced, "c2")))
	unmarked := claim
	unmarked.Controller = nil
	nobody, slashless, job := claim, claim, claim
	nobody.APIVersion, nobody.Kind = "example.com/v1", "Nobody"
	slashless.APIVersion, _, _ = strings.Cut(claim.APIVersion, "/")
	job.APIVersion, job.Kind, job.UID = "batch/v1", "Job", "a-job"
	of := func(refs ...metav1.OwnerReference) func(*builders.Sandbox) {
		return func(b *builders.Sandbox) { b.Owners(refs...) }
	}
	member := of(builders.ControllerRef(pool))

	cases := map[string]struct {
		// before is nil for a CREATE.
		before func(*builders.Sandbox)
		after  []metav1.OwnerReference
		want   string
	}{
		"a member, given to another kind with a claim's UID": {member, []metav1.OwnerReference{nobody}, "ownerReferences"},
		"a member, given to a version without a group":       {member, []metav1.OwnerReference{slashless}, "ownerReferences"},
		"nobody's, given to another kind with a claim's UID": {of(), []metav1.OwnerReference{nobody}, "OwnerMismatch"},
		"nobody's, given to a job":                           {of(), []metav1.OwnerReference{job}, ""},
		"a job's, then a claim's":                            {of(job), []metav1.OwnerReference{claim}, "NotAMember"},
		"a member, given to two claims":                      {member, []metav1.OwnerReference{unmarked, other}, "OwnerMismatch"},
		"made for another kind with a claim's UID":           {nil, []metav1.OwnerReference{nobody}, "OwnerMismatch"},
		"made for a job":                                     {nil, []metav1.OwnerReference{job}, ""},
		"made for two claims":                                {nil, []metav1.OwnerReference{unmarked, other}, "OwnerMismatch"},
	}
	s.asked(t, nobody)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			short := "s-" + strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(strings.ToLower(name))
			write := func(ctx context.Context) error { return s.admin.Create(ctx, s.made(short, tc.after...)) }
			if tc.before != nil {
				made := s.sandbox(t, s.enforced, short, tc.before)
				write = func(ctx context.Context) error { return s.patch(ctx, s.admin, made, ownersOf(tc.after...)) }
			}
			err := answerOf(t, write)
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error = %v, want one that names %q", err, tc.want)
			}
		})
	}
}

// answerOf repeats a write until Freshbind has answered: the API server gives it seconds,
// and a machine may stand still for longer.
func answerOf(t *testing.T, write func(ctx context.Context) error) error {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		last = write(ctx)
		return last == nil || !strings.Contains(last.Error(), "failed calling webhook") && !strings.Contains(last.Error(), "could not decide"), nil
	})
	if err != nil {
		t.Fatalf("waiting for an answer of Freshbind: %v; last: %v", err, last)
	}
	return last
}

func (s *policyStage) made(name string, refs ...metav1.OwnerReference) *unstructured.Unstructured {
	obj := builders.MakeMember(builders.MakePool(s.enforced, "python").Obj(), builders.MakeTemplate(s.enforced, "python").Obj()).
		Name(name).Owners(refs...).Obj()
	obj.SetUID("")
	return obj
}

// asked waits until the API server asks Freshbind.
func (s *policyStage) asked(t *testing.T, nobody metav1.OwnerReference) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		return apierrors.IsForbidden(s.admin.Create(ctx, s.made("asked", nobody), client.DryRunAll)), nil
	})
	if err != nil {
		t.Errorf("waiting for Freshbind to be asked: %v", err)
	}
}

// A used sandbox stays used wherever binds are enforced, whichever way that was
// said, and however many patches it takes.
func TestAUsedSandboxStaysUsedHoweverEnforceIsSaid(t *testing.T) {
	s := newPolicyStage(t, webhooks.Scope{
		EnforcedByDefault: true, Enforced: []metav1.LabelSelector{{MatchLabels: map[string]string{"tier": "prod"}}},
	})
	audit := map[string]string{settings.EnforcementKey: string(settings.Audit)}
	unset, misspelt := s.namespace(t, nil), s.namespace(t, map[string]string{settings.EnforcementKey: "enforced"})
	inAudit := s.namespace(t, audit)
	floor := s.namespace(t, map[string]string{settings.EnforcementKey: string(settings.Audit), "tier": "prod"})
	byPool := func(b *builders.Sandbox) { b.Label(settings.EnforcementKey, string(settings.Enforce)) }
	cases := map[string]struct {
		namespace string
		change    func(*builders.Sandbox)
		refused   bool
	}{
		"label":    {s.enforced, func(*builders.Sandbox) {}, true},
		"default":  {unset, func(*builders.Sandbox) {}, true},
		"misspelt": {misspelt, func(*builders.Sandbox) {}, true},
		"floor":    {floor, func(*builders.Sandbox) {}, true},
		"pool":     {inAudit, byPool, true},
		"audit":    {inAudit, func(*builders.Sandbox) {}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			used := func(b *builders.Sandbox) { tc.change(b.Owners(fakeOwner("SandboxClaim"))) }
			if tc.refused {
				s.boundHere(t, s.sandbox(t, tc.namespace, name+"-probe", used))
			}
			once := s.sandbox(t, tc.namespace, name+"-once", used)
			if err := s.patch(t.Context(), s.admin, once, fakeOwners("SandboxWarmPool")); (err != nil) != tc.refused {
				t.Errorf("put back by one patch: error = %v, want refused %t", err, tc.refused)
			}
			twice := s.sandbox(t, tc.namespace, name+"-twice", used)
			first := s.patch(t.Context(), s.admin, twice, noOwners)
			second := s.patch(t.Context(), s.admin, twice, fakeOwners("SandboxWarmPool"))
			if (first != nil && second != nil) != tc.refused {
				t.Errorf("put back by two patches: errors = %v, then %v, want refused %t", first, second, tc.refused)
			}
		})
	}
}

// boundHere waits until the policy of used sandboxes holds for one: each way to say
// enforce has a binding of its own.
func (s *policyStage) boundHere(t *testing.T, used *unstructured.Unstructured) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		return s.patch(ctx, s.admin, used, fakeOwners("SandboxWarmPool"), client.DryRunAll) != nil, nil
	})
	if err != nil {
		t.Fatalf("waiting for the policy to hold in %s: %v", used.GetNamespace(), err)
	}
}
