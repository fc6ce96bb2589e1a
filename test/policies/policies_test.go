// Package policies tests the admission policies on a real API server, and what
// takes their place where it does not serve them, without anybody's controllers.
package policies

import (
	"context"
	"strings"
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
	"github.com/freshbind/freshbind/test/upstream"
	"github.com/freshbind/freshbind/webhooks"
)

const within = 5 * time.Minute

// stage is an API server with the policies and two namespaces, one of which
// enforces.
type stage struct {
	cluster     *controlplane.Cluster
	admin, self client.Client
}

func newStage(t *testing.T, apiServerFlags ...string) *stage {
	t.Helper()
	return newStageIn(t, webhooks.Scope{}, apiServerFlags...)
}

// newStageIn has the policies of a scope.
func newStageIn(t *testing.T, scope webhooks.Scope, apiServerFlags ...string) *stage {
	t.Helper()
	ctx := t.Context()
	crds, err := upstream.CRDs(ctx, "v1.0.3")
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := controlplane.Start(ctx, controlplane.Options{CRDs: crds, Log: t.Output(), APIServerFlags: apiServerFlags})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Stop() })
	cluster.RanOn(t, "")
	admin, err := client.New(cluster.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	identity, err := cluster.User(fixture.User, "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	self, err := client.New(identity, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := fixture.ApplyPolicies(ctx, admin, scope); err != nil {
		t.Fatal(err)
	}
	for name, labels := range map[string]map[string]string{
		"enforced": {settings.EnforcementKey: string(settings.Enforce)}, "audited": nil,
	} {
		if err := admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}); err != nil {
			t.Fatal(err)
		}
	}
	s := &stage{cluster, admin, self}
	s.waitInForce(t)
	return s
}

// waitInForce: the API server watches policies, so they hold a moment after
// they are stored.
func (s *stage) waitInForce(t *testing.T) {
	t.Helper()
	probe := s.sandbox(t, "enforced", "probe", func(b *builders.Sandbox) { b.Label(settings.StampKey, "v1-a") })
	bound := s.sandbox(t, "enforced", "probe-used", func(b *builders.Sandbox) { b.Annotation(settings.BoundToKey, "somebody") })
	var stamp, used error
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, within, true, func(ctx context.Context) (bool, error) {
		stamp = s.patch(ctx, s.admin, probe, `{"metadata":{"labels":{"`+settings.StampKey+`":"v1-b"}}}`, client.DryRunAll)
		used = s.patch(ctx, s.admin, bound, ownersPatch("SandboxWarmPool"), client.DryRunAll)
		return apierrors.IsInvalid(stamp) && apierrors.IsInvalid(used), nil
	})
	if err != nil {
		t.Fatalf("waiting for the policies to hold: %v; last refused: %v, %v", err, stamp, used)
	}
}

func owner(kind string) metav1.OwnerReference {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(builders.GroupExtensions + "/" + builders.V1Beta1)
	u.SetKind(kind)
	u.SetName("o")
	u.SetUID(types.UID("uid-" + strings.ToLower(kind)))
	return builders.ControllerRef(u)
}

func ownersPatch(kind string) string {
	o := owner(kind)
	return `{"metadata":{"ownerReferences":[{"apiVersion":"` + o.APIVersion + `","kind":"` + o.Kind + `","name":"o","uid":"` + string(o.UID) + `","controller":true}]}}`
}

func (s *stage) sandbox(t *testing.T, namespace, name string, change func(*builders.Sandbox)) *unstructured.Unstructured {
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

func (*stage) patch(ctx context.Context, c client.Client, obj *unstructured.Unstructured, patch string, o ...client.PatchOption) error {
	return c.Patch(ctx, obj.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), o...)
}

func TestPolicies(t *testing.T) {
	s := newStage(t)
	member := func(b *builders.Sandbox) { b.Label(settings.StampKey, "v1-a") }
	bound := func(b *builders.Sandbox) { b.Owners(owner("SandboxClaim")) }
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
		"a stamp changed":                  {"enforced", member, s.admin, stamp(`"v1-b"`), "template-spec-hash"},
		"a stamp removed":                  {"enforced", member, s.admin, stamp(`null`), "template-spec-hash"},
		"a stamp added":                    {"enforced", func(*builders.Sandbox) {}, s.admin, stamp(`"v1-b"`), "template-spec-hash"},
		"a stamp changed by Freshbind":     {"enforced", member, s.self, stamp(`"v1-b"`), ""},
		"a stamp changed, audited":         {"audited", member, s.admin, stamp(`"v1-b"`), ""},
		"how it was repaired, changed":     {"enforced", repaired, s.admin, note(`"v1-a -> v1-c"`), "repaired"},
		"how it was repaired, removed":     {"enforced", repaired, s.admin, note(`null`), "repaired"},
		"a repair that never was":          {"enforced", func(*builders.Sandbox) {}, s.admin, note(`"v1-a -> v1-b"`), "repaired"},
		"another label":                    {"enforced", member, s.admin, `{"metadata":{"labels":{"a":"b"}}}`, ""},
		"used, given back to a pool":       {"enforced", bound, s.admin, ownersPatch("SandboxWarmPool"), "ownerReferences"},
		"used, given back by Freshbind":    {"enforced", bound, s.self, ownersPatch("SandboxWarmPool"), "ownerReferences"},
		"used, owner gone, then a pool":    {"enforced", marked, s.admin, ownersPatch("SandboxWarmPool"), "ownerReferences"},
		"used, given back, audited":        {"audited", bound, s.admin, ownersPatch("SandboxWarmPool"), ""},
		"used, owner taken away":           {"enforced", bound, s.admin, `{"metadata":{"ownerReferences":null}}`, "ownerReferences"},
		"used, owner taken away, marked":   {"enforced", func(b *builders.Sandbox) { b.Owners(owner("SandboxClaim")).Annotation(settings.BoundToKey, "u") }, s.admin, `{"metadata":{"ownerReferences":null}}`, ""},
		"the mark removed":                 {"enforced", marked, s.admin, mark(`null`), "bound-to"},
		"the mark changed":                 {"enforced", marked, s.admin, mark(`"me"`), "bound-to"},
		"a member bound":                   {"enforced", member, s.admin, ownersPatch("SandboxClaim"), ""},
		"a member's pool reference remade": {"enforced", member, s.admin, ownersPatch("SandboxWarmPool"), ""},
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
