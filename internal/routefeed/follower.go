package routefeed

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/freshbind/freshbind/routes"
)

// pageSize is how many objects are in memory at once, in full, while they are
// listed.
const pageSize = 250

// errExpired says that the API server no longer has the events that a watch
// would go on with.
var errExpired = errors.New("events are no longer available")

// follower follows the objects of one kind, in all namespaces that are looked
// at.
type follower struct {
	*Feed
	kind     routes.Kind
	resource dynamic.NamespaceableResourceInterface
	selector string
	events   events
	places   []*place

	mu sync.Mutex
	// proven has the time up to which the view of each place is complete.
	proven map[*place]time.Time
}

func newFollower(f *Feed, kind routes.Kind, resource schema.GroupVersionResource, selector string, e events) *follower {
	out := &follower{Feed: f, kind: kind, resource: f.client.Resource(resource), selector: selector, events: e, proven: map[*place]time.Time{}}
	for _, namespace := range f.namespaces {
		out.places = append(out.places, &place{follower: out, namespace: namespace})
	}
	return out
}

// run lists, and follows from there, as often as events were lost.
func (f *follower) run(ctx context.Context) error {
	log := logf.FromContext(ctx).WithValues("kind", f.kind.String())
	retry := f.retry
	for ctx.Err() == nil {
		err := f.list(ctx)
		if err == nil {
			retry = f.retry
			err = f.watch(ctx)
			if errors.Is(err, errExpired) {
				log.Info("Events were lost; listing again")
				continue
			}
		}
		if errors.Is(err, errRestart) {
			return err
		}
		if ctx.Err() != nil {
			break
		}
		log.Error(err, "Cannot follow")
		select {
		case <-ctx.Done():
		case <-f.clock.After(retry.Step()):
		}
	}
	return ctx.Err()
}

func (f *follower) watch(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, p := range f.places {
		group.Go(func() error { return p.follow(ctx) })
		group.Go(func() error { return p.ask(ctx) })
	}
	return group.Wait()
}

// list replaces what the table has of this kind.
func (f *follower) list(ctx context.Context) error {
	f.metrics.lists.WithLabelValues(f.kind.String()).Inc()
	asked := f.clock.Now()
	all := f.events.list()
	versions := make([]routes.Version, len(f.places))
	oldest := routes.Version(0)
	for i, p := range f.places {
		v, err := f.pages(ctx, p.namespace, all)
		if err != nil {
			return err
		}
		versions[i] = v
		if i == 0 || v < oldest {
			oldest = v
		}
	}
	// Of several lists, together they are as new as the oldest one.
	if err := f.outcome(all.apply(oldest, asked)); err != nil {
		return err
	}
	for i, p := range f.places {
		p.begin(versions[i])
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.proven)
	return nil
}

// pages lists one namespace from etcd, never from the memory of an API server,
// which may be older than what was seen before.
func (f *follower) pages(ctx context.Context, namespace string, all list) (routes.Version, error) {
	options := metav1.ListOptions{LabelSelector: f.selector, Limit: pageSize}
	for {
		page, err := f.resource.Namespace(namespace).List(ctx, options)
		if err != nil {
			return 0, f.expired(fmt.Errorf("list %s: %w", f.kind, err))
		}
		for i := range page.Items {
			if err := all.add(&page.Items[i]); err != nil {
				return 0, err
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return routes.ParseVersion(page.GetResourceVersion())
		}
	}
}

// expired marks errors that a new list mends. A version that is not served any
// more needs another resource, and so another session.
func (f *follower) expired(err error) error {
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return fmt.Errorf("%w: %w", errExpired, err)
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %w", errRestart, err)
	}
	return err
}

// outcome counts what became of an event. It is an error when the session is
// over.
func (f *follower) outcome(o routes.Outcome) error {
	f.metrics.events.WithLabelValues(f.kind.String(), o.String()).Inc()
	switch o {
	case routes.Restored:
		return fmt.Errorf("%w: resourceVersions went back, as after a restore of etcd", errRestart)
	case routes.Superseded:
		return fmt.Errorf("%w: another session has begun", errRestart)
	}
	return nil
}

// prove says up to when the view of one place is complete. That of the kind is
// as old as that of its oldest place.
func (f *follower) prove(p *place, at time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.proven[p] = at
	if len(f.proven) < len(f.places) {
		return nil
	}
	for _, other := range f.proven {
		if other.Before(at) {
			at = other
		}
	}
	if f.events.proven(at) == routes.Superseded {
		return fmt.Errorf("%w: another session has begun", errRestart)
	}
	return nil
}
