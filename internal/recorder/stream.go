package recorder

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/freshbind/freshbind/internal/checker"
)

const (
	// pageSize bounds one answer of a LIST; all pages of a LIST are of one resourceVersion.
	pageSize = 500
	// minWatch is the shortest time after which the server is asked to end a watch, as client-go's reflector does it.
	minWatch = 5 * time.Minute
)

// errExpired says that the API server no longer has the events that a watch would have to go on with.
var errExpired = errors.New("events are no longer available")

// listWatcher is what is needed of a dynamic client.
type listWatcher interface {
	List(ctx context.Context, options metav1.ListOptions) (*unstructured.UnstructuredList, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// stream records one resource.
type stream struct {
	r        *Recorder
	resource checker.Resource
	client   listWatcher
	only     string // fieldSelector

	last  checker.RV               // all events up to here were delivered
	known map[types.UID]checker.RV // what is stored, as far as delivered
}

func newStream(r *Recorder, resource checker.Resource, client dynamic.Interface, gvr schema.GroupVersionResource, namespace string) *stream {
	s := &stream{r: r, resource: resource, client: client.Resource(gvr)}
	switch {
	case namespace == "", resource == checker.Nodes:
	case resource == checker.Namespaces:
		s.only = fields.OneTermEqualSelector("metadata.name", namespace).String()
	default:
		s.client = client.Resource(gvr).Namespace(namespace)
	}
	return s
}

// snapshot is the answer to a consistent LIST.
type snapshot struct {
	at    checker.RV
	items []*unstructured.Unstructured
}

// fetch lists with the resourceVersion unset: the answer is not older than the request.
func (s *stream) fetch(ctx context.Context) (snapshot, error) {
	out := snapshot{}
	options := metav1.ListOptions{FieldSelector: s.only, Limit: pageSize}
	for {
		list, err := s.client.List(ctx, options)
		if options.Continue != "" && apierrors.IsResourceExpired(err) {
			// The pages took longer than the server keeps old versions: begin again.
			out, options.Continue = snapshot{}, ""
			continue
		}
		if err != nil {
			return out, fmt.Errorf("list %s: %w", s.resource, err)
		}
		for i := range list.Items {
			out.items = append(out.items, slim(&list.Items[i]))
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			if out.at, err = checker.ParseRV(list.GetResourceVersion()); err != nil {
				return out, fmt.Errorf("list %s: %w", s.resource, err)
			}
			return out, nil
		}
	}
}

// list starts the resource, or starts it again after events were lost.
func (s *stream) list(ctx context.Context) error {
	found, err := s.fetch(ctx)
	if err != nil {
		return err
	}
	var events []checker.Event
	if s.last != "" {
		events = append(events, checker.Event{Type: checker.Gap, Resource: s.resource, After: s.last, RV: found.at})
		logr.FromContextOrDiscard(ctx).Info("Events were lost", "resource", s.resource, "after", s.last, "until", found.at)
	}
	known := map[types.UID]checker.RV{}
	for _, u := range found.items {
		known[u.GetUID()] = checker.RV(u.GetResourceVersion())
		events = append(events, checker.Event{Type: checker.Listed, Object: u})
	}
	events = append(events, checker.Event{Type: checker.Synced, Resource: s.resource, RV: found.at})
	return s.deliver(events, func() { s.last, s.known = found.at, known })
}

// deliver hands events over and moves the stream's own state, which waiters read, in one step.
func (s *stream) deliver(events []checker.Event, move func()) error {
	for _, e := range events {
		if s.resource == checker.Nodes && e.Object != nil {
			// Most of a Node is the list of its images.
			unstructured.RemoveNestedField(e.Object.Object, "status", "images")
		}
	}
	if err := s.r.emit(move, events...); err != nil {
		return &fatalError{err}
	}
	return nil
}

// follow watches from the LIST on, for as long as ctx lives.
func (s *stream) follow(ctx context.Context) error {
	log := logr.FromContextOrDiscard(ctx)
	retry := s.r.retry
	for ctx.Err() == nil {
		before := s.last
		err := s.watch(ctx)
		if errors.Is(err, errExpired) {
			err = s.list(ctx)
		}
		var fatal *fatalError
		if errors.As(err, &fatal) {
			return fatal.err
		}
		if s.last != before {
			retry = s.r.retry
		}
		if err == nil && s.last != before {
			continue
		}
		log.V(2).Info("Watch ended", "resource", s.resource, "resourceVersion", s.last, "error", err)
		select {
		case <-ctx.Done():
		case <-s.r.clock.After(retry.Step()):
		}
	}
	return nil
}

// fatalError ends the recording: what it says cannot be cured by trying again.
type fatalError struct{ err error }

func (e *fatalError) Error() string { return e.err.Error() }
func (e *fatalError) Unwrap() error { return e.err }

// watch goes on from the last event. It returns nil when the server ends the watch.
func (s *stream) watch(ctx context.Context) error {
	seconds := int64(minWatch.Seconds() * (1 + rand.Float64()))
	w, err := s.client.Watch(ctx, metav1.ListOptions{FieldSelector: s.only, ResourceVersion: string(s.last),
		AllowWatchBookmarks: true, TimeoutSeconds: &seconds})
	if expired(err) {
		return errExpired
	}
	if err != nil {
		return fmt.Errorf("watch %s: %w", s.resource, err)
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-w.ResultChan():
			if !ok {
				return nil
			}
			if err := s.take(e); err != nil {
				return err
			}
		}
	}
}

var eventTypes = map[watch.EventType]checker.EventType{
	watch.Added: checker.Added, watch.Modified: checker.Modified, watch.Deleted: checker.Deleted,
}

func (s *stream) take(e watch.Event) error {
	if e.Type == watch.Error {
		err := apierrors.FromObject(e.Object)
		if expired(err) {
			return errExpired
		}
		return fmt.Errorf("watch %s: %w", s.resource, err)
	}
	rv, err := versionOf(e.Object)
	if err != nil {
		return &fatalError{fmt.Errorf("watch %s: %w", s.resource, err)}
	}
	if rv.Before(s.last) {
		return &fatalError{fmt.Errorf("watch %s: resourceVersion %s came after %s: was etcd restored from a backup? Start a new recording",
			s.resource, rv, s.last)}
	}
	if e.Type == watch.Bookmark {
		return s.deliver([]checker.Event{{Type: checker.Progress, Resource: s.resource, RV: rv}}, func() { s.last = rv })
	}
	u, isObject := e.Object.(*unstructured.Unstructured)
	kind, isKnown := eventTypes[e.Type]
	if !isObject || !isKnown {
		return &fatalError{fmt.Errorf("watch %s: event %s with a %T", s.resource, e.Type, e.Object)}
	}
	return s.deliver([]checker.Event{{Type: kind, Object: slim(u)}}, func() {
		s.last = rv
		if kind == checker.Deleted {
			delete(s.known, u.GetUID())
		} else {
			s.known[u.GetUID()] = rv
		}
	})
}

func versionOf(o runtime.Object) (checker.RV, error) {
	m, err := meta.Accessor(o)
	if err != nil {
		return "", fmt.Errorf("read metadata of %T: %w", o, err)
	}
	return checker.ParseRV(m.GetResourceVersion())
}

// slim drops what is large and never judged.
func slim(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetManagedFields(nil)
	return u
}

func expired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

func refused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }
