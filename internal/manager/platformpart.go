package manager

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

const (
	// lookEvery is how often the API server is asked what it serves, two small
	// requests for which no rights are needed, while it is not known or in doubt.
	lookEvery = 5 * time.Second
	// sureFor is how many times that is as long as nobody doubts it.
	sureFor = 12
	// steadyFor is how many looks in a row have to agree on a change before it is
	// acted on: an API server that starts serves no custom resources for a moment.
	steadyFor = 3
)

// platformPart is all that needs one platform's resources: it runs while the API
// server serves these, and starts anew when it serves them in other versions.
// Without them nothing is watched.
type platformPart struct {
	find func(context.Context) (served, bool, error)
	// name is the platform's in messages.
	name  string
	clock clock.WithTicker
	log   logr.Logger
	// run runs one assembly until ctx ends, and calls installed when it answers.
	run func(ctx context.Context, k served, installed func()) error
	// idle is called when there is no assembly any more.
	idle func()

	looked, found, answers atomic.Bool
	// doubted: a request was answered as if something else were served.
	doubted atomic.Bool
}

// doubt has the next look not wait until it is due.
func (p *platformPart) doubt() { p.doubted.Store(true) }

var _ manager.LeaderElectionRunnable = (*platformPart)(nil)

// NeedLeaderElection is false: every replica serves.
func (*platformPart) NeedLeaderElection() bool { return false }

// Start follows what the API server serves until ctx ends.
func (p *platformPart) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		k, ok := p.await(ctx)
		if !ok {
			return nil
		}
		if err := p.serve(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

// await returns the kinds as soon as all of them are served; false when ctx ends.
func (p *platformPart) await(ctx context.Context) (served, bool) {
	ticker := p.clock.NewTicker(lookEvery)
	defer ticker.Stop()
	for logged := false; ; {
		k, found, err := p.find(ctx)
		switch {
		case err != nil:
			p.log.Error(err, "Cannot find out whether a warm-pool system is installed", "platform", p.name)
		case found:
			p.looked.Store(true)
			p.found.Store(true)
			return k, true
		case !logged:
			p.log.Info("Waiting for a warm-pool system", "platform", p.name)
			logged = true
		}
		if err == nil {
			p.looked.Store(true)
			p.gone()
		}
		select {
		case <-ctx.Done():
			return served{}, false
		case <-ticker.C():
		}
	}
}

func (p *platformPart) gone() {
	if p.answers.Swap(false) {
		p.idle()
	}
	p.found.Store(false)
}

// serve runs an assembly for as long as these kinds are served.
func (p *platformPart) serve(ctx context.Context, k served) error {
	p.log.Info("Found a warm-pool system", "platform", k.Name, "sandboxes", k.Sandboxes.GroupVersion().String(),
		"pools", k.Pools.GroupVersion().String())
	running, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go p.follow(running, k, stop)
	err := p.run(running, k, func() { p.answers.Store(true) })
	if ctx.Err() == nil && errors.Is(context.Cause(running), errOthers) {
		p.log.Info("The served API versions of the warm-pool system have changed", "platform", k.Name)
		return nil
	}
	return err
}

var errOthers = errors.New("other kinds are served")

// follow stops the assembly when something else is served for sure.
func (p *platformPart) follow(ctx context.Context, running served, stop context.CancelCauseFunc) {
	ticker := p.clock.NewTicker(lookEvery)
	defer ticker.Stop()
	for others, since := 0, 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
		}
		// A change ends watches and has reads answered 404, which raises doubts. What
		// raises none is a version that is new beside the others: it can wait.
		if since++; others == 0 && since < sureFor && !p.doubted.Swap(false) {
			continue
		}
		since = 0
		switch k, found, err := p.find(ctx); {
		case err != nil:
			p.doubt()
		case found && k == running:
			others = 0
		default:
			if others++; others == steadyFor {
				stop(errOthers)
				return
			}
		}
	}
}

// check is for readiness: without a warm-pool system there is nothing to wait
// for.
func (p *platformPart) check(*http.Request) error {
	switch {
	case !p.looked.Load():
		return fmt.Errorf("the API server has not said yet whether %s is installed", p.name)
	case p.found.Load() && !p.answers.Load():
		return fmt.Errorf("caches of %s are not synced yet", p.name)
	}
	return nil
}

// platformParts are those of all platforms.
type platformParts []*platformPart

// check is that of each of them.
func (all platformParts) check(r *http.Request) error {
	var errs []error
	for _, p := range all {
		errs = append(errs, p.check(r))
	}
	return errors.Join(errs...)
}
