package manager

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/controllers/anchor"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/release"
)

// namespaceGoes is why a process stops that has to take its admission configuration along.
const namespaceGoes = "its namespace is being deleted"

// leave undoes what stands in somebody's way if this process stops for good: nobody else
// would. Each replica does it, so that whoever stops last undoes what the one that led last
// has done. It is the last try, not the only one: freshbind release does the same at any time.
func (o *process) leave(cfg *rest.Config, platforms []*Guarded) error {
	ctx, cancel := context.WithTimeout(context.Background(), o.ReleasePeriod)
	defer cancel()
	c, err := client.New(cfg, client.Options{})
	if err != nil {
		return fmt.Errorf("creating the client to leave with: %w", err)
	}
	asks, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return fmt.Errorf("creating client for discovery: %w", err)
	}
	return o.undo(ctx, c, asks.ServerResourcesForGroupVersionWithContext, platforms)
}

// undo shows hidden members to claims again, since agent-sandbox looks for a label that has no
// expiry. If the namespace is being deleted, the admission configuration goes first. The leader
// deletes it when it sees that, but there may be none just now.
func (o *process) undo(ctx context.Context, c client.Client, ask platform.Discovery, platforms []*Guarded) error {
	namespace, err := o.home()
	if err != nil || namespace == "" {
		return err
	}
	why, err := o.leavesFor(ctx, c, namespace)
	if err != nil || why == "" {
		return err
	}
	var errs []error
	if why == namespaceGoes {
		errs = append(errs, o.dropConfiguration(ctx, c, namespace, platforms))
	}
	for _, g := range platforms {
		if err := o.showHidden(ctx, c, ask, g, why); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", g.Name, err))
		}
	}
	return errors.Join(errs...)
}

// dropConfiguration deletes the admission configuration of each platform, served or not, and
// leaves time for the rest.
func (o *process) dropConfiguration(ctx context.Context, c client.Client, namespace string, platforms []*Guarded) error {
	ctx, cancel := context.WithTimeout(ctx, o.ReleasePeriod/2)
	defer cancel()
	home := reconcile.Request{NamespacedName: types.NamespacedName{Name: namespace}}
	var errs []error
	for _, g := range platforms {
		if _, err := anchor.New(c, c, g.Admission, o.Scope).Reconcile(ctx, home); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", g.Name, err))
		}
	}
	return errors.Join(errs...)
}

// showHidden shows the hidden members of one platform, if it is served.
func (o *process) showHidden(ctx context.Context, c client.Client, ask platform.Discovery, g *Guarded, why string) error {
	k, found, err := g.find(ctx, ask)
	if err != nil || !found || k.Kept == nil {
		return err
	}
	namespaces := o.Namespaces
	if len(namespaces) == 0 {
		namespaces = []string{corev1.NamespaceAll}
	}
	r := &release.Releaser{Client: c, Platforms: []release.Platform{
		{Objects: k.Kept, Kinds: release.Kinds{Sandboxes: k.Sandboxes, Claims: k.Claims, Pools: k.Pools}},
	}}
	report, err := r.ShowAll(ctx, namespaces...)
	if err != nil {
		return fmt.Errorf("showing hidden members: %w", err)
	}
	ctrl.Log.WithName("leave").Info("Stopped for good, and showed hidden members",
		"platform", g.Name, "because", why, "shown", report.Shown(), "failed", report.Failed)
	return nil
}

// leavesFor says why nobody will go on after this process, which runs in this namespace; "" when
// somebody will, and where there is nothing to tell it by.
func (o *process) leavesFor(ctx context.Context, reader client.Reader, namespace string) (string, error) {
	if o.Deployment == "" {
		return "", nil
	}
	var ns corev1.Namespace
	switch err := reader.Get(ctx, types.NamespacedName{Name: namespace}, &ns); {
	case apierrors.IsNotFound(err):
		return "its namespace is gone", nil
	case err != nil:
		return "", fmt.Errorf("getting the namespace %s: %w", namespace, err)
	case ns.DeletionTimestamp != nil:
		return namespaceGoes, nil
	}
	var d appsv1.Deployment
	switch err := reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: o.Deployment}, &d); {
	case apierrors.IsNotFound(err):
		return "its Deployment is gone", nil
	case err != nil:
		return "", fmt.Errorf("getting the Deployment %s/%s: %w", namespace, o.Deployment, err)
	case d.DeletionTimestamp != nil:
		return "its Deployment is being deleted", nil
	case ptr.Deref(d.Spec.Replicas, 1) == 0:
		return "its Deployment is scaled to 0", nil
	}
	return "", nil
}
