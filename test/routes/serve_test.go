package routes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// rounds is how often each address is handed on while its watch works.
	rounds = 3
	// senders are the clients of each gateway.
	senders = 4
	// inMind is how many of an address's earlier sandboxes clients still ask for.
	inMind = 3
)

func addresses() []string {
	var out []string
	for i := range 12 {
		out = append(out, fmt.Sprintf("127.0.16.%d", i+1))
	}
	return out
}

// life is what the test knows of a sandbox.
type life struct {
	name    string
	address string
	// ended is when its deletion was complete, in nanoseconds; 0 before.
	ended atomic.Int64
	// goneSeen is set as soon as a client has been told so.
	goneSeen atomic.Bool
}

// census has the sandboxes that clients ask for.
type census struct {
	mu    sync.Mutex
	lives map[string][]*life
	total int
}

func (c *census) begin(address string) *life {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total++
	l := &life{name: fmt.Sprintf("sandbox-%d", c.total), address: address}
	c.lives[address] = append(c.lives[address], l)
	c.lives[address] = c.lives[address][max(0, len(c.lives[address])-1-inMind):]
	return l
}

// newest is who has an address; nil for nobody so far.
func (c *census) newest(address string) *life {
	c.mu.Lock()
	defer c.mu.Unlock()
	if all := c.lives[address]; len(all) > 0 {
		return all[len(all)-1]
	}
	return nil
}

func (c *census) any(address string) *life {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.lives[address]
	if len(all) == 0 {
		return nil
	}
	return all[rand.IntN(len(all))]
}

// tally judges what the clients of one gateway saw.
type tally struct {
	t    *testing.T
	name string
	// right were answered by the sandbox that was asked for; refused by the gateway,
	// because the view was unknown or for another reason. empty and other were
	// answered by an address that nobody, or another, had; both are within L, or they
	// are failures.
	right, refused, unknown, empty, other, failed atomic.Int64
}

// send sends one request and judges the answer. What began later than L after
// the end of its sandbox must be refused, whoever has the address now.
func (y *tally) send(ctx context.Context, g gateway, l *life) {
	ended, gone, began := l.ended.Load(), l.goneSeen.Load(), time.Now()
	status, identity, err := g.send(ctx, l.name)
	switch {
	case err != nil:
		if ctx.Err() == nil {
			y.failed.Add(1)
		}
		return
	case status == http.StatusServiceUnavailable:
		y.unknown.Add(1)
		return
	case status != http.StatusOK:
		y.refused.Add(1)
		if status == http.StatusGone {
			l.goneSeen.Store(true)
		}
		return
	case gone:
		y.t.Errorf("%s: %s is back after it was gone, answered by %s", y.name, l.name, identity)
	case ended != 0 && began.After(time.Unix(0, ended).Add(maxAge)):
		y.t.Errorf("%s: %s was routed to %s, %s after its end", y.name, l.name, identity, began.Sub(time.Unix(0, ended)))
	}
	switch identity {
	case l.name:
		y.right.Add(1)
	case nobody:
		y.empty.Add(1)
	default:
		y.other.Add(1)
		if ended == 0 && l.ended.Load() == 0 {
			y.t.Errorf("%s: %s, which runs, was routed to %s", y.name, l.name, identity)
		}
	}
}

func (y *tally) String() string {
	return fmt.Sprintf("%s: %d answered by the sandbox asked for, %d refused, %d not known, %d failed; within %s of their end %d led to an address just left, %d to another sandbox",
		y.name, y.right.Load(), y.refused.Load(), y.unknown.Load(), y.failed.Load(), maxAge, y.empty.Load(), y.other.Load())
}

// phase is what happens to addresses meanwhile.
type phase int

const (
	atOnce phase = iota
	afterL
	whileHeld
	phases
)

func (p phase) String() string {
	return [...]string{"handed on at once", "handed on later than L", "watches held"}[p]
}

// traffic is what clients send through all gateways.
type traffic struct {
	gateways map[string]gateway
	tallies  map[string][]*tally
	phase    atomic.Int32
	stop     context.CancelFunc
	clients  sync.WaitGroup
}

func startTraffic(t *testing.T, gateways map[string]gateway, c *census) *traffic {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	out := &traffic{gateways: gateways, tallies: map[string][]*tally{}, stop: stop}
	for name, g := range gateways {
		for p := range phases {
			out.tallies[name] = append(out.tallies[name], &tally{t: t, name: name + ", " + p.String()})
		}
		all := out.tallies[name]
		for range senders {
			out.clients.Go(func() {
				for ctx.Err() == nil {
					address := addresses()[rand.IntN(len(addresses()))]
					if l := c.any(address); l != nil {
						all[out.phase.Load()].send(ctx, g, l)
					}
				}
			})
		}
	}
	return out
}

func (f *traffic) end() {
	f.stop()
	f.clients.Wait()
}

func TestNoRequestReachesAnotherSandbox(t *testing.T) {
	w := newWorld(t, addresses())
	gateways := map[string]gateway{"plain": &plain{w}}
	t.Run("nginx", func(t *testing.T) {
		if _, err := nginxProgram(); err != nil {
			t.Skipf("SKIPPED: nginx is not installed, so only the plain gateway is tested (Debian: apt-get install nginx-light)")
		}
	})
	if n := startNginx(t, w); n != nil {
		gateways["nginx"] = n
	}
	c := &census{lives: map[string][]*life{}}
	f := startTraffic(t, gateways, c)
	defer f.end()
	churn(t, w, c, gateways, 0)
	f.shown(t, atOnce)
	f.phase.Store(int32(afterL))
	last := churn(t, w, c, gateways, maxAge+time.Second)
	f.shown(t, afterL)
	f.phase.Store(int32(whileHeld))
	held(t, w, c, gateways, last)
	f.shown(t, whileHeld)
	f.end()
	for _, all := range f.tallies {
		for _, y := range all {
			t.Log(y)
		}
	}
}

// shown waits until every gateway has led a client right in a phase: without that,
// nothing is shown.
func (f *traffic) shown(t *testing.T, p phase) {
	t.Helper()
	for _, all := range f.tallies {
		if err := poll(t, func(context.Context) bool { return all[p].right.Load() > 0 }); err != nil {
			t.Errorf("nothing was shown: %s", all[p])
		}
	}
}

// churn hands every address on, some time after the end of who had it, and returns
// who has them in the end.
func churn(t *testing.T, w *world, c *census, gateways map[string]gateway, vacant time.Duration) []*life {
	t.Helper()
	last := make([]*life, len(addresses()))
	var group errgroup.Group
	for i, address := range addresses() {
		group.Go(func() error {
			for round := range rounds {
				if l := c.newest(address); l != nil {
					end := w.end
					if round%2 == 1 {
						end = w.abandon
					}
					if err := finish(l, end); err != nil {
						return err
					}
					time.Sleep(vacant)
				}
				l := c.begin(address)
				if err := w.run(l.name, address); err != nil {
					return err
				}
				if err := untilServed(t, gateways, l); err != nil {
					return err
				}
				last[i] = l
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return last
}

func finish(l *life, end func(name, address string) error) error {
	if err := end(l.name, l.address); err != nil {
		return err
	}
	l.ended.Store(time.Now().UnixNano())
	return nil
}

// untilServed waits until every gateway leads to the sandbox.
func untilServed(t *testing.T, gateways map[string]gateway, l *life) error {
	for name, g := range gateways {
		err := poll(t, func(ctx context.Context) bool {
			status, identity, err := g.send(ctx, l.name)
			return err == nil && status == http.StatusOK && identity == l.name
		})
		if err != nil {
			return fmt.Errorf("waiting until %s leads to %s: %w", name, l.name, err)
		}
	}
	return nil
}

func poll(t *testing.T, ok func(context.Context) bool) error {
	return wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 10*time.Minute, true,
		func(ctx context.Context) (bool, error) { return ok(ctx), nil })
}

// held keeps the watches back, hands every address on when nothing is known any
// more, and lets go.
func held(t *testing.T, w *world, c *census, gateways map[string]gateway, last []*life) {
	t.Helper()
	w.hold()
	for _, l := range last {
		if err := finish(l, w.end); err != nil {
			t.Fatal(err)
		}
	}
	everywhere503(t, gateways, last)
	next := make([]*life, len(last))
	for i, l := range last {
		next[i] = c.begin(l.address)
		if err := w.run(next[i].name, l.address); err != nil {
			t.Fatal(err)
		}
	}
	for name, g := range gateways {
		for range 20 {
			for _, l := range append(last, next...) {
				if status, identity, err := g.send(t.Context(), l.name); err != nil || status != http.StatusServiceUnavailable {
					t.Errorf("%s answers %d %s (%v) for %s while the watches are held", name, status, identity, err, l.name)
				}
			}
		}
	}
	w.release()
	for i, l := range next {
		if err := untilServed(t, gateways, l); err != nil {
			t.Fatal(err)
		}
		for name, g := range gateways {
			if status, identity, err := g.send(t.Context(), last[i].name); err != nil || status == http.StatusOK {
				t.Errorf("%s answers %d %s (%v) for %s, which ended", name, status, identity, err, last[i].name)
			}
		}
	}
}

// everywhere503 waits until every gateway says of every sandbox that nothing is
// known for certain.
func everywhere503(t *testing.T, gateways map[string]gateway, lives []*life) {
	t.Helper()
	for name, g := range gateways {
		for _, l := range lives {
			err := poll(t, func(ctx context.Context) bool {
				status, _, err := g.send(ctx, l.name)
				return err == nil && status == http.StatusServiceUnavailable
			})
			if err != nil {
				t.Fatalf("%s does not answer 503 for %s while the watches are held", name, l.name)
			}
		}
	}
}
