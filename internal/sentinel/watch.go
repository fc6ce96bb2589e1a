package sentinel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"sync/atomic"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/freshbind/freshbind/routes"
)

// SandboxKind is what is watched: OpenKruise's Sandboxes.
var SandboxKind = schema.GroupVersionKind{Group: "agents.kruise.io", Version: "v1alpha1", Kind: "Sandbox"}

// Watch has deletions follow Sandboxes, and a sentinel the gateways there are.
type Watch struct {
	Cache     cache.Cache
	Deletions *Deletions
	Sentinel  *Sentinel
	// URLs are gateways that do not change; Services those whose endpoints take
	// messages at Port.
	URLs     []string
	Services []types.NamespacedName
	Port     int

	follows atomic.Bool
}

// Ready is an error until the Sandboxes are listed and watched.
func (w *Watch) Ready() error {
	if !w.follows.Load() {
		return errors.New("OpenKruise's Sandboxes are not listed yet")
	}
	return nil
}

// Start follows until ctx ends.
func (w *Watch) Start(ctx context.Context) error {
	w.Sentinel.SetGateways(w.URLs)
	if err := w.followServices(ctx); err != nil {
		return err
	}
	if err := w.followSandboxes(ctx); err != nil {
		return err
	}
	w.follows.Store(true)
	<-ctx.Done()
	return nil
}

func (w *Watch) followSandboxes(ctx context.Context) error {
	kind := &metav1.PartialObjectMetadata{}
	kind.SetGroupVersionKind(SandboxKind)
	informer, err := w.Cache.GetInformer(ctx, kind)
	if err != nil {
		return fmt.Errorf("watch Sandboxes: %w", err)
	}
	synced := func() string { return "" }
	if s, ok := informer.(interface{ LastSyncResourceVersion() string }); ok {
		synced = s.LastSyncResourceVersion
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.Deletions.changed(o) },
		UpdateFunc: func(_, o any) { w.Deletions.changed(o) },
		DeleteFunc: func(o any) { w.Deletions.gone(o, synced()) },
	})
	if err != nil {
		return fmt.Errorf("watch Sandboxes: %w", err)
	}
	return nil
}

// changed follows a Sandbox as it is. One that is being deleted is dead already.
func (m *Deletions) changed(o any) {
	object, ok := o.(metav1.Object)
	if !ok {
		return
	}
	v, err := routes.ParseVersion(object.GetResourceVersion())
	if err != nil {
		return
	}
	key := Key{object.GetNamespace(), object.GetName()}
	if object.GetDeletionTimestamp() != nil {
		m.Deleted(key, string(object.GetUID()), v)
		return
	}
	m.Present(key, v)
}

// gone follows a deletion. One that only a list showed has the last version that
// was seen: what was written between that and the list is of the same sandbox.
func (m *Deletions) gone(o any, synced string) {
	listed := routes.Version(0)
	if unseen, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
		o = unseen.Obj
		listed, _ = routes.ParseVersion(synced)
	}
	object, ok := o.(metav1.Object)
	if !ok {
		return
	}
	v, err := routes.ParseVersion(object.GetResourceVersion())
	if err != nil {
		return
	}
	v = max(v, listed)
	m.Deleted(Key{object.GetNamespace(), object.GetName()}, string(object.GetUID()), v)
}

func (w *Watch) followServices(ctx context.Context) error {
	if len(w.Services) == 0 {
		return nil
	}
	informer, err := w.Cache.GetInformer(ctx, &discoveryv1.EndpointSlice{})
	if err != nil {
		return fmt.Errorf("watch EndpointSlices: %w", err)
	}
	look := func(any) {
		if err := w.findGateways(ctx); err != nil {
			logf.FromContext(ctx).Error(err, "Cannot find gateways")
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: look, UpdateFunc: func(_, o any) { look(o) }, DeleteFunc: look,
	})
	if err != nil {
		return fmt.Errorf("watch EndpointSlices: %w", err)
	}
	return nil
}

func (w *Watch) findGateways(ctx context.Context) error {
	urls := slices.Clone(w.URLs)
	for _, service := range w.Services {
		var list discoveryv1.EndpointSliceList
		err := w.Cache.List(ctx, &list, client.InNamespace(service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: service.Name})
		if err != nil {
			return fmt.Errorf("list the endpoints of Service %s: %w", service, err)
		}
		urls = append(urls, endpointURLs(list.Items, w.Port)...)
	}
	w.Sentinel.SetGateways(urls)
	return nil
}

// endpointURLs are where the endpoints take messages. Those that are not ready
// yet are sent to, too: a gateway takes what its peers push before it serves.
func endpointURLs(list []discoveryv1.EndpointSlice, port int) []string {
	var urls []string
	for i := range list {
		for _, endpoint := range list[i].Endpoints {
			if terminating := endpoint.Conditions.Terminating; terminating != nil && *terminating {
				continue
			}
			for _, address := range endpoint.Addresses {
				urls = append(urls, "http://"+net.JoinHostPort(address, strconv.Itoa(port))+"/refresh")
			}
		}
	}
	slices.Sort(urls)
	return slices.Compact(urls)
}
