package chart

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// With metrics.secure, metrics are for who has the chart's role, and for nobody
// else. What the ServiceMonitor has Prometheus trust is what is served.
func TestSecureMetricsAreForWhoMayReadThem(t *testing.T) {
	w := sharedWorld(t)
	w.install(t, set("metrics.secure=true")...)
	stranger, prometheus := w.serviceAccountToken(t, "stranger"), w.serviceAccountToken(t, "prometheus")
	role := release + "-metrics-reader"
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "prometheus"}},
	}
	_, err := w.clients.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	w.must(t, err)
	t.Cleanup(func() {
		w.must(t, w.clients.RbacV1().ClusterRoleBindings().Delete(context.Background(), role, metav1.DeleteOptions{}))
	})

	monitor := find(render(t, append(set("metrics.secure=true", "metrics.serviceMonitor.enabled=true"), certManager)...), "ServiceMonitor", release)
	endpoints, _, _ := unstructured.NestedSlice(monitor.Object, "spec", "endpoints")
	endpoint := endpoints[0].(map[string]any)
	secret, _, _ := unstructured.NestedString(endpoint, "tlsConfig", "ca", "secret", "name")
	serverName, _, _ := unstructured.NestedString(endpoint, "tlsConfig", "serverName")
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(w.secretWith(t, secret, func(data map[string][]byte) bool { return len(data["ca.crt"]) > 0 })["ca.crt"]) {
		t.Fatalf("Secret %s has no CA", secret)
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: serverName, MinVersion: tls.VersionTLS12}, DisableKeepAlives: true,
	}}
	for _, r := range w.replicas {
		for name, tc := range map[string]struct {
			token, path string
			want        int
		}{
			"nobody": {"", "/metrics", http.StatusUnauthorized},
			// The API server calls such a token an error, and so does controller-runtime.
			"a forgery":    {stranger[:len(stranger)-8] + "forgery0", "/metrics", http.StatusInternalServerError},
			"a stranger":   {stranger, "/metrics", http.StatusForbidden},
			"Prometheus":   {prometheus, "/metrics", http.StatusOK},
			"another path": {prometheus, "/", http.StatusNotFound},
		} {
			w.eventually(t, name+" is answered", func(ctx context.Context) (string, bool) {
				code, text, err := scrape(ctx, client, endpoint["scheme"].(string)+"://"+r.at(metricsPort)+tc.path, tc.token)
				shows := strings.Contains(text, "freshbind_")
				return fmt.Sprintf("%d (want %d), metrics shown: %t, %v", code, tc.want, shows, err),
					err == nil && code == tc.want && shows == (tc.want == http.StatusOK)
			})
		}
		if code, text, err := scrape(t.Context(), http.DefaultClient, "http://"+r.at(metricsPort)+"/metrics", prometheus); err == nil && code == http.StatusOK {
			t.Errorf("metrics are served without TLS: %s", text)
		}
	}
}

// Rights that come with a setting come only with it.
func TestRightsToAskWhoReadsMetrics(t *testing.T) {
	plain, secure := granted(t), granted(t, set("metrics.secure=true")...)
	more := slices.DeleteFunc(secure, func(right string) bool { return slices.Contains(plain, right) })
	want := []string{"create authentication.k8s.io/tokenreviews", "create authorization.k8s.io/subjectaccessreviews"}
	if diff := cmp.Diff(want, more); diff != "" {
		t.Errorf("more rights with metrics.secure (-want,+got):\n%s", diff)
	}
}

func scrape(ctx context.Context, client *http.Client, url, token string) (code int, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

func (w *world) serviceAccountToken(t *testing.T, name string) string {
	t.Helper()
	accounts := w.clients.CoreV1().ServiceAccounts(namespace)
	_, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	w.must(t, err)
	request, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	w.must(t, err)
	return request.Status.Token
}
