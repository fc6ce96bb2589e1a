package manager

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace/noop"

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

// Where traces are wanted, calls of webhooks become spans, and nothing else does:
// schedulers and probes come too often.
func TestCallsOfWebhooksBecomeSpans(t *testing.T) {
	for name, tc := range map[string]struct {
		traced bool
		path   string
		want   []string
	}{
		"a webhook":   {true, "/bind", []string{"/bind"}},
		"not wanted":  {false, "/bind", nil},
		"a scheduler": {true, scheduler.FilterPath, nil},
	} {
		t.Run(name, func(t *testing.T) {
			seen := tracetest.NewSpanRecorder()
			otel.SetTracerProvider(sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(seen)))
			t.Cleanup(func() { otel.SetTracerProvider(noop.NewTracerProvider()) })
			before := newProcess(Options{Traced: tc.traced}).newEntrance(prometheus.NewRegistry())
			before(tc.path, http.NotFoundHandler()).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, tc.path, nil))
			var got []string
			for _, s := range seen.Ended() {
				got = append(got, s.Name())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("spans (-want,+got):\n%s", diff)
			}
		})
	}
}
