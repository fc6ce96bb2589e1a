package gatewaytest_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/routes"
	"github.com/freshbind/freshbind/routes/gatewaytest"
)

// defects are what a fake gateway does wrong.
type defects struct {
	addsRoutes, namedByClient, byAnyone, oversized, anyVersion, forgetsDeletes, fencesVersionOnly, forgedWins, sharesAddress, takeover,
	deletesByName, servesPaused, fencesExpire bool
}

const credentials = "Bearer of-a-peer"

// fake is a gateway that takes routes from pushes, if it does anything with them.
type fake struct {
	defects
	mu      sync.Mutex
	routes  map[string]gatewaytest.Message
	fences  map[string]gatewaytest.Message
	holders map[string]string
}

func newFake(d defects) *fake {
	return &fake{defects: d, routes: map[string]gatewaytest.Message{}, fences: map[string]gatewaytest.Message{}, holders: map[string]string{}}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.URL.Path == "/refresh" {
		w.WriteHeader(f.refresh(w, r))
		return
	}
	id, port := strings.Trim(r.URL.Path, "/"), r.Header.Get("Port")
	m, ok := f.routes[f.holders[id]]
	if named := r.Header.Get("X-Sandbox-Pod-Ip"); named != "" && f.namedByClient {
		m.IP, m.State, ok = named, "running", true
	}
	ip := net.ParseIP(m.IP)
	if !ok || m.State != "running" && !f.servesPaused || !ip.IsLoopback() {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	to := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(&url.URL{Scheme: "http", Host: net.JoinHostPort(m.IP, port)}) }}
	to.ServeHTTP(w, r)
}

func (f *fake) refresh(w http.ResponseWriter, r *http.Request) int {
	if r.Header.Get("Authorization") != credentials && !f.byAnyone {
		return http.StatusUnauthorized
	}
	body := r.Body
	if !f.oversized {
		body = http.MaxBytesReader(w, body, 1<<20)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return http.StatusRequestEntityTooLarge
	}
	var m gatewaytest.Message
	if json.Unmarshal(text, &m) != nil {
		return http.StatusBadRequest
	}
	v, err := routes.ParseVersion(m.ResourceVersion)
	if err != nil && !f.anyVersion {
		return http.StatusBadRequest
	}
	if f.addsRoutes {
		f.apply(m, v)
	}
	return http.StatusNoContent
}

func (f *fake) apply(m gatewaytest.Message, v routes.Version) {
	old, known := f.routes[m.Name]
	before, _ := routes.ParseVersion(old.ResourceVersion)
	if m.State == "dead" {
		if known && (old.UID != m.UID && !f.deletesByName || f.forgedWins && v < before) {
			return
		}
		delete(f.routes, m.Name)
		if f.holders[m.ID] == m.Name {
			delete(f.holders, m.ID)
		}
		f.fences[m.Name] = m
		return
	}
	fence, fenced := f.fences[m.Name]
	fencedAt, _ := routes.ParseVersion(fence.ResourceVersion)
	if fenced && !f.forgetsDeletes && (v <= fencedAt || fence.UID == m.UID && !f.fencesVersionOnly) || known && (v < before || v == before && f.takeover) {
		return
	}
	for name, o := range f.routes {
		if o.IP == m.IP && name != m.Name && !f.sharesAddress {
			delete(f.routes, name)
		}
	}
	f.routes[m.Name] = m
	if holder := f.holders[m.ID]; holder == "" || f.takeover {
		f.holders[m.ID] = m.Name
	}
}

func TestRun(t *testing.T) {
	all := []string{"push-adds-route"}
	for name, tc := range map[string]struct {
		defects defects
		want    []string
	}{
		"no pushes":                     {},
		"pushes, and nothing else":      {defects: defects{addsRoutes: true}, want: all},
		"client-names-address":          {defects: defects{namedByClient: true}, want: []string{"client-names-address"}},
		"push-by-anyone":                {defects: defects{byAnyone: true}, want: []string{"push-by-anyone"}},
		"push-oversized":                {defects: defects{oversized: true}, want: []string{"push-oversized"}},
		"push-malformed-version":        {defects: defects{addsRoutes: true, anyVersion: true}, want: append(all, "push-malformed-version")},
		"late-event-after-delete":       {defects: defects{addsRoutes: true, forgetsDeletes: true}, want: append(all, "late-event-after-delete", "status-update-after-dead-push", "late-event-long-after-delete")},
		"status-update-after-dead-push": {defects: defects{addsRoutes: true, fencesVersionOnly: true}, want: append(all, "status-update-after-dead-push")},
		"forged-version":                {defects: defects{addsRoutes: true, forgedWins: true}, want: append(all, "forged-version")},
		"address-reused":                {defects: defects{addsRoutes: true, sharesAddress: true}, want: append(all, "address-reused")},
		"id-takeover-ends":              {defects: defects{addsRoutes: true, takeover: true}, want: append(all, "id-takeover-ends")},
		"late-delete-of-earlier-sandbox": {
			defects: defects{addsRoutes: true, deletesByName: true}, want: append(all, "late-delete-of-earlier-sandbox"),
		},
		"paused-is-kept-not-served":    {defects: defects{addsRoutes: true, servesPaused: true}, want: append(all, "paused-is-kept-not-served")},
		"late-event-long-after-delete": {defects: defects{addsRoutes: true, fencesExpire: true}, want: append(all, "late-event-long-after-delete")},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(tc.defects)
			outcomes := run(t, f, func(o *gatewaytest.Options) {
				o.FenceWait = 11 * time.Minute
				o.Sleep = func(context.Context, time.Duration) error {
					f.mu.Lock()
					defer f.mu.Unlock()
					if f.fencesExpire {
						clear(f.fences)
					}
					return nil
				}
			})
			var got []string
			for _, o := range outcomes {
				if o.Result == gatewaytest.Failed {
					got = append(got, o.Test)
				}
				if skipped := o.Result == gatewaytest.Skipped; skipped && tc.defects.addsRoutes {
					t.Errorf("%s is skipped: %s", o.Test, o.Found)
				}
				t.Logf("%s %s %s", o.Result, o.Test, o.Found)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("failed tests (-want +got):\n%s", diff)
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			if len(f.routes) > 0 {
				t.Errorf("%d invented routes are left behind", len(f.routes))
			}
		})
	}
}

// peer adds the credentials of a peer.
type peer struct{}

func (peer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", credentials)
	return http.DefaultTransport.RoundTrip(r)
}

func run(t *testing.T, h http.Handler, change func(*gatewaytest.Options)) []gatewaytest.Outcome {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	canary, err := gatewaytest.NewCanary("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = canary.Close() })
	o := gatewaytest.Options{Canary: canary, Gateway: gatewaytest.Gateway{
		RefreshURL: server.URL + "/refresh", ProbeURL: server.URL + "/{id}/", ProbeHeader: http.Header{"Port": {"{port}"}},
		Peer: &http.Client{Transport: peer{}}, Anyone: &http.Client{}, Timeout: time.Minute,
	}}
	change(&o)
	outcomes, err := gatewaytest.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return outcomes
}

func TestSkipped(t *testing.T) {
	for name, tc := range map[string]struct {
		defects defects
		change  func(*gatewaytest.Options)
		want    map[string]string
	}{
		"nowhere to push": {
			change: func(o *gatewaytest.Options) { o.Gateway.RefreshURL = "" },
			want:   map[string]string{"push-by-anyone": "no refresh URL was given", "forged-version": "no refresh URL was given"},
		},
		"a push adds nothing": {
			change: func(*gatewaytest.Options) {},
			want:   map[string]string{"push-by-anyone": "", "forged-version": "a push adds no route here, so none can be brought back by one"},
		},
		"no time": {
			defects: defects{addsRoutes: true}, change: func(*gatewaytest.Options) {},
			want: map[string]string{"forged-version": "", "late-event-long-after-delete": "it takes as long as a fence may last: give a time to wait"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := map[string]string{}
			for _, o := range run(t, newFake(tc.defects), tc.change) {
				if _, ok := tc.want[o.Test]; ok {
					got[o.Test] = o.Found
				}
				if (o.Result == gatewaytest.Skipped) != (tc.want[o.Test] != "") && got[o.Test] != "" {
					t.Errorf("%s: %s", o.Test, o.Result)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("skipped (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoGateway shows that a gateway that does not answer has not passed.
func TestNoGateway(t *testing.T) {
	canary, err := gatewaytest.NewCanary("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = canary.Close() }()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	_, err = gatewaytest.Run(t.Context(), gatewaytest.Options{Canary: canary, Gateway: gatewaytest.Gateway{
		ProbeURL: gone.URL + "/{id}", Anyone: &http.Client{}, Peer: &http.Client{}, Timeout: time.Minute,
	}})
	if err == nil || !strings.Contains(err.Error(), "test client-names-address: probe ") {
		t.Errorf("got %v, want an error that names the probe", err)
	}
}
