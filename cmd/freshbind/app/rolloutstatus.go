package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/freshbind/freshbind/internal/cli"
)

// statusTick is how often time alone is looked at: members become available by
// it, and trouble takes some to be one.
const statusTick = time.Second

// rolloutStatus waits for pools to be up to date.
type rolloutStatus struct {
	*target
	watch   bool
	timeout time.Duration
	// tick is how often time alone is looked at.
	tick time.Duration
}

func newRolloutStatusCommand(r env) *cobra.Command {
	s := &rolloutStatus{target: newTarget(r), watch: true, tick: statusTick}
	cmd := &cobra.Command{
		Use:   "status (pool/NAME | template/NAME)",
		Short: "Wait until every member is up to date",
		Long: "Status waits until every member of the pool, or of each pool of the template, is ready and of the revision in force,\n" +
			"and shows the progress, on a terminal in place. It ends early if waiting is useless: after the pool's progress deadline, while it is\n" +
			"paused, or where nothing replaces stale members (OnReplenish, mode audit).\n\n" + exitCodes + "\n" +
			"--timeout and --watch=false end with 3 if the rollout is still going on.",
		Example: "  freshbind rollout status pool/python -n prod --timeout=10m\n" +
			"  freshbind rollout status template/python || freshbind rollout undo template/python",
		Args:              resourceArgs,
		ValidArgsFunction: s.completeNames(poolKind, templateWord),
		RunE: func(cmd *cobra.Command, args []string) error {
			if s.timeout < 0 {
				return usage("--timeout %s: it must not be negative; 0 means to wait for ever", s.timeout)
			}
			resource, err := parseResourceName(args)
			if err != nil {
				return err
			}
			c, namespace, err := s.reachCluster()
			if err != nil {
				return err
			}
			return s.run(cmd.Context(), c, namespace, resource)
		},
	}
	s.addFlags(cmd)
	cmd.Flags().BoolVarP(&s.watch, "watch", "w", s.watch, "Wait until the rollout is over.")
	cmd.Flags().DurationVar(&s.timeout, "timeout", 0, "Stop waiting after this long; 0 means never.")
	return cmd
}

var errWaiting = errors.New("the rollout is still going on")

func (s *rolloutStatus) run(ctx context.Context, c *cli.Cluster, namespace string, resource resourceName) error {
	store, err := c.Load(ctx, namespace)
	if err != nil {
		return err
	}
	if _, err := resource.find(ctx, c, namespace, store); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w := &rolloutWait{rolloutStatus: s, c: c, store: store, judge: c.Judge(store), resource: resource, printed: map[string]string{}}
	if done, err := w.look(ctx); done {
		return err
	}
	if !s.watch {
		return &ExitError{Code: cli.ExitTimeout, Err: errWaiting}
	}
	store.Follow(ctx, func(err error) { _, _ = fmt.Fprintf(s.streams.ErrOut, "%v (trying again)\n", err) })
	return w.wait(ctx)
}

// rolloutWait is one wait.
type rolloutWait struct {
	*rolloutStatus
	c        *cli.Cluster
	store    *cli.Store
	judge    *cli.Judge
	resource resourceName
	// printed is what was last printed of each pool, last what there is to print.
	printed map[string]string
	last    string
}

func (w *rolloutWait) wait(ctx context.Context) error {
	var timeout <-chan time.Time
	if w.timeout > 0 {
		timer := time.NewTimer(w.timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	tick := time.NewTicker(w.tick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("interrupted: %w", context.Cause(ctx))
		case <-timeout:
			return &ExitError{Code: cli.ExitTimeout, Err: fmt.Errorf("timed out after %s. %s", w.timeout, w.last)}
		case <-w.store.Changed():
		case <-tick.C:
		}
		if done, err := w.look(ctx); done {
			return err
		}
	}
}

// look judges all pools, says what is new, and returns whether it is over: for
// several pools when each is, with the gravest code of theirs.
func (w *rolloutWait) look(ctx context.Context) (bool, error) {
	found, err := w.judge.Pools(ctx, w.resource.selection(w.c.Objects.Kinds()))
	if err != nil {
		return true, err
	}
	if len(found) == 0 {
		return true, fmt.Errorf("%s has no pool any more", w.resource)
	}
	over, worst := true, cli.Outcome{}
	var progress []string
	outcomes := make([]cli.Outcome, len(found))
	for i := range found {
		trouble, err := w.c.TroubleOf(ctx, w.store, &found[i])
		if err != nil {
			return true, err
		}
		o := found[i].Outcome(trouble, w.program)
		o.Text = cli.OneLine(o.Text)
		outcomes[i] = o
		progress = append(progress, found[i].Progress(trouble)...)
		switch {
		case !o.Done:
			over = false
			w.last = o.Text
		case graver(o.Code, worst.Code):
			worst = o
		}
	}
	if err := w.show(found, outcomes, progress, over); err != nil {
		return true, err
	}
	if !over || worst.Code == cli.ExitComplete {
		return over, nil
	}
	return true, &ExitError{Code: worst.Code, Err: errors.New(worst.Text)}
}

// show has a screen show how it goes, and how it ended below; everybody else is told
// what is new.
func (w *rolloutWait) show(pools []cli.Pool, outcomes []cli.Outcome, progress []string, over bool) error {
	if w.watch && w.screen != nil {
		if err := w.screen.Show(progress...); err != nil || !over {
			return err
		}
	}
	for i, o := range outcomes {
		if err := w.say(pools[i].Name, o); err != nil {
			return err
		}
	}
	return nil
}

// graver: a failure outweighs a pause.
func graver(a, b int) bool {
	return a != cli.ExitComplete && (b == cli.ExitComplete || a < b)
}

// say prints news. What ends the wait as an error is printed as one, by Main.
func (w *rolloutWait) say(pool string, o cli.Outcome) error {
	if w.printed[pool] == o.Key || o.Done && o.Code != cli.ExitComplete {
		return nil
	}
	w.printed[pool] = o.Key
	return warn(w.streams.Out, o.Text)
}
