package integration

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

// ledger follows a pool's members in the order of its watch. What leaves the
// available ones, by a delete or by a bind, leaves a gap; what becomes available
// fills the oldest.
type ledger struct {
	mu    sync.Mutex
	ready map[types.UID]bool
	gaps  []gap
	// most is how many gaps that deletes left were open at one time.
	most, deletes, binds int
	// stands is since when a member has been ready and shown, and taken when a
	// claim got one; all in the time of this process.
	stands, taken map[types.UID]time.Time
	cold          []coldStart
	// place is when a member came to stand there, in the order of the watch, and
	// known the last that a claim got: whoever gives members to claims follows the
	// same watch, and had heard of all before it.
	place map[types.UID]int
	known int
	// asked is what was known when a claim was made: whoever served it may have
	// chosen from no more than that.
	asked map[string]int
}

func newLedger() *ledger {
	return &ledger{ready: map[types.UID]bool{}, stands: map[types.UID]time.Time{}, taken: map[types.UID]time.Time{}, place: map[types.UID]int{}, asked: map[string]int{}}
}

// asks notes claims that are made next.
func (l *ledger) asks(claims ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range claims {
		l.asked[name] = l.known
	}
}

type gap bool

const (
	leftByBind   gap = false
	leftByDelete gap = true
)

// coldStart is one beside members that stood ready and shown, and were known.
type coldStart struct {
	claim  string
	at     time.Time
	beside map[types.UID]time.Time
}

func (l *ledger) see(event watch.EventType, sandbox *unstructured.Unstructured, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	uid := sandbox.GetUID()
	pool := scenario.PoolOf(sandbox)
	claims := agentsandbox.ClaimsOf(sandbox)
	gone := event == watch.Deleted || sandbox.GetDeletionTimestamp() != nil
	ready := pool != "" && !gone && !agentsandbox.ReadySince(sandbox).IsZero()
	switch was := l.ready[uid]; {
	case ready && !was:
		l.ready[uid] = true
		l.gaps = l.gaps[min(1, len(l.gaps)):]
	case !ready && was:
		delete(l.ready, uid)
		if len(claims) > 0 {
			l.binds++
			l.gaps = append(l.gaps, leftByBind)
		} else {
			l.deletes++
			l.gaps = append(l.gaps, leftByDelete)
		}
	}
	open := 0
	for _, g := range l.gaps {
		if g == leftByDelete {
			open++
		}
	}
	l.most = max(l.most, open)

	if len(claims) > 0 && l.taken[uid].IsZero() {
		l.taken[uid] = now
		l.known = max(l.known, l.place[uid])
		if l.stands[uid].IsZero() && pool == "" && sandbox.GetName() == claims[0].Name && event == watch.Added {
			beside := maps.Clone(l.stands)
			maps.DeleteFunc(beside, func(uid types.UID, _ time.Time) bool { return l.place[uid] >= l.asked[claims[0].Name] })
			l.cold = append(l.cold, coldStart{claims[0].Name, now, beside})
		}
	}
	if ready && agentsandbox.Shown(sandbox) {
		if l.stands[uid].IsZero() {
			l.stands[uid], l.place[uid] = now, len(l.place)+1
		}
	} else {
		delete(l.stands, uid)
	}
}

// idleFor is how long a member that was known before the claim was made has to stand
// there before and after the cold start to have been skipped: with less of it a
// claim was just being given it.
const idleFor = time.Second

// skipped lists the cold starts of claims that a member was there for.
func (l *ledger) skipped() []string {
	var out []string
	for _, c := range l.cold {
		for uid, since := range c.beside {
			soon := !l.taken[uid].IsZero() && l.taken[uid].Sub(c.at) < idleFor
			if c.at.Sub(since) >= idleFor && !soon {
				out = append(out, fmt.Sprintf("%s cold beside %s, there for %s", c.claim, uid, c.at.Sub(since)))
			}
		}
	}
	return out
}

// follow feeds a ledger from the pool's present state on, until stop.
func (s *stage) follow(p scenario.Pool) (l *ledger, stop func()) {
	s.t.Helper()
	l = newLedger()
	s.full(p, "")
	list, err := s.Resource(upstream.Sandboxes).List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	for i := range list.Items {
		l.see(watch.Added, &list.Items[i], time.Now())
	}
	l.gaps = nil
	return l, s.watchFrom(s.Resource(upstream.Sandboxes), list.GetResourceVersion(),
		func(event watch.EventType, sandbox *unstructured.Unstructured) { l.see(event, sandbox, time.Now()) })
}

// While claims keep coming, a rollout never has more members in replacement than
// it may, and no claim is cold-started beside a member that it could have had.
func TestARolloutUnderLoad(t *testing.T) { eachRollout(t, rollsUnderLoad) }

func rollsUnderLoad(t *testing.T, s *stage) {
	const members, unavailable, claims = 20, 5, 40
	p := s.rolling(members, settings.MaxUnavailableKey, "25%", settings.MinReadySecondsKey, "1")
	was := s.state(p, "Complete", "")
	l, stop := s.follow(p)
	s.image(p, "sandbox:v2")
	names := scenario.Names("c", claims)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for pair := range slices.Chunk(names, 2) {
		<-tick.C
		l.asks(pair...)
		s.must(s.CreateClaims(t.Context(), p, pair...))
	}
	s.must(s.WaitClaims(t.Context(), within, names...))
	s.state(p, "Complete", was)
	s.full(p, "sandbox:v2")
	sum, findings := s.judged()
	stop()

	t.Logf("%s; %d members deleted and %d bound, at most %d in replacement at once", sum, l.deletes, l.binds, l.most)
	if l.deletes == 0 || l.binds == 0 {
		t.Errorf("%d deletes and %d binds: nothing was tried", l.deletes, l.binds)
	}
	if l.most > unavailable {
		t.Errorf("%d members were deleted and not yet replaced at one time, want %d or fewer", l.most, unavailable)
	}
	for _, passed := range l.skipped() {
		t.Errorf("%s", passed)
	}
	if sum.ColdBesideReady > 0 {
		t.Errorf("%d claims cold-started beside a fresh member: %s", sum.ColdBesideReady, sum)
	}
	for _, b := range findings {
		if b.Class != checker.Tolerated && b.Class != checker.Raced {
			t.Errorf("%s", b)
		}
	}
}
