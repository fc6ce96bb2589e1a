package chaos

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/warmpool"
)

// envClocks is the folder in which a steppable program has its clock.
const envClocks = "FRESHBIND_CHAOS_CLOCKS"

// clockSource is added to Go's package time. The wall clock is as many seconds ahead of
// the machine's as a file says that others write; what counts how long something takes
// is left alone, as by a step of the machine's clock.
const clockSource = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var steps = openSteps()

func openSteps() *int64 {
	dir, ok := syscall.Getenv("` + envClocks + `")
	if !ok {
		return nil
	}
	name := ""
	for pid := syscall.Getpid(); pid > 0; pid /= 10 {
		name = string(rune('0'+pid%10)) + name
	}
	fd, err := syscall.Open(dir+"/"+name, syscall.O_RDWR|syscall.O_CREAT|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		panic("opening the clock: " + err.Error())
	}
	if err := syscall.Ftruncate(fd, 8); err != nil {
		panic("sizing the clock: " + err.Error())
	}
	clock, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("mapping the clock: " + err.Error())
	}
	return (*int64)(unsafe.Pointer(&clock[0]))
}

func ahead() int64 {
	if steps == nil {
		return 0
	}
	return atomic.LoadInt64(steps)
}
`

// Now reads the machine's clock in one line of package time.
const (
	readsClock = "\tsec, nsec, mono := runtimeNow()\n"
	addsSteps  = readsClock + "\tsec += ahead()\n"
)

// steppable are flags of go build for a program whose wall clock can be stepped: Go reads
// the kernel's clock past the C library, and to set that clock is for nobody on a machine
// that others use, too.
func steppable(t *testing.T) []string {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("making the clock of freshbind steppable: %v", err)
		}
	}
	root, err := controlplane.RepositoryDir()
	check(err)
	goroot, err := controlplane.Go(t.Context(), root, "env", "GOROOT")
	check(err)
	clock := filepath.Join(strings.TrimSpace(goroot), "src", "time")
	source, err := os.ReadFile(filepath.Join(clock, "time.go"))
	check(err)
	if n := strings.Count(string(source), readsClock); n != 1 {
		t.Fatalf("making the clock of freshbind steppable: time.go of this Go reads it in %d places that are known, want 1", n)
	}
	dir := t.TempDir()
	replace := map[string]string{}
	for name, content := range map[string]string{"time.go": strings.Replace(string(source), readsClock, addsSteps, 1), "steps.go": clockSource} {
		replace[filepath.Join(clock, name)] = filepath.Join(dir, name)
		check(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	check(err)
	check(os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	t.Setenv(envClocks, t.TempDir())
	return []string{"-overlay", filepath.Join(dir, "overlay.json")}
}

// step sets how far the clock of the replica's process is ahead of the machine's.
func (r *replica) step(by time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	clock, err := os.OpenFile(filepath.Join(os.Getenv(envClocks), strconv.Itoa(r.PID())), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	var seconds [8]byte
	binary.NativeEndian.PutUint64(seconds[:], uint64(int64(by/time.Second)))
	_, err = clock.WriteAt(seconds[:], 0)
	return errors.Join(err, clock.Close())
}

// ahead is how far the replica's clock is ahead, as it says itself.
func (r *replica) ahead(ctx context.Context) (time.Duration, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.WebhookURL()+"/", nil)
	if err != nil {
		return 0, err
	}
	response, err := r.client().Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = response.Body.Close() }()
	date, err := http.ParseTime(response.Header.Get("Date"))
	return time.Until(date).Round(time.Minute), err
}

// clockJumps are what clocks are ahead, one after the other: both replicas jump by
// minutes and by hours, in both directions, and each elsewhere than the other.
var clockJumps = []time.Duration{
	3 * time.Hour, -2 * time.Hour, 5 * time.Minute, -10 * time.Minute, 47 * time.Hour, -time.Minute, 0, time.Hour, -12 * time.Hour,
}

// renewDeadline is how long a leader tries to renew its lease before it ends (internal/manager).
const renewDeadline = 10 * time.Second

// ends tells replicas that lost their lease because the machine stood still from all others that
// end.
type ends struct {
	s    *stage
	kube kubernetes.Interface
	// starts and lost are what there was before, seen how many have ended since.
	starts, lost, seen [2]int
	// version is that of the lease, first seen at since; longest is the longest that it stayed the
	// same, by the clock of this process, which nobody steps.
	version string
	since   time.Time
	longest time.Duration
}

func newEnds(s *stage) *ends {
	e := &ends{s: s, kube: s.kube(), since: time.Now()}
	for i, r := range s.w.replicas {
		e.starts[i], e.lost[i] = r.Starts(), r.leasesLost(s.t)
	}
	return e
}

// look complains of replicas that have ended since the last time.
func (e *ends) look() {
	lease, err := e.kube.CoordinationV1().Leases("default").Get(e.s.t.Context(), "freshbind", metav1.GetOptions{})
	now := time.Now()
	e.longest = max(e.longest, now.Sub(e.since))
	if err == nil && lease.ResourceVersion != e.version {
		e.version, e.since = lease.ResourceVersion, now
	}
	for i, r := range e.s.w.replicas {
		ended := r.Starts() - e.starts[i]
		if lost := r.leasesLost(e.s.t) - e.lost[i]; ended > e.seen[i] && (ended > lost || e.longest < renewDeadline/2) {
			e.s.t.Errorf("replica %d ended %d times, %d times without its lease, which was renewed every %s or more often", i, ended, lost, e.longest)
		}
		e.seen[i] = ended
	}
}

// clockSteps has the clocks of both replicas jump while claims are made and one more
// pool is rolled out, by Freshbind and within a deadline. No replica ends for it: the lease is
// no matter of the wall clock.
func clockSteps(s *stage) (func(context.Context) (string, bool), func()) {
	rolled := s.rolledPool()
	ended := newEnds(s)
	var seen atomic.Int64
	jumps, stop := again(func(turn int) {
		ended.look()
		for i, r := range s.w.replicas {
			by := clockJumps[(turn+i*len(clockJumps)/2)%len(clockJumps)]
			if err := r.step(by); err != nil {
				s.t.Errorf("stepping the clock of replica %d: %v", i, err)
			}
			if is, err := r.ahead(s.t.Context()); err == nil && is == by {
				seen.Add(1)
			}
		}
	})
	const image = "sandbox:v1"
	s.must(persist(s.t.Context(), func() error { return edit(s.t.Context(), rolled, image) }))
	return func(context.Context) (string, bool) {
			return fmt.Sprintf("%d jumps of each, %d seen", jumps.Load(), seen.Load()), int(jumps.Load()) > 2*len(clockJumps) && int(seen.Load()) > 2*len(clockJumps)
		}, func() {
			stop()
			ended.look()
			for _, r := range s.w.replicas {
				s.must(r.step(0))
			}
			s.must(s.retry(func() error { _, err := rolled.Rest(s.t.Context(), image, within); return err }))
			s.eventually("the rollout is complete", func(ctx context.Context) (string, bool) { return rolloutState(ctx, rolled) })
		}
}

// rolledPool is a pool that Freshbind rolls out, half of it at a time.
func (s *stage) rolledPool() warmpool.Pool {
	return s.newPool(warmpool.PoolOptions{
		Namespace: s.In() + "-rolled", Strategy: warmpool.RollingUpdate, Size: 4,
		Annotations: map[string]string{settings.MaxUnavailableKey: "50%", settings.MinReadySecondsKey: "2", settings.ProgressDeadlineKey: "5m"},
	})
}

// rolloutState is what the pool says of its rollout, and whether that is complete.
func rolloutState(ctx context.Context, p warmpool.Pool) (string, bool) {
	pools, name := p.Itself()
	stored, err := pools.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err.Error(), false
	}
	state := stored.GetAnnotations()[settings.RolloutStateKey]
	return state, state == "Complete"
}
