package main

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/hack/demo/counts"
	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/recorder"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	// rollingSize members, of which rollingStep may be missing.
	rollingSize = 16
	rollingStep = 4
	maxMissing  = "25%"
	// rollingClaims arrive one by one while the pool rolls.
	rollingClaims  = 5
	rollingBetween = 500 * time.Millisecond
)

// rolling is the second act: one pool under RollingUpdate, in a namespace of
// its own, and claims while it is updated.
type rolling struct {
	ns   *scenario.Namespace
	pool scenario.Pool
	log  *counts.Log
	rec  *recorder.Recorder
	from string
	to   string
	// was is the revision before the update, made how many claims were created.
	was      string
	made     int
	instants []counts.Instant
	end      time.Time
	// late is what did not happen in time.
	late []string
}

// beginRolling stores the pool and records what becomes of it until ctx ends.
func beginRolling(ctx context.Context, admin *rest.Config, ns *scenario.Namespace, from, to string) (*rolling, error) {
	r := &rolling{ns: ns, log: &counts.Log{}, from: from, to: to, pool: scenario.Pool{
		Name: poolName, Template: poolName, Image: from, Replicas: rollingSize, Strategy: scenario.OnReplenish,
	}}
	cfg := rest.CopyConfig(admin)
	cfg.QPS = -1
	var err error
	if r.rec, err = recorder.New(ctx, cfg, recorder.Options{Namespace: ns.Name, Sink: r.log}); err != nil {
		return nil, fmt.Errorf("record the second act: %w", err)
	}
	// Why a recording ended is told to whoever waits for it.
	go func() { _ = r.rec.Run(ctx) }()
	if err := r.rec.WaitForSync(ctx); err != nil {
		return nil, fmt.Errorf("record the second act: %w", err)
	}
	template := builders.MakeTemplate(ns.Name, poolName).APIVersion(ns.Version).Image(from)
	// The strategy is an annotation: the pool's own spec does not know it.
	pool := builders.MakePool(ns.Name, poolName).APIVersion(ns.Version).Template(poolName).Replicas(rollingSize).
		Strategy(scenario.OnReplenish).
		Annotation(settings.StrategyKey, string(freshness.RollingUpdate)).Annotation(settings.MaxUnavailableKey, maxMissing)
	return r, ns.Create(ctx, template.Obj(), pool.Obj())
}

// play updates the template of the pool at rest, and makes claims one by one
// until the rollout is complete.
func (r *rolling) play(ctx context.Context, timeout time.Duration) error {
	if _, err := r.ns.WaitPool(ctx, r.pool, r.from, timeout); err != nil {
		return r.tolerated(ctx, err)
	}
	if err := r.complete(ctx, timeout); err != nil || len(r.late) > 0 {
		return err
	}
	version, err := r.ns.SetImage(ctx, poolName, r.to)
	if err != nil {
		return err
	}
	edit := counts.Edit{RV: checker.RV(version), At: time.Now(), Image: r.to}
	names := scenario.Names("r", rollingClaims)
	if err := r.claim(ctx, names); err != nil {
		return err
	}
	if err := r.tolerated(ctx, r.ns.WaitClaims(ctx, timeout, names...)); err != nil {
		return err
	}
	if err := r.complete(ctx, timeout); err != nil {
		return err
	}
	_, err = r.ns.WaitPool(ctx, r.pool, r.to, timeout)
	if err := r.tolerated(ctx, err); err != nil {
		return err
	}
	r.end = time.Now()
	if err := r.rec.CatchUp(ctx); err != nil {
		return fmt.Errorf("record the second act: %w", err)
	}
	r.instants = r.log.Since(edit)
	return nil
}

// claim creates the claims, with a pause after each.
func (r *rolling) claim(ctx context.Context, names []string) error {
	pause := time.NewTicker(rollingBetween)
	defer pause.Stop()
	for _, name := range names {
		if err := r.ns.CreateClaims(ctx, r.pool, name); err != nil {
			return err
		}
		r.made++
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-pause.C:
		}
	}
	return nil
}

// complete waits for the end of the rollout of a revision that was not complete
// before.
func (r *rolling) complete(ctx context.Context, timeout time.Duration) error {
	annotations := map[string]string{}
	err := scenario.Poll(ctx, timeout, func(ctx context.Context) (bool, error) {
		pool, err := r.ns.Resource(upstream.SandboxWarmPools).Get(ctx, poolName, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		annotations = pool.GetAnnotations()
		return annotations[settings.RolloutStateKey] == string(freshness.Complete) && annotations[settings.RolloutRevisionKey] != r.was, nil
	})
	switch {
	case err == nil:
		r.was = annotations[settings.RolloutRevisionKey]
		return nil
	case context.Cause(ctx) != nil:
		return fmt.Errorf("wait for the rollout: %w", context.Cause(ctx))
	case wait.Interrupted(err):
		r.late = append(r.late, fmt.Sprintf("the rollout is %s after %s: %s", annotations[settings.RolloutStateKey], timeout, annotations[settings.RolloutStatusKey]))
		return nil
	}
	return fmt.Errorf("wait for the rollout: %w", err)
}

// tolerated keeps what was not reached in time, and returns any other error.
func (r *rolling) tolerated(ctx context.Context, err error) error {
	if err == nil || context.Cause(ctx) != nil || !scenario.TooLate(err) {
		return err
	}
	r.late = append(r.late, err.Error())
	return nil
}

// opening says what is about to happen.
func (r *rolling) opening() string {
	return fmt.Sprintf("second act  a pool of %d under RollingUpdate, %s may be unavailable: image %s -> %s, %d claims, one every %s",
		rollingSize, maxMissing, r.from, r.to, rollingClaims, rollingBetween)
}

// lines are the plot, and what it means.
func (r *rolling) lines(s checker.Summary) []string {
	if len(r.instants) == 0 {
		return nil
	}
	e := counts.ExtremesOf(r.instants)
	lines := append([]string{
		fmt.Sprintf("members over time: %s claimable   %s ready, and hidden from claims", claimable, readyOnly),
	}, plot(r.instants, r.end, rollingSize)...)
	lines = append(lines,
		fmt.Sprintf("at most %d of %d members in replacement at once, done in %s", e.MostReplacing, rollingSize, seconds(r.end.Sub(r.instants[0].At))),
		fmt.Sprintf("%d of %d claims ready (p50 %s), %d warm, %d cold, %d stale",
			s.Ready, s.Claims, seconds(time.Duration(s.ReadyP50)), s.Warm, s.Cold, s.Classes[checker.Stale]))
	if text := scenario.Besides(s); text != "" {
		lines = append(lines, "besides: "+text)
	}
	return lines
}

// failures says what the second act did not show.
func (r *rolling) failures(s checker.Summary) []string {
	var lines []string
	add := func(failed bool, format string, args ...any) {
		if failed {
			lines = append(lines, fmt.Sprintf("second act: "+format, args...))
		}
	}
	for _, late := range r.late {
		add(true, "%s", late)
	}
	if len(r.instants) > 0 {
		most := counts.ExtremesOf(r.instants).MostReplacing
		add(most > rollingStep, "%d members were in replacement at once, more than %d", most, rollingStep)
		add(most == 0, "no member was replaced")
	}
	add(s.Claims != r.made, "%d claims were made, %d recorded", r.made, s.Claims)
	add(s.Ready < s.Claims, "%d of %d claims did not become ready", s.Claims-s.Ready, s.Claims)
	add(s.Classes[checker.Stale] > 0, "%s while the pool said that it serves none", scenario.Plural(s.Classes[checker.Stale], "stale bind"))
	add(!scenario.Sound(s), "%s", scenario.Besides(s))
	return lines
}
