package integration

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"

	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// An API server that was told to, as docs/security.md says, shows a certificate to
// the webhooks, and nobody else is answered.
func TestOnlyTheAPIServerIsAnswered(t *testing.T) {
	ours, others := newClient(t, "front-proxy-client"), newClient(t, "front-proxy-client")
	w := ownWorld(t, scenario.WorldOptions{
		Cluster: controlplane.Options{APIServerFlags: []string{"--admission-control-config-file=" + ours.admission(t)}},
		Guard:   fixture.Options{Args: []string{"--client-ca-file=" + ours.cert, "--client-names=" + ours.name}},
	})
	s := w.enforced(t)
	p := s.pool(scenario.Pool{Replicas: 2, Strategy: scenario.Recreate})
	w.delay(upstream.SandboxTemplates, lag)
	s.image(p, "sandbox:v2")
	s.claim(p, "c1", "c2")
	s.fresh(2)
	turnedAway := func() float64 {
		return w.metric(t, "freshbind_webhook_requests_turned_away_total", `reason="client"`)
	}
	if refused := turnedAway(); refused != 0 {
		t.Errorf("%g requests of the API server were turned away", refused)
	}

	for name, tc := range map[string]struct {
		certificates []tls.Certificate
		want         int
	}{
		"without a certificate":     {nil, http.StatusForbidden},
		"with one of another CA":    {[]tls.Certificate{others.pair(t)}, handshakeFails},
		"with the CA's certificate": {[]tls.Certificate{ours.pair(t)}, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			before := turnedAway()
			if got := ask(t, w, tc.certificates); got != tc.want {
				t.Errorf("answered %d, want %d", got, tc.want)
			}
			if refused := turnedAway() - before; (refused == 1) != (tc.want == http.StatusForbidden) {
				t.Errorf("%g requests were turned away", refused)
			}
		})
	}

	// Whoever the API server is not known to decides nothing, and so admits nothing.
	if err := os.Rename(others.cert, ours.cert); err != nil {
		t.Fatal(err)
	}
	s.must(w.Guard.Stop())
	s.must(w.Guard.Start(t.Context()))
	s.must(s.CreateClaims(t.Context(), p, "c3"))
	s.eventually("the API server gets no answer", func(ctx context.Context) (string, bool) {
		n := w.turnedDown(t, ".freshbind.dev")
		return fmt.Sprintf("%g writes were refused for it", n), n > 0
	})
	if sum, _ := s.judged(); sum.Ready != 2 {
		t.Errorf("%d claims are ready, want the 2 from before", sum.Ready)
	}
}

// handshakeFails stands for no answer at all.
const handshakeFails = 0

// ask posts an empty review to the webhook of binds, and returns the status of the
// answer.
func ask(t *testing.T, w *world, certificates []tls.Certificate) int {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.Guard.CA())
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: certificates}}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.Guard.WebhookURL()+"/bind", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		t.Log(err)
		return handshakeFails
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode
}

// webhookClient is a client certificate that is its own CA, and its key, in files.
type webhookClient struct{ name, dir, cert, key string }

func newClient(t *testing.T, name string) *webhookClient {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name}, key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	c := &webhookClient{name: name, dir: dir, cert: filepath.Join(dir, "client.crt"), key: filepath.Join(dir, "client.key")}
	c.write(t, c.cert, pem.EncodeToMemory(&pem.Block{Type: certutil.CertificateBlockType, Bytes: cert.Raw}))
	c.write(t, c.key, encoded)
	return c
}

func (c *webhookClient) write(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (c *webhookClient) pair(t *testing.T) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// admission writes the configuration with which an API server shows the
// certificate to all webhooks, and returns its file.
func (c *webhookClient) admission(t *testing.T) string {
	t.Helper()
	kubeconfig, file := filepath.Join(c.dir, "webhooks.kubeconfig"), filepath.Join(c.dir, "admission.yaml")
	c.write(t, kubeconfig, fmt.Appendf(nil, `apiVersion: v1
kind: Config
users:
- name: "*"
  user:
    client-certificate: %s
    client-key: %s
`, c.cert, c.key))
	plugins := ""
	for _, name := range []string{"ValidatingAdmissionWebhook", "MutatingAdmissionWebhook"} {
		plugins += fmt.Sprintf(`
- name: %s
  configuration:
    apiVersion: apiserver.config.k8s.io/v1
    kind: WebhookAdmissionConfiguration
    kubeConfigFile: %s`, name, kubeconfig)
	}
	c.write(t, file, []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:"+plugins+"\n"))
	return file
}
