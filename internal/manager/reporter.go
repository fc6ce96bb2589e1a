package manager

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/freshbind/freshbind/internal/eventnote"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/webhooks"
)

// reporter records what claims were denied as events, on any platform.
type reporter struct {
	events events.EventRecorder
	kinds  platform.Served
}

var _ webhooks.Observer = reporter{}

func newReporter(mgr manager.Manager, k platform.Served) (reporter, error) {
	late := newLateEvents(eventnote.Recorder(mgr.GetEventRecorder("freshbind")))
	if err := mgr.Add(late); err != nil {
		return reporter{}, fmt.Errorf("adding the events of the webhooks: %w", err)
	}
	return reporter{late, k}, nil
}

// Refused leaves the member to the platform.
func (reporter) Refused(*unstructured.Unstructured, freshness.Fault) {}

// TryAgain leaves the claim to the platform, which tries again.
func (reporter) TryAgain(string, string) {}

// eventRepaired is on a claim whose cold start was rewritten.
const eventRepaired = "ColdStartRepaired"

// Repaired records an event on the claim.
func (a reporter) Repaired(w platform.Write, note string) {
	a.events.Eventf(a.regarding(w), nil, corev1.EventTypeNormal, eventRepaired, "ColdStart", "%s",
		eventnote.Truncate("its sandbox was rendered from an older revision, and Freshbind rewrote it to the one in force: "+note))
}

// Denied has the denial reported.
func (a reporter) Denied(d webhooks.Denial) { a.report(d) }

// regarding is the object that an event about a write for a claim is recorded on: the
// claim, or the member where claims have no object.
func (a reporter) regarding(w platform.Write) *unstructured.Unstructured {
	if a.kinds.Claims.Empty() {
		member := w.Judged()
		return reference(member.GroupVersionKind(), member.GetNamespace(), member.GetName(), string(member.GetUID()))
	}
	return reference(a.kinds.Claims, w.Judged().GetNamespace(), w.Claim.Name, w.Claim.UID)
}

// report records an event on the claim and, for a bind, on the pool. It is
// recorded in the background, where what repeats itself is merged.
func (a reporter) report(d webhooks.Denial) {
	note := d.Detail
	if d.Mode != settings.Enforce {
		note = "would be refused: " + note
	}
	if d.Found != "" && d.Found != d.Expected {
		note += " (is " + d.Found + ", in force is " + d.Expected + ")"
	}
	note = eventnote.Truncate(note)
	if d.Operation == freshness.ColdStart {
		a.events.Eventf(a.regarding(d.Write), nil, corev1.EventTypeWarning, string(d.Reason), "ColdStart", "%s", note)
		return
	}
	sandbox, named := d.Judged(), "claim "+d.Claim.Name+": "+note
	// A release of v0.1 names no claim.
	if d.Claim.Name != "" {
		about := note
		if a.kinds.Claims.Empty() {
			about = named
		}
		a.events.Eventf(a.regarding(d.Write), sandbox, corev1.EventTypeWarning, string(d.Reason), "Bind", "%s", about)
		note = named
	}
	if d.Pool != nil {
		action := "Bind"
		if d.Operation == freshness.Return {
			action = "Return"
		}
		pool := reference(a.kinds.Pools, sandbox.GetNamespace(), d.Pool.Name, d.Pool.UID)
		a.events.Eventf(pool, sandbox, corev1.EventTypeWarning, string(d.Reason), action, "%s", note)
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
