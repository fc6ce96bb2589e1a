package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/liveread"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// unknownMode is that of a namespace which may not be read.
const unknownMode settings.Mode = "unknown"

// Cluster is where everything is read from, and written to.
type Cluster struct {
	Client   client.WithWatch
	Resolver platform.Resolver
	// Reader reads single objects as they are stored.
	Reader platform.Reader
	// ByUID finds them by their UIDs.
	ByUID platform.Reader
	// Objects and Judging are the platform's.
	Objects Objects
	Judging func(Sources) Judging
	// History decodes recorded revisions.
	History func(client.Reader) platform.History
	// Defaults are what the manager was started with.
	Defaults settings.Defaults
	// Now is the time of the API server, as far as it is known.
	Now func() time.Time
}

// kindName is the kind of what is read as that resource.
func (c *Cluster) kindName(gr schema.GroupResource) string {
	kinds := c.Objects.Kinds()
	for _, k := range []platform.Kind{kinds.Pool, kinds.Template, kinds.SharedTemplate, kinds.Claim, kinds.Member} {
		if k.GroupResource() == gr {
			return k.Kind
		}
	}
	return "Pod"
}

func (c *Cluster) kind(ctx context.Context, gr schema.GroupResource) (schema.GroupVersionKind, error) {
	gvr, err := c.Resolver.Resource(ctx, gr)
	if err != nil {
		return schema.GroupVersionKind{}, fmt.Errorf("looking for %s in this cluster: %w", c.Objects.Kinds().Product, err)
	}
	return gvr.GroupVersion().WithKind(c.kindName(gr)), nil
}

// Get reads one object; a NotFound error when it does not exist.
func (c *Cluster) Get(ctx context.Context, gr schema.GroupResource, namespace, name string) (*unstructured.Unstructured, error) {
	kind, err := c.kind(ctx, gr)
	if err != nil {
		return nil, err
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	if err := c.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, obj); err != nil {
		return nil, fmt.Errorf("reading %s %s/%s: %w", gr.Resource, namespace, name, err)
	}
	return obj, nil
}

// Template reads the template of a name. Where pools are their own templates it is the pool
// of that name, unless there is none or it refers to a template, and then the template that
// pools can refer to.
func (c *Cluster) Template(ctx context.Context, namespace, name string) (*unstructured.Unstructured, error) {
	kinds := c.Objects.Kinds()
	own, err := c.Get(ctx, kinds.Template.GroupResource(), namespace, name)
	if kinds.SharedTemplate.Empty() || client.IgnoreNotFound(err) != nil || err == nil && c.Objects.Pool(own).RefersTo("", name) {
		return own, err
	}
	shared, sharedErr := c.Get(ctx, kinds.SharedTemplate.GroupResource(), namespace, name)
	if err != nil && errors.Is(sharedErr, liveread.ErrNotServed) {
		return nil, err
	}
	return shared, sharedErr
}

// TemplateOf reads the template of a pool.
func (c *Cluster) TemplateOf(ctx context.Context, pool *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	is, kinds := c.Objects.Pool(pool), c.Objects.Kinds()
	of := kinds.Template
	if is.TemplateKind != "" {
		of = kinds.SharedTemplate
	}
	return c.Get(ctx, of.GroupResource(), pool.GetNamespace(), is.Template)
}

// templateFor reads the template of a pool, or without one the template of that name.
func (c *Cluster) templateFor(ctx context.Context, namespace, pool, template string) (*unstructured.Unstructured, error) {
	if pool == "" {
		return c.Template(ctx, namespace, template)
	}
	of, err := c.Get(ctx, c.Objects.Kinds().Pool.GroupResource(), namespace, pool)
	if err != nil {
		return nil, err
	}
	return c.TemplateOf(ctx, of)
}

// Names lists the names of what a namespace has of a resource.
func (c *Cluster) Names(ctx context.Context, gr schema.GroupResource, namespace string) ([]string, error) {
	found, err := c.list(ctx, gr, client.InNamespace(namespace))
	if err != nil {
		return nil, err
	}
	var out []string
	for i := range found {
		out = append(out, found[i].GetName())
	}
	return out, nil
}

func (c *Cluster) list(ctx context.Context, gr schema.GroupResource, options ...client.ListOption) ([]unstructured.Unstructured, error) {
	kind, err := c.kind(ctx, gr)
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := c.Client.List(ctx, list, options...); err != nil {
		return nil, fmt.Errorf("listing %s: %w", gr.Resource, err)
	}
	return list.Items, nil
}

// live judges single objects as admission does, from what is stored now.
func (c *Cluster) live() (Judging, *kindReader) {
	reader := &kindReader{Reader: c.Reader}
	return c.Judging(Sources{Reader: reader, Resolver: c.Resolver, ByUID: c.ByUID, History: c.History(c.Client), Defaults: c.Defaults}), reader
}

// kindReader gives a node and a namespace that may not be read the benefit of the
// doubt: whoever owns a namespace seldom may read either.
type kindReader struct {
	platform.Reader
	noNode, noNamespace atomic.Bool
}

// Get reads one object.
func (r *kindReader) Get(ctx context.Context, ref liveread.Ref) (*unstructured.Unstructured, error) {
	obj, err := r.Reader.Get(ctx, ref)
	if !apierrors.IsForbidden(err) {
		return obj, err
	}
	switch ref.GVR.GroupResource().String() {
	case "nodes":
		r.noNode.Store(true)
	case "namespaces":
		r.noNamespace.Store(true)
	default:
		return obj, err
	}
	return &unstructured.Unstructured{Object: map[string]any{}}, nil
}

// namespaces are the labels of those that were read; nil when they may not be read.
type namespaces map[string]map[string]string

func (c *Cluster) namespaces(ctx context.Context, namespace string) (namespaces, error) {
	var list corev1.NamespaceList
	var err error
	if namespace == "" {
		err = c.Client.List(ctx, &list)
	} else {
		var one corev1.Namespace
		err = c.Client.Get(ctx, types.NamespacedName{Name: namespace}, &one)
		list.Items = []corev1.Namespace{one}
	}
	switch {
	case apierrors.IsForbidden(err):
		return nil, nil
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading the mode of namespaces: %w", err)
	}
	out := namespaces{}
	for i := range list.Items {
		out[list.Items[i].Name] = list.Items[i].Labels
	}
	return out, nil
}

// mode is that of a namespace, for a pool that says this of its own.
func (n namespaces) mode(d settings.Defaults, namespace, pool string) settings.Mode {
	if n == nil && settings.Mode(pool) != settings.Enforce {
		return unknownMode
	}
	return d.ModeOf(n[namespace], pool)
}

// ServerClock tells the time of the API server from its answers. It is within a
// second of it, which the clock of whoever runs this need not be.
type ServerClock struct{ skew atomic.Pointer[time.Duration] }

// Wrap is for rest.Config.Wrap.
func (s *ServerClock) Wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(r)
		if err != nil {
			return answer, err
		}
		if at, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
			skew := time.Until(at)
			s.skew.Store(&skew)
		}
		return answer, nil
	})
}

// Now returns the local time until there was an answer.
func (s *ServerClock) Now() time.Time {
	if skew := s.skew.Load(); skew != nil {
		return time.Now().Add(*skew)
	}
	return time.Now()
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
