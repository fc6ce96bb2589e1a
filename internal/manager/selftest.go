package manager

import (
	"context"
	"fmt"
	"os"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/selftest"
	"github.com/freshbind/freshbind/webhooks"
)

// addSelfTest adds the self-test, once the handlers that it is about are served.
func (a *assembly) addSelfTest() error {
	o, mgr, k := a.process, a.mgr, a.Served
	if !o.SelfTest.Enabled {
		return nil
	}
	tester := &selftest.Tester{
		Client: mgr.GetClient(), Namespace: o.SelfTest.Namespace, Sandboxes: k.Sandboxes, Claims: k.Claims,
		Member: (&idleMembers{cache: mgr.GetCache(), kinds: k, owners: a.Kept, modes: a.modes}).next, Unlike: unlike(mgr.GetAPIReader()),
		Interval: o.SelfTest.Interval.Duration, Metrics: selftest.NewMetrics(a.reg), Clock: clock.RealClock{},
	}
	namespace, err := o.home()
	if err != nil {
		return err
	}
	if namespace != "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("naming this process: %w", err)
		}
		publisher := &selftest.Publisher{
			Reader: mgr.GetAPIReader(), Writer: mgr.GetClient(), Namespace: namespace, Identity: host,
			Leads: o.leads, Interval: tester.Interval,
		}
		tester.Publish = publisher.Publish
	}
	err = mgr.Add(everyReplica(func(ctx context.Context) error {
		if err := serving(mgr)(ctx); err != nil {
			return nil
		}
		return tester.Start(ctx)
	}))
	if err != nil {
		return fmt.Errorf("adding the self-test: %w", err)
	}
	return nil
}

// unlike compares the installed webhooks with each other. None at all is for the
// dry runs to tell.
func unlike(live client.Reader) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		var installed admissionregistrationv1.ValidatingWebhookConfiguration
		if err := live.Get(ctx, client.ObjectKey{Name: webhooks.ConfigurationName}, &installed); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		return webhooks.Unlike(&installed), nil
	}
}

// idleMembers are those in namespaces that enforce: only there a bind that is not
// refused is wrong.
type idleMembers struct {
	cache  client.Reader
	kinds  platform.Served
	owners platform.Owners
	modes  *webhooks.Modes

	mu   sync.Mutex
	last string
}

// next returns a member of another namespace each time.
func (m *idleMembers) next(ctx context.Context) (client.Object, error) {
	list := &metav1.PartialObjectMetadataList{}
	gvk := m.kinds.Sandboxes
	gvk.Kind += "List"
	list.SetGroupVersionKind(gvk)
	if err := m.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing sandboxes: %w", err)
	}
	first := map[string]*metav1.PartialObjectMetadata{}
	for i := range list.Items {
		member := &list.Items[i]
		owner := metav1.GetControllerOfNoCopy(member)
		if owner == nil || !m.owners.IsPool(owner) || member.DeletionTimestamp != nil || first[member.Namespace] != nil {
			continue
		}
		enforced, err := m.modes.Known(ctx, member.Namespace, "")
		if err != nil {
			return nil, err
		}
		if enforced {
			first[member.Namespace] = member
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last = following(first, m.last); m.last == "" {
		return nil, nil
	}
	member := first[m.last].DeepCopy()
	member.SetGroupVersionKind(m.kinds.Sandboxes)
	return member, nil
}

// following is the key after last, the first one again after the last one; ""
// when there is none.
func following[T any](of map[string]T, last string) string {
	lowest, next := "", ""
	for key := range of {
		if lowest == "" || key < lowest {
			lowest = key
		}
		if key > last && (next == "" || key < next) {
			next = key
		}
	}
	if next == "" {
		return lowest
	}
	return next
}
