package sentinel

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/freshbind/freshbind/test/kruisegateway"
)

// network leads to gateways in this process, by host.
type network struct {
	mu       sync.Mutex
	gateways map[string]http.Handler
	requests int
}

func (n *network) set(host string, h http.Handler) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.gateways[host] = h
}

func (n *network) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.requests
}

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.mu.Lock()
	n.requests++
	h := n.gateways[r.URL.Host]
	n.mu.Unlock()
	if h == nil {
		return nil, errors.New("connection refused")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result(), nil
}

const (
	interval = 5 * time.Second
	url1     = "http://gateway-1/refresh"
	url2     = "http://gateway-2/refresh"
)

// usual is a pace that is enough for one deletion.
var usual = Pace{Interval: interval, Rate: 100, Timeout: time.Second}

type scene struct {
	*network
	deletions *Deletions
	sentinel  *Sentinel
}

// newScene has a sentinel with gateways in a bubble of its own time.
func newScene(t *testing.T, pace Pace, urls ...string) *scene {
	metrics := NewMetrics(prometheus.NewRegistry())
	n := &network{gateways: map[string]http.Handler{}}
	s := &scene{network: n, deletions: NewDeletions(1000, 24*time.Hour, metrics)}
	s.sentinel = New(s.deletions, &http.Client{Transport: n}, pace, metrics)
	s.sentinel.SetGateways(urls)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.sentinel.Start(ctx)
	}()
	t.Cleanup(func() { stop(); <-done })
	return s
}

func route(state string, version int) kruisegateway.Route {
	return kruisegateway.Route{
		Namespace: "a", Name: "s1", ID: "a--s1", UID: "u1", IP: "10.0.0.1", State: state, ResourceVersion: strconv.Itoa(version),
	}
}

// traffic has other sandboxes come and go at a gateway, which is when it sweeps.
func traffic(t *testing.T, store *kruisegateway.Store) {
	ctx := t.Context()
	go func() {
		for v := 100; ctx.Err() == nil; v++ {
			r := route("running", v)
			r.Name, r.ID = "other", "a--other"
			store.Upsert(r)
			select {
			case <-time.After(700 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}()
}

func served(store *kruisegateway.Store) bool {
	_, ok := store.Lookup("a--s1")
	return ok
}

// TestLateRefresh shows what a late message does after the gateway has forgotten
// a deletion, with a sentinel and without.
func TestLateRefresh(t *testing.T) {
	for name, watched := range map[string]bool{"without a sentinel": false, "with a sentinel": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var urls []string
				if watched {
					urls = append(urls, url1)
				}
				s := newScene(t, usual, urls...)
				store := kruisegateway.NewStore(time.Now)
				s.set("gateway-1", store)
				traffic(t, store)
				store.Upsert(route("running", 10))
				if !served(store) {
					t.Fatal("a running sandbox is not served")
				}
				store.Delete(route("", 20))
				s.deletions.Deleted(Key{"a", "s1"}, "u1", 20)
				time.Sleep(kruisegateway.FenceRetention - time.Minute)
				store.Refresh(route("running", 15))
				if served(store) {
					t.Fatal("the gateway forgets before its fence ends")
				}
				time.Sleep(3 * time.Minute)
				store.Refresh(route("running", 15))
				if served(store) == watched {
					t.Errorf("after a late message the deleted sandbox is served: %t, want %t", watched, !watched)
				}
			})
		})
	}
}

// TestLateRefreshAtTheWorstTime shows how long a late message lasts that comes just
// when the gateway has forgotten: until the deletion is repeated.
func TestLateRefreshAtTheWorstTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := kruisegateway.NewStore(time.Now)
		// The gateway sweeps once a minute from here on, the sentinel comes later.
		traffic(t, store)
		time.Sleep(1300 * time.Millisecond)
		s := newScene(t, usual, url1)
		s.set("gateway-1", store)
		s.deletions.Deleted(Key{"a", "s1"}, "u1", 20)
		time.Sleep(100 * time.Millisecond)
		came := 0
		for range 3000 {
			time.Sleep(250 * time.Millisecond)
			store.Refresh(route("running", 15))
			if !served(store) {
				continue
			}
			came++
			time.Sleep(interval + time.Second)
			if served(store) {
				t.Fatal("a late message is not taken back")
			}
		}
		if came == 0 {
			t.Error("no message came just then")
		}
	})
}

// TestForgetfulGateways shows that one that is new, or has restarted, is told.
func TestForgetfulGateways(t *testing.T) {
	for name, do := range map[string]func(*scene, *kruisegateway.Store){
		"new": func(s *scene, store *kruisegateway.Store) {
			s.set("gateway-2", store)
			s.sentinel.SetGateways([]string{url1, url2})
		},
		"restarted": func(s *scene, store *kruisegateway.Store) { s.set("gateway-1", store) },
		"was away": func(s *scene, store *kruisegateway.Store) {
			s.set("gateway-1", nil)
			time.Sleep(time.Minute)
			s.set("gateway-1", store)
			time.Sleep(maxRetry + time.Second)
		},
		"had no answer": func(s *scene, store *kruisegateway.Store) {
			s.set("gateway-1", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
			time.Sleep(time.Minute)
			s.set("gateway-1", store)
			time.Sleep(maxRetry + time.Second)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, usual, url1)
				s.set("gateway-1", kruisegateway.NewStore(time.Now))
				s.deletions.Deleted(Key{"a", "s1"}, "u1", 20)
				time.Sleep(time.Hour)
				store := kruisegateway.NewStore(time.Now)
				do(s, store)
				time.Sleep(interval + time.Second)
				store.Refresh(route("running", 15))
				if served(store) {
					t.Error("a late message brings a deleted sandbox back")
				}
			})
		})
	}
}

// TestGatewayDown has a gateway answer with errors: it is told as soon as it can
// be, and not only when its turn comes again.
func TestGatewayDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Pace{Interval: time.Hour, Rate: 100, Timeout: time.Second}, url1)
		s.set("gateway-1", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
		synctest.Wait()
		s.deletions.Deleted(Key{"a", "s1"}, "u1", 20)
		time.Sleep(time.Minute)
		if got := s.count(); got < 5 || got > 20 {
			t.Errorf("%d attempts in a minute, want some, and pauses between them", got)
		}
		store := kruisegateway.NewStore(time.Now)
		s.set("gateway-1", store)
		time.Sleep(maxRetry + time.Second)
		store.Refresh(route("running", 15))
		if served(store) {
			t.Error("a late message brings a deleted sandbox back")
		}
	})
}

// TestReturned shows that nothing is sent of a sandbox whose name is in use, even
// when its turn was to come.
func TestReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, Pace{Interval: interval, Rate: 1, Timeout: time.Second}, url1)
		var sent atomic.Int64
		all := make(chan struct{})
		s.set("gateway-1", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			var m kruisegateway.Route
			if err := json.NewDecoder(r.Body).Decode(&m); err != nil {
				t.Error(err)
			}
			switch m.Name {
			case "first":
				<-all
			case "s0":
				sent.Add(1)
			}
		}))
		s.deletions.Deleted(Key{"a", "first"}, "u1", 20)
		synctest.Wait()
		// The latest is sent first, and so s0 last.
		for i := range 20 {
			s.deletions.Deleted(Key{"a", "s" + strconv.Itoa(i)}, "u1", 20)
		}
		close(all)
		time.Sleep(10 * time.Second)
		s.deletions.Present(Key{"a", "s0"}, 30)
		time.Sleep(time.Minute)
		if got := sent.Load(); got > 0 {
			t.Errorf("%d messages about a sandbox that is there", got)
		}
	})
}

// TestPace shows that a new deletion is sent at once, all within an interval, and
// no faster than the rate.
func TestPace(t *testing.T) {
	for name, tc := range map[string]struct {
		rate, deletions int
		// at most and at least so many messages in a minute.
		least, most int
	}{
		"one":      {rate: 100, deletions: 1, least: 12, most: 14},
		"some":     {rate: 100, deletions: 100, least: 1200, most: 1400},
		"too many": {rate: 10, deletions: 1000, least: 590, most: 601},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, Pace{Interval: interval, Rate: tc.rate, Timeout: time.Second}, url1)
				s.set("gateway-1", kruisegateway.NewStore(time.Now))
				synctest.Wait()
				for i := range tc.deletions {
					s.deletions.Deleted(Key{"a", "s" + strconv.Itoa(i)}, "u", 20)
				}
				synctest.Wait()
				if s.count() == 0 {
					t.Error("a new deletion has to wait")
				}
				time.Sleep(time.Minute)
				if got := s.count(); got < tc.least || got > tc.most {
					t.Errorf("%d messages in a minute, want %d to %d", got, tc.least, tc.most)
				}
			})
		})
	}
}

func TestEndpointURLs(t *testing.T) {
	yes := true
	list := []discoveryv1.EndpointSlice{
		{Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.2"}}, {Addresses: []string{"10.0.0.1"}}}},
		{Endpoints: []discoveryv1.Endpoint{
			{Addresses: []string{"fd00::1"}}, {Addresses: []string{"10.0.0.1"}},
			{Addresses: []string{"10.0.0.3"}, Conditions: discoveryv1.EndpointConditions{Terminating: &yes}},
		}},
	}
	want := []string{"http://10.0.0.1:7789/refresh", "http://10.0.0.2:7789/refresh", "http://[fd00::1]:7789/refresh"}
	if diff := cmp.Diff(want, endpointURLs(list, 7789)); diff != "" {
		t.Errorf("URLs (-want +got):\n%s", diff)
	}
}
