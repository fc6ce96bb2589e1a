package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"

	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	// maxHostile is by how much a hostile tenant whom Freshbind judges may raise the
	// p99 of others, over one who writes the same and is not judged: what the API
	// server itself pays for such writes is not Freshbind's.
	maxHostile = 1.5
	// maxMemory is what the chart requests.
	maxMemory = 256 << 20
	// samples are the cold starts that are measured in each round of each kind.
	samples = 100
	// writers of the hostile tenant write at full speed: annotations of a template
	// of a megabyte, and as large sandboxes that differ from it.
	annotators, starters = 2, 4
	// tries bounds how often a cold start that could not be decided is tried.
	tries = 50
	// variables are what makes the template large.
	variables = 5000
)

// tenant is one whose writes Freshbind judges, or does not.
type tenant struct {
	ns              *scenario.Namespace
	template, claim *unstructured.Unstructured
}

// hostile is the result: durations of the quiet tenant's cold starts.
type hostile struct {
	alone, unjudged, judged []time.Duration
	// memory is the most that the process had resident, in bytes.
	memory int64
	// writes counts what the hostile tenants wrote.
	unjudgedWrites, judgedWrites int
}

func p99(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)*99/100]
}

func (h hostile) ratio() float64 { return p99(h.judged).Seconds() / p99(h.unjudged).Seconds() }

func (h hostile) rows() []row {
	return []row{
		{what: "p99 of cold starts beside a hostile tenant, judged against not judged", unit: "x", aim: maxHostile, figures: []float64{h.ratio()}},
		{what: "resident memory beside a hostile tenant", unit: "MiB", aim: maxMemory >> 20, figures: []float64{float64(h.memory) / kibi / kibi}},
	}
}

func (h hostile) faults() []string {
	var lines []string
	if h.ratio() > maxHostile {
		lines = append(lines, fmt.Sprintf("p99 beside a hostile tenant that is judged %.2f times that beside one that is not, more than %.2f", h.ratio(), maxHostile))
	}
	if h.memory > maxMemory {
		lines = append(lines, fmt.Sprintf("%d MiB resident, more than the %d that the chart requests", h.memory>>20, maxMemory>>20))
	}
	if h.judgedWrites == 0 || h.unjudgedWrites == 0 {
		lines = append(lines, fmt.Sprintf("the hostile tenants wrote %d and %d times: that is not hostile", h.unjudgedWrites, h.judgedWrites))
	}
	return lines
}

func (h hostile) line() string {
	ms := func(all []time.Duration) string { return strconv.FormatFloat(p99(all).Seconds()*1000, 'f', 1, 64) }
	return fmt.Sprintf("bench hostile: p99 alone=%sms beside-unjudged=%sms beside-judged=%sms ratio=%.2f writes=%d/%d rss=%dMiB",
		ms(h.alone), ms(h.unjudged), ms(h.judged), h.ratio(), h.unjudgedWrites, h.judgedWrites, h.memory>>20)
}

// benchHostile has a quiet tenant, where binds are enforced, alone and beside
// either hostile tenant, in turns.
func benchHostile(ctx context.Context, o options, out io.Writer) (r result, err error) {
	w, err := newWorld(ctx, 50)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	// Nobody makes sandboxes for the claims but this benchmark, in dry runs.
	if err := w.Controllers.Stop(); err != nil {
		return nil, err
	}
	const left = "hostile-unjudged"
	if err := w.Guard.Install(ctx, left); err != nil {
		return nil, err
	}
	var quiet, unjudged, judged *tenant
	for _, t := range []struct {
		into   **tenant
		name   string
		large  bool
		labels map[string]string
	}{{&quiet, "quiet", false, scenario.Enforce()}, {&unjudged, left, true, nil}, {&judged, "hostile-judged", true, nil}} {
		if *t.into, err = w.tenant(ctx, t.name, t.large, t.labels); err != nil {
			return nil, err
		}
	}
	if err := quiet.ns.WaitGuarded(ctx, guardWithin); err != nil {
		return nil, err
	}
	var h hostile
	for round := range o.pairs {
		for _, side := range []struct {
			durations *[]time.Duration
			writes    *int
			beside    *tenant
		}{{&h.alone, new(int), nil}, {&h.unjudged, &h.unjudgedWrites, unjudged}, {&h.judged, &h.judgedWrites, judged}} {
			took, writes, err := quiet.beside(ctx, side.beside)
			if err != nil {
				return nil, err
			}
			*side.durations = append(*side.durations, took...)
			*side.writes += writes
		}
		memory, err := w.resident(ctx)
		if err != nil {
			return nil, err
		}
		h.memory = max(h.memory, memory)
		_, _ = fmt.Fprintf(out, "round %d: %s\n", round+1, h.line())
	}
	return h, nil
}

// tenant makes a namespace with a template, a pool and a claim.
func (w *world) tenant(ctx context.Context, name string, large bool, labels map[string]string) (*tenant, error) {
	t := &tenant{}
	var err error
	if t.ns, err = scenario.CreateNamespace(ctx, w.Cluster.Config(), w.Version, name, labels); err != nil {
		return nil, err
	}
	template := builders.MakeTemplate(name, "python").Image("sandbox:v1")
	if large {
		template = template.Env(pairs("live")...)
	}
	if t.template, err = t.ns.Resource(upstream.SandboxTemplates).Create(ctx, template.Obj(), metav1.CreateOptions{}); err != nil {
		return nil, fmt.Errorf("create template of %s: %w", name, err)
	}
	if err := t.ns.Create(ctx, builders.MakePool(name, "python").Template("python").Replicas(0).Obj()); err != nil {
		return nil, err
	}
	t.claim, err = t.ns.Resource(upstream.SandboxClaims).Create(ctx, builders.MakeClaim(name, "claim").Pool("python").Obj(), metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("create claim of %s: %w", name, err)
	}
	return t, nil
}

// pairs are variables with long values.
func pairs(value string) []string {
	var out []string
	for i := range variables {
		out = append(out, fmt.Sprintf("V%05d", i), value+strings.Repeat("x", 150))
	}
	return out
}

// beside measures cold starts, each a dry run, while another tenant writes.
func (t *tenant) beside(ctx context.Context, other *tenant) (took []time.Duration, writes int, err error) {
	writing, stop := context.WithCancel(ctx)
	defer stop()
	var done sync.WaitGroup
	var counted counter
	if other != nil {
		other.write(writing, &done, &counted)
	}
	for range samples {
		start := time.Now()
		// What cannot be decided in time is tried again, and takes as long as that.
		undecided := func(err error) bool { return apierrors.IsInternalError(err) && ctx.Err() == nil }
		if err := retry.OnError(wait.Backoff{Steps: tries}, undecided, func() error { return t.coldStart(ctx, t.template) }); err != nil {
			return nil, 0, fmt.Errorf("cold start in %s: %w", t.ns.Name, err)
		}
		took = append(took, time.Since(start))
	}
	stop()
	done.Wait()
	return took, counted.total(), nil
}

type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) add() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

func (c *counter) total() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// write writes at full speed until ctx ends. What the API server, or Freshbind,
// says to that does not matter.
func (t *tenant) write(ctx context.Context, done *sync.WaitGroup, counted *counter) {
	other := builders.TemplateFrom(t.template).Env(pairs("mine")...).Obj()
	until := func(do func(i int) error) {
		done.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := do(i); err == nil || apierrors.ReasonForError(err) != metav1.StatusReasonUnknown {
					counted.add()
				}
			}
		})
	}
	for range annotators {
		until(func(i int) error {
			patch := fmt.Sprintf(`{"metadata":{"annotations":{"bench":"%d"}}}`, i)
			_, err := t.ns.Resource(upstream.SandboxTemplates).Patch(ctx, t.template.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			return err
		})
	}
	for range starters {
		until(func(int) error { return t.coldStart(ctx, other) })
	}
}

func (t *tenant) coldStart(ctx context.Context, from *unstructured.Unstructured) error {
	_, err := t.ns.Resource(upstream.Sandboxes).Create(ctx, builders.MakeColdStart(t.claim, from).Obj(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// resident is how much memory the manager has, by its own metrics.
func (w *world) resident(ctx context.Context) (int64, error) {
	text, err := w.Guard.Metrics(ctx)
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, "process_resident_memory_bytes "); ok {
			bytes, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				return 0, fmt.Errorf("read resident memory: %w", err)
			}
			return int64(bytes), nil
		}
	}
	return 0, errors.New("the manager's metrics have no resident memory")
}
