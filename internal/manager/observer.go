package manager

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/freshbind/freshbind/controllers/pools"
	"github.com/freshbind/freshbind/controllers/waiting"
	"github.com/freshbind/freshbind/internal/config"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/members"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/webhooks"
)

var (
	podKind     = corev1.SchemeGroupVersion.WithKind("Pod")
	podResource = schema.GroupResource{Resource: "pods"}
)

// observer passes hints to the controllers that follow up.
type observer struct {
	refused   *pools.Refused
	reofferer *pools.Reofferer
	pods      *pools.Pods
	waiting   *waiting.Claims
	events    events.EventRecorder
	kinds     platform.Served
	names     *claimNames
	// dispositions says what becomes of members, from what the controller of pools
	// sees.
	dispositions *pools.Dispositions
}

func newObserver(
	mgr manager.Manager, p livePlatform, inspector pools.Inspector, modes *webhooks.Modes, k platform.Served, o *process, store *members.Cache, reg prometheus.Registerer,
) (observer, error) {
	view, err := pools.NewView(mgr, pools.ViewOptions{
		Members: store, Namespaces: o.cachedNamespaces(), Scheduling: o.Scheduling.Mode != config.SchedulingNone,
		Objects: p, BarePods: barePods,
		Kinds: pools.PoolKinds{Pools: k.Pools, Templates: k.Templates, Sandboxes: k.Sandboxes},
	})
	if err != nil {
		return observer{}, err
	}
	outage := view.Outage()
	refused, err := pools.SetupRefused(mgr, liveOf(p, p.Kinds().Member.GroupResource()), p, p, outage)
	if err != nil {
		return observer{}, err
	}
	passed, err := pools.SetupReofferer(mgr, k.Sandboxes, p, refused)
	if err != nil {
		return observer{}, err
	}
	pods, err := pools.SetupPods(mgr, liveOf(p, podResource), p,
		pools.Kinds{Sandboxes: k.Sandboxes, Claims: k.Claims}, p, barePods, outage)
	if err != nil {
		return observer{}, err
	}
	dispositions, err := pools.Setup(mgr, pools.Options{
		Platform: p, Kinds: p.Kinds(), Visibility: p, Inspector: inspector, Enforced: modes.Known, EnforcedNow: modes.Acts,
		Refused: refused, Pods: pods, View: view, Budget: o.Budget, FormerScheduler: o.Scheduling.formerScheduler(), Leads: o.leads, Metrics: pools.NewMetrics(reg),
	})
	if err != nil {
		return observer{}, err
	}
	claims, err := waiting.Setup(mgr, k.Claims, modes.Acts, serving(mgr))
	if err != nil {
		return observer{}, err
	}
	a := observer{
		refused: refused, reofferer: passed, pods: pods, waiting: claims, events: mgr.GetEventRecorder("freshbind"), kinds: k,
		dispositions: dispositions,
	}
	a.names = newClaimNames(findClaim(mgr.GetAPIReader(), k.Claims), a.report)
	if err := mgr.Add(a.names); err != nil {
		return observer{}, fmt.Errorf("adding the finder of claims: %w", err)
	}
	return a, nil
}

func liveOf(p livePlatform, gr schema.GroupResource) pools.Live {
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

// eventRepaired is on a claim whose cold start was rewritten.
const eventRepaired = "ColdStartRepaired"

// Repaired records an event on the claim.
func (a observer) Repaired(w platform.Write, note string) {
	claim := reference(a.kinds.Claims, w.Judged().GetNamespace(), w.Claim.Name, w.Claim.UID)
	a.events.Eventf(claim, nil, corev1.EventTypeNormal, eventRepaired, "ColdStart", "%s",
		truncate("its sandbox was rendered from an older revision, and Freshbind rewrote it to the one in force: "+note))
}

func (a observer) Undecided(namespace, claim string) { a.waiting.Note(namespace, claim) }

// Denied has the denial reported, at once or when the claim's name is found.
func (a observer) Denied(d webhooks.Denial) {
	if !a.names.take(d) {
		a.report(d)
	}
}

// report records an event on the claim and, for a bind, on the pool. The
// recorder works in the background and merges what repeats itself.
func (a observer) report(d webhooks.Denial) {
	note := d.Detail
	if d.Mode != settings.Enforce {
		note = "would be refused: " + note
	}
	if d.Found != "" && d.Found != d.Expected {
		note += " (is " + d.Found + ", in force is " + d.Expected + ")"
	}
	note = truncate(note)
	sandbox, namespace := d.Judged(), d.Judged().GetNamespace()
	if d.Operation == freshness.ColdStart {
		claim := reference(a.kinds.Claims, namespace, d.Claim.Name, d.Claim.UID)
		a.events.Eventf(claim, nil, corev1.EventTypeWarning, string(d.Reason), "ColdStart", "%s", note)
		return
	}
	// A release of v0.1 names no claim.
	if d.Claim.Name != "" {
		claim := reference(a.kinds.Claims, namespace, d.Claim.Name, d.Claim.UID)
		a.events.Eventf(claim, sandbox, corev1.EventTypeWarning, string(d.Reason), "Bind", "%s", note)
		note = "claim " + d.Claim.Name + ": " + note
	}
	if d.Pool != nil {
		pool := reference(a.kinds.Pools, namespace, d.Pool.Name, d.Pool.UID)
		a.events.Eventf(pool, sandbox, corev1.EventTypeWarning, string(d.Reason), "Bind", "%s", note)
	}
}

func reference(kind schema.GroupVersionKind, namespace, name, uid string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetUID(types.UID(uid))
	return u
}

// maxNote leaves room in an event's note, which the API server limits to 1024
// bytes.
const maxNote = 900

// truncate cuts on a rune.
func truncate(s string) string {
	if len(s) <= maxNote {
		return s
	}
	cut := maxNote
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}
