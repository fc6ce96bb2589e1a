package manager

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	"github.com/freshbind/freshbind/internal/platform"
)

// stageHand plays the API server and the assemblies of a platformPart.
type stageHand struct {
	t     *testing.T
	clock *clocktesting.FakeClock
	part  *platformPart

	mu     sync.Mutex
	serves string
	err    error
	looks  int
	events []string
}

func newStageHand(t *testing.T) *stageHand {
	h := &stageHand{t: t, clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	platformServed := &Guarded{Name: "a"}
	note := func(event string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.events = append(h.events, event)
	}
	h.part = &platformPart{
		clock: h.clock, log: logr.Discard(), idle: func() { note("idle") },
		find: func(context.Context) (served, bool, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.looks++
			return served{platformServed, platform.Served{Pools: schema.GroupVersionKind{Version: h.serves}}}, h.serves != "", h.err
		},
		run: func(ctx context.Context, k served, installed func()) error {
			if k.Pools.Version == "broken" {
				return errors.New("broken")
			}
			note("run " + k.Pools.Version)
			installed()
			<-ctx.Done()
			note("end " + k.Pools.Version)
			return nil
		},
	}
	return h
}

// look lets the time for some more looks pass, the first of them on a doubt.
func (h *stageHand) look(serves string, err error, times int) {
	h.t.Helper()
	h.mu.Lock()
	h.serves, h.err = serves, err
	h.mu.Unlock()
	h.part.doubt()
	for range times {
		h.until("somebody waits", h.clock.HasWaiters)
		h.mu.Lock()
		before := h.looks
		h.mu.Unlock()
		h.clock.Step(lookEvery)
		h.until("a look", func() bool {
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.looks > before
		})
	}
}

func (h *stageHand) until(what string, is func() bool) {
	h.t.Helper()
	err := wait.PollUntilContextTimeout(h.t.Context(), time.Millisecond, 10*time.Minute, true, func(context.Context) (bool, error) { return is(), nil })
	if err != nil {
		h.t.Fatalf("%s: %v", what, err)
	}
}

func (h *stageHand) sees(want ...string) {
	h.t.Helper()
	h.until(strings.Join(want, ", "), func() bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		return cmp.Equal(want, h.events)
	})
}

func TestThePlatformPartFollowsWhatIsServed(t *testing.T) {
	h := newStageHand(t)
	if h.part.check(nil) == nil {
		t.Error("ready before anybody has looked")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.part.Start(ctx) }()
	h.until("ready without a platform", func() bool { return h.part.check(nil) == nil })
	h.look("", nil, 2)
	h.sees()
	h.look("v1alpha1", nil, 1)
	h.sees("run v1alpha1")
	// Absence that is not proven, and no answer, change nothing.
	h.look("", nil, steadyFor-1)
	h.look("v1alpha1", nil, 1)
	h.look("", errors.New("no answer"), steadyFor+1)
	h.look("v1alpha1", nil, 1)
	h.sees("run v1alpha1")
	h.look("v1beta1", nil, steadyFor)
	h.sees("run v1alpha1", "end v1alpha1", "run v1beta1")
	h.until("ready", func() bool { return h.part.check(nil) == nil })
	h.look("", nil, steadyFor)
	h.sees("run v1alpha1", "end v1alpha1", "run v1beta1", "end v1beta1", "idle")
	h.until("ready without a platform again", func() bool { return h.part.check(nil) == nil })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Of what nobody doubts the API server is asked seldom.
func TestThePlatformPartAsksSeldom(t *testing.T) {
	h := newStageHand(t)
	ticks := make(chan time.Time)
	h.part.clock = byHand{h.clock, ticks}
	h.serves = "v1beta1"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = h.part.Start(ctx) }()
	h.sees("run v1beta1")
	looks := func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.looks
	}
	before := looks()
	// When the last of these ticks is taken, all before it have been dealt with.
	pass := func(n int) {
		for range n {
			ticks <- time.Time{}
		}
	}
	pass(sureFor - 1)
	if n := looks() - before; n != 0 {
		t.Errorf("%d looks, want none: nobody doubts it", n)
	}
	pass(2)
	if n := looks() - before; n != 1 {
		t.Errorf("%d looks, want 1: it is due", n)
	}
	h.part.doubt()
	pass(2)
	if n := looks() - before; n != 2 {
		t.Errorf("%d looks, want 2: one on a doubt", n)
	}
}

// byHand is a clock whose tickers tick when somebody says so.
type byHand struct {
	clock.WithTicker
	ticks chan time.Time
}

func (c byHand) NewTicker(time.Duration) clock.Ticker { return c }

func (c byHand) C() <-chan time.Time { return c.ticks }

func (byHand) Stop() {}

func TestAnAssemblyThatFailsEndsTheProgram(t *testing.T) {
	h := newStageHand(t)
	h.serves = "broken"
	if err := h.part.Start(t.Context()); err == nil || err.Error() != "broken" {
		t.Errorf("error is %v", err)
	}
	if h.part.check(nil) == nil {
		t.Error("ready, and nothing answers")
	}
}

// answer is a handler that says the text.
func answer(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(text)) })
}

// servedTable is a table whose /advise is idle where no platform serves it, and what a path
// of it answers.
func servedTable() (table *handlerTable, get func(path string) string) {
	server := webhook.NewServer(webhook.Options{WebhookMux: http.NewServeMux()})
	table = newHandlerTable(server, func(_ string, next http.Handler) http.Handler { return next }, map[string]http.Handler{"/advise": answer("idle")})
	return table, func(path string) string {
		w := httptest.NewRecorder()
		server.WebhookMux().ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, nil))
		if w.Code != http.StatusOK {
			return http.StatusText(w.Code)
		}
		return w.Body.String()
	}
}

func TestHandlersAreExchanged(t *testing.T) {
	table, get := servedTable()
	for _, step := range []struct {
		name          string
		handlers      []string
		advise, birth string
	}{
		{"first", []string{"/advise", "/birth"}, "first", "first"},
		{"second", []string{"/birth"}, "idle", "second"},
		{"none", nil, "idle", "Service Unavailable"},
		{"third", []string{"/advise", "/birth"}, "third", "third"},
	} {
		assembled := newAssemblyServer(table, 0)
		for _, path := range step.handlers {
			assembled.Register(path, answer(step.name))
		}
		if assembled.StartedChecker()(nil) == nil {
			t.Errorf("%s: served before its turn", step.name)
		}
		assembled.serve()
		if got := []string{get("/advise"), get("/birth")}; !cmp.Equal(got, []string{step.advise, step.birth}) {
			t.Errorf("%s: got %q", step.name, got)
		}
	}
}

// Two platforms answer beside each other, and one is not missed where the other answers.
func TestPlatformsAnswerBesideEachOther(t *testing.T) {
	table, get := servedTable()
	serve := func(of int, text string, paths ...string) {
		assembled := newAssemblyServer(table, of)
		for _, path := range paths {
			assembled.Register(path, answer(text))
		}
		assembled.serve()
	}
	const away = "Service Unavailable"
	for _, step := range []struct {
		name string
		do   func()
		want [4]string
	}{
		{"the second comes", func() { serve(1, "b", "/b/bind", "/filter") }, [4]string{"Not Found", "b", "b", "idle"}},
		{"and the first", func() { serve(0, "a", "/bind", "/filter", "/advise") }, [4]string{"a", "b", "a", "a"}},
		{"the second comes anew", func() { serve(1, "b2", "/b/bind", "/filter") }, [4]string{"a", "b2", "a", "a"}},
		{"the first goes", func() { table.exchange(0, nil) }, [4]string{away, "b2", "b2", "idle"}},
		{"both are gone", func() { table.exchange(1, nil) }, [4]string{away, away, away, "idle"}},
	} {
		step.do()
		if diff := cmp.Diff(step.want, [4]string{get("/bind"), get("/b/bind"), get("/filter"), get("/advise")}); diff != "" {
			t.Errorf("%s: answers (-want,+got):\n%s", step.name, diff)
		}
	}
}

// Readiness waits for every platform that there is.
func TestEveryPlatformHasToBeReady(t *testing.T) {
	part := func(name string, looked, found, answers bool) *platformPart {
		p := &platformPart{name: name}
		p.looked.Store(looked)
		p.found.Store(found)
		p.answers.Store(answers)
		return p
	}
	for name, tc := range map[string]struct {
		parts platformParts
		want  string
	}{
		"none":               {nil, ""},
		"both are":           {platformParts{part("a", true, true, true), part("b", true, true, true)}, ""},
		"one is not served":  {platformParts{part("a", true, true, true), part("b", true, false, false)}, ""},
		"one was not looked": {platformParts{part("a", true, true, true), part("b", false, false, false)}, "the API server has not said yet whether b is installed"},
		"one has no caches":  {platformParts{part("a", true, true, false), part("b", true, true, true)}, "caches of a are not synced yet"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if err := tc.parts.check(nil); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("check() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestMetricsOfAGenerationGoWithIt(t *testing.T) {
	all := prometheus.NewRegistry()
	for range 2 {
		g := &assemblyMetrics{Registerer: all}
		g.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "x"}))
		if found, err := all.Gather(); err != nil || len(found) != 1 {
			t.Fatalf("%d metrics, %v", len(found), err)
		}
		g.retire()
	}
	if found, err := all.Gather(); err != nil || len(found) != 0 {
		t.Errorf("%d metrics are left, %v", len(found), err)
	}
}

func TestFollowing(t *testing.T) {
	of := map[string]int{"a": 1, "b": 1, "c": 1}
	for last, want := range map[string]string{"": "a", "a": "b", "b": "c", "c": "a", "bb": "c"} {
		if got := following(of, last); got != want {
			t.Errorf("following %q is %q, want %q", last, got, want)
		}
	}
	if got := following(map[string]int{}, "a"); got != "" {
		t.Errorf("following in nothing is %q", got)
	}
}
