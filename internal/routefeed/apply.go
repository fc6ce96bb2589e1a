package routefeed

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/routes"
)

// events brings objects of one kind to a session.
type events interface {
	// list begins a list of all objects.
	list() list
	// changed and deleted follow one event.
	changed(u *unstructured.Unstructured) (routes.Outcome, error)
	deleted(u *unstructured.Unstructured) (routes.Outcome, error)
	// proven says that everything from before that time was delivered.
	proven(at time.Time) routes.Outcome
}

// list collects objects, of which only what routes need is kept.
type list interface {
	add(u *unstructured.Unstructured) error
	apply(v routes.Version, asked time.Time) routes.Outcome
}

type sandboxes struct {
	session *routes.Session
	read    func(*unstructured.Unstructured) (routes.Sandbox, error)
}

func (e *sandboxes) changed(u *unstructured.Unstructured) (routes.Outcome, error) {
	o, err := e.read(u)
	if err != nil {
		return routes.Ignored, err
	}
	return e.session.Sandbox(o), nil
}

func (e *sandboxes) deleted(u *unstructured.Unstructured) (routes.Outcome, error) {
	o, err := e.read(u)
	if err != nil {
		return routes.Ignored, err
	}
	return e.session.SandboxDeleted(o.Namespace, o.Name, o.UID, o.Version), nil
}

func (e *sandboxes) proven(at time.Time) routes.Outcome {
	return e.session.Proven(routes.Sandboxes, at)
}

func (e *sandboxes) list() list {
	return &collected[routes.Sandbox]{read: e.read, replace: e.session.ReplaceSandboxes}
}

type podEvents struct {
	session *routes.Session
	read    func(*unstructured.Unstructured) (routes.Pod, error)
}

func (e *podEvents) changed(u *unstructured.Unstructured) (routes.Outcome, error) {
	o, err := e.read(u)
	if err != nil {
		return routes.Ignored, err
	}
	return e.session.Pod(o), nil
}

func (e *podEvents) deleted(u *unstructured.Unstructured) (routes.Outcome, error) {
	o, err := e.read(u)
	if err != nil {
		return routes.Ignored, err
	}
	return e.session.PodDeleted(o.Namespace, o.Name, o.UID, o.Version), nil
}

func (e *podEvents) proven(at time.Time) routes.Outcome { return e.session.Proven(routes.Pods, at) }

func (e *podEvents) list() list {
	return &collected[routes.Pod]{read: e.read, replace: e.session.ReplacePods}
}

type collected[T any] struct {
	all     []T
	read    func(*unstructured.Unstructured) (T, error)
	replace func([]T, routes.Version, time.Time) routes.Outcome
}

func (c *collected[T]) add(u *unstructured.Unstructured) error {
	o, err := c.read(u)
	if err == nil {
		c.all = append(c.all, o)
	}
	return err
}

func (c *collected[T]) apply(v routes.Version, asked time.Time) routes.Outcome {
	return c.replace(c.all, v, asked)
}
