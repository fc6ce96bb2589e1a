package app

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"

	"github.com/freshbind/freshbind/internal/routeserver"
	"github.com/freshbind/freshbind/routes"
	"github.com/freshbind/freshbind/test/builders"
)

// Gateways that ask the server of routes through TLS, as the options say.
func TestRoutesAskForTheCertificateOfAGateway(t *testing.T) {
	ca, other, dir := builders.NewAuthority(t), builders.NewAuthority(t), t.TempDir()
	write := func(name string, content []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	serving, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := certwatcher.New(write("tls.crt", serving), write("tls.key", key))
	if err != nil {
		t.Fatal(err)
	}
	o := NewRoutesServeOptions()
	o.CertDir, o.ClientNames = dir, []string{"gateway"}
	o.ClientCAFile = write("clients.crt", ca.PEM())
	o.TokenFile = write("tokens", []byte("the secret of a gateway\n"))
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	options, err := o.serverOptions(certificate)
	if err != nil {
		t.Fatal(err)
	}
	server, err := routeserver.New(routes.New(routes.Options{}), options, routeserver.NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	// It has no view yet, and says so to whom it answers.
	const answered, refused, cut = http.StatusServiceUnavailable, http.StatusUnauthorized, 0
	for name, tc := range map[string]struct {
		cert  *tls.Certificate
		token string
		want  int
	}{
		"the gateway":                       {cert: ca.Client(t, "gateway"), want: answered},
		"somebody else of that CA":          {cert: ca.Client(t, "somebody"), want: refused},
		"somebody else, with a token":       {cert: ca.Client(t, "somebody"), token: "the secret of a gateway", want: answered},
		"one who says to be it":             {cert: other.Client(t, "gateway"), want: cut},
		"one who says to be it, with token": {cert: other.Client(t, "gateway"), token: "the secret of a gateway", want: cut},
		"nobody":                            {want: refused},
		"nobody, with a token":              {token: "the secret of a gateway", want: answered},
		"nobody, with another token":        {token: "the guess of somebody", want: refused},
	} {
		t.Run(name, func(t *testing.T) {
			if got := askRoute(t, listener.Addr().String(), tc.cert, tc.token); got != tc.want {
				t.Errorf("status %d, want %d", got, tc.want)
			}
		})
	}
}

// askRoute returns the status of an answer; 0 when the handshake fails.
func askRoute(t *testing.T, address string, certificate *tls.Certificate, token string) int {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true} // only the server's view of the client is at stake
	if certificate != nil {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return certificate, nil }
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: config}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/v1/routes/a", nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		t.Log(err)
		return 0
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode
}
