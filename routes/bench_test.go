package routes_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/freshbind/freshbind/routes"
)

const benchRoutes = 100_000

func uuid(kind byte, n int) routes.UID {
	return routes.ParseUID(fmt.Sprintf("%08x-0000-4000-80%02x-%012d", n*2654435761&0xffffffff, kind, n))
}

func benchSandbox(n int, v routes.Version) routes.Sandbox {
	return routes.Sandbox{
		Namespace: fmt.Sprintf("team-%d", n%100), Name: fmt.Sprintf("python-%08x", n), UID: uuid(1, n), Version: v, State: routes.Running, Claim: uuid(2, n),
	}
}

func benchPod(n int, v routes.Version) routes.Pod {
	s := benchSandbox(n, v)
	return routes.Pod{
		Namespace: s.Namespace, Name: s.Name, UID: uuid(3, n), Version: v, Sandbox: s.Name, SandboxUID: s.UID,
		Address: netip.AddrFrom4([4]byte{10, byte(n >> 16), byte(n >> 8), byte(n)}), Ready: true,
	}
}

// fill makes a table of n routes.
func fill(n int) (*routes.Table, *routes.Session, []string) {
	t := routes.New(routes.Options{MaxAge: time.Hour})
	s := t.Begin()
	ids := make([]string, n)
	for i := range n {
		o := benchSandbox(i, routes.Version(i+1))
		s.Sandbox(o)
		s.Pod(benchPod(i, routes.Version(i+1)))
		ids[i] = routes.DefaultID(o.Namespace, o.Name)
	}
	s.Listed(routes.Sandboxes, time.Now())
	s.Listed(routes.Pods, time.Now())
	return t, s, ids
}

// BenchmarkLookup has a writer change routes all the time, and asks the table
// and a sync.Map in turns. p99 is of 64 lookups at once, per lookup.
//
// An ID that is asked for comes from a request: it is never the very string that
// is stored, which sync.Map would compare by its pointer.
func BenchmarkLookup(b *testing.B) {
	table, session, ids := fill(benchRoutes)
	var plain sync.Map
	for i, id := range ids {
		plain.Store(strings.Clone(id), new(benchPod(i, 1)))
	}
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(100 * time.Microsecond):
				i := n % benchRoutes
				session.Sandbox(benchSandbox(i, routes.Version(benchRoutes+n+1)))
				plain.Store(strings.Clone(ids[i]), new(benchPod(i, 1)))
			}
		}
	})
	order := make([]string, len(ids))
	for i := range order {
		order[i] = ids[i*7919%len(ids)]
	}
	const batch = 64
	var times [2][]time.Duration
	next := 0
	b.ResetTimer()
	for range b.N {
		some := order[next : next+batch]
		next = (next + batch) % (len(order) - batch)
		start := time.Now()
		for _, id := range some {
			if table.Lookup(id).Status != routes.Serving {
				b.Fatal("not served")
			}
		}
		times[0] = append(times[0], time.Since(start))
		some = order[next : next+batch]
		next = (next + batch) % (len(order) - batch)
		start = time.Now()
		for _, id := range some {
			if p, ok := plain.Load(id); !ok || !p.(*routes.Pod).Ready {
				b.Fatal("not ready")
			}
		}
		times[1] = append(times[1], time.Since(start))
	}
	b.StopTimer()
	close(stop)
	writer.Wait()
	var p50, p99 [2]float64
	for i := range times {
		slices.Sort(times[i])
		p50[i] = float64(times[i][len(times[i])/2].Nanoseconds()) / batch
		p99[i] = float64(times[i][len(times[i])*99/100].Nanoseconds()) / batch
	}
	b.ReportMetric(p50[0], "ns/lookup")
	b.ReportMetric(p99[0], "p99-ns/lookup")
	b.ReportMetric(p50[1], "sync.Map-ns/load")
	b.ReportMetric(p99[1], "sync.Map-p99-ns/load")
	b.ReportMetric(p50[0]/p50[1], "x-sync.Map")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkMemory says what a route costs.
func BenchmarkMemory(b *testing.B) {
	var perRoute float64
	for range b.N {
		before := heap()
		table, _, _ := fill(benchRoutes)
		perRoute = float64(heap()-before) / benchRoutes
		runtime.KeepAlive(table)
	}
	b.ReportMetric(perRoute, "B/route")
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkApply is a change of a sandbox in a full table.
func BenchmarkApply(b *testing.B) {
	_, session, _ := fill(benchRoutes)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		session.Sandbox(benchSandbox(n%benchRoutes, routes.Version(benchRoutes+n+1)))
		n++
	}
}
