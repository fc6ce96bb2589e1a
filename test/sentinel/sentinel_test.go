// Package sentinel shows `freshbind routes sentinel` on a real API server, with a
// double of the gateway that it is for. It has a process of its own: like every
// command it registers metrics with the process.
package sentinel

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/freshbind/freshbind/cmd/freshbind/app"
	"github.com/freshbind/freshbind/internal/sentinel"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/kruisegateway"
)

const namespace = "default"

// kruise is a control plane with OpenKruise's Sandboxes, and a gateway of it whose
// clock a test moves.
type kruise struct {
	t         *testing.T
	cluster   *controlplane.Cluster
	sandboxes dynamic.ResourceInterface
	store     atomic.Pointer[kruisegateway.Store]
	ahead     atomic.Int64
	refresh   string
}

// TestSentinelOnAControlPlane has a late message come after the gateway has
// forgotten a deletion, without the sentinel and with it.
func TestSentinelOnAControlPlane(t *testing.T) {
	k := newKruise(t)
	k.restartGateway()
	deletedBefore := k.live("before")
	k.delete("before")
	k.forget()
	k.push(deletedBefore)
	if !k.serves("before") {
		t.Fatal("the gateway does not serve a sandbox that was deleted: there is nothing to cure")
	}

	k.sentinel()
	late := k.live("late")
	k.delete("late")
	k.eventually("the gateway serves no deleted sandbox", func() bool { return !k.serves("late") })
	for name, what := range map[string]func(){"ten minutes later": k.forget, "when the gateway has restarted": k.restartGateway} {
		t.Run(name, func(t *testing.T) {
			what()
			k.push(late)
			k.eventually("the late message is taken back", func() bool { return !k.serves("late") })
		})
	}
	// The name is in use again: its next sandbox is not taken away.
	next := k.live("late")
	for range 3 {
		k.forget()
		k.push(next)
		if !k.serves("late") {
			t.Fatal("the next sandbox of the name is not served")
		}
	}
	k.delete("late")
	k.eventually("the gateway serves no deleted sandbox", func() bool { return !k.serves("late") })
}

func newKruise(t *testing.T) *kruise {
	t.Helper()
	k := &kruise{t: t}
	var err error
	k.cluster, err = controlplane.Start(context.WithoutCancel(t.Context()), controlplane.Options{CRDs: []*apiextensionsv1.CustomResourceDefinition{kruiseSandboxes()}, Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.cluster.Stop() })
	k.cluster.RanOn(t, "")
	client, err := dynamic.NewForConfig(k.cluster.Config())
	if err != nil {
		t.Fatal(err)
	}
	k.sandboxes = client.Resource(sentinel.SandboxKind.GroupVersion().WithResource("sandboxes")).Namespace(namespace)
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { k.store.Load().ServeHTTP(w, r) }))
	t.Cleanup(gateway.Close)
	k.refresh = gateway.URL + "/refresh"
	return k
}

// kruiseSandboxes is as much of OpenKruise's definition as a sentinel reads.
func kruiseSandboxes() *apiextensionsv1.CustomResourceDefinition {
	kind, any := sentinel.SandboxKind, true
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "sandboxes." + kind.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "sandboxes", Singular: "sandbox", Kind: kind.Kind, ListKind: kind.Kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: kind.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &any}},
			}},
		},
	}
}

// sentinel runs the program's command with the rights that the chart gives it, for
// the gateway and for one that does not answer.
func (k *kruise) sentinel() {
	t := k.t
	t.Helper()
	k.announceGateway()
	const user = "system:serviceaccount:freshbind-system:freshbind-sentinel"
	k.grant(user)
	cfg, err := k.cluster.User(user, "system:serviceaccounts", "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	o := app.NewSentinelOptions()
	o.Kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := k.cluster.WriteKubeconfig(cfg, o.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	o.URLs, o.Services, o.Pace.Interval = []string{k.refresh}, []string{namespace + "/gateway"}, time.Second
	o.HealthAddress, o.MetricsAddress = fixture.FreeAddress(t), fixture.FreeAddress(t)
	if err := o.Complete(); err != nil {
		t.Fatal(err)
	}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, "the sentinel", o.Run)
	k.eventually("the sentinel is ready", func() bool { code, _ := get(o.HealthAddress + "/readyz"); return code == http.StatusOK })
	k.eventually("it has found both gateways", func() bool {
		_, metrics := get(o.MetricsAddress + "/metrics")
		return strings.Contains(metrics, "freshbind_sentinel_gateways 2\n")
	})
}

func get(address string) (code int, body string) {
	response, err := http.Get("http://" + address)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(content)
}

// announceGateway writes the EndpointSlice of a Service with another gateway, which
// nobody reaches: the API server refuses loopback addresses there.
func (k *kruise) announceGateway() {
	k.t.Helper()
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "gateway-1", Labels: map[string]string{discoveryv1.LabelServiceName: "gateway"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"192.0.2.1"}}},
	}
	if _, err := k.client().DiscoveryV1().EndpointSlices(namespace).Create(k.t.Context(), slice, metav1.CreateOptions{}); err != nil {
		k.t.Fatal(err)
	}
}

func (k *kruise) grant(user string) {
	k.t.Helper()
	verbs, roles := []string{"get", "list", "watch"}, k.client().RbacV1()
	for name, rule := range map[string]rbacv1.PolicyRule{
		"sandboxes": {APIGroups: []string{sentinel.SandboxKind.Group}, Resources: []string{"sandboxes"}, Verbs: verbs},
		"endpoints": {APIGroups: []string{discoveryv1.GroupName}, Resources: []string{"endpointslices"}, Verbs: verbs},
	} {
		meta := metav1.ObjectMeta{Name: "sentinel-" + name}
		if _, err := roles.ClusterRoles().Create(k.t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}, metav1.CreateOptions{}); err != nil {
			k.t.Fatal(err)
		}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}
		subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
		var err error
		if name == "sandboxes" {
			_, err = roles.ClusterRoleBindings().Create(k.t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		} else {
			_, err = roles.RoleBindings(namespace).Create(k.t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		}
		if err != nil {
			k.t.Fatal(err)
		}
	}
}

func (k *kruise) client() kubernetes.Interface {
	k.t.Helper()
	client, err := kubernetes.NewForConfig(k.cluster.Config())
	if err != nil {
		k.t.Fatal(err)
	}
	return client
}

// live makes a sandbox that the gateway serves, and returns its route.
func (k *kruise) live(name string) kruisegateway.Route {
	k.t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(sentinel.SandboxKind)
	object.SetName(name)
	made, err := k.sandboxes.Create(k.t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	route := kruisegateway.Route{
		Namespace: namespace, Name: name, ID: namespace + "--" + name, UID: string(made.GetUID()),
		IP: "10.0.0.1", State: "running", ResourceVersion: made.GetResourceVersion(),
	}
	k.push(route)
	return route
}

// delete deletes a sandbox, of which the gateway's own watch tells it.
func (k *kruise) delete(name string) {
	k.t.Helper()
	if err := k.sandboxes.Delete(k.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		k.t.Fatal(err)
	}
	k.store.Load().Delete(kruisegateway.Route{Namespace: namespace, Name: name})
}

// forget lets more time pass at the gateway than it remembers a deletion.
func (k *kruise) forget() { k.ahead.Add(int64(kruisegateway.FenceRetention + 2*time.Minute)) }

func (k *kruise) restartGateway() {
	k.store.Store(kruisegateway.NewStore(func() time.Time { return time.Now().Add(time.Duration(k.ahead.Load())) }))
}

// push is a message of a peer.
func (k *kruise) push(route kruisegateway.Route) {
	k.t.Helper()
	body, err := json.Marshal(route)
	if err != nil {
		k.t.Fatal(err)
	}
	response, err := http.Post(k.refresh, "application/json", bytes.NewReader(body))
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusNoContent {
		k.t.Fatal(fmt.Errorf("the gateway answers %s", response.Status))
	}
}

func (k *kruise) serves(name string) bool {
	_, served := k.store.Load().Lookup(namespace + "--" + name)
	return served
}

func (k *kruise) eventually(what string, holds func() bool) {
	k.t.Helper()
	err := wait.PollUntilContextTimeout(k.t.Context(), 20*time.Millisecond, 10*time.Minute, true, func(context.Context) (bool, error) { return holds(), nil })
	if err != nil {
		k.t.Fatalf("%s: %v", what, err)
	}
}
