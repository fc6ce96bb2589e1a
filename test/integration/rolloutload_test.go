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
// fills the oldest. Where there is none it is spare, and leaves no gap: agent-sandbox
// makes members too many at times, and deletes as many.
type ledger struct {
	mu    sync.Mutex
	ready map[types.UID]bool
	gaps  []gap
	spare int
	// most is how many gaps that deletes left were open at one time.
	most, deletes, binds int
	// wants is the image that claims can get; members of another one are not there for
	// them. "" for any.
	wants string
	// stands is since when a member has been ready and shown, and taken how a claim got one.
	stands map[types.UID]standing
	taken  map[types.UID]taking
	cold   []coldStart
	// order counts what happens, and made is when a claim was made, by that.
	order int
	made  map[string]int
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
	return &ledger{
		ready: map[types.UID]bool{}, stands: map[types.UID]standing{}, taken: map[types.UID]taking{}, made: map[string]int{},
		place: map[types.UID]int{}, asked: map[string]int{},
	}
}

// start has the ledger begin with what stands there.
func (l *ledger) start(members []unstructured.Unstructured) {
	for i := range members {
		l.see(watch.Added, &members[i], time.Now())
	}
	l.gaps, l.spare = nil, 0
}

// want has the ledger look at members of this image alone.
func (l *ledger) want(image string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wants, l.stands = image, map[types.UID]standing{}
}

// asks notes claims that are made next.
func (l *ledger) asks(claims ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.order++
	for _, name := range claims {
		l.asked[name], l.made[name] = l.known, l.order
	}
}

type gap bool

const (
	leftByBind   gap = false
	leftByDelete gap = true
)

// coldStart is one beside members that stood ready and shown, and were known.
type coldStart struct {
	taking
	at     time.Time
	beside map[types.UID]standing
}

// standing is since when a member stands there: in the time of this process, and by the order
// of things.
type standing struct {
	since time.Time
	order int
}

// taking is what claim got a sandbox, and when, by the order of things.
type taking struct {
	claim string
	order int
}

func (l *ledger) see(event watch.EventType, sandbox *unstructured.Unstructured, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.order++
	uid := sandbox.GetUID()
	pool := scenario.PoolOf(sandbox)
	claims := agentsandbox.ClaimsOf(sandbox)
	gone := event == watch.Deleted || sandbox.GetDeletionTimestamp() != nil
	ready := pool != "" && !gone && !agentsandbox.ReadySince(sandbox).IsZero()
	switch was := l.ready[uid]; {
	case ready && !was:
		l.ready[uid] = true
		l.comes()
	case !ready && was && len(claims) > 0:
		delete(l.ready, uid)
		l.binds++
		l.leaves(leftByBind)
	case !ready && was:
		delete(l.ready, uid)
		l.deletes++
		l.leaves(leftByDelete)
	}
	if _, had := l.taken[uid]; len(claims) > 0 && !had {
		by := taking{claims[0].Name, l.order}
		l.taken[uid] = by
		l.known = max(l.known, l.place[uid])
		if l.stands[uid].order == 0 && pool == "" && sandbox.GetName() == by.claim && event == watch.Added {
			beside := maps.Clone(l.stands)
			maps.DeleteFunc(beside, func(uid types.UID, _ standing) bool { return l.place[uid] >= l.asked[by.claim] })
			l.cold = append(l.cold, coldStart{by, now, beside})
		}
	}
	if ready && agentsandbox.Shown(sandbox) && (l.wants == "" || scenario.ImageOf(sandbox) == l.wants) {
		if l.stands[uid].order == 0 {
			l.stands[uid], l.place[uid] = standing{now, l.order}, len(l.place)+1
		}
	} else {
		delete(l.stands, uid)
	}
}

func (l *ledger) comes() {
	if len(l.gaps) > 0 {
		l.gaps = l.gaps[1:]
	} else {
		l.spare++
	}
}

func (l *ledger) leaves(g gap) {
	if l.spare > 0 {
		l.spare--
		return
	}
	l.gaps = append(l.gaps, g)
	open := 0
	for _, g := range l.gaps {
		if g == leftByDelete {
			open++
		}
	}
	l.most = max(l.most, open)
}

// turns is how many claims have to be made while a member stands there, and to be given
// something else after a cold start, before it has been skipped: it may have been written to
// just when it could have been taken.
const turns = 10

// skipped lists the cold starts of claims that a member was there for. A claim that was made
// before may have been on its way to it, however long that took.
func (l *ledger) skipped() []string {
	var out []string
	for _, c := range l.cold {
		for uid, stood := range c.beside {
			by, had := l.taken[uid]
			onItsWay := had && (l.made[by.claim] < c.order || l.servedBetween(c.order, by.order) < turns)
			if l.madeBetween(stood.order, c.order) >= turns && !onItsWay {
				out = append(out, fmt.Sprintf("%s cold beside %s, there for %s", c.claim, uid, c.at.Sub(stood.since)))
			}
		}
	}
	return out
}

func (l *ledger) madeBetween(from, to int) (n int) {
	for _, made := range l.made {
		if from < made && made < to {
			n++
		}
	}
	return n
}

// servedBetween counts claims that were made, and got something, between two moments.
func (l *ledger) servedBetween(from, to int) (n int) {
	for _, t := range l.taken {
		if from < l.made[t.claim] && t.order < to {
			n++
		}
	}
	return n
}

// follow feeds a ledger from the pool's present state on, until stop.
func (s *stage) follow(p scenario.Pool) (l *ledger, stop func()) {
	s.t.Helper()
	l = newLedger()
	s.full(p, "")
	list, err := s.Resource(upstream.Sandboxes).List(s.t.Context(), metav1.ListOptions{})
	s.must(err)
	l.start(list.Items)
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
	l.want("sandbox:v2")
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

	t.Logf("%s; %d members deleted and %d bound, at most %d in replacement at once; %d cold beside what was long ready",
		sum, l.deletes, l.binds, l.most, sum.ColdBesideReady)
	if l.deletes == 0 || l.binds == 0 {
		t.Errorf("%d deletes and %d binds: nothing was tried", l.deletes, l.binds)
	}
	if l.most > unavailable {
		t.Errorf("%d members were deleted and not yet replaced at one time, want %d or fewer", l.most, unavailable)
	}
	for _, passed := range l.skipped() {
		t.Errorf("%s", passed)
	}
	for _, b := range findings {
		if b.Class != checker.Tolerated && b.Class != checker.Raced {
			t.Errorf("%s", b)
		}
	}
}
