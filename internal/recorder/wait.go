package recorder

import (
	"context"
	"fmt"
	"maps"

	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/internal/checker"
)

// WaitFor returns as soon as the condition holds. It is asked once at the start, and again after every event.
func (r *Recorder) WaitFor(ctx context.Context, condition func(h *checker.History) bool) error {
	return r.wait(ctx, func() bool { return condition(r.history) })
}

// WaitForSync returns when the start is complete.
func (r *Recorder) WaitForSync(ctx context.Context) error {
	return r.WaitFor(ctx, func(h *checker.History) bool {
		_, ok := h.Synced()
		return ok
	})
}

// wait calls the condition with the lock held.
func (r *Recorder) wait(ctx context.Context, condition func() bool) error {
	for {
		r.mu.Lock()
		done, changed, stopped := condition(), r.changed, r.stopped
		r.mu.Unlock()
		switch {
		case done:
			return nil
		case stopped != nil:
			return stopped
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for events: %w", ctx.Err())
		case <-changed:
		}
	}
}

// CatchUp lists every resource, consistently, and returns when the watches have delivered all that the lists hold. The
// history counts as complete up to there. What is created and deleted again between the last event of its resource and
// that LIST may still arrive late: a LIST does not show it.
func (r *Recorder) CatchUp(ctx context.Context) error {
	if err := r.WaitForSync(ctx); err != nil {
		return err
	}
	for _, s := range r.streams {
		if !r.reads(s.resource) {
			continue
		}
		if err := s.catchUp(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) catchUp(ctx context.Context) error {
	found, err := s.fetch(ctx)
	if err != nil {
		return err
	}
	stored := map[types.UID]checker.RV{}
	for _, u := range found.items {
		stored[u.GetUID()] = checker.RV(u.GetResourceVersion())
	}
	arrived := func() bool { return !s.last.Before(found.at) || maps.Equal(s.known, stored) }
	if err := s.r.wait(ctx, arrived); err != nil {
		return fmt.Errorf("catch up with %s: %w", s.resource, err)
	}
	return s.r.emit(func() {}, checker.Event{Type: checker.Progress, Resource: s.resource, RV: found.at})
}
