package routeserver

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/freshbind/freshbind/routes"
)

// BenchmarkCheck asks the server, and a handler that does nothing, in turns, each
// over a connection that is kept.
func BenchmarkCheck(b *testing.B) {
	const sandboxes = 10_000
	table := routes.New(routes.Options{MaxAge: time.Hour})
	session := table.Begin()
	for n := range sandboxes {
		name := fmt.Sprintf("sandbox-%d", n)
		uid := routes.ParseUID("sandbox " + name)
		session.Sandbox(routes.Sandbox{Namespace: "team-a", Name: name, UID: uid, Version: routes.Version(n + 1), State: routes.Running})
		session.Pod(routes.Pod{
			Namespace: "team-a", Name: name, UID: routes.ParseUID("pod " + name), Version: routes.Version(n + 1), Sandbox: name, SandboxUID: uid,
			Address: netip.AddrFrom4([4]byte{10, 0, byte(n >> 8), byte(n)}), Ready: true,
		})
	}
	session.Listed(routes.Sandboxes, time.Now())
	session.Listed(routes.Pods, time.Now())
	server, err := New(table, Options{Tokens: accepted(token)}, NewMetrics(prometheus.NewRegistry()))
	if err != nil {
		b.Fatal(err)
	}
	handlers := []http.Handler{server.Handler(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })}
	var urls []string
	for _, h := range handlers {
		s := httptest.NewServer(h)
		b.Cleanup(s.Close)
		urls = append(urls, s.URL+pathTraefik)
	}
	var times [2][]time.Duration
	b.ResetTimer()
	for n := range b.N {
		for i, url := range urls {
			r, _ := http.NewRequest(http.MethodGet, url, nil)
			r.Header.Set("Authorization", "Bearer "+token)
			r.Header.Set("X-Sandbox-Id", fmt.Sprintf("sandbox-%d", n*7919%sandboxes))
			r.Header.Set("X-Sandbox-Namespace", "team-a")
			start := time.Now()
			response, err := http.DefaultClient.Do(r)
			times[i] = append(times[i], time.Since(start))
			if err != nil || response.StatusCode != http.StatusOK {
				b.Fatalf("%v %v", response, err)
			}
			_ = response.Body.Close()
		}
	}
	b.StopTimer()
	for i := range times {
		slices.Sort(times[i])
	}
	median := func(i int) float64 { return float64(times[i][len(times[i])/2]) }
	b.ReportMetric(median(0)/1e3, "us/check")
	b.ReportMetric(median(1)/1e3, "us/no-op")
	b.ReportMetric(median(1)/median(0), "x-no-op")
	b.ReportMetric(0, "ns/op")
}

// accepted are tokens that come from no file.
func accepted(token string) *Tokens {
	t := &Tokens{}
	t.set([]string{token})
	return t
}
