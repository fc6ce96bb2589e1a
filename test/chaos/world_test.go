package chaos

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	guarded "github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/recorder"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/warmpool"
)

const (
	release = "v1.0.3"
	// within bounds every wait; nothing here should come near it.
	within = 10 * time.Minute
)

// lead makes a replica run for the lease.
var lead = []string{"--leader-elect=true", "--leader-election-namespace=default"}

// platform is a warm-pool system.
type platform interface {
	warmpool.Platform
	Admission() guarded.Admission
	// Templates are what members are built from.
	Templates() []schema.GroupResource
	// ClaimsAreObjects: the auditor counts them, and not only what they got.
	ClaimsAreObjects() bool
	// Restart starts again all that has caches.
	Restart(ctx context.Context, w *scenario.World) error
}

// world is what all faults share.
type world struct {
	*scenario.World
	platform platform
	// background ends with the world.
	background context.Context
	record     *recorder.Recorder
	endRecord  func()
	// proxy is between Freshbind and the API server.
	proxy *controlplane.Proxy
	// replicas are two; the API server asks the first.
	replicas [2]*replica
}

// replica is started again when it ends, as a kubelet does.
type replica struct {
	*fixture.Freshbind
	mu sync.Mutex
}

func (r *replica) keep(ctx context.Context) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.mu.Lock()
			if r.Err() != nil {
				// What cannot be started now may be at the next tick.
				_ = r.Launch()
			}
			r.mu.Unlock()
		}
	}
}

// signal is for the process that runs now.
func (r *replica) signal(s syscall.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return syscall.Kill(r.PID(), s)
}

func TestMain(m *testing.M) { fixture.Main(m, func() error { return nil }) }

func newWorld(t *testing.T, of platform) *world {
	t.Helper()
	program, err := fixture.Program(steppable(t)...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	w := &world{platform: of, background: ctx}
	o := scenario.WorldOptions{
		Cluster: controlplane.Options{Log: os.Stderr},
		Guard:   fixture.Options{Args: slices.Clone(lead), Program: program},
		Reach: func(c *controlplane.Cluster, freshbind *rest.Config) (*rest.Config, error) {
			var err error
			if w.proxy, err = c.NewProxy(0); err != nil {
				return nil, err
			}
			return w.proxy.Config(freshbind), nil
		},
	}
	if err = of.Options(ctx, &o); err == nil {
		w.World, err = scenario.StartWorld(ctx, o)
	}
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	var keepers sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		keepers.Wait()
		w.stop(t)
	})
	if err := of.Begin(ctx, w.World); err != nil {
		t.Fatal(err)
	}
	second, err := w.StartSecond(ctx, w.proxy.Config, o.Guard.Args...)
	if err != nil {
		t.Fatal(err)
	}
	w.replicas = [2]*replica{{Freshbind: w.Guard}, {Freshbind: second}}
	for _, r := range w.replicas {
		keepers.Go(func() { r.keep(ctx) })
	}
	if err := w.startRecord(); err != nil {
		t.Fatal(err)
	}
	w.RanOn(t)
	return w
}

// stop ends the world; a data race in Freshbind and a program of the cluster that
// ended by itself are errors.
func (w *world) stop(t *testing.T) {
	t.Helper()
	for _, r := range w.replicas {
		if r == nil {
			continue
		}
		if log, err := os.ReadFile(r.LogPath()); err == nil && strings.Contains(string(log), "DATA RACE") {
			t.Errorf("freshbind has a data race:\n%s", log)
		}
	}
	if err := w.Cluster.Err(); err != nil {
		t.Error(err)
	}
	if second := w.replicas[1]; second != nil {
		if err := second.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := w.Stop(); err != nil {
		t.Error(err)
	}
}

// leasesLost is how often a process of the replica has ended because it lost its lease.
func (r *replica) leasesLost(t *testing.T) int {
	t.Helper()
	log, err := os.ReadFile(r.LogPath())
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Count(log, []byte(fixture.LeaseLost))
}

// metric is the value of a metric without labels, or with exactly one set of them.
func (r *replica) metric(ctx context.Context, name string) (float64, error) {
	text, err := r.Metrics(ctx)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, name+" ") || strings.HasPrefix(line, name+"{") {
			fields := strings.Fields(line)
			return strconv.ParseFloat(fields[len(fields)-1], 64)
		}
	}
	return 0, fmt.Errorf("there is no metric %s", name)
}

// leader is the replica that says that it leads; -1 when none does.
func (w *world) leader(ctx context.Context) int {
	for i, r := range w.replicas {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		leads, err := r.metric(ctx, "leader_election_master_status")
		cancel()
		if err == nil && leads == 1 {
			return i
		}
	}
	return -1
}

// usage is what a replica holds once garbage is collected.
type usage struct{ goroutines, heap float64 }

// How much more than before a fault a replica may hold after it: caches know more
// objects than before, and a connection or two are kept.
const (
	moreGoroutines = 100
	moreHeap       = 32 << 20
)

func (u usage) String() string {
	return fmt.Sprintf("%.0f goroutines, %.1f MiB", u.goroutines, u.heap/(1<<20))
}

// within reports whether it is no more than before, within the bounds.
func (u usage) within(before usage) bool {
	return u.goroutines <= before.goroutines+moreGoroutines && u.heap <= before.heap+moreHeap
}

func (r *replica) usage(ctx context.Context) (usage, error) {
	// The profile collects garbage first.
	if _, err := r.Profile(ctx); err != nil {
		return usage{}, err
	}
	goroutines, err := r.metric(ctx, "go_goroutines")
	if err != nil {
		return usage{}, err
	}
	heap, err := r.metric(ctx, "go_memstats_heap_alloc_bytes")
	return usage{goroutines, heap}, err
}
