package waiting

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/freshbind/freshbind/controllers/hints"
	"github.com/freshbind/freshbind/internal/managed"
)

const (
	// heardWithin is how long an answer may take to have its effect in the cache.
	heardWithin = 5 * time.Second
	// unheardAgain is when a claim is looked at again that was woken, since its next try may not
	// get as far as an answer, and one that does not say yet what it waits for.
	unheardAgain = 30 * time.Second
)

// Holds returns the names of the sandboxes that a claim has, by a cache.
type Holds func(ctx context.Context, namespace, claimUID string) []string

// allowed is a claim that was let have a sandbox.
type allowed struct {
	types.NamespacedName
	uid types.UID
	// again: it was looked at before.
	again bool
}

// Unheard wakes claims that were let have a sandbox, by an answer that the API server did not
// wait for: on an overloaded machine neither side knows that it was late.
type Unheard struct {
	claims *Claims
	holds  Holds
	hints  hints.Queue[allowed]
}

// SetupUnheard adds the controller that wakes claims through c to the manager.
func SetupUnheard(mgr manager.Manager, c *Claims, holds Holds) (*Unheard, error) {
	u := &Unheard{claims: c, holds: holds, hints: hints.New[allowed]()}
	err := managed.Controller(mgr, "unheard", controller.TypedOptions[allowed]{NeedLeaderElection: ptr.To(false)}).
		WatchesRawSource(source.TypedFunc[allowed](u.hints.Feed)).
		Complete(u)
	if err != nil {
		return nil, fmt.Errorf("setting up the controller of claims that an answer was lost for: %w", err)
	}
	return u, nil
}

// Note tells that the claim was let have a sandbox.
func (u *Unheard) Note(namespace, name string, uid types.UID) {
	u.hints.Note(allowed{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}, uid: uid}, heardWithin)
}

// Reconcile has one claim woken, for as long as it has nothing because of a call that failed.
func (u *Unheard) Reconcile(ctx context.Context, a allowed) (reconcile.Result, error) {
	if len(u.holds(ctx, a.Namespace, string(a.uid))) > 0 {
		return reconcile.Result{}, nil
	}
	claim := &unstructured.Unstructured{}
	claim.SetGroupVersionKind(u.claims.kind)
	if err := u.claims.live.Get(ctx, a.NamespacedName, claim); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if claim.GetUID() != a.uid || !u.claims.waiting(claim) {
		return reconcile.Result{}, nil
	}
	if !failedCall(claim) {
		if !a.again {
			a.again = true
			u.hints.Note(a, unheardAgain)
		}
		return reconcile.Result{}, nil
	}
	u.claims.Note(a.Namespace, a.Name)
	return reconcile.Result{RequeueAfter: unheardAgain}, nil
}

// aCallFailed is how an API server says that one of our webhooks gave no answer
// (k8s.io/apiserver, pkg/admission/plugin/webhook/validating/dispatcher.go).
var aCallFailed = regexp.MustCompile(`failed calling webhook "[^"]+\.freshbind\.dev"`)

// failedCall reports whether a claim's conditions say so. Those who wait for something else, as
// for quota, are left to the backoff of their controller.
func failedCall(claim *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(claim.Object, "status", "conditions")
	for _, c := range conditions {
		if m, ok := c.(map[string]any); ok {
			if message, ok := m["message"].(string); ok && aCallFailed.MatchString(message) {
				return true
			}
		}
	}
	return false
}
