package fakeupstream

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/freshbind/freshbind/test/builders"
)

const (
	poolKind  = "SandboxWarmPool"
	claimKind = "SandboxClaim"
)

// collection is the cache of one resource.
type collection struct{ lister cache.GenericNamespaceLister }

// get returns a copy; an error is one of package apierrors.
func (s collection) get(name string) (*unstructured.Unstructured, error) {
	obj, err := s.lister.Get(name)
	if err != nil {
		return nil, err
	}
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("the cache holds a %T", obj)
	}
	return u.DeepCopy(), nil
}

func (s collection) list() ([]*unstructured.Unstructured, error) {
	objs, err := s.lister.List(labels.Everything())
	if err != nil {
		return nil, err
	}
	out := make([]*unstructured.Unstructured, 0, len(objs))
	for _, obj := range objs {
		if u, ok := obj.(*unstructured.Unstructured); ok {
			out = append(out, u.DeepCopy())
		}
	}
	return out, nil
}

// v0.3.10 does not watch templates.
func (c *Controller) templateChanged(_, template *unstructured.Unstructured) {
	if template == nil || c.style == OneWrite {
		return
	}
	pools, err := c.pools.list()
	if err != nil {
		return
	}
	for _, pool := range pools {
		if templateOf(pool) == template.GetName() {
			c.poolQueue.Add(pool.GetName())
		}
	}
}

func (c *Controller) poolChanged(_, pool *unstructured.Unstructured) {
	if pool != nil {
		c.poolQueue.Add(pool.GetName())
	}
}

func (c *Controller) claimChanged(_, claim *unstructured.Unstructured) {
	if claim != nil {
		c.claimQueue.Add(claim.GetName())
	}
}

// sandboxChanged wakes who owned and who owns the Sandbox, and offers one that
// has become adoptable.
func (c *Controller) sandboxChanged(old, sandbox *unstructured.Unstructured) {
	for _, u := range []*unstructured.Unstructured{old, sandbox} {
		if u == nil {
			continue
		}
		c.seen(u.GetName())
		owner := metav1.GetControllerOf(u)
		switch {
		case owner == nil:
		case owner.Kind == poolKind:
			c.poolQueue.Add(owner.Name)
		case owner.Kind == claimKind:
			c.claimQueue.Add(owner.Name)
		}
	}
	if sandbox != nil && adoptable(sandbox) && (old == nil || !adoptable(old)) {
		c.offered.add(poolOf(sandbox), sandbox.GetName())
	}
}

func templateOf(pool *unstructured.Unstructured) string {
	name, _, _ := unstructured.NestedString(pool.Object, "spec", "sandboxTemplateRef", "name")
	return name
}

// poolOf is the name of the pool that controls a Sandbox; "" for none.
func poolOf(sandbox *unstructured.Unstructured) string {
	if owner := metav1.GetControllerOf(sandbox); owner != nil && owner.Kind == poolKind {
		return owner.Name
	}
	return ""
}

// adoptable is what v0.5.0 asks of a member.
func adoptable(sandbox *unstructured.Unstructured) bool {
	owner := metav1.GetControllerOf(sandbox)
	return shown(sandbox) && owner != nil && owner.Kind == poolKind &&
		owner.APIVersion == builders.GroupExtensions+"/"+builders.V1Beta1
}

// shown: it carries both labels without which it is passed over.
func shown(sandbox *unstructured.Unstructured) bool {
	_, pooled := sandbox.GetLabels()[builders.LabelPool]
	_, referred := sandbox.GetLabels()[builders.LabelTemplateRef]
	return pooled && referred && sandbox.GetDeletionTimestamp() == nil
}

func ready(sandbox *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(sandbox.Object, "status", "conditions")
	for _, condition := range conditions {
		if m, _ := condition.(map[string]any); m["type"] == "Ready" {
			return m["status"] == string(metav1.ConditionTrue)
		}
	}
	return false
}
