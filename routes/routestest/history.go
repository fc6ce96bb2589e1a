package routestest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"
)

// HistoryOptions choose random histories.
type HistoryOptions struct {
	// Steps is how many there are, over all histories.
	Steps int
	Seed  uint64
	// Length is how many steps a history has; 250 when zero.
	Length int
	// Rest is how long an IP is not used again. When it is longer than MaxAge no
	// answer may lead to another sandbox.
	Rest time.Duration
}

// HistoryResult says what was tried.
type HistoryResult struct {
	Steps, Histories, Lookups, Served int
	// Misdirected answers led to another sandbox, by a view no older than MaxAge.
	Misdirected int
}

// HistoryError is a history that went wrong, shortened.
type HistoryError struct {
	Seed  uint64
	Story []string
	Err   error
}

func (e *HistoryError) Error() string {
	return fmt.Sprintf("history %d, shortened:\n  %s\n  WRONG: %v", e.Seed, strings.Join(e.Story, "\n  "), e.Err)
}

func (e *HistoryError) Unwrap() error { return e.Err }

// step is one thing that happens. What its numbers choose depends on what there
// is then, so that a history with steps left out is a history, too.
type step struct {
	op      op
	a, b, c int
}

type op int

const (
	opCreate op = iota
	opPause
	opResume
	opRecycle
	opReplacePod
	opDelete
	opExpire
	opDisown
	opDeliver
	opDeliverEarly
	opLate
	opPush
	opForge
	opRead
	opPass
	opRestart
	opList
	opOutage
	opSave
	opRestore
)

// weights say how often each thing happens.
var weights = map[op]int{
	opCreate: 12, opPause: 5, opResume: 6, opRecycle: 2, opReplacePod: 3, opDelete: 6, opExpire: 1, opDisown: 4, opDeliver: 30, opDeliverEarly: 4, opLate: 12,
	opPush: 10, opForge: 3, opRead: 20, opPass: 12, opRestart: 1, opList: 2, opOutage: 1, opSave: 1, opRestore: 1,
}

var pauses = []time.Duration{
	time.Millisecond, time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond, 500 * time.Millisecond, time.Second, time.Second,
	2 * time.Second, 4 * time.Second, 6 * time.Second, 11 * time.Minute,
}

var deck = func() []op {
	var all []op
	for o := opCreate; o <= opRestore; o++ {
		all = append(all, slices.Repeat([]op{o}, weights[o])...)
	}
	return all
}()

func randomSteps(rng *rand.Rand, n int) []step {
	steps := make([]step, n)
	for i := range steps {
		steps[i] = step{deck[rng.IntN(len(deck))], rng.IntN(1 << 20), rng.IntN(1 << 20), rng.IntN(1 << 20)}
	}
	return steps
}

// Histories runs random histories with two tables each, as two replicas have
// them, and returns the first that goes wrong as a *HistoryError.
func Histories(newTable NewTable, o HistoryOptions) (HistoryResult, error) {
	var result HistoryResult
	length := o.Length
	if length == 0 {
		length = 250
	}
	for seed := o.Seed; result.Steps < o.Steps; seed++ {
		steps := randomSteps(rand.New(rand.NewPCG(seed, 0)), length)
		h := newHistory(newTable, seed, o.Rest)
		err := h.run(steps)
		result.Steps += length
		result.Histories++
		for _, p := range h.planes {
			result.Lookups += p.lookups
			result.Served += p.served
			result.Misdirected += p.misdirected
		}
		if err != nil {
			return result, narrate(newTable, seed, o.Rest, shrink(newTable, seed, o.Rest, steps))
		}
	}
	return result, nil
}

// narrate runs a history once more and keeps what happened.
func narrate(newTable NewTable, seed uint64, rest time.Duration, steps []step) *HistoryError {
	h := newHistory(newTable, seed, rest)
	f := &HistoryError{Seed: seed}
	h.logf = func(format string, args ...any) {
		f.Story = append(f.Story, fmt.Sprintf("%9s v%-3d ", h.clock.now.Sub(begin), h.version)+fmt.Sprintf(format, args...))
	}
	f.Err = h.run(steps)
	return f
}

const shrinkRuns = 3000

// shrink leaves steps out for as long as the history goes wrong without them.
func shrink(newTable NewTable, seed uint64, rest time.Duration, steps []step) []step {
	fails := func(s []step) bool { return newHistory(newTable, seed, rest).run(s) != nil }
	runs := 0
	for size := len(steps) / 2; size >= 1; {
		removed := false
		for at := 0; at < len(steps) && runs < shrinkRuns; {
			end := min(at+size, len(steps))
			fewer := slices.Concat(steps[:at], steps[end:])
			runs++
			if fails(fewer) {
				steps, removed = fewer, true
				continue
			}
			at = end
		}
		if size > 1 || !removed {
			size /= 2
		}
		if runs >= shrinkRuns {
			break
		}
	}
	return steps
}

type history struct {
	*world
	planes []*plane
	names  []string
	shorts int
}

// newHistory has two planes. Addresses are few, so that they are used again at
// once, or many, so that it takes long; which, follows from the seed.
func newHistory(newTable NewTable, seed uint64, rest time.Duration) *history {
	w := newWorld(2 + int(seed%4)*2)
	w.rest = rest
	h := &history{world: w, names: []string{"a/s1", "a/s2", "b/s1", "a/s3"}}
	for _, name := range []string{"plane 1", "plane 2"} {
		p := newPlane(name, w, newTable, maxAge)
		p.list()
		h.planes = append(h.planes, p)
	}
	return h
}

func (h *history) run(steps []step) error {
	for _, s := range steps {
		h.step(s)
		for _, p := range h.planes {
			if err := p.check(); err != nil {
				return err
			}
		}
	}
	return h.settle()
}

// settle ends the history: all is delivered, and both planes tell the truth.
func (h *history) settle() error {
	h.broken = false
	h.logf("everything is delivered")
	for range 2 {
		h.pass(time.Millisecond)
		for _, p := range h.planes {
			p.quiet()
		}
	}
	for _, p := range h.planes {
		if err := p.settled(); err != nil {
			return err
		}
	}
	return nil
}

func (h *history) pass(d time.Duration) {
	h.clock.now = h.clock.now.Add(d)
	for _, s := range h.sandboxes {
		if !s.Expires.IsZero() && !h.clock.now.Before(s.Expires) {
			h.updateTruth(nil)
			return
		}
	}
}

func (h *history) step(s step) {
	name := h.names[s.a%len(h.names)]
	o := h.sandboxes[name]
	p := h.planes[s.b%len(h.planes)]
	switch s.op {
	case opCreate:
		namespace, base, _ := strings.Cut(name, "/")
		h.create(namespace, base)
	case opPass:
		d := pauses[s.a%len(pauses)]
		h.pass(d)
		h.logf("%s pass", d)
	case opSave:
		h.save()
	case opRestore:
		// It gives addresses back to who had them, however long they were to rest.
		if h.rest == 0 {
			h.restore()
		}
	case opOutage:
		h.broken = !h.broken
		h.logf("live reads fail: %t", h.broken)
	default:
		if s.op < opDeliver && o != nil {
			h.change(s, o)
		} else if s.op >= opDeliver {
			h.feed(s, p)
		}
	}
}

// change does something to a sandbox.
func (h *history) change(s step, o *Sandbox) {
	switch s.op {
	case opPause:
		h.pause(o)
	case opResume:
		h.resume(o)
	case opRecycle:
		id := ""
		if s.c%2 == 0 {
			h.shorts++
			id = "short-" + strconv.Itoa(h.shorts)
		}
		h.recycle(o, id)
	case opReplacePod:
		h.replacePod(o)
	case opDelete:
		h.delete(o)
	case opExpire:
		next := *o
		next.Expires = h.clock.now.Add(time.Duration(1+s.c%10) * time.Second)
		h.putSandbox(next)
		h.logf("%s/%s is to end at %s", o.Namespace, o.Name, next.Expires.Sub(begin))
	case opDisown:
		h.changeOwner(s, o)
	}
}

// changeOwner has a Pod name another owner, or its own again. The Pod of an owner
// that does not exist is deleted in the end.
func (h *history) changeOwner(s step, o *Sandbox) {
	if p := h.pod(o); p != nil && p.Sandbox != o.Name && s.b%2 == 0 {
		h.deletePod(*p)
		h.logf("the Pod of %s/%s is deleted; %s is free", o.Namespace, o.Name, p.IP)
		return
	}
	h.disown(o, []string{o.Name, "gone", "s1", "s2", "s3"}[s.c%5])
}

// feed has a plane hear something.
func (h *history) feed(s step, p *plane) {
	kind := s.a % 2
	switch s.op {
	case opDeliver:
		n := []int{1, 2, 5, 1000}[s.c%4]
		if got := p.deliver(kind, n); got > 0 {
			h.logf("%s gets %d events of %s", p.name, got, [...]string{"Sandboxes", "Pods"}[kind])
		}
	case opDeliverEarly:
		if ahead := len(h.log[kind]) - p.cursor[kind]; p.connected() && ahead > 0 {
			h.early(p, h.log[kind][p.cursor[kind]+s.c%ahead])
		}
	case opLate:
		if len(h.past) > 0 {
			h.late(p, h.past[s.c%len(h.past)])
		}
	case opPush:
		if len(h.messages) > 0 {
			m := h.messages[s.c%len(h.messages)]
			h.logf("%s gets the push that %s is %s, v%s", p.name, m.ID, m.State, m.Version)
			p.table.Refresh(m)
		}
	case opForge:
		h.forge(s, p)
	case opRead:
		p.read()
		h.logf("%s begins a consistent read", p.name)
	case opRestart:
		p.restart()
		h.logf("%s restarts", p.name)
	case opList:
		p.list()
		h.logf("%s lists everything", p.name)
	}
}

// early delivers an event ahead of its turn.
func (h *history) early(p *plane, e *entry) {
	h.logf("%s gets ahead of the rest: %s", p.name, e)
	p.early[e] = true
	p.know(e.event)
	p.table.Apply(e.event)
}

// late repeats an event, of this or of an earlier time.
func (h *history) late(p *plane, e *entry) {
	if p.epoch < 0 || e.event.Epoch == p.epoch && e.index >= p.cursor[e.kind] || e.event.Epoch > p.epoch {
		return
	}
	h.logf("%s gets late: %s", p.name, e)
	p.table.Apply(e.event)
}

func (h *history) forge(s step, p *plane) {
	if len(h.messages) == 0 {
		return
	}
	m := h.messages[s.c%len(h.messages)]
	m.State = []string{"running", "dead", "paused"}[s.a%3]
	m.Version = []string{"1", "9223372036854775807", m.Version}[s.a/3%3]
	if s.a%2 == 0 {
		m.IP = "10.6.6.6"
	}
	h.logf("%s gets the forged push that %s is %s at %s, v%s", p.name, m.ID, m.State, m.IP, m.Version)
	p.table.Refresh(m)
}

func (e *entry) String() string {
	if s := e.event.Sandbox; s != nil {
		return fmt.Sprintf("%s Sandbox %s/%s v%d (%s)", e.event.Type, s.Namespace, s.Name, s.Version, s.State)
	}
	p := e.event.Pod
	return fmt.Sprintf("%s Pod %s/%s v%d (%s)", e.event.Type, p.Namespace, p.Name, p.Version, p.IP)
}
