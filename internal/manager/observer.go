package manager

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/freshbind/freshbind/controllers/pools"
	"github.com/freshbind/freshbind/controllers/waiting"
	"github.com/freshbind/freshbind/internal/config"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/members"
	"github.com/freshbind/freshbind/webhooks"
)

var (
	podKind     = corev1.SchemeGroupVersion.WithKind("Pod")
	podResource = schema.GroupResource{Resource: "pods"}
)

// observer passes hints to the controllers that follow up.
type observer struct {
	reporter
	refused   *pools.Refused
	reofferer *pools.Reofferer
	pods      *pools.Pods
	waiting   *waiting.Claims
	names     *claimNames
	// dispositions says what becomes of members, from what the controller of pools
	// sees.
	dispositions *pools.Dispositions
}

func newObserver(a *assembly, store *members.Cache) (observer, error) {
	mgr, p, barePods := a.mgr, a.Keep.Platform, a.Keep.BarePods
	view, err := pools.NewView(mgr, pools.ViewOptions{
		Members: store, Namespaces: a.cachedNamespaces(), Scheduling: a.Scheduling.Mode != config.SchedulingNone,
		Objects: p, BarePods: barePods,
		Kinds: pools.PoolKinds{Pools: a.Pools, Templates: a.Templates, Sandboxes: a.Sandboxes},
	})
	if err != nil {
		return observer{}, err
	}
	outage := view.Outage()
	refused, err := pools.SetupRefused(mgr, liveOf(p, p.Kinds().Member.GroupResource()), p, p, outage)
	if err != nil {
		return observer{}, err
	}
	passed, err := pools.SetupReofferer(mgr, a.Sandboxes, p, refused)
	if err != nil {
		return observer{}, err
	}
	pods, err := pools.SetupPods(mgr, liveOf(p, podResource), p,
		pools.Kinds{Sandboxes: a.Sandboxes, Claims: a.Claims}, p, barePods, outage)
	if err != nil {
		return observer{}, err
	}
	dispositions, err := pools.Setup(mgr, pools.Options{
		Platform: p, Kinds: p.Kinds(), Visibility: p, Inspector: a.Keep.Cached, Enforced: a.modes.Known, EnforcedNow: a.modes.Acts,
		Refused: refused, Pods: pods, View: view, Budget: a.Budget, FormerScheduler: a.Scheduling.formerScheduler(), Leads: a.leads, Metrics: pools.NewMetrics(a.reg),
	})
	if err != nil {
		return observer{}, err
	}
	claims, err := waiting.Setup(mgr, a.Claims, a.modes.Acts, serving(mgr))
	if err != nil {
		return observer{}, err
	}
	o := observer{
		reporter: newReporter(mgr, a.Served),
		refused:  refused, reofferer: passed, pods: pods, waiting: claims, dispositions: dispositions,
	}
	o.names = newClaimNames(findClaim(mgr.GetAPIReader(), a.Claims), o.report)
	if err := mgr.Add(o.names); err != nil {
		return observer{}, fmt.Errorf("adding the finder of claims: %w", err)
	}
	return o, nil
}

func liveOf(p KeptPlatform, gr schema.GroupResource) pools.Live {
	return func(ctx context.Context, key types.NamespacedName) (*unstructured.Unstructured, error) {
		obj, err := p.Get(ctx, gr, key.Namespace, key.Name)
		if obj == nil {
			return nil, err
		}
		// What is read live is shared, and the answer to a patch goes into it.
		return obj.DeepCopy(), err
	}
}

func (a observer) Refused(member *unstructured.Unstructured, fault freshness.Fault) {
	if member.GroupVersionKind() == podKind {
		a.pods.Note(member)
		return
	}
	a.refused.Note(member, fault)
}

func (a observer) Undecided(namespace, claim string) { a.waiting.Note(namespace, claim) }

// Denied has the denial reported, at once or when the claim's name is found.
func (a observer) Denied(d webhooks.Denial) {
	if !a.names.take(d) {
		a.report(d)
	}
}
