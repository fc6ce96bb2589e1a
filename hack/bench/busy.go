package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/upstream"
)

const (
	// busyPools of busyPerPool members are of one template, which is edited.
	busyPools, busyPerPool = 1000, 50
	// podEvents are sent one after the other, each long after the pool was looked
	// at for the one before.
	podEvents, podEventEvery = 100, 150 * time.Millisecond
	// window is how long each of what is compared is measured.
	window = 20 * time.Second
	// maxEventMilliseconds, maxCores and maxBindRatio are what is promised.
	maxEventMilliseconds, maxCores, maxBindRatio = 1, 1, 1.5
)

// busy is what the process that answers admission computes besides.
type busy struct {
	large, pools int
	// events are in milliseconds of CPU for one event of a Pod.
	events []float64
	// cores are those used while all pools roll, ratios those of the 99th
	// percentile of binds elsewhere to that in quiet.
	cores, ratios []float64
}

func (b busy) rows() []row {
	if b.large == 0 {
		return nil
	}
	many := fmt.Sprintf("%d pools of %d after an edit: ", b.pools, busyPerPool)
	return []row{
		{what: fmt.Sprintf("CPU of one Pod event in a pool of %d", b.large), unit: "ms", aim: maxEventMilliseconds, figures: b.events},
		{what: many + "CPU", unit: "cores", aim: maxCores, figures: b.cores},
		{what: many + "p99 of binds elsewhere, against quiet", unit: "x", aim: maxBindRatio, figures: b.ratios},
	}
}

// measureBusy has a world of its own, with nobody but Freshbind in it.
func measureBusy(ctx context.Context, o options, out io.Writer) (b busy, err error) {
	w, err := newWorld(ctx, budget)
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, w.Stop()) }()
	if err := errors.Join(w.Controllers.Stop(), w.Guard.Stop(), w.Guard.Uninstall(ctx)); err != nil {
		return b, fmt.Errorf("stop agent-sandbox and freshbind: %w", err)
	}
	b.large, b.pools = o.members, max(1, busyPools*o.members/10_000)
	large, err := w.populate(ctx, "large", 1, b.large, true)
	if err != nil {
		return b, err
	}
	if err := w.Guard.Start(ctx); err != nil {
		return b, err
	}
	if err := large.waitComplete(ctx); err != nil {
		return b, err
	}
	for range o.pairs {
		took, err := w.podEvents(ctx, large)
		if err != nil {
			return b, err
		}
		b.events = append(b.events, took)
	}
	_, _ = fmt.Fprintf(out, "one Pod event in a pool of %d: %.2f ms of CPU each\n", b.large, b.events)
	return b, w.rollMany(ctx, o, &b, out)
}

// podEvents returns what one event costs: what is used with events, less what is
// used in the same time without.
func (w *world) podEvents(ctx context.Context, c *crowd) (milliseconds float64, err error) {
	quiet, err := w.used(func() error { return scenario.Pause(ctx, podEvents*podEventEvery) })
	if err != nil {
		return 0, err
	}
	loud, err := w.used(func() error {
		for i := range podEvents {
			patch := fmt.Sprintf(`{"status":{"message":"event %d at %d"}}`, i, time.Now().UnixNano())
			name := fmt.Sprintf("p0-%d", i%c.perPool)
			if _, err := c.pods.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
				return fmt.Errorf("change pod: %w", err)
			}
			if err := scenario.Pause(ctx, podEventEvery); err != nil {
				return err
			}
		}
		return nil
	})
	return max(0, (loud-quiet).Seconds()) * 1000 / podEvents, err
}

// used is the CPU time that Freshbind takes while do runs.
func (w *world) used(do func() error) (time.Duration, error) {
	before, err := cpuTime(w.Guard.PID())
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := cpuTime(w.Guard.PID())
	return after - before, err
}

// rollMany edits the one template of many pools again and again, and binds
// elsewhere meanwhile and in between.
func (w *world) rollMany(ctx context.Context, o options, b *busy, out io.Writer) error {
	if err := errors.Join(w.Guard.Stop(), w.Guard.Uninstall(ctx)); err != nil {
		return fmt.Errorf("stop freshbind: %w", err)
	}
	c, err := w.populate(ctx, "many", b.pools, busyPerPool, false)
	if err != nil {
		return err
	}
	elsewhere, err := w.populate(ctx, "elsewhere", 1, 1, true)
	if err != nil {
		return err
	}
	if err := errors.Join(w.Guard.Start(ctx), w.Guard.Install(ctx)); err != nil {
		return err
	}
	if err := errors.Join(elsewhere.ns.WaitGuarded(ctx, guardWithin), c.waitComplete(ctx)); err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	refilling, stop := context.WithCancel(ctx)
	g.Go(func() error { return w.refill(refilling, c) })
	g.Go(func() error {
		defer stop()
		return w.rollPairs(ctx, o, c, elsewhere, b, out)
	})
	return g.Wait()
}

// rollPairs binds elsewhere in quiet and while all pools roll, in turns.
func (w *world) rollPairs(ctx context.Context, o options, c, elsewhere *crowd, b *busy, out io.Writer) error {
	for i := range o.pairs {
		quiet, _, err := w.bindFor(ctx, elsewhere)
		if err != nil {
			return err
		}
		if _, err := c.ns.SetImage(ctx, crowdTemplate, "sandbox:v2"); err != nil {
			return err
		}
		loud, used, err := w.bindFor(ctx, elsewhere)
		if err != nil {
			return err
		}
		b.cores = append(b.cores, used.Seconds()/window.Seconds())
		b.ratios = append(b.ratios, checker.Percentile(loud, 99).Seconds()/checker.Percentile(quiet, 99).Seconds())
		_, _ = fmt.Fprintf(out, "pair %d/%d  binds elsewhere: p99 %s in quiet (%d), %s while %d pools roll (%d); %.2f cores\n", i+1, o.pairs,
			checker.Percentile(quiet, 99).Round(100*time.Microsecond), len(quiet), checker.Percentile(loud, 99).Round(100*time.Microsecond), b.pools, len(loud), b.cores[i])
		// Back again, most members are what they should be.
		if _, err := c.ns.SetImage(ctx, crowdTemplate, "sandbox:v1"); err != nil {
			return err
		}
		if err := c.waitComplete(ctx); err != nil {
			return err
		}
	}
	return nil
}

// bindFor tries one bind after the other, in dry runs, and returns how long each
// took and what Freshbind used meanwhile.
func (w *world) bindFor(ctx context.Context, c *crowd) (took []time.Duration, used time.Duration, err error) {
	binder, err := w.binder(ctx, c)
	if err != nil {
		return nil, 0, err
	}
	used, err = w.used(func() error {
		for end := time.Now().Add(window); time.Now().Before(end); {
			one, err := binder.bind(ctx, 0)
			if err != nil {
				return err
			}
			took = append(took, one)
		}
		return nil
	})
	return took, used, err
}

// refill makes a fresh member, ready at once, for each that was deleted, as
// agent-sandbox does, until ctx ends.
func (w *world) refill(ctx context.Context, c *crowd) error {
	cfg := rest.CopyConfig(w.upstream)
	cfg.QPS = -1
	as, err := scenario.Use(cfg, w.Version, c.ns.Name)
	if err != nil {
		return err
	}
	g, births := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	// The first birth that fails ends the watch.
	watcher, err := as.Resource(upstream.Sandboxes).Watch(births, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("watch members: %w", err)
	}
	defer watcher.Stop()
	for e := range watcher.ResultChan() {
		if e.Type != watch.Deleted {
			continue
		}
		gone, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		g.Go(func() error { return c.replace(births, as, gone) })
	}
	if err := g.Wait(); ctx.Err() == nil {
		return errors.Join(err, errors.New("the watch of members ended"))
	}
	return nil
}

// replace makes a member of the pool of one that is gone, from the template as it
// is now. One that an edit overtakes is refused, and made once more, as
// agent-sandbox does.
func (c *crowd) replace(ctx context.Context, as *scenario.Namespace, gone *unstructured.Unstructured) error {
	owner := metav1.GetControllerOf(gone)
	if owner == nil {
		return nil
	}
	i := slices.IndexFunc(c.pools, func(pool *unstructured.Unstructured) bool { return pool.GetUID() == owner.UID })
	if i < 0 {
		return nil
	}
	err := scenario.Poll(ctx, filling, func(ctx context.Context) (bool, error) {
		template, err := as.Resource(upstream.SandboxTemplates).Get(ctx, crowdTemplate, metav1.GetOptions{})
		if err != nil {
			return false, fmt.Errorf("get template of %s: %w", c.ns.Name, err)
		}
		err = c.bear(ctx, as, builders.MakeMember(c.pools[i], template).Obj())
		if apierrors.IsForbidden(err) {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		return fmt.Errorf("replace member %s: %w", gone.GetName(), err)
	}
	return nil
}
