package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	// maxSlower is how much later, in seconds, half of the claims of a burst right
	// after an update may be ready than those of one long after it.
	maxSlower = 0.3
	// maxRequests is what may be left of the requests that refusals add to a burst of
	// cold starts when those are repaired instead. The others are those of any cold
	// start.
	maxRequests = 0.5
	readyWithin = 5 * time.Minute
	readyPool   = "python"
	// warm is how many members a pool has.
	warm = 10
)

// bursts are how many claims are made at once. One alone shows how long a repair
// takes, many show what they cost each other where all share the CPUs.
var bursts = []int{1, 10, 50}

// treatment is how a namespace is guarded.
type treatment string

const (
	// unguarded: Freshbind is not asked.
	unguarded treatment = "no guard"
	refusing  treatment = "refusing"
	repairing treatment = "repairing"
	// quiet: no update comes before the claims, and there is no warm member.
	quiet treatment = "cold, no update"
)

var treatments = []treatment{unguarded, refusing, repairing, quiet}

// slug is the treatment as a part of names.
func (t treatment) slug() string { return strings.NewReplacer(" ", "-", ",", "").Replace(string(t)) }

// burst is what came of all bursts of one size in one release under one treatment.
type burst struct {
	release   string
	treatment treatment
	claims    int
	ready     []time.Duration
	stale     int
	refused   scenario.Refused
	// requests are, for each burst, those of agent-sandbox and Freshbind in the
	// namespace.
	requests []float64
	rounds   int
}

func (b *burst) String() string {
	return fmt.Sprintf("%s, %s, %s", b.release, scenario.Plural(b.claims, "claim"), b.treatment)
}

// percentile of the times until claims were ready, in seconds.
func (b *burst) percentile(percent int) float64 {
	return checker.Percentile(b.ready, percent).Seconds()
}

// readiness is the result.
type readiness []*burst

func (r readiness) of(release string, t treatment, claims int) *burst {
	i := slices.IndexFunc(r, func(b *burst) bool { return b.release == release && b.treatment == t && b.claims == claims })
	if i < 0 {
		return nil
	}
	return r[i]
}

func (r readiness) rows() []row {
	var rows []row
	for _, b := range r {
		rows = append(rows,
			row{what: b.String() + ": ready, p50", unit: "s", figures: []float64{b.percentile(50)}},
			row{what: b.String() + ": ready, p99", unit: "s", figures: []float64{b.percentile(99)}},
			row{what: b.String() + ": refused a burst", figures: []float64{float64(b.refused.Binds+b.refused.ColdStarts+b.refused.Births) / float64(b.rounds)}},
			row{what: b.String() + ": requests", figures: b.requests})
		if b.treatment == unguarded {
			rows = append(rows, row{what: b.String() + ": stale a burst", figures: []float64{float64(b.stale) / float64(b.rounds)}})
		}
		if b.treatment != repairing {
			continue
		}
		slower := b.percentile(50) - r.of(b.release, quiet, b.claims).percentile(50)
		rows = append(rows, row{what: b.String() + ": p50 above that of " + string(quiet), unit: "s", aim: maxSlower, figures: []float64{slower}})
		if b.claims == slices.Max(bursts) {
			fewer := row{what: b.String() + ": requests beyond " + string(quiet) + ", against " + string(refusing), unit: "x", aim: maxRequests}
			for i, n := range r.of(b.release, refusing, b.claims).requests {
				own := r.of(b.release, quiet, b.claims).requests[i]
				fewer.figures = append(fewer.figures, (b.requests[i]-own)/(n-own))
			}
			rows = append(rows, fewer)
		}
	}
	return rows
}

func (r readiness) faults() []string {
	lines := missed(r.rows())
	for _, b := range r {
		if b.stale > 0 && b.treatment != unguarded {
			lines = append(lines, fmt.Sprintf("%s: %s", b, scenario.Plural(b.stale, "stale bind")))
		}
		if want := b.claims * b.rounds; len(b.ready) != want {
			lines = append(lines, fmt.Sprintf("%s: %d of %d claims got ready", b, len(b.ready), want))
		}
	}
	return lines
}

func (r readiness) line() string {
	text := "bench ready:"
	for _, b := range r {
		text += fmt.Sprintf(" %s/%s/%d=%.2fs", b.release, b.treatment.slug(), b.claims, b.percentile(50))
	}
	return text
}

// benchReady has claims made right after a template was updated, while what
// agent-sandbox sees is late, under each treatment in turns.
func benchReady(ctx context.Context, o options, out io.Writer) (result, error) {
	var all readiness
	for _, version := range upstream.Releases() {
		found, err := readyIn(ctx, o, version, out)
		if err != nil {
			return nil, fmt.Errorf("agent-sandbox %s: %w", version, err)
		}
		all = append(all, found...)
	}
	return all, nil
}

// contest is one release with a namespace for each treatment.
type contest struct {
	*scenario.World
	recording *scenario.Recording
	log       *auditLog
	sides     map[treatment]*contestant
	found     readiness
	lag       time.Duration
}

// contestant is one namespace.
type contestant struct {
	ns   *scenario.Namespace
	pool scenario.Pool
	// updates counts those of its template, tried the bursts.
	updates, tried int
}

func readyIn(ctx context.Context, o options, version string, out io.Writer) (found readiness, err error) {
	w, err := scenario.StartWorld(ctx, scenario.WorldOptions{
		Release: version, Cluster: controlplane.Options{AuditLog: true, Log: os.Stderr},
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	ctx, cancel := scenario.Supervise(ctx, w.Err)
	defer cancel()
	c := &contest{World: w, log: &auditLog{path: w.Cluster.AuditLogPath(0)}, sides: map[treatment]*contestant{}, lag: o.lag}
	if c.recording, err = scenario.Record(ctx, w.Cluster.Config()); err != nil {
		return nil, err
	}
	for _, t := range treatments {
		if err := c.enter(ctx, version, t); err != nil {
			return nil, err
		}
	}
	for _, r := range o.late {
		w.Controllers.Proxy().SetDelay(r.Group, r.Resource, o.lag)
	}
	for round := range o.pairs {
		for _, claims := range bursts {
			for i := range treatments {
				// Each goes first as often as the others.
				t := treatments[(i+round)%len(treatments)]
				if err := c.burst(ctx, c.found.of(version, t, claims), c.sides[t]); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, b := range c.found {
		if len(b.ready) == 0 {
			return nil, fmt.Errorf("%s: no claim got ready", b)
		}
		_, _ = fmt.Fprintf(out, "%s: ready after %.2f s (p50), %.2f s (p99); %d stale, refused %+v, in %d bursts\n",
			b, b.percentile(50), b.percentile(99), b.stale, b.refused, b.rounds)
	}
	return c.found, nil
}

// enter makes the namespace of a treatment.
func (c *contest) enter(ctx context.Context, version string, t treatment) error {
	name := "ready-" + t.slug()
	labels := scenario.Enforce()
	if t == unguarded {
		labels = nil
		if err := c.Guard.Install(ctx, name); err != nil {
			return err
		}
	}
	s := &contestant{pool: scenario.Pool{Name: readyPool, Template: readyPool, Image: "sandbox:v0", Replicas: warm, Strategy: scenario.Recreate}}
	if t == quiet {
		s.pool.Replicas = 0
	}
	var err error
	if s.ns, err = scenario.CreateNamespace(ctx, c.Cluster.Config(), c.Version, name, labels); err != nil {
		return err
	}
	if t != unguarded {
		if err := s.ns.WaitGuarded(ctx, guardWithin); err != nil {
			return err
		}
	}
	if err := s.ns.CreatePool(ctx, s.pool); err != nil {
		return err
	}
	if t == refusing {
		patch := fmt.Sprintf(`{"metadata":{"annotations":{%q:"false"}}}`, settings.RepairKey)
		if _, err := s.ns.Resource(upstream.SandboxWarmPools).Patch(ctx, s.pool.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("switch off repair: %w", err)
		}
	}
	c.sides[t] = s
	for _, claims := range bursts {
		c.found = append(c.found, &burst{release: version, treatment: t, claims: claims})
	}
	return nil
}

// burst makes claims at once, right after an update unless all is to be quiet, and
// counts what that costs until all are ready.
func (c *contest) burst(ctx context.Context, b *burst, s *contestant) error {
	if _, err := s.ns.WaitPool(ctx, s.pool, "", readyWithin); err != nil {
		return err
	}
	// What is about an earlier burst is done.
	if err := scenario.Pause(ctx, 2*c.lag+time.Second); err != nil {
		return err
	}
	before, err := c.refused(ctx)
	if err != nil {
		return err
	}
	if b.treatment != quiet {
		s.updates++
		if _, err := s.ns.SetImage(ctx, s.pool.Template, fmt.Sprintf("sandbox:v%d", s.updates)); err != nil {
			return err
		}
	}
	s.tried++
	prefix := fmt.Sprintf("c%d-", s.tried)
	names := scenario.Names(prefix, b.claims)
	if err := c.log.skip(); err != nil {
		return err
	}
	if err := s.ns.CreateClaims(ctx, s.pool, names...); err != nil {
		return err
	}
	// Who is not ready in time is missing in the result.
	if err := s.ns.WaitClaims(ctx, readyWithin, names...); err != nil && !scenario.TooLate(err) {
		return err
	}
	requests, err := c.log.next()
	if err != nil {
		return err
	}
	after, err := c.refused(ctx)
	if err != nil {
		return err
	}
	b.rounds++
	b.refused = b.refused.Plus(after.Minus(before))
	b.requests = append(b.requests, float64(len(inNamespace(requests, s.ns.Name))))
	if err := c.judge(ctx, b, s.ns.Name, prefix); err != nil {
		return err
	}
	return s.ns.DeleteClaims(ctx, names...)
}

// inNamespace keeps what the controllers and Freshbind asked for in a namespace.
func inNamespace(requests []request, namespace string) []request {
	return slices.DeleteFunc(slices.Clone(requests), func(r request) bool {
		return r.ObjectRef.Namespace != namespace ||
			!strings.HasPrefix(r.UserAgent, agentPrefix) && r.User.Username != upstream.User
	})
}

// judge adds what was recorded of a burst: how long it took until claims were ready,
// and which sandboxes they got.
func (c *contest) judge(ctx context.Context, b *burst, namespace, prefix string) error {
	report, err := c.recording.Judge(ctx)
	if err != nil {
		return err
	}
	if len(report.EventGaps) > 0 {
		return fmt.Errorf("the recording lost events %d times: what it shows proves nothing", len(report.EventGaps))
	}
	for _, claim := range report.Claims {
		if claim.Namespace == namespace && strings.HasPrefix(claim.Claim.Name, prefix) && !claim.ReadySeen.IsZero() {
			b.ready = append(b.ready, claim.ReadySeen.Sub(claim.CreatedSeen))
		}
	}
	for _, bind := range report.Findings {
		if bind.Namespace == namespace && strings.HasPrefix(bind.Claim.Name, prefix) && bind.Has(checker.Stale) {
			b.stale++
		}
	}
	return nil
}

func (c *contest) refused(ctx context.Context) (scenario.Refused, error) {
	text, err := c.Guard.Metrics(ctx)
	if err != nil {
		return scenario.Refused{}, fmt.Errorf("ask freshbind what it refused: %w", err)
	}
	return scenario.ParseRefused(text)
}

// lateOf are the resources that BENCH_LATE names, "all" for every one.
func lateOf(text string) ([]schema.GroupResource, error) {
	known := []schema.GroupResource{upstream.SandboxTemplates, upstream.SandboxWarmPools, upstream.Sandboxes}
	if text == "all" {
		return known, nil
	}
	var found []schema.GroupResource
	var names []string
	for _, r := range known {
		names = append(names, r.Resource)
	}
	for name := range strings.SplitSeq(text, ",") {
		i := slices.Index(names, name)
		if i < 0 {
			return nil, fmt.Errorf("%q is not late: use some of %s, separated by commas, or all", name, strings.Join(names, ", "))
		}
		found = append(found, known[i])
	}
	return found, nil
}
