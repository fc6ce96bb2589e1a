// Package holdings keeps the books of who has what. It marks a claim's sandbox
// as used for ever, and finds what no admission can exclude: a claim with two
// sandboxes, and a sandbox with two claims, each made by two writes to two
// objects that were in flight at once. It reports them on the claim and deletes
// neither: somebody may be using both.
package holdings

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/freshbind/freshbind/internal/eventnote"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/managed"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
)

// byClaim indexes Sandboxes by the UIDs of the claims, and of whatever else, that
// own them: upstream takes a claim's UID for the claim.
const byClaim = "freshbind.claimUID"

// Claim is one incarnation of a claim.
type Claim struct {
	types.NamespacedName
	UID types.UID
}

// Enforced reports whether binds in the namespace are enforced, or those of
// sandboxes that say so; elsewhere nothing is marked.
type Enforced func(ctx context.Context, namespace, sandbox string) (bool, error)

// Asked is what the pool of a claim says of its own enforcement. A sandbox that was
// made while Freshbind was away does not say it.
type Asked func(ctx context.Context, claim types.NamespacedName) (string, error)

// Controller looks at the sandboxes of one claim at a time.
type Controller struct {
	cache     client.Reader
	client    client.Writer
	enforced  Enforced
	asked     Asked
	recorder  events.EventRecorder
	sandboxes schema.GroupVersionKind
	claims    schema.GroupVersionKind
	owners    platform.Owners
}

// Setup adds the controller to the manager.
func Setup(mgr manager.Manager, sandboxes, claims schema.GroupVersionKind, owners platform.Owners, enforced Enforced, asked Asked) error {
	c := &Controller{
		cache: mgr.GetCache(), client: mgr.GetClient(), enforced: enforced, asked: asked, recorder: eventnote.Recorder(mgr.GetEventRecorder("freshbind")),
		sandboxes: sandboxes, claims: claims, owners: owners,
	}
	watched := &metav1.PartialObjectMetadata{}
	watched.SetGroupVersionKind(sandboxes)
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), watched, byClaim, claimUIDs); err != nil {
		return fmt.Errorf("indexing sandboxes by claim: %w", err)
	}
	err := managed.Controller(mgr, "holdings", controller.TypedOptions[Claim]{}).
		WatchesMetadata(watched, handler.TypedEnqueueRequestsFromMapFunc(c.claimsOf)).
		Watches(&corev1.Namespace{}, handler.TypedEnqueueRequestsFromMapFunc(c.claimsIn),
			builder.WithPredicates(predicate.LabelChangedPredicate{})).
		Complete(c)
	if err != nil {
		return fmt.Errorf("setting up the controller of holdings: %w", err)
	}
	return nil
}

func claimUIDs(obj client.Object) []string {
	var uids []string
	for _, o := range obj.GetOwnerReferences() {
		uids = append(uids, string(o.UID))
	}
	return uids
}

func (c *Controller) claimsOf(_ context.Context, obj client.Object) []Claim {
	var out []Claim
	for _, o := range c.owners.Claims(obj) {
		out = append(out, Claim{types.NamespacedName{Namespace: obj.GetNamespace(), Name: o.Name}, types.UID(o.UID)})
	}
	return out
}

// claimsIn are the claims of a namespace whose labels have changed: it may be
// enforced from now on.
func (c *Controller) claimsIn(ctx context.Context, namespace client.Object) []Claim {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(c.sandboxes)
	if err := c.cache.List(ctx, &list, client.InNamespace(namespace.GetName()), client.UnsafeDisableDeepCopy); err != nil {
		logf.FromContext(ctx).V(2).Info("Left the sandboxes of a namespace unmarked", "namespace", namespace.GetName(), "reason", err.Error())
	}
	var out []Claim
	for i := range list.Items {
		if list.Items[i].Annotations[settings.BoundToKey] == "" {
			out = append(out, c.claimsOf(ctx, &list.Items[i])...)
		}
	}
	return out
}

// Reconcile reports what is wrong with the sandboxes of one claim.
func (c *Controller) Reconcile(ctx context.Context, req Claim) (reconcile.Result, error) {
	var list metav1.PartialObjectMetadataList
	list.SetGroupVersionKind(c.sandboxes)
	err := c.cache.List(ctx, &list, client.InNamespace(req.Namespace), client.MatchingFields{byClaim: string(req.UID)})
	if err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the sandboxes of claim %s: %w", req, err)
	}
	if err := c.mark(ctx, req, list.Items); err != nil {
		return reconcile.Result{}, err
	}
	claim := &unstructured.Unstructured{}
	claim.SetGroupVersionKind(c.claims)
	claim.SetNamespace(req.Namespace)
	claim.SetName(req.Name)
	claim.SetUID(req.UID)
	for reason, detail := range c.findings(list.Items) {
		logf.FromContext(ctx).Info("Claim and sandboxes are not one to one", "reason", reason, "detail", detail)
		c.recorder.Eventf(claim, nil, corev1.EventTypeWarning, string(reason), "Report", "%s", detail)
	}
	return reconcile.Result{}, nil
}

// mark writes onto the claim's sandboxes whose they are. The mark outlives the
// owner reference and, by policy, everybody's edits; the owner reference stays, by
// policy, until the mark is there. One that is there already is refused another, by
// the same policy, until the cache has seen it.
func (c *Controller) mark(ctx context.Context, claim Claim, sandboxes []metav1.PartialObjectMetadata) error {
	for i := range sandboxes {
		s := &sandboxes[i]
		if s.Annotations[settings.BoundToKey] != "" || s.DeletionTimestamp != nil {
			continue
		}
		enforcement := s.Labels[settings.EnforcementKey]
		enforced, err := c.enforced(ctx, claim.Namespace, enforcement)
		more := ""
		if err == nil && !enforced && enforcement == "" {
			if enforcement, err = c.asked(ctx, claim.NamespacedName); err == nil && enforcement != "" {
				enforced, err = c.enforced(ctx, claim.Namespace, enforcement)
				more = fmt.Sprintf(`,"labels":{%q:%q}`, settings.EnforcementKey, enforcement)
			}
		}
		if err != nil || !enforced {
			return err
		}
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}%s}}`, s.UID, settings.BoundToKey, claim.UID, more)
		s.SetGroupVersionKind(c.sandboxes)
		err = c.client.Patch(ctx, s.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("marking sandbox %s: %w", s.Name, err)
		}
	}
	return nil
}

// findings judges the sandboxes of one claim.
func (c *Controller) findings(sandboxes []metav1.PartialObjectMetadata) map[freshness.Reason]string {
	out := map[freshness.Reason]string{}
	var live []string
	for i := range sandboxes {
		s := &sandboxes[i]
		if s.DeletionTimestamp != nil {
			continue
		}
		live = append(live, s.Name)
		if owners := c.owners.Claims(s); len(owners) > 1 {
			out[freshness.MemberClaimed] = fmt.Sprintf("sandbox %s belongs to %d claims at once, among them %s and %s; neither is deleted",
				s.Name, len(owners), owners[0].Name, owners[1].Name)
		}
	}
	if slices.Sort(live); len(live) > 1 {
		out[freshness.ClaimHoldsAnother] = fmt.Sprintf("this claim has %d sandboxes at once: %s; none is deleted", len(live), strings.Join(live, ", "))
	}
	return out
}
