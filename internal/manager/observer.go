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
	// pods and names are nil for a platform without bare Pods, waiting and unheard are where
	// no claim has to be woken.
	pods    *pools.Pods
	names   *claimNames
	waiting *waiting.Claims
	unheard *waiting.Unheard
	// dispositions says what becomes of members, from what the controller of pools
	// sees.
	dispositions *pools.Dispositions
}

func newObserver(a *assembly, store *members.Cache, held waiting.Holds) (observer, error) {
	mgr, p, barePods := a.mgr, a.Keep.Platform, a.Keep.BarePods
	view, err := pools.NewView(mgr, pools.ViewOptions{
		Members: store, Namespaces: a.cachedNamespaces(), Scheduling: a.Scheduling.Mode != config.SchedulingNone,
		Objects: p, BarePods: barePods,
		Kinds: pools.PoolKinds{Pools: a.Pools, Templates: a.Templates, SharedTemplates: a.SharedTemplates, Sandboxes: a.Sandboxes},
	})
	if err != nil {
		return observer{}, err
	}
	outage := view.Outage()
	live := liveOf(p, p.Kinds().Member.GroupResource())
	refused, err := pools.SetupRefused(mgr, live, p, p, a.modes.Acts, outage)
	if err != nil {
		return observer{}, err
	}
	passed, err := pools.SetupReofferer(mgr, a.Sandboxes, p, refused)
	if err != nil {
		return observer{}, err
	}
	report, err := newReporter(mgr, a.Served)
	if err != nil {
		return observer{}, err
	}
	o := observer{reporter: report, refused: refused, reofferer: passed}
	if err := o.followPods(a, outage); err != nil {
		return observer{}, err
	}
	if err := o.followClaims(a, held); err != nil {
		return observer{}, err
	}
	o.dispositions, err = pools.Setup(mgr, pools.Options{
		Platform: p, Kinds: p.Kinds(), Visibility: p, Inspector: a.Keep.Cached, BarePods: barePods, Enforced: a.modes.Known, EnforcedNow: a.modes.Acts,
		Live: live, Refused: refused, Pods: o.pods, View: view, Budget: a.Budget, FormerScheduler: a.Scheduling.formerSchedulerOf(a.Admission), Leads: a.leads, Metrics: pools.NewMetrics(a.reg),
	})
	return o, err
}

// followPods adds what becomes of bare Pods, where there may be some, and who they were
// refused to: their releases name the claim by its UID only.
func (a *observer) followPods(of *assembly, outage *pools.Outage) (err error) {
	p, barePods := of.Keep.Platform, of.Keep.BarePods
	if barePods == nil {
		return nil
	}
	if of.Keep.Claims == nil {
		return fmt.Errorf("platform %s: bare Pods are taken by claims that are objects, and it has none", of.Name)
	}
	a.pods, err = pools.SetupPods(of.mgr, liveOf(p, podResource), p,
		pools.Kinds{Sandboxes: of.Sandboxes, Claims: of.Claims}, p, barePods, of.modes.Acts, outage)
	if err != nil {
		return err
	}
	a.names = newClaimNames(findClaim(of.mgr.GetAPIReader(), of.Claims), a.report)
	if err := of.mgr.Add(a.names); err != nil {
		return fmt.Errorf("adding the finder of claims: %w", err)
	}
	return nil
}

// followClaims wakes claims, where somebody has to.
func (a *observer) followClaims(of *assembly, held waiting.Holds) (err error) {
	claims := of.Keep.Claims
	if claims == nil {
		return nil
	}
	a.waiting, err = waiting.Setup(of.mgr, of.Claims, of.Namespaces, claims.IsWaiting, of.modes.ClaimsWait, serving(of.mgr))
	if err != nil {
		return err
	}
	a.unheard, err = waiting.SetupUnheard(of.mgr, a.waiting, held)
	return err
}

// hints are what guards tell it.
func (a observer) hints() hints {
	to := hints{Observer: a, poolSkipped: a.reofferer.Note, returnRefused: a.refused.NoteReturn}
	if a.pods != nil {
		to.released = a.pods.NoteReleased
	}
	if a.unheard != nil {
		to.allowed = a.unheard.Note
	}
	return to
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
		if a.pods != nil {
			a.pods.Note(member)
		}
		return
	}
	a.refused.Note(member, fault)
}

func (a observer) TryAgain(namespace, claim string) {
	if a.waiting != nil {
		a.waiting.Note(namespace, claim)
	}
}

// Denied has the denial reported, at once or when the claim's name is found.
func (a observer) Denied(d webhooks.Denial) {
	if a.names == nil || !a.names.take(d) {
		a.report(d)
	}
}
