package gatewaytest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Result is how a test ended.
type Result string

// All results.
const (
	Passed  Result = "Passed"
	Failed  Result = "Failed"
	Skipped Result = "Skipped"
)

// Outcome is one test's. Found says what was seen, or why it was skipped.
type Outcome struct {
	Test   string `json:"test"`
	Result Result `json:"result"`
	Found  string `json:"found,omitempty"`
	// About says what goes wrong where the test fails.
	About string `json:"about"`
}

// Options choose what is tested.
type Options struct {
	Gateway Gateway
	Canary  *Canary
	// FenceWait is how long a deletion is let rest before something late comes; that
	// test is skipped when it is zero.
	FenceWait time.Duration
	// Sleep waits; it returns the context's error when that ends before.
	Sleep func(context.Context, time.Duration) error
}

// elsewhere is an address where nothing is (RFC 5737).
const elsewhere = "192.0.2.1"

var (
	errNoRefresh = errors.New("no refresh URL was given")
	errAddsNone  = errors.New("a push adds no route here, so none can be brought back by one")
	errNoWait    = errors.New("it takes as long as a fence may last: give a time to wait")
)

// Run runs all tests, one after the other. It is an error only when the gateway
// could not be asked.
func Run(ctx context.Context, o Options) ([]Outcome, error) {
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	run := strings.ToLower(rand.Text()[:8])
	adds := false
	var out []Outcome
	for i, c := range cases() {
		t := &trial{ctx: ctx, o: o, prefix: fmt.Sprintf("%s-%d-", run, i), latest: map[string]message{}}
		outcome := Outcome{Test: c.name, About: c.about}
		switch {
		case c.pushes && o.Gateway.RefreshURL == "":
			outcome.Result, outcome.Found = Skipped, errNoRefresh.Error()
		case c.needsRoute && !adds:
			outcome.Result, outcome.Found = Skipped, errAddsNone.Error()
		case c.waits && o.FenceWait == 0:
			outcome.Result, outcome.Found = Skipped, errNoWait.Error()
		default:
			c.run(t)
			t.tidy()
			if t.err != nil {
				return out, fmt.Errorf("test %s: %w", c.name, t.err)
			}
			outcome.Result, outcome.Found = Passed, t.found
			if t.found != "" {
				outcome.Result = Failed
			}
			adds = adds || c.name == pushAdds && t.found != ""
		}
		out = append(out, outcome)
	}
	return out, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// trial is one test under way. After the first error nothing more is asked.
type trial struct {
	ctx    context.Context
	o      Options
	prefix string
	// latest has the highest message about each sandbox, to take it away at the end.
	latest map[string]message
	found  string
	err    error
}

// message is a Message whose version can be counted.
type message struct {
	Message
	version uint64
}

// sandbox invents one, which runs at the canary.
func (t *trial) sandbox(name string) message {
	name = t.prefix + name
	return message{Message: Message{
		IP: t.o.Canary.IP(), ID: Namespace + "--" + name, Namespace: Namespace, Name: name, UID: rand.Text(), Owner: "freshbind", State: "running",
	}}
}

// push has a peer say that m is in that state at that version.
func (t *trial) push(m message, state string, version uint64) {
	m.State, m.version = state, version
	m.ResourceVersion = strconv.FormatUint(version, 10)
	if t.latest[m.Name].version < version {
		t.latest[m.Name] = m
	}
	t.send(m.Message)
}

func (t *trial) send(m Message) {
	if t.err == nil {
		_, t.err = t.o.Gateway.push(t.ctx, t.o.Gateway.Peer, encode(m))
	}
}

// tidy takes away what the test invented. What failed is told all the same.
func (t *trial) tidy() {
	for _, m := range t.latest {
		t.push(m, "dead", m.version+1)
	}
}

func (t *trial) served(m message, header http.Header) bool {
	if t.err != nil {
		return false
	}
	var got bool
	got, t.err = t.o.Gateway.probe(t.ctx, t.o.Canary, m.Message, header)
	return got
}

// want and wantNone keep what was found first.
func (t *trial) want(m message, when string) { t.expect(true, m, when) }

func (t *trial) wantNone(m message, when string) { t.expect(false, m, when) }

func (t *trial) expect(want bool, m message, when string) {
	if t.found != "" || t.served(m, nil) == want || t.err != nil {
		return
	}
	t.found = when + ": a request for " + m.Name + " arrives"
	if want {
		t.found = when + ": a request for " + m.Name + " does not arrive"
	}
}

func (t *trial) wait(d time.Duration) {
	if t.err == nil {
		t.err = t.o.Sleep(t.ctx, d)
	}
}
