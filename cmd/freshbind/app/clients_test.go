package app

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/freshbind/freshbind/scheduler"
	"github.com/freshbind/freshbind/webhooks"
)

// authority is a CA that signs certificates of clients.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a := authority{key: key, cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}}
	a.cert.Raw = a.sign(t, a.cert, &key.PublicKey)
	return a
}

func (a authority) sign(t *testing.T, cert *x509.Certificate, key any) []byte {
	t.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, cert, a.cert, key, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func (a authority) client(t *testing.T, name string) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	raw := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, &key.PublicKey)
	return &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// Through TLS, as the API server asks.
func TestWebhooksAskForTheCertificateOfTheAPIServer(t *testing.T) {
	ca, other := newAuthority(t), newAuthority(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ca.cert.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	const asked, refused, cut = http.StatusTeapot, http.StatusForbidden, 0
	cases := map[string]struct {
		caFile string
		path   string
		cert   *tls.Certificate
		want   int
	}{
		"nobody asks for one":         {"", webhooks.BindHook.Path, nil, asked},
		"the API server's":            {file, webhooks.BindHook.Path, ca.client(t, "front-proxy-client"), asked},
		"none":                        {file, webhooks.BindHook.Path, nil, refused},
		"none, for advice":            {file, webhooks.AdviseHook.Path, nil, refused},
		"another one of that CA":      {file, webhooks.BindHook.Path, ca.client(t, "somebody"), refused},
		"one of another CA":           {file, webhooks.BindHook.Path, other.client(t, "front-proxy-client"), cut},
		"none, from a scheduler":      {file, scheduler.FilterPath, nil, asked},
		"none, from a scheduler, too": {file, scheduler.PrioritizePath, nil, asked},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := NewManagerOptions()
			o.ClientCAFile, o.ClientNames = tc.caFile, []string{"front-proxy-client"}
			before := o.newEntrance(prometheus.NewRegistry())
			mux := http.NewServeMux()
			mux.Handle(tc.path, before(tc.path, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(asked) })))
			server := httptest.NewUnstartedServer(mux)
			server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
			certificates, err := o.clientCertificates()
			if err != nil {
				t.Fatal(err)
			}
			if certificates != nil {
				certificates(server.TLS)
			}
			server.StartTLS()
			defer server.Close()
			client := server.Client()
			if tc.cert != nil {
				client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{*tc.cert}
			}
			code := cut
			if resp, err := client.Post(server.URL+tc.path, "application/json", nil); err == nil {
				code = resp.StatusCode
				_ = resp.Body.Close()
			}
			if code != tc.want {
				t.Errorf("answered %d, want %d", code, tc.want)
			}
		})
	}
}

func TestCAsOfClientsThatCannotBeRead(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{empty, empty + "-missing"} {
		o := NewManagerOptions()
		o.ClientCAFile = file
		if _, err := o.clientCertificates(); err == nil {
			t.Errorf("%s is taken for a bundle of CAs", file)
		}
	}
}
