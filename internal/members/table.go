package members

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// named is what every object that is kept has.
type named interface {
	GetNamespace() string
	GetName() string
}

// table has objects of one kind, reduced.
type table[T any] struct {
	reduce func(u *unstructured.Unstructured, before *T) *T
	// index is told of each change before the handlers are; nil for none.
	index func(old, now *T)

	// changing is held while a change is made and told.
	changing sync.Mutex
	handlers []Handler[T]

	mu sync.RWMutex
	// objects are by namespace, then by name, so that not each has the room of both
	// in its key.
	objects map[string]map[string]*T
}

func keyOf[T any](obj *T) types.NamespacedName {
	n := any(obj).(named)
	return types.NamespacedName{Namespace: n.GetNamespace(), Name: n.GetName()}
}

func (t *table[T]) get(key types.NamespacedName) *T {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.objects[key.Namespace][key.Name]
}

func (t *table[T]) list(which func(*T) bool) []*T {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var out []*T
	for _, objects := range t.objects {
		for _, obj := range objects {
			if which(obj) {
				out = append(out, obj)
			}
		}
	}
	return out
}

// handle tells a handler of everything that is there first.
func (t *table[T]) handle(h Handler[T]) {
	t.changing.Lock()
	defer t.changing.Unlock()
	for _, obj := range t.list(func(*T) bool { return true }) {
		h(nil, obj)
	}
	t.handlers = append(t.handlers, h)
}

// seen takes what a watch delivers: a later version of what was there before.
func (t *table[T]) seen(obj any) (*T, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return t.reduce(u, t.get(types.NamespacedName{Namespace: u.GetNamespace(), Name: u.GetName()})), nil
	}
	return t.listed(obj)
}

// listed takes what a list has. That may be no later version of anything: when etcd was
// restored from a snapshot, what was there before is no part of the past, and an object
// has its UID and its generation and something else in it.
func (t *table[T]) listed(obj any) (*T, error) {
	switch obj := obj.(type) {
	case *item[T]:
		return obj.object, nil
	case *unstructured.Unstructured:
		return t.reduce(obj, nil), nil
	}
	return nil, fmt.Errorf("caching members: cannot read a %T", obj)
}

func (t *table[T]) put(obj any) error {
	now, err := t.seen(obj)
	if err != nil {
		return err
	}
	t.changing.Lock()
	defer t.changing.Unlock()
	t.set(keyOf(now), now)
	return nil
}

func (t *table[T]) remove(key types.NamespacedName) {
	t.changing.Lock()
	defer t.changing.Unlock()
	t.set(key, nil)
}

// replace makes the objects of a namespace, "" for all, exactly these.
func (t *table[T]) replace(namespace string, objs []any) error {
	listed := make(map[types.NamespacedName]*T, len(objs))
	for _, obj := range objs {
		now, err := t.listed(obj)
		if err != nil {
			return err
		}
		listed[keyOf(now)] = now
	}
	t.changing.Lock()
	defer t.changing.Unlock()
	gone := t.list(func(obj *T) bool {
		return listed[keyOf(obj)] == nil && (namespace == "" || any(obj).(named).GetNamespace() == namespace)
	})
	for _, obj := range gone {
		t.set(keyOf(obj), nil)
	}
	for key, now := range listed {
		t.set(key, now)
	}
	return nil
}

// set has changing held.
func (t *table[T]) set(key types.NamespacedName, now *T) {
	t.mu.Lock()
	old := t.objects[key.Namespace][key.Name]
	t.store(key, now)
	t.mu.Unlock()
	if old == nil && now == nil {
		return
	}
	if t.index != nil {
		t.index(old, now)
	}
	for _, h := range t.handlers {
		h(old, now)
	}
}

// store has mu held. A key is of what it leads to, so that no other object is kept
// for its sake, and a namespace that has nothing left is forgotten.
func (t *table[T]) store(key types.NamespacedName, now *T) {
	objects := t.objects[key.Namespace]
	delete(objects, key.Name)
	switch {
	case now == nil && len(objects) == 0:
		delete(t.objects, key.Namespace)
		return
	case now == nil:
		return
	case t.objects == nil:
		t.objects = map[string]map[string]*T{}
	}
	if objects == nil {
		objects = map[string]*T{}
		t.objects[key.Namespace] = objects
	}
	objects[keyOf(now).Name] = now
}
