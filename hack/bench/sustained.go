package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/webhooks"
)

const (
	// sustainedTenants have so many members each: one namespace alone gets no more than
	// half of a replica's processors.
	sustainedTenants, membersOfEach = 4, 16
	// flooding and offering are how long a replica is asked as fast as it answers, and at
	// one rate.
	flooding, offering = 5 * time.Second, 4 * time.Second
	// maxHeld is what the 99th percentile may be at a rate that a replica holds.
	maxHeld = 100 * time.Millisecond
	// wantedRate is what replicas are counted for, and one is asked for lasting.
	wantedRate, lasting = 1000, time.Minute
)

// shares of the greatest rate are tried in this order, after its half.
var shares = []float64{0.95, 0.9, 0.8, 0.7, 0.6}

// The two ways in which a replica's reads are answered.
const (
	besideServer = "reads answered by the API server"
	byItself     = "reads answered from memory"
)

// replica is one that is asked, and what was found out about it, round by round.
type replica struct {
	*asker
	// programs are those that its answers keep busy.
	programs map[string]int
	// greatest is how many it answers in a second, held those that it answers with a
	// 99th percentile of maxHeld at most, and half that percentile, in milliseconds, at
	// half of the greatest.
	greatest, held, half []float64
	// cpu is the CPU time, in milliseconds, of each program for one bind at that half,
	// reads Freshbind's own for one.
	cpu   map[string][]float64
	reads []float64
	// lasted is how long each bind took at wantedRate for lasting.
	lasted []time.Duration
}

// sustained is what replicas hold.
type sustained map[string]*replica

var ways = []string{besideServer, byItself}

func (s sustained) rows() (rows []row) {
	for _, way := range ways {
		r := s[way]
		rows = append(rows,
			row{what: way + ": one replica answers", unit: "/s", figures: r.greatest},
			row{what: fmt.Sprintf("%s: with a p99 of %s at most", way, maxHeld), unit: "/s", figures: r.held},
			row{what: way + ": p99 at half of the greatest rate", unit: "ms", figures: r.half},
			row{what: way + ": Freshbind's reads for one bind", figures: r.reads})
		for _, program := range slices.Sorted(maps.Keys(r.cpu)) {
			rows = append(rows, row{what: fmt.Sprintf("%s: CPU of %s for one bind", way, program), unit: "ms", figures: r.cpu[program]})
		}
	}
	if lasted := s[byItself].lasted; len(lasted) > 0 {
		what := fmt.Sprintf("%s: %d binds a second for %s: ", byItself, wantedRate, lasting)
		rows = append(rows, row{what: what + "p99", unit: "ms", figures: []float64{1000 * checker.Percentile(lasted, 99).Seconds()}},
			row{what: what + "not answered in time", figures: []float64{float64(unanswered(lasted))}})
	}
	rows = append(rows, row{what: fmt.Sprintf("replicas for %d binds in a second, each as here", wantedRate), figures: replicas(s[byItself].held)})
	for _, program := range slices.Sorted(maps.Keys(s[besideServer].cpu)) {
		rows = append(rows, row{
			what: fmt.Sprintf("CPUs of %s for %d binds in a second, what the writes themselves take left out", program, wantedRate), figures: processors(s[besideServer].cpu[program]),
		})
	}
	return rows
}

// unanswered counts what took as long as the API server waits.
func unanswered(took []time.Duration) (n int) {
	for _, each := range took {
		if each >= webhooks.BindHook.Timeout {
			n++
		}
	}
	return n
}

// replicas are those that are needed, by what one holds. Where it held nothing, none are
// enough.
func replicas(held []float64) (out []float64) {
	for _, rate := range held {
		if rate > 0 {
			out = append(out, math.Ceil(wantedRate/rate))
		}
	}
	return out
}

// processors are those that are needed, by the milliseconds that one bind takes.
func processors(milliseconds []float64) (out []float64) {
	for _, each := range milliseconds {
		out = append(out, wantedRate*each/1000)
	}
	return out
}

func (s sustained) faults() []string { return nil }

func (s sustained) line() string {
	text := []string{"bench sustained:"}
	for _, way := range ways {
		r := s[way]
		text = append(text, fmt.Sprintf("%s: greatest=%.0f/s held=%.0f/s p99-at-half=%.1fms", way, slices.Max(r.greatest), slices.Max(r.held), slices.Min(r.half)))
	}
	return strings.Join(text, " ")
}

// benchSustained asks a replica about binds without having them stored. Two of them take
// turns: one whose reads the API server answers, and one by itself, whose reads are
// answered from memory.
func benchSustained(ctx context.Context, o options, out io.Writer) (r result, err error) {
	w, err := startStill(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	reviews, err := w.sustainedReviews(ctx)
	if err != nil {
		return nil, err
	}
	alone, err := w.aloneGuard(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, alone.Close()) }()
	programs, err := w.programs()
	if err != nil {
		return nil, err
	}
	s := sustained{
		besideServer: {asker: newAsker(w.Guard, reviews), programs: programs},
		byItself:     {asker: newAsker(alone, reviews), programs: map[string]int{"freshbind": alone.PID()}},
	}
	guards := map[string]*fixture.Freshbind{besideServer: w.Guard, byItself: alone}
	for i := range o.pairs {
		for _, way := range ways {
			if err := s[way].measure(ctx, guards[way]); err != nil {
				return nil, fmt.Errorf("%s: %w", way, err)
			}
		}
		_, _ = fmt.Fprintf(out, "round %d/%d: %s\n", i+1, o.pairs, s.line())
	}
	if s[byItself].lasted, err = s[byItself].offer(ctx, wantedRate, lasting); err != nil {
		return nil, err
	}
	return s, nil
}

// sustainedReviews are about members of several tenants, in turns.
func (w *world) sustainedReviews(ctx context.Context) ([][]byte, error) {
	var all [][]byte
	for i := range sustainedTenants {
		c, err := w.populate(ctx, fmt.Sprintf("sustained-%d", i), 1, membersOfEach, true)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(c.ns.WaitGuarded(ctx, guardWithin), c.waitComplete(ctx)); err != nil {
			return nil, err
		}
		b, err := w.binder(ctx, c)
		if err != nil {
			return nil, err
		}
		reviews, err := b.reviews(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, reviews...)
	}
	return inTurns(all, membersOfEach), nil
}

// inTurns takes the first of each group, then the second of each, and so on.
func inTurns[T any](all []T, group int) (out []T) {
	for i := range group {
		for k := i; k < len(all); k += group {
			out = append(out, all[k])
		}
	}
	return out
}

// aloneGuard is one more replica. What it reads live is answered by the API server once,
// and then from memory.
func (w *world) aloneGuard(ctx context.Context) (*fixture.Freshbind, error) {
	proxy, err := w.Cluster.NewProxy(0)
	if err != nil {
		return nil, err
	}
	proxy.Replay(func(r *http.Request) bool {
		return r.Method == http.MethodGet && strings.Contains(r.UserAgent(), "(live reads)")
	})
	return scenario.StartGuard(ctx, nil, fixture.Options{
		Admin: w.Cluster.Config(), Identity: proxy.Config(w.identity), Dir: filepath.Join(w.Cluster.Dir(), "alone"), Program: w.Guard.Program(), Args: guardArgs(50),
	})
}

// measure finds out what one replica holds, in one round.
func (r *replica) measure(ctx context.Context, guard *fixture.Freshbind) error {
	// What is read for the first time is not in memory.
	for number := range r.reviews {
		if err := r.ask(ctx, number); err != nil {
			return err
		}
	}
	greatest, err := r.flood(ctx, len(r.reviews), flooding)
	if err != nil {
		return err
	}
	took, err := r.cost(ctx, guard, func() ([]time.Duration, error) { return r.offer(ctx, greatest/2, offering) })
	if err != nil {
		return err
	}
	half := checker.Percentile(took, 99)
	held := 0.0
	if half <= maxHeld {
		held = greatest / 2
	}
	for _, share := range shares {
		took, err := r.offer(ctx, share*greatest, offering)
		if err != nil {
			return err
		}
		if checker.Percentile(took, 99) <= maxHeld {
			held = share * greatest
			break
		}
	}
	r.greatest, r.half, r.held = append(r.greatest, greatest), append(r.half, 1000*half.Seconds()), append(r.held, held)
	return nil
}

// cost counts what answers take.
func (r *replica) cost(ctx context.Context, guard *fixture.Freshbind, answers func() ([]time.Duration, error)) ([]time.Duration, error) {
	readBefore, err := readsOf(ctx, guard)
	if err != nil {
		return nil, err
	}
	before, err := cpuTimes(r.programs)
	if err != nil {
		return nil, err
	}
	took, err := answers()
	if err != nil {
		return nil, err
	}
	after, err := cpuTimes(r.programs)
	if err != nil {
		return nil, err
	}
	read, err := readsOf(ctx, guard)
	if err != nil {
		return nil, err
	}
	binds := float64(len(took))
	if r.cpu == nil {
		r.cpu = map[string][]float64{}
	}
	for name := range r.programs {
		r.cpu[name] = append(r.cpu[name], (after[name]-before[name]).Seconds()*1000/binds)
	}
	r.reads = append(r.reads, (read.all()-readBefore.all())/binds)
	return took, nil
}
