package manager

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/controllers/pools"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/platform/agentsandbox"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
	"github.com/freshbind/freshbind/webhooks"
)

// Whoever has neither members that are Pods nor claims that are objects gets no
// controller for them, and what guards say of them leads nowhere.
func TestAPlatformWithoutBarePodsAndClaims(t *testing.T) {
	a := &assembly{process: &process{}, served: served{Guarded: &Guarded{Name: "a"}}, Connected: Connected{Keep: &Keep{}}}
	held, err := a.keepClaims()
	if held != nil || err != nil {
		t.Errorf("somebody keeps books of claims: %v", err)
	}
	events := &eventLines{}
	o := observer{reporter: reporter{events: events}, reofferer: &pools.Reofferer{}}
	if err := o.followPods(a, nil); o.pods != nil || o.names != nil || err != nil {
		t.Errorf("Pods are followed: %v", err)
	}
	if err := o.followClaims(a, held); o.waiting != nil || o.unheard != nil || err != nil {
		t.Errorf("claims are woken: %v", err)
	}
	if h := o.hints(); h.released != nil || h.allowed != nil || h.poolSkipped == nil {
		t.Errorf("noted are Pods that leave their pool: %t, claims that get something: %t, and pools that were passed over: %t", h.released != nil, h.allowed != nil, h.poolSkipped != nil)
	}
	pod := builders.MakePod(builders.MakeMember(builders.MakePool("ns", "python").Obj(), builders.MakeTemplate("ns", "python").Obj()).Name("m").Obj()).Obj()
	o.Refused(pod, freshness.FaultMember)
	o.TryAgain("ns", "c")
	o.Denied(webhooks.Denial{
		Write:   platform.Write{Operation: freshness.Release, Old: pod, New: pod, Claim: freshness.Owner{UID: "u"}},
		Verdict: freshness.Verdict{Reason: freshness.StaleRevision, Detail: "image differs"}, Pool: &freshness.Pool{Name: "python", UID: "p"}, Mode: settings.Enforce,
	})
	want := []string{"Warning StaleRevision on Bind ns/python: image differs [m]"}
	if diff := cmp.Diff(want, events.lines); diff != "" {
		t.Errorf("events (-want,+got):\n%s", diff)
	}
}

func TestBarePodsNeedClaimsThatAreObjects(t *testing.T) {
	a := &assembly{
		process: &process{}, served: served{Guarded: &Guarded{Name: "a"}},
		Connected: Connected{Keep: &Keep{BarePods: agentsandbox.CachedBarePods{}}},
	}
	o := observer{}
	if err := o.followPods(a, nil); err == nil || !strings.Contains(err.Error(), "platform a: bare Pods are taken by claims that are objects") {
		t.Errorf("the error is %v", err)
	}
}
