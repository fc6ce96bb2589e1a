package routefeed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/routes"
)

const (
	// decideEvery is how often the table is asked what it cannot decide about.
	decideEvery = 50 * time.Millisecond
	// readsAtOnce bounds the live reads in flight.
	readsAtOnce = 8
)

// decide makes the live reads that the table asks for.
func (f *Feed) decide(ctx context.Context, session *routes.Session, r routes.Reader) error {
	log := logf.FromContext(ctx)
	retry := f.retry
	for ctx.Err() == nil {
		refs, all := f.table.Undecided()
		if !all {
			return fmt.Errorf("%w: more live reads are needed than are worth it", errRestart)
		}
		pause := decideEvery
		if err := f.resolve(ctx, session, refs, r); errors.Is(err, errRestart) {
			return err
		} else if err != nil {
			log.V(2).Info("Cannot decide about an object", "reason", err.Error())
			pause = retry.Step()
		} else {
			retry = f.retry
		}
		select {
		case <-ctx.Done():
		case <-f.clock.After(pause):
		}
	}
	return ctx.Err()
}

func (f *Feed) resolve(ctx context.Context, session *routes.Session, refs []routes.Ref, r routes.Reader) error {
	var group errgroup.Group
	group.SetLimit(readsAtOnce)
	for _, ref := range refs {
		group.Go(func() error {
			outcome, err := session.Resolve(ctx, ref, r)
			if err != nil {
				f.metrics.reads.WithLabelValues(ref.Kind.String(), resultFailed).Inc()
				return err
			}
			f.metrics.reads.WithLabelValues(ref.Kind.String(), resultDecided).Inc()
			if outcome == routes.Superseded || outcome == routes.Restored {
				return errRestart
			}
			return nil
		})
	}
	return group.Wait()
}

// reader reads objects as they are stored now.
type reader struct {
	feed      *Feed
	sandboxes schema.GroupVersionResource
}

// ReadSandbox implements routes.Reader.
func (r *reader) ReadSandbox(ctx context.Context, namespace, name string) (routes.Sandbox, bool, error) {
	ref := liveread.Ref{GVR: r.sandboxes, Namespace: namespace, Name: name}
	return read(ctx, r.feed.live, ref, labels.Everything(), r.feed.platform.SandboxOf)
}

// ReadPod implements routes.Reader.
func (r *reader) ReadPod(ctx context.Context, namespace, name string) (routes.Pod, bool, error) {
	ref := liveread.Ref{GVR: pods, Namespace: namespace, Name: name}
	return read(ctx, r.feed.live, ref, r.feed.platform.PodSelector, r.feed.platform.PodOf)
}

// read finds only what the watch follows, too: of anything else nobody would hear
// that it is gone.
func read[T any](ctx context.Context, live *liveread.Reader, ref liveread.Ref, followed labels.Selector, of func(*unstructured.Unstructured) (T, error)) (T, bool, error) {
	var none T
	u, err := live.Get(ctx, ref)
	if liveread.IsAbsent(err) || err == nil && !followed.Matches(labels.Set(u.GetLabels())) {
		return none, false, nil
	}
	if err != nil {
		return none, false, err
	}
	o, err := of(u)
	return o, err == nil, err
}
