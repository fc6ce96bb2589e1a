package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/freshbind/freshbind/test/controlplane"
	"github.com/freshbind/freshbind/test/fixture"
	"github.com/freshbind/freshbind/test/upstream"
)

// WorldOptions say what a world consists of.
type WorldOptions struct {
	// Release is one of upstream.Releases; without one nobody's controllers run.
	Release string
	// Delay makes the release's watches of a resource late from the start.
	Delay map[schema.GroupResource]time.Duration
	// Cluster are the options of the control plane; Nodes is 2 when it is 0.
	Cluster controlplane.Options
	// Unguarded leaves Freshbind out.
	Unguarded bool
	// Guard are the options of Freshbind; Admin, Identity and Dir are filled in.
	Guard fixture.Options
	// Reach, if set, leads Freshbind's requests another way than straight to the
	// first API server.
	Reach func(*controlplane.Cluster, *rest.Config) (*rest.Config, error)
}

// Through leads requests through a proxy, which it sets.
func Through(proxy **controlplane.Proxy) func(*controlplane.Cluster, *rest.Config) (*rest.Config, error) {
	return func(c *controlplane.Cluster, who *rest.Config) (*rest.Config, error) {
		var err error
		if *proxy, err = c.NewProxy(0); err != nil {
			return nil, err
		}
		return (*proxy).Config(who), nil
	}
}

// World is a control plane with the unmodified controllers of one agent-sandbox
// release and with Freshbind, which has no namespace to enforce in yet. What the
// options leave out is nil.
type World struct {
	Cluster     *controlplane.Cluster
	Controllers *upstream.Controllers
	Guard       *fixture.Freshbind
	// Version is the API version in which the release works.
	Version string
}

// RanOn says in the results of a test what the world consists of.
func (w *World) RanOn(t controlplane.T) {
	t.Helper()
	release := ""
	if w.Controllers != nil {
		release = w.Controllers.Release()
	}
	w.Cluster.RanOn(t, release)
}

// StartWorld builds what is missing, and returns when everything serves. The
// webhooks are installed; WaitGuarded tells when they are in force.
func StartWorld(ctx context.Context, o WorldOptions) (*World, error) {
	w := &World{}
	if err := w.start(ctx, o); err != nil {
		return nil, errors.Join(err, w.Stop())
	}
	return w, nil
}

func (w *World) start(ctx context.Context, o WorldOptions) error {
	if o.Cluster.Nodes == 0 {
		o.Cluster.Nodes = 2
	}
	if err := w.startCluster(ctx, o); err != nil {
		return err
	}
	if err := w.startControllers(ctx, o); err != nil || o.Unguarded {
		return err
	}
	return w.AddGuard(ctx, o)
}

func (w *World) startControllers(ctx context.Context, o WorldOptions) error {
	if o.Release == "" {
		return nil
	}
	var err error
	if w.Version, err = upstream.APIVersion(o.Release); err != nil {
		return err
	}
	w.Controllers, err = upstream.Start(ctx, w.Cluster, upstream.Options{Version: o.Release, Delay: o.Delay, Log: o.Cluster.Log})
	return err
}

// Identity is whom Freshbind runs as.
func (w *World) Identity() (*rest.Config, error) {
	return w.Cluster.User(fixture.User, "system:serviceaccounts", "system:serviceaccounts:freshbind-system", "system:authenticated")
}

// AddGuard starts Freshbind in a world without it, and has the API server ask it.
func (w *World) AddGuard(ctx context.Context, o WorldOptions) error {
	var err error
	o.Guard.Admin, o.Guard.Dir = w.Cluster.Config(), w.Cluster.Dir()
	if o.Guard.Identity, err = w.Identity(); err != nil {
		return err
	}
	if o.Reach != nil {
		if o.Guard.Identity, err = o.Reach(w.Cluster, o.Guard.Identity); err != nil {
			return err
		}
	}
	if w.Guard, err = StartGuard(ctx, o.Cluster.Log, o.Guard); err != nil {
		return err
	}
	return w.Guard.Install(ctx)
}

// startCluster builds what the release misses beside what the control plane misses.
func (w *World) startCluster(ctx context.Context, o WorldOptions) error {
	building, stop := context.WithCancel(ctx)
	defer stop()
	var beside errgroup.Group
	beside.Go(func() error {
		if o.Release == "" {
			return nil
		}
		_, err := upstream.Build(building, o.Cluster.Log, o.Release)
		return err
	})
	var err error
	if w.Cluster, err = controlplane.Start(ctx, o.Cluster); err != nil {
		stop()
		_ = beside.Wait()
		return err
	}
	return beside.Wait()
}

// StartGuard builds and starts Freshbind, without webhook configurations. log
// receives a line of progress; nil means silence.
func StartGuard(ctx context.Context, log io.Writer, o fixture.Options) (*fixture.Freshbind, error) {
	if log != nil {
		_, _ = fmt.Fprintln(log, "building freshbind from this checkout")
	}
	guard, err := fixture.New(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("prepare freshbind: %w", err)
	}
	if err := guard.Start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start freshbind: %w", err), guard.Close())
	}
	return guard, nil
}

// StartSecond runs another replica of Freshbind until it is closed; reach says how it reaches the
// API server, nil for straight. It waits until the replica serves.
func (w *World) StartSecond(ctx context.Context, reach func(*rest.Config) *rest.Config, args ...string) (*fixture.Freshbind, error) {
	user, err := w.Cluster.User(fixture.User, "system:serviceaccounts", "system:serviceaccounts:freshbind-system", "system:authenticated")
	if err != nil {
		return nil, fmt.Errorf("start the second freshbind: %w", err)
	}
	if reach != nil {
		user = reach(user)
	}
	dir := filepath.Join(w.Cluster.Dir(), "second")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("start the second freshbind: %w", err)
	}
	return StartGuard(ctx, nil, fixture.Options{Admin: w.Cluster.Config(), Identity: user, Dir: dir, Program: w.Guard.Program(), Args: args})
}

// Err tells of every program of the world that ended without being asked to.
func (w *World) Err() error {
	if w.Guard == nil {
		return w.Cluster.Err()
	}
	return errors.Join(w.Cluster.Err(), w.Guard.Err())
}

// Stop ends everything that was started.
func (w *World) Stop() error {
	var errs []error
	if w.Guard != nil {
		errs = append(errs, w.Guard.Close())
	}
	if w.Cluster != nil {
		errs = append(errs, w.Cluster.Stop())
	}
	return errors.Join(errs...)
}

// Supervise returns a context that ends, with the reason as its cause, when
// failed reports that something has ended which should run.
func Supervise(ctx context.Context, failed func() error) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(4 * poll)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := failed(); err != nil {
					cancel(err)
					return
				}
			}
		}
	}()
	return ctx, func() { cancel(context.Canceled) }
}
