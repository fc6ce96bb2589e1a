package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/freshbind/freshbind/test/scenario"
	"github.com/freshbind/freshbind/test/warmpool"
)

// runner plays a storm on a stage.
type runner struct {
	*stage
	start time.Time
	// out is also written to by what goes on beside the steps.
	outMu sync.Mutex
	out   io.Writer
	// kept are the claims that stay, by pool.
	kept [pools][]string
	// hit and missed count deletes; one misses when its target has changed.
	hit, missed int
}

func (w *runner) say(format string, args ...any) {
	w.outMu.Lock()
	defer w.outMu.Unlock()
	_, _ = fmt.Fprintf(w.out, "%6.1f s  %s\n", time.Since(w.start).Seconds(), fmt.Sprintf(format, args...))
}

// play takes all steps in turn. The start of Freshbind and the raids go on beside
// them.
func (w *runner) play(ctx context.Context, steps []step, raids [len(places)][]raid) error {
	both, ctx := errgroup.WithContext(ctx)
	both.Go(func() error { return w.runRaids(ctx, raids) })
	both.Go(func() error { return w.all(ctx, steps) })
	return both.Wait()
}

func (w *runner) all(ctx context.Context, steps []step) error {
	// A Wait would end a context of the group's own, and there is one per kill.
	restarts := &errgroup.Group{}
	err := w.steps(ctx, restarts, steps)
	// The first of both is the cause.
	if err := errors.Join(err, restarts.Wait()); err != nil {
		return err
	}
	w.say("all steps taken: %d pods and idle members deleted, %d that had changed meanwhile were not", w.hit, w.missed)
	return nil
}

func (w *runner) steps(ctx context.Context, restarts *errgroup.Group, steps []step) error {
	for _, s := range steps {
		if err := w.step(ctx, restarts, s); err != nil {
			return fmt.Errorf("storm: %s: %w", s.do, err)
		}
		if err := scenario.Pause(ctx, s.pause); err != nil {
			return err
		}
	}
	return nil
}

func (w *runner) step(ctx context.Context, restarts *errgroup.Group, s step) error {
	p := w.pools[s.pool]
	switch s.do {
	case doBurst:
		w.keep(s)
		return p.Claims(ctx, s.names...)
	case doDrop:
		return p.Drop(ctx, s.names...)
	case doUpdate:
		return w.update(ctx, p, s.to)
	case doPod:
		return w.deletePod(ctx, p, s.pick)
	case doMember:
		return w.deleteMember(ctx, p, s.pick)
	case doDelay:
		w.world.platform.Late(s.view, s.delay)
		return nil
	case doKill:
		// A start that is under way has to be over.
		if err := restarts.Wait(); err != nil {
			return err
		}
		w.say("freshbind is killed")
		return w.world.guard.kill(ctx)
	case doRestart:
		restarts.Go(func() error {
			if err := w.world.guard.restart(ctx); err != nil {
				return err
			}
			w.say("freshbind is back")
			return nil
		})
		return nil
	}
	return fmt.Errorf("%q is not an action", s.do)
}

func (w *runner) keep(s step) {
	for _, name := range s.names {
		if strings.HasPrefix(name, keptPrefix) {
			w.kept[s.pool] = append(w.kept[s.pool], name)
		}
	}
}

func (w *runner) update(ctx context.Context, p pool, to content) error {
	templates, name := p.BuiltFrom()
	err := retry.RetryOnConflict(scenario.Conflicts, func() error {
		stored, err := templates.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		ctx, id := withID(ctx)
		written, err := templates.Update(ctx, p.Asking(stored, to.podSpec()), metav1.UpdateOptions{})
		if err == nil {
			w.world.ids.note(written.GetResourceVersion(), id)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("update template of %s: %w", p.In(), err)
	}
	return nil
}

// member picks one of those that there are now.
func (w *runner) member(ctx context.Context, p pool, pick uint64) (scenario.Member, bool, error) {
	members, err := p.Idle(ctx)
	if err != nil || len(members) == 0 {
		return scenario.Member{}, false, err
	}
	slices.SortFunc(members, func(a, b scenario.Member) int { return cmp.Compare(a.Name, b.Name) })
	return members[pick%uint64(len(members))], true, nil
}

func (w *runner) deletePod(ctx context.Context, p pool, pick uint64) error {
	m, ok, err := w.member(ctx, p, pick)
	if err != nil || !ok {
		return err
	}
	pods := w.pods.CoreV1().Pods(p.In())
	pod, err := pods.Get(ctx, m.Name, metav1.GetOptions{})
	if err == nil {
		err = pods.Delete(ctx, pod.Name, exactly(pod))
	}
	return w.aimed("pod "+m.Name, err)
}

// deleteMember deletes a Sandbox that is idle, exactly as it was seen: one that
// a claim gets meanwhile is spared by the precondition.
func (w *runner) deleteMember(ctx context.Context, p pool, pick uint64) error {
	m, ok, err := w.member(ctx, p, pick)
	if err != nil || !ok {
		return err
	}
	sandboxes := p.Sandboxes()
	sandbox, err := sandboxes.Get(ctx, m.Name, metav1.GetOptions{})
	if err == nil {
		if !warmpool.OfPool(sandbox) {
			w.missed++
			return nil
		}
		err = sandboxes.Delete(ctx, m.Name, exactly(sandbox))
	}
	return w.aimed("sandbox "+m.Name, err)
}

func exactly(o metav1.Object) metav1.DeleteOptions {
	uid, rv := o.GetUID(), o.GetResourceVersion()
	return metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &rv}}
}

// aimed counts a delete. Its target may have changed, or be gone: a storm does
// not aim twice.
func (w *runner) aimed(what string, err error) error {
	switch {
	case err == nil:
		w.hit++
	case apierrors.IsConflict(err) || apierrors.IsNotFound(err):
		w.missed++
	default:
		return fmt.Errorf("delete %s: %w", what, err)
	}
	return nil
}
