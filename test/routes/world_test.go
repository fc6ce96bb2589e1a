package routes

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/freshbind/freshbind/cmd/freshbind/app"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	namespace = "default"
	token     = "a token for the tests"
	// maxAge is L.
	maxAge = 5 * time.Second
)

// world is a control plane, a server of routes that sees it through a proxy, and
// backends that stand for the sandboxes' Pods.
type world struct {
	t        *testing.T
	cluster  *controlplane.Cluster
	proxy    *controlplane.Proxy
	pods     kubernetes.Interface
	objects  dynamic.Interface
	backends *backends
	// server is the address of the server of routes, ca the file with its CA.
	server, ca string
	client     *http.Client
}

var sandboxResource = agentsandbox.Sandboxes.WithVersion("v1beta1")

func newWorld(t *testing.T, addresses []string) *world {
	t.Helper()
	ctx := t.Context()
	w := &world{t: t, backends: newBackends(t, addresses)}
	crds, err := upstream.CRDs(ctx, "v1.0.3")
	if err != nil {
		t.Fatal(err)
	}
	w.cluster, err = controlplane.Start(context.WithoutCancel(ctx), controlplane.Options{CRDs: crds, Log: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.cluster.Stop() })
	w.cluster.RanOn(t, "")
	if w.proxy, err = w.cluster.NewProxy(0); err != nil {
		t.Fatal(err)
	}
	if w.pods, err = kubernetes.NewForConfig(w.cluster.Config()); err != nil {
		t.Fatal(err)
	}
	if w.objects, err = dynamic.NewForConfig(w.cluster.Config()); err != nil {
		t.Fatal(err)
	}
	w.grant()
	w.serve()
	return w
}

const user = "system:serviceaccount:freshbind-system:freshbind-routes"

// grant gives the server the rights that the chart gives it.
func (w *world) grant() {
	w.t.Helper()
	verbs := []string{"get", "list", "watch"}
	_, err := w.pods.RbacV1().ClusterRoles().Create(w.t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "freshbind-routes"},
		Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: verbs},
			{APIGroups: []string{agentsandbox.CoreGroup}, Resources: []string{"sandboxes"}, Verbs: verbs},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.pods.RbacV1().ClusterRoleBindings().Create(w.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "freshbind-routes"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "freshbind-routes"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}

// serve runs the program's command.
func (w *world) serve() {
	t := w.t
	t.Helper()
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certificate, key := selfSigned(t)
	w.ca = write("tls.crt", certificate)
	write("tls.key", key)
	tokens := write("tokens", []byte(token+"\n"))
	cfg, err := w.cluster.User(user, "system:serviceaccounts", "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := w.cluster.WriteKubeconfig(w.proxy.Config(cfg), kubeconfig); err != nil {
		t.Fatal(err)
	}
	w.server = fixture.FreeAddress(t)
	o := app.NewRoutesServeOptions()
	o.Kubeconfig, o.Address, o.CertDir, o.TokenFile = kubeconfig, w.server, dir, tokens
	o.HealthAddress, o.MetricsAddress, o.MaxAge = "0", "0", maxAge
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, "the server", o.Run)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	w.client = &http.Client{Timeout: 10 * time.Minute, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool}, MaxIdleConnsPerHost: 32, ForceAttemptHTTP2: true,
	}}
}

// selfSigned returns a certificate for 127.0.0.1 that is its own CA, and its key.
func selfSigned(t *testing.T) (certificate, key []byte) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.StartTLS()
	defer server.Close()
	pair := server.TLS.Certificates[0]
	der, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// run makes a sandbox whose Pod has the address; the Pod runs before anybody
// hears of it.
func (w *world) run(name, address string) error {
	ctx := w.t.Context()
	template := builders.MakeTemplate(namespace, "python").Obj()
	sandbox := builders.MakeColdStart(builders.MakeClaim(namespace, name).Obj(), template).Obj()
	sandbox.SetUID("")
	made, err := w.objects.Resource(sandboxResource).Namespace(namespace).Create(ctx, sandbox, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create sandbox %s: %w", name, err)
	}
	pod := builders.MakePod(made).Obj()
	pod.SetUID("")
	if pod, err = w.podResource().Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create pod %s: %w", name, err)
	}
	w.backends.set(address, name)
	status := builders.PodFrom(pod).Phase(corev1.PodRunning).Ready(true).
		Set(address, "status", "podIP").Set([]any{map[string]any{"ip": address}}, "status", "podIPs").Obj()
	if _, err = w.podResource().UpdateStatus(ctx, status, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("report pod %s: %w", name, err)
	}
	return nil
}

// end deletes a sandbox and its Pod, and empties its address.
func (w *world) end(name, address string) error {
	if err := w.objects.Resource(sandboxResource).Namespace(namespace).Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("delete sandbox %s: %w", name, err)
	}
	return w.endPod(name, address)
}

// abandon does what a tenant may do to a Pod, and what follows: it names an owner
// that does not exist by the UID of its own, and is deleted as garbage. Its
// sandbox stays.
func (w *world) abandon(name, address string) error {
	pod, err := w.podResource().Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read pod %s: %w", name, err)
	}
	owners := pod.GetOwnerReferences()
	owners[0].Name = "gone"
	pod.SetOwnerReferences(owners)
	if _, err := w.podResource().Update(w.t.Context(), pod, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("change the owner of pod %s: %w", name, err)
	}
	return w.endPod(name, address)
}

func (w *world) endPod(name, address string) error {
	ctx, now := w.t.Context(), int64(0)
	if err := w.podResource().Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		return fmt.Errorf("delete pod %s: %w", name, err)
	}
	w.backends.set(address, nobody)
	return nil
}

func (w *world) podResource() dynamic.ResourceInterface {
	return w.objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).Namespace(namespace)
}

// hold keeps back what the server's watches say.
func (w *world) hold() {
	w.proxy.Hold(agentsandbox.CoreGroup, "sandboxes")
	w.proxy.Hold("", "pods")
}

func (w *world) release() {
	w.proxy.Release(agentsandbox.CoreGroup, "sandboxes")
	w.proxy.Release("", "pods")
}
