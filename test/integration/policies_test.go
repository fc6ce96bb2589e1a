package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
	"github.com/freshbind/freshbind/webhooks"
)

// quiet is the API server of all tests of policies, which run one after the other: it
// knows agent-sandbox's kinds, and nobody's controllers are there.
var quiet = sync.OnceValues(func() (*scenario.World, error) {
	w, err := startQuiet(context.Background())
	if err == nil {
		whenAllEnd(w.Stop)
	}
	return w, err
})

func startQuiet(ctx context.Context, apiServerFlags ...string) (*scenario.World, error) {
	crds, err := upstream.CRDs(ctx, release)
	if err != nil {
		return nil, err
	}
	return scenario.StartWorld(ctx, scenario.WorldOptions{
		Unguarded: true, Cluster: controlplane.Options{CRDs: crds, Log: os.Stderr, APIServerFlags: apiServerFlags},
	})
}

// policyStage is an API server with the policies and two namespaces, one of which
// enforces.
type policyStage struct {
	w                 *scenario.World
	admin, self       client.Client
	enforced, audited string
}

// newPolicyStage has the policies of a scope, until the test is over.
func newPolicyStage(t *testing.T, scope webhooks.Scope) *policyStage {
	t.Helper()
	w, err := quiet()
	if err != nil {
		t.Fatal(err)
	}
	return policyStageIn(t, w, scope)
}

func policyStageIn(t *testing.T, w *scenario.World, scope webhooks.Scope) *policyStage {
	t.Helper()
	w.RanOn(t)
	admin, err := client.New(w.Cluster.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	identity, err := w.Cluster.User(fixture.User, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	self, err := client.New(identity, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fixture.RemovePolicies(context.WithoutCancel(t.Context()), admin, scope); err != nil {
			t.Error(err)
		}
	})
	if err := fixture.ApplyPolicies(t.Context(), admin, scope); err != nil {
		t.Fatal(err)
	}
	s := &policyStage{w: w, admin: admin, self: self}
	s.enforced = s.namespace(t, scenario.Enforce())
	s.audited = s.namespace(t, nil)
	s.waitInForce(t, scope)
	return s
}

func (s *policyStage) namespace(t *testing.T, labels map[string]string) string {
	t.Helper()
	name := fmt.Sprintf("it-%d", namespaces.Add(1))
	if err := s.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}); err != nil {
		t.Fatal(err)
	}
	return name
}

// waitInForce: the API server watches policies, so these hold, and those of the test before
// do not, a moment after they are stored and removed.
func (s *policyStage) waitInForce(t *testing.T, scope webhooks.Scope) {
	t.Helper()
	stamped := func(b *builders.Sandbox) { b.Label(settings.StampKey, "v1-a") }
	bound := func(b *builders.Sandbox) { b.Annotation(settings.BoundToKey, "somebody") }
	probe, used := s.sandbox(t, s.enforced, "probe", stamped), s.sandbox(t, s.enforced, "probe-used", bound)
	audited := s.sandbox(t, s.audited, "probe-used", bound)
	var stamp, back, free error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		stamp = s.patch(ctx, s.admin, probe, `{"metadata":{"labels":{"`+settings.StampKey+`":"v1-b"}}}`, client.DryRunAll)
		back = s.patch(ctx, s.admin, used, fakeOwners("SandboxWarmPool"), client.DryRunAll)
		free = s.patch(ctx, s.admin, audited, fakeOwners("SandboxWarmPool"), client.DryRunAll)
		return apierrors.IsInvalid(stamp) && apierrors.IsInvalid(back) && (free == nil || scope.EnforcedByDefault), nil
	})
	if err != nil {
		t.Fatalf("waiting for the policies to hold: %v; last: %v, %v, and %v where nothing is enforced", err, stamp, back, free)
	}
}

// guarded has Freshbind run, and the API server ask it, until the test is over.
func (s *policyStage) guarded(t *testing.T) {
	t.Helper()
	program, err := fixture.Program()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.w.AddGuard(t.Context(), scenario.WorldOptions{Guard: fixture.Options{Program: program}}); err != nil {
		t.Fatal(err)
	}
	guard := s.w.Guard
	t.Cleanup(func() {
		s.w.Guard = nil
		if err := errors.Join(guard.Uninstall(context.WithoutCancel(t.Context())), guard.Close()); err != nil {
			t.Error(err)
		}
	})
}

func fakeOwner(kind string) metav1.OwnerReference {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(builders.GroupExtensions + "/" + builders.V1Beta1)
	u.SetKind(kind)
	u.SetName("o")
	u.SetUID(types.UID("uid-" + strings.ToLower(kind)))
	return builders.ControllerRef(u)
}

func fakeOwners(kind string) string {
	o := fakeOwner(kind)
	return `{"metadata":{"ownerReferences":[{"apiVersion":"` + o.APIVersion + `","kind":"` + o.Kind + `","name":"o","uid":"` + string(o.UID) + `","controller":true}]}}`
}

func (s *policyStage) sandbox(t *testing.T, namespace, name string, change func(*builders.Sandbox)) *unstructured.Unstructured {
	t.Helper()
	b := builders.MakeMember(builders.MakePool(namespace, "python").Obj(), builders.MakeTemplate(namespace, "python").Obj()).Name(name)
	change(b)
	obj := b.Obj()
	obj.SetUID("")
	if err := s.admin.Create(t.Context(), obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

func (*policyStage) patch(ctx context.Context, c client.Client, obj *unstructured.Unstructured, patch string, o ...client.PatchOption) error {
	return c.Patch(ctx, obj.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), o...)
}

func TestPolicies(t *testing.T) {
	s := newPolicyStage(t, webhooks.Scope{})
	t.Run("pools", s.keepsWhatPoolsSay)
	member := func(b *builders.Sandbox) { b.Label(settings.StampKey, "v1-a") }
	bound := func(b *builders.Sandbox) { b.Owners(fakeOwner("SandboxClaim")) }
	marked := func(b *builders.Sandbox) { b.Owners().Annotation(settings.BoundToKey, "somebody") }
	stamp := func(v string) string { return `{"metadata":{"labels":{"` + settings.StampKey + `":` + v + `}}}` }
	mark := func(v string) string { return `{"metadata":{"annotations":{"` + settings.BoundToKey + `":` + v + `}}}` }

	repaired := func(b *builders.Sandbox) { b.Annotation(settings.RepairedKey, "v1-a -> v1-b") }
	note := func(v string) string {
		return `{"metadata":{"annotations":{"` + settings.RepairedKey + `":` + v + `}}}`
	}

	cases := map[string]struct {
		namespace string
		change    func(*builders.Sandbox)
		as        client.Client
		patch     string
		want      string
	}{
		"a stamp changed":                  {s.enforced, member, s.admin, stamp(`"v1-b"`), "template-spec-hash"},
		"a stamp removed":                  {s.enforced, member, s.admin, stamp(`null`), "template-spec-hash"},
		"a stamp added":                    {s.enforced, func(*builders.Sandbox) {}, s.admin, stamp(`"v1-b"`), "template-spec-hash"},
		"a stamp changed by Freshbind":     {s.enforced, member, s.self, stamp(`"v1-b"`), ""},
		"a stamp changed, audited":         {s.audited, member, s.admin, stamp(`"v1-b"`), ""},
		"how it was repaired, changed":     {s.enforced, repaired, s.admin, note(`"v1-a -> v1-c"`), "repaired"},
		"how it was repaired, removed":     {s.enforced, repaired, s.admin, note(`null`), "repaired"},
		"a repair that never was":          {s.enforced, func(*builders.Sandbox) {}, s.admin, note(`"v1-a -> v1-b"`), "repaired"},
		"another label":                    {s.enforced, member, s.admin, `{"metadata":{"labels":{"a":"b"}}}`, ""},
		"used, given back to a pool":       {s.enforced, bound, s.admin, fakeOwners("SandboxWarmPool"), "ownerReferences"},
		"used, given back by Freshbind":    {s.enforced, bound, s.self, fakeOwners("SandboxWarmPool"), "ownerReferences"},
		"used, owner gone, then a pool":    {s.enforced, marked, s.admin, fakeOwners("SandboxWarmPool"), "ownerReferences"},
		"used, given back, audited":        {s.audited, bound, s.admin, fakeOwners("SandboxWarmPool"), ""},
		"used, owner taken away":           {s.enforced, bound, s.admin, noOwners, "ownerReferences"},
		"used, owner taken away, marked":   {s.enforced, func(b *builders.Sandbox) { b.Owners(fakeOwner("SandboxClaim")).Annotation(settings.BoundToKey, "u") }, s.admin, noOwners, ""},
		"the mark removed":                 {s.enforced, marked, s.admin, mark(`null`), "bound-to"},
		"the mark changed":                 {s.enforced, marked, s.admin, mark(`"me"`), "bound-to"},
		"a member bound":                   {s.enforced, member, s.admin, fakeOwners("SandboxClaim"), ""},
		"a member's pool reference remade": {s.enforced, member, s.admin, fakeOwners("SandboxWarmPool"), ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			obj := s.sandbox(t, tc.namespace, "s-"+strings.NewReplacer(" ", "-", ",", "", "'", "").Replace(strings.ToLower(name)), tc.change)
			err := s.patch(t.Context(), tc.as, obj, tc.patch)
			if tc.want == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if tc.want != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error = %v, want Invalid that names %s", err, tc.want)
			}
		})
	}
}

// keepsWhatPoolsSay: whatever is enforced, because a pool alone can ask for it.
func (s *policyStage) keepsWhatPoolsSay(t *testing.T) {
	says := func(key, value string) string {
		return `{"metadata":{"annotations":{"` + settings.Prefix + key + `":` + value + `}}}`
	}
	named := func(namespace, name string) *builders.Pool {
		return builders.MakePool(namespace, strings.NewReplacer(" ", "-", ",", "").Replace(name)).Unset("metadata", "uid")
	}
	var held error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		held = s.admin.Create(ctx, named(s.enforced, "probe").Annotation(settings.AdmitKey, "any").Obj(), client.DryRunAll)
		return apierrors.IsInvalid(held), nil
	})
	if err != nil {
		t.Fatalf("waiting for the policy on pools: %v; last: %v", err, held)
	}
	for name, tc := range map[string]struct {
		namespace string
		as        client.Client
		// says is on the pool before, where patch is not empty.
		says, patch string
		refused     bool
	}{
		"any, by a tenant":         {s.enforced, s.admin, "", says("admit", `"any"`), true},
		"any, audited":             {s.audited, s.admin, "", says("admit", `"any"`), true},
		"any, by freshbind":        {s.enforced, s.self, "", says("admit", `"any"`), false},
		"suspended":                {s.enforced, s.admin, "", says("attribution-suspended", `"v1-a"`), true},
		"another status":           {s.enforced, s.admin, says("rollout-status", `"{}"`), says("rollout-status", `"{ }"`), true},
		"a status left out":        {s.enforced, s.admin, says("rollout-status", `"{}"`), says("rollout-status", `null`), false},
		"an input beside a status": {s.enforced, s.admin, says("rollout-status", `"{}"`), says("paused", `"true"`), false},
	} {
		t.Run(name, func(t *testing.T) {
			pool := named(tc.namespace, name).Obj()
			if err := s.admin.Create(t.Context(), pool); err != nil {
				t.Fatal(err)
			}
			if tc.says != "" {
				if err := s.patch(t.Context(), s.self, pool, tc.says); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.patch(t.Context(), tc.as, pool, tc.patch); apierrors.IsInvalid(err) != tc.refused || err != nil && !tc.refused {
				t.Errorf("patched: %v, want it refused: %t", err, tc.refused)
			}
		})
	}
	for name, tc := range map[string]struct {
		key, value string
		refused    bool
	}{
		"created, any":       {settings.AdmitKey, "any", true},
		"created, suspended": {settings.AttributionKey, "v1-a", true},
		"from a backup":      {settings.RolloutStatusKey, "{}", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := s.admin.Create(t.Context(), named(s.enforced, name).Annotation(tc.key, tc.value).Obj())
			if apierrors.IsInvalid(err) != tc.refused || err != nil && !tc.refused {
				t.Errorf("created: %v, want it refused: %t", err, tc.refused)
			}
		})
	}
}
