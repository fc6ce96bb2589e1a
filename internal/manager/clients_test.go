package manager

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/freshbind/freshbind/scheduler"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/webhooks"
)

// Through TLS, as the API server asks.
func TestWebhooksAskForTheCertificateOfTheAPIServer(t *testing.T) {
	ca, other := builders.NewAuthority(t), builders.NewAuthority(t)
	file := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(file, ca.PEM(), 0o600); err != nil {
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
		"the API server's":            {file, webhooks.BindHook.Path, ca.Client(t, "front-proxy-client"), asked},
		"none":                        {file, webhooks.BindHook.Path, nil, refused},
		"none, for advice":            {file, webhooks.AdviseHook.Path, nil, refused},
		"another one of that CA":      {file, webhooks.BindHook.Path, ca.Client(t, "somebody"), refused},
		"one of another CA":           {file, webhooks.BindHook.Path, other.Client(t, "front-proxy-client"), cut},
		"none, from a scheduler":      {file, scheduler.FilterPath, nil, asked},
		"none, from a scheduler, too": {file, scheduler.PrioritizePath, nil, asked},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := newProcess(Options{ClientCAFile: tc.caFile, ClientNames: []string{"front-proxy-client"}})
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
		if _, err := newProcess(Options{ClientCAFile: file}).clientCertificates(); err == nil {
			t.Errorf("%s is taken for a bundle of CAs", file)
		}
	}
}
