package routeserver

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/freshbind/freshbind/routes"
)

const token = "0123456789abcdef"

// world is a table and a server of it.
type world struct {
	t       *testing.T
	table   *routes.Table
	session *routes.Session
	clock   *clocktesting.FakeClock
	server  *Server
	http    *httptest.Server
	version routes.Version
}

func newWorld(t *testing.T) *world {
	t.Helper()
	clock := clocktesting.NewFakeClock(time.Now())
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("an older token of ours\n"+token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := ReadTokens(file)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, clock: clock, table: routes.New(routes.Options{Clock: clock})}
	w.session = w.table.Begin()
	if w.server, err = New(w.table, Options{Tokens: tokens}, NewMetrics(prometheus.NewRegistry())); err != nil {
		t.Fatal(err)
	}
	w.http = httptest.NewUnstartedServer(w.server.Handler())
	w.http.EnableHTTP2 = true
	w.http.StartTLS()
	t.Cleanup(w.http.Close)
	return w
}

func (w *world) next() routes.Version { w.version++; return w.version }

func (w *world) run(name, address string, state routes.State) {
	uid := routes.ParseUID("sandbox " + name)
	w.session.Sandbox(routes.Sandbox{Namespace: "team-a", Name: name, UID: uid, Version: w.next(), State: state})
	w.session.Pod(routes.Pod{
		Namespace: "team-a", Name: name, UID: routes.ParseUID("pod " + name), Version: w.next(), Sandbox: name, SandboxUID: uid,
		Address: netip.MustParseAddr(address), Ready: true,
	})
}

// prove has the view complete, as of now.
func (w *world) prove() {
	w.session.Listed(routes.Sandboxes, w.clock.Now())
	w.session.Listed(routes.Pods, w.clock.Now())
}

func filled(t *testing.T) *world {
	w := newWorld(t)
	w.run("one", "10.0.0.1", routes.Running)
	w.run("six", "fd00::1", routes.Running)
	w.run("paused", "10.0.0.2", routes.Paused)
	w.run("gone", "10.0.0.3", routes.Running)
	w.prove()
	w.session.SandboxDeleted("team-a", "gone", routes.UID{}, w.next())
	return w
}

func (w *world) get(path string, headers ...string) answer {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.http.URL+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header[http.CanonicalHeaderKey(headers[i])] = append(r.Header[http.CanonicalHeaderKey(headers[i])], headers[i+1])
	}
	client := w.http.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	response, err := client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, body}
}

// answer is what the server answered, read to its end.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

// response is what a check answered.
type response struct {
	Code                              int
	Destination, Status, State, Envoy string
	Path                              string
}

func read(r answer) response {
	return response{
		Code: r.code, Destination: r.header.Get(headerDestination), Status: r.header.Get(headerStatus),
		State: r.header.Get(headerState), Envoy: r.header.Get(headerOriginalDst), Path: r.header.Get(headerNewPath),
	}
}

func TestChecks(t *testing.T) {
	w := filled(t)
	agent := func(name string) []string { return []string{"X-Sandbox-ID", name, "X-Sandbox-Namespace", "team-a"} }
	for name, tc := range map[string]struct {
		path    string
		headers []string
		want    response
	}{
		"nginx":             {pathNginx, agent("one"), response{Code: 200, Destination: "10.0.0.1:8888"}},
		"nginx, IPv6":       {pathNginx, agent("six"), response{Code: 200, Destination: "[fd00::1]:8888"}},
		"nginx, paused":     {pathNginx, agent("paused"), response{Code: 403, Status: "409", State: "paused"}},
		"nginx, gone":       {pathNginx, agent("gone"), response{Code: 403, Status: "410"}},
		"nginx, unknown":    {pathNginx, agent("other"), response{Code: 403, Status: "404"}},
		"nginx, bad":        {pathNginx, agent("Other"), response{Code: 403, Status: "400"}},
		"nginx, by host":    {pathNginx, []string{"X-Original-Host", "80-team-a--one.example.com"}, response{Code: 200, Destination: "10.0.0.1:80"}},
		"nginx, by path":    {pathNginx, []string{"X-Original-URI", "/kruise/team-a--one/80/x?y"}, response{Code: 200, Destination: "10.0.0.1:80", Path: "/x?y"}},
		"nginx, two paths":  {pathNginx, []string{"X-Original-URI", "/kruise/team-a--one/80/", "X-Original-URI", "/kruise/team-a--six/80/"}, response{Code: 403, Status: "400"}},
		"traefik":           {pathTraefik, agent("one"), response{Code: 200, Destination: "10.0.0.1:8888"}},
		"traefik, paused":   {pathTraefik, agent("paused"), response{Code: 409, Status: "409", State: "paused"}},
		"traefik, by host":  {pathTraefik, []string{"X-Forwarded-Host", "80-team-a--one.example.com"}, response{Code: 200, Destination: "10.0.0.1:80"}},
		"envoy":             {pathEnvoy + "/any//path/../x?y", agent("one"), response{Code: 200, Destination: "10.0.0.1:8888", Envoy: "10.0.0.1:8888"}},
		"envoy, by host":    {pathEnvoy + "/", []string{"Host", "80-team-a--one.example.com"}, response{Code: 200, Destination: "10.0.0.1:80", Envoy: "10.0.0.1:80"}},
		"envoy, by path":    {pathEnvoy + "/kruise/team-a--one/80/x", nil, response{Code: 200, Destination: "10.0.0.1:80", Envoy: "10.0.0.1:80", Path: "/x"}},
		"envoy, gone":       {pathEnvoy + "/", agent("gone"), response{Code: 410, Status: "410"}},
		"envoy, unknown":    {pathEnvoy + "/", agent("other"), response{Code: 404, Status: "404"}},
		"the very sandbox":  {pathTraefik, append(agent("one"), "X-Sandbox-UID", routes.ParseUID("sandbox one").String()), response{Code: 200, Destination: "10.0.0.1:8888"}},
		"another's UID":     {pathTraefik, append(agent("one"), "X-Sandbox-UID", routes.ParseUID("sandbox six").String()), response{Code: 410, Status: "410"}},
		"another's, paused": {pathTraefik, append(agent("paused"), "X-Sandbox-UID", "somebody"), response{Code: 410, Status: "410"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, read(w.get(tc.path, tc.headers...))); diff != "" {
				t.Error(diff)
			}
		})
	}
	if n := testutil.ToFloat64(w.server.metrics.checked.WithLabelValues("nginx", "Stopped")); n != 1 {
		t.Errorf("%v checks of nginx were of a stopped sandbox, want 1", n)
	}
}

func TestNothingIsSaidFromAnOldView(t *testing.T) {
	w := newWorld(t)
	w.run("one", "10.0.0.1", routes.Running)
	unknown := response{Code: 503, Status: "503"}
	ask := func() response {
		return read(w.get(pathTraefik, "X-Sandbox-ID", "one", "X-Sandbox-Namespace", "team-a"))
	}
	if diff := cmp.Diff(unknown, ask()); diff != "" {
		t.Errorf("before the lists: %s", diff)
	}
	w.prove()
	if got := ask(); got.Code != 200 {
		t.Errorf("with a proven view: %+v", got)
	}
	w.clock.Step(w.table.MaxAge() + 1)
	if diff := cmp.Diff(unknown, ask()); diff != "" {
		t.Errorf("with an old view: %s", diff)
	}
	if got := w.get("/v1/routes/team-a--one").code; got != 503 {
		t.Errorf("the lookup answered %d, want 503", got)
	}
}

func TestEveryReasonIsCounted(t *testing.T) {
	count := NewMetrics(prometheus.NewRegistry()).checks("nginx")
	for _, reason := range append(reasons(), routes.AddressTaken.String(), routes.Unconfirmed.String()) {
		count(reason)
	}
}

func TestLookup(t *testing.T) {
	w := filled(t)
	for name, tc := range map[string]struct {
		id   string
		code int
		want Route
	}{
		"running": {"team-a--one", 200, Route{
			ID: "team-a--one", Status: "Serving", Address: "10.0.0.1", State: "running", Namespace: "team-a", Name: "one",
			UID: routes.ParseUID("sandbox one").String(), PodUID: routes.ParseUID("pod one").String(),
		}},
		"paused": {"team-a--paused", 409, Route{
			ID: "team-a--paused", Status: "NotRunning", Reason: "Stopped", State: "paused", Namespace: "team-a", Name: "paused",
			UID: routes.ParseUID("sandbox paused").String(),
		}},
		"unknown": {"team-a--other", 404, Route{ID: "team-a--other", Status: "NotFound"}},
	} {
		t.Run(name, func(t *testing.T) {
			response := w.get("/v1/routes/" + tc.id)
			var got Route
			if err := json.Unmarshal(response.body, &got); err != nil {
				t.Fatal(err)
			}
			if response.code != tc.code {
				t.Errorf("status %d, want %d", response.code, tc.code)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := w.get("/v1/routes/Team%0a").code; got != 400 {
		t.Errorf("a hostile ID was answered %d, want 400", got)
	}
}

func TestNobodyIsLetInUnasked(t *testing.T) {
	w := filled(t)
	for _, path := range []string{pathNginx, pathTraefik, pathEnvoy + "/", "/v1/routes?watch=true", "/v1/routes/team-a--one", "/"} {
		for name, authorization := range map[string]string{
			"none": "", "wrong": "Bearer " + token + "x", "empty": "Bearer ", "another scheme": "Basic " + token, "bare": token,
		} {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, w.http.URL+path, nil)
			if authorization != "" {
				r.Header.Set("Authorization", authorization)
			}
			response, err := w.http.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if response.StatusCode != 401 || strings.Contains(string(body), "10.0.0.1") {
				t.Errorf("%s with token %s: %d %s", path, name, response.StatusCode, body)
			}
		}
	}
	if _, err := New(w.table, Options{}, w.server.metrics); err == nil {
		t.Error("a server that anybody may ask was made")
	}
}

func TestTokens(t *testing.T) {
	for name, tc := range map[string]struct{ content, err string }{
		"one":       {token, ""},
		"empty":     {"\n\n", "has none"},
		"too short": {"secret", "use 16 at least"},
		"too much":  {strings.Repeat(token+"\n", 10_000), "at most"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "tokens")
			if err := os.WriteFile(file, []byte(tc.content), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := ReadTokens(file)
			if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("error %v, want %q", err, tc.err)
			}
		})
	}
}

func TestRequestsAreBounded(t *testing.T) {
	w := filled(t)
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, w.http.URL+pathTraefik, strings.NewReader(strings.Repeat("x", 4*maxBody)))
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("X-Sandbox-ID", "one")
	r.Header.Set("X-Sandbox-Namespace", "team-a")
	if response, err := w.http.Client().Do(r); err == nil {
		_ = response.Body.Close()
	}
	if got := w.get(pathTraefik, "X-Sandbox-ID", "one", "X-Sandbox-Namespace", "team-a").code; got != 200 {
		t.Errorf("after a large request: %d", got)
	}
}

func TestServesOverTLSUntilTheEnd(t *testing.T) {
	w := filled(t)
	w.server.options.TLS = &tls.Config{Certificates: w.http.TLS.Certificates}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.server.Serve(ctx, listener) }()
	w.http.URL = "https://" + listener.Addr().String()
	if got := w.get(pathTraefik, "X-Sandbox-ID", "one", "X-Sandbox-Namespace", "team-a").code; got != 200 {
		t.Errorf("status %d", got)
	}
	e := w.follow("")
	e.until(known)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
