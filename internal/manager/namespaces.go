package manager

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// namespacedManager is a manager that lists nothing but these namespaces: it may have no
// rights in others.
type namespacedManager struct {
	manager.Manager
	namespaces []string
}

func (n *namespacedManager) GetAPIReader() client.Reader {
	return &namespacedReader{n.Manager.GetAPIReader(), n.namespaces}
}

type namespacedReader struct {
	client.Reader
	namespaces []string
}

// List lists the namespaces one after the other where all are asked for, which
// must not be done page by page, nor for objects without a namespace.
func (r *namespacedReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	if o.Namespace != "" {
		return r.Reader.List(ctx, list, opts...)
	}
	var all []runtime.Object
	for _, namespace := range r.namespaces {
		if err := r.Reader.List(ctx, list, append(opts, client.InNamespace(namespace))...); err != nil {
			return err
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return fmt.Errorf("reading a list of namespace %s: %w", namespace, err)
		}
		all = append(all, items...)
	}
	return meta.SetList(list, all)
}
