package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

const (
	// pageSize is how many objects a list asks for at once.
	pageSize = 500
	// retryAfter is the pause after a watch or a list that failed.
	retryAfter = time.Second
)

// collection is one kind of objects in a Store.
type collection int

const (
	pools collection = iota
	templates
	// sharedTemplates are what pools can refer to that are their own templates otherwise.
	sharedTemplates
	members
	memberPods
	revisions
)

// Store is what a cluster, or one of its namespaces, holds of pools. It starts
// from consistent lists and can be kept current by watches.
type Store struct {
	client     client.WithWatch
	sources    map[collection]source
	namespaces namespaces

	mu      sync.Mutex
	objects map[collection]map[types.NamespacedName]client.Object
	from    map[collection]string
	// withheld are the collections that may not be read, and why.
	withheld map[collection]error
	changed  chan struct{}
}

// source is where the objects of a collection come from.
type source struct {
	list    func() client.ObjectList
	options []client.ListOption
}

// Load reads a namespace, or all of them for "".
func (c *Cluster) Load(ctx context.Context, namespace string) (*Store, error) {
	s := &Store{
		client: c.Client, objects: map[collection]map[types.NamespacedName]client.Object{}, from: map[collection]string{},
		withheld: map[collection]error{}, changed: make(chan struct{}, 1),
	}
	var err error
	if s.sources, err = c.sources(ctx, namespace); err != nil {
		return nil, err
	}
	g, ctx := errgroup.WithContext(ctx)
	for sh := range s.sources {
		g.Go(func() error {
			err := s.read(ctx, sh)
			if (sh == memberPods || sh == sharedTemplates) && apierrors.IsForbidden(err) {
				s.withhold(sh, err)
				return nil
			}
			return err
		})
	}
	g.Go(func() (err error) {
		s.namespaces, err = c.namespaces(ctx, namespace)
		return err
	})
	err = g.Wait()
	// Members are then judged without their Pods, and pools not that refer to a template.
	for sh := range s.withheld {
		delete(s.sources, sh)
	}
	return s, err
}

func (s *Store) withhold(sh collection, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.withheld[sh] = why
}

func (c *Cluster) sources(ctx context.Context, namespace string) (map[collection]source, error) {
	stamped, err := labels.NewRequirement(settings.StampKey, selection.Exists, nil)
	if err != nil {
		return nil, fmt.Errorf("selecting revisions: %w", err)
	}
	within := client.InNamespace(namespace)
	out := map[collection]source{memberPods: {
		list: func() client.ObjectList {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
			return list
		},
		options: []client.ListOption{within, client.MatchingLabelsSelector{Selector: c.Objects.MemberPods()}},
	}, revisions: {
		list:    func() client.ObjectList { return &appsv1.ControllerRevisionList{} },
		options: []client.ListOption{within, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*stamped)}},
	}}
	kinds := c.Objects.Kinds()
	for sh, of := range map[collection]struct {
		kind    platform.Kind
		options []client.ListOption
	}{
		pools:           {kinds.Pool, nil},
		templates:       {kinds.Template, nil},
		sharedTemplates: {kinds.SharedTemplate, nil},
		members:         {kinds.Member, []client.ListOption{client.MatchingLabelsSelector{Selector: c.Objects.PooledMembers()}}},
	} {
		if of.kind.Empty() {
			continue
		}
		gvk, err := c.kind(ctx, of.kind.GroupResource())
		if sh == sharedTemplates && errors.Is(err, liveread.ErrNotServed) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[sh] = source{
			list: func() client.ObjectList {
				list := &unstructured.UnstructuredList{}
				list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
				return list
			},
			options: append([]client.ListOption{within}, of.options...),
		}
	}
	return out, nil
}

// read replaces what a collection holds by a consistent list.
func (s *Store) read(ctx context.Context, sh collection) error {
	found := map[types.NamespacedName]client.Object{}
	from, next := "", ""
	for {
		list := s.sources[sh].list()
		options := append([]client.ListOption{client.Limit(pageSize), client.Continue(next)}, s.sources[sh].options...)
		if err := s.client.List(ctx, list, options...); err != nil {
			return fmt.Errorf("listing %s: %w", listed(list), err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return fmt.Errorf("reading the list of %s: %w", listed(list), err)
		}
		for _, item := range items {
			if obj, ok := item.(client.Object); ok {
				found[client.ObjectKeyFromObject(obj)] = obj
			}
		}
		if from == "" {
			from = list.GetResourceVersion()
		}
		if next = list.GetContinue(); next == "" {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[sh], s.from[sh] = found, from
	s.note()
	return nil
}

func listed(list client.ObjectList) string {
	if kind := list.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return fmt.Sprintf("%T", list)
}

// note says that something changed. The lock is held.
func (s *Store) note() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Follow keeps the store current until ctx ends. trouble is told of each watch
// or list that failed; it is tried again.
func (s *Store) Follow(ctx context.Context, trouble func(error)) {
	for sh := range s.sources {
		go s.follow(ctx, sh, trouble)
	}
}

func (s *Store) follow(ctx context.Context, sh collection, trouble func(error)) {
	for ctx.Err() == nil {
		began := time.Now()
		err := s.watch(ctx, sh)
		if err == nil && time.Since(began) < retryAfter {
			rest(ctx)
		}
		for err != nil && ctx.Err() == nil {
			trouble(err)
			rest(ctx)
			err = s.read(ctx, sh)
		}
	}
}

func rest(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(retryAfter):
	}
}

// watch applies events until the watch ends. An error says that the collection has
// to be read anew.
func (s *Store) watch(ctx context.Context, sh collection) error {
	s.mu.Lock()
	from := s.from[sh]
	s.mu.Unlock()
	list := s.sources[sh].list()
	options := append([]client.ListOption{&client.ListOptions{Raw: &metav1.ListOptions{
		ResourceVersion: from, AllowWatchBookmarks: true,
	}}}, s.sources[sh].options...)
	w, err := s.client.Watch(ctx, list, options...)
	if err != nil {
		return fmt.Errorf("watching %s: %w", listed(list), err)
	}
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, open := <-w.ResultChan():
			if !open {
				return nil
			}
			if event.Type == watch.Error {
				return fmt.Errorf("watching %s: %w", listed(list), apierrors.FromObject(event.Object))
			}
			s.take(sh, event)
		}
	}
}

func (s *Store) take(sh collection, event watch.Event) {
	obj, ok := event.Object.(client.Object)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.from[sh] = obj.GetResourceVersion()
	switch event.Type {
	case watch.Added, watch.Modified:
		s.objects[sh][client.ObjectKeyFromObject(obj)] = obj
	case watch.Deleted:
		delete(s.objects[sh], client.ObjectKeyFromObject(obj))
	default:
		return
	}
	s.note()
}

// Changed is readable after something changed.
func (s *Store) Changed() <-chan struct{} { return s.changed }

// all returns the objects of a collection, as they are now.
func all[T client.Object](s *Store, sh collection) map[types.NamespacedName]T {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[types.NamespacedName]T{}
	for key, obj := range s.objects[sh] {
		if v, ok := obj.(T); ok {
			out[key] = v
		}
	}
	return out
}
