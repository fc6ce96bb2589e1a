package routestest

import (
	"fmt"
	"strings"
	"time"
)

// plane is a table with the watch that feeds it.
type plane struct {
	name  string
	table Table
	world *world
	// cursor is how much of each kind's log has been delivered.
	cursor [2]int
	epoch  int
	// early are events that were delivered ahead of the rest.
	early map[*entry]bool
	// reading is a consistent read that the watch has not caught up with.
	reading *reading
	// known is what the watch's store has, for what a list shows to be missing.
	knownSandboxes map[string]Sandbox
	knownPods      map[string]Pod
	maxAge         time.Duration
	lookups        int
	served         int
	misdirected    int
}

type reading struct {
	at  time.Time
	log [2]int
}

func newPlane(name string, w *world, newTable NewTable, maxAge time.Duration, namespaces ...string) *plane {
	p := &plane{name: name, world: w, maxAge: maxAge, early: map[*entry]bool{}}
	p.forget()
	p.table = newTable(Env{Clock: w.clock, MaxAge: maxAge, Namespaces: namespaces, Cluster: w})
	return p
}

func (p *plane) forget() { p.knownSandboxes, p.knownPods = map[string]Sandbox{}, map[string]Pod{} }

// restart has the process start again; list brings its view back.
func (p *plane) restart() {
	p.table.Restart()
	p.forget()
	p.reading = nil
	p.epoch = -1
}

// list has the watch list everything, as it does at its start and when it has
// lost events.
func (p *plane) list() {
	w := p.world
	e := w.snapshot()
	there := map[string]bool{}
	for _, s := range e.Sandboxes {
		there["s"+s.Namespace+"/"+s.Name+s.UID] = true
		p.table.Apply(Event{Type: Changed, Sandbox: &s, FromList: true, Epoch: w.epoch})
	}
	for _, o := range e.Pods {
		there["p"+o.Namespace+"/"+o.Name+o.UID] = true
		p.table.Apply(Event{Type: Changed, Pod: &o, FromList: true, Epoch: w.epoch})
	}
	for _, s := range p.knownSandboxes {
		if !there["s"+s.Namespace+"/"+s.Name+s.UID] {
			p.table.Apply(Event{Type: Vanished, Sandbox: &s, FromList: true, Epoch: w.epoch})
		}
	}
	for _, o := range p.knownPods {
		if !there["p"+o.Namespace+"/"+o.Name+o.UID] {
			p.table.Apply(Event{Type: Vanished, Pod: &o, FromList: true, Epoch: w.epoch})
		}
	}
	p.forget()
	for _, s := range e.Sandboxes {
		p.knownSandboxes[s.Namespace+"/"+s.Name] = s
	}
	for _, o := range e.Pods {
		p.knownPods[o.Namespace+"/"+o.Name] = o
	}
	p.table.Apply(e)
	p.cursor = [2]int{len(w.log[sandboxes]), len(w.log[pods])}
	p.epoch, p.reading, p.early = w.epoch, nil, map[*entry]bool{}
}

// connected reports whether the watch can go on where it stopped.
func (p *plane) connected() bool { return p.epoch == p.world.epoch }

// deliver brings the next n events of a kind.
func (p *plane) deliver(kind, n int) int {
	done := 0
	for ; done < n && p.connected() && p.cursor[kind] < len(p.world.log[kind]); done++ {
		e := p.world.log[kind][p.cursor[kind]]
		p.cursor[kind]++
		p.know(e.event)
		p.table.Apply(e.event)
	}
	p.prove()
	return done
}

func (p *plane) know(e Event) {
	switch {
	case e.Sandbox != nil && e.Type == Changed:
		p.knownSandboxes[e.Sandbox.Namespace+"/"+e.Sandbox.Name] = *e.Sandbox
	case e.Sandbox != nil:
		delete(p.knownSandboxes, e.Sandbox.Namespace+"/"+e.Sandbox.Name)
	case e.Type == Changed:
		p.knownPods[e.Pod.Namespace+"/"+e.Pod.Name] = *e.Pod
	default:
		delete(p.knownPods, e.Pod.Namespace+"/"+e.Pod.Name)
	}
}

// read begins a consistent read; prove ends it once the watch has caught up.
func (p *plane) read() {
	if p.reading == nil && p.connected() {
		p.reading = &reading{at: p.world.clock.now, log: [2]int{len(p.world.log[sandboxes]), len(p.world.log[pods])}}
	}
	p.prove()
}

func (p *plane) prove() {
	r := p.reading
	if r == nil || p.cursor[sandboxes] < r.log[sandboxes] || p.cursor[pods] < r.log[pods] {
		return
	}
	p.reading = nil
	p.table.Apply(Event{Type: Proven, At: r.at, Epoch: p.epoch})
}

// quiet delivers everything, and proves it.
func (p *plane) quiet() {
	if !p.connected() {
		p.list()
	}
	p.deliver(sandboxes, len(p.world.log[sandboxes]))
	p.deliver(pods, len(p.world.log[pods]))
	p.reading = nil
	p.read()
}

// knows reports whether the watch has delivered an event.
func (p *plane) knows(e *entry) bool {
	return e != nil && (p.early[e] || e.event.Epoch == p.epoch && e.index < p.cursor[e.kind])
}

// check asks for every ID there ever was and holds the answers against the truth.
func (p *plane) check() error {
	for _, id := range p.world.ids {
		ip, ok := p.table.Lookup(id)
		p.lookups++
		if !ok {
			continue
		}
		p.served++
		if err := p.judge(id, ip); err != nil {
			return err
		}
	}
	return nil
}

// judge says what is wrong with an answer: right is what was true at some time
// in the last MaxAge, and whose end the watch has not delivered.
func (p *plane) judge(id, ip string) error {
	now := p.world.clock.now
	history := p.world.truth[id]
	var why error
	for i := len(history) - 1; i >= 0; i-- {
		in := history[i]
		if in.ip != ip {
			continue
		}
		switch age := now.Sub(in.to); {
		case p.epoch < 0:
			return fmt.Errorf("%s sends %s to %s after a restart, before its view is complete", p.name, id, ip)
		case in.to.IsZero():
			return p.reaches(id, in)
		case p.knows(in.ended) || in.epoch < p.epoch:
			if why == nil {
				why = fmt.Errorf("%s sends %s to %s: that ended %s ago, and %s knew it", p.name, id, ip, age, p.name)
			}
		case age > p.maxAge:
			if why == nil {
				why = fmt.Errorf("%s sends %s to %s: that ended %s ago, and answers may be %s old", p.name, id, ip, age, p.maxAge)
			}
		default:
			return p.reaches(id, in)
		}
	}
	if why == nil {
		why = fmt.Errorf("%s sends %s to %s, where it never was", p.name, id, ip)
	}
	return why
}

// reaches counts the answers that lead to another sandbox now. A late view can
// lead there if an IP is used again within MaxAge, and must not if it is not.
func (p *plane) reaches(id string, in *interval) error {
	for _, o := range p.world.pods {
		if o.IP != in.ip || strings.HasPrefix(in.what, o.SandboxUID) {
			continue
		}
		p.misdirected++
		if p.world.rest > p.maxAge {
			return fmt.Errorf("%s sends %s to %s, which is %s/%s's", p.name, id, in.ip, o.Namespace, o.Sandbox)
		}
	}
	return nil
}

// settled compares with the truth once everything has been delivered.
func (p *plane) settled() error {
	for _, id := range p.world.ids {
		want := ""
		if h := p.world.truth[id]; h[len(h)-1].to.IsZero() {
			want = h[len(h)-1].ip
		}
		got, ok := p.table.Lookup(id)
		if !ok {
			got = ""
		}
		if got != want && (ok || !p.world.disowned(id)) {
			return fmt.Errorf("everything has been delivered and %s sends %s to %q, want %q", p.name, id, got, want)
		}
	}
	return nil
}
