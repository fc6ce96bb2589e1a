package closing

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/webhooks"
)

var kind = schema.GroupVersionKind{Group: "extensions.agents.x-k8s.io", Version: "v1beta1", Kind: "SandboxWarmPool"}

func pool(namespace, says string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(namespace)
	u.SetName("pool")
	if says != "" {
		u.SetAnnotations(map[string]string{settings.EnforcementKey: says})
	}
	return u
}

func TestTheConfigurationIsAsThePoolsSay(t *testing.T) {
	_, installed := webhooks.Configurations(agentsandbox.Admission(), webhooks.Endpoint{URL: "https://h:1"}, webhooks.Scope{})
	closedBefore := installed.DeepCopy()
	webhooks.ClosePools(closedBefore, []string{"gone"})
	cases := map[string]struct {
		stored *admissionregistrationv1.ValidatingWebhookConfiguration
		pools  []client.Object
		want   []string
	}{
		"no pool":            {installed, nil, nil},
		"pools that audit":   {installed, []client.Object{pool("a", ""), pool("b", "audit")}, nil},
		"pools that enforce": {installed, []client.Object{pool("a", "enforce"), pool("b", "enforce"), pool("c", "")}, []string{"a", "b"}},
		"pools that have gone": {
			closedBefore, []client.Object{pool("a", "enforce")}, []string{"a"},
		},
		"all pools have gone": {closedBefore, nil, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			api := fake.NewClientBuilder().WithObjects(append(tc.pools, tc.stored.DeepCopy())...).Build()
			c := &Controller{pools: api, live: api, client: api, kind: kind}
			req := reconcile.Request{NamespacedName: types.NamespacedName{Name: webhooks.ConfigurationName}}
			result, err := c.Reconcile(t.Context(), req)
			if err != nil || result.RequeueAfter != again {
				t.Fatalf("Reconcile() = %v, %v; want to look again", result, err)
			}
			want := installed.DeepCopy()
			webhooks.ClosePools(want, tc.want)
			var got admissionregistrationv1.ValidatingWebhookConfiguration
			if err := api.Get(t.Context(), req.NamespacedName, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want.Webhooks, got.Webhooks); diff != "" {
				t.Errorf("webhooks (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestWithoutAConfigurationThereIsNothingToClose(t *testing.T) {
	api := fake.NewClientBuilder().WithObjects(pool("a", "enforce")).Build()
	c := &Controller{pools: api, live: api, client: api, kind: kind}
	result, err := c.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: webhooks.ConfigurationName}})
	if err != nil || result.RequeueAfter != again {
		t.Errorf("Reconcile() = %v, %v; want to look again", result, err)
	}
}

func TestWhatChangesTheConfiguration(t *testing.T) {
	other := pool("a", "enforce")
	other.SetLabels(map[string]string{"a": "b"})
	for name, tc := range map[string]struct {
		old, now *unstructured.Unstructured
		want     bool
	}{
		"it begins to enforce": {pool("a", ""), pool("a", "enforce"), true},
		"it ends":              {pool("a", "enforce"), pool("a", "audit"), true},
		"something else":       {pool("a", "enforce"), other, false},
	} {
		if got := saysOtherwise.Update(event.UpdateEvent{ObjectOld: tc.old, ObjectNew: tc.now}); got != tc.want {
			t.Errorf("%s: %t, want %t", name, got, tc.want)
		}
	}
	if !saysOtherwise.Create(event.CreateEvent{Object: other}) || !saysOtherwise.Delete(event.DeleteEvent{Object: other}) {
		t.Error("a pool that comes or goes changes nothing")
	}
}
