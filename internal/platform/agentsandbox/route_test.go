package agentsandbox

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/routes"
	"github.com/freshbind/freshbind/test/builders"
)

func TestRouteOfSandbox(t *testing.T) {
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	template := builders.MakeTemplate("team-a", "python").Obj()
	claim := builders.MakeClaim("team-a", "one").Obj()
	pool := builders.MakePool("team-a", "pool").Obj()
	bound := func() *builders.Sandbox { return builders.MakeColdStart(claim, template).RV(7).UID("u").Created(at) }
	want := routes.Sandbox{
		Namespace: "team-a", Name: "one", UID: routes.ParseUID("u"), Version: 7, PodName: "one", State: routes.Running,
		Claim: routes.ParseUID(string(claim.GetUID())), Created: at,
	}
	with := func(change func(*routes.Sandbox)) routes.Sandbox {
		out := want
		change(&out)
		return out
	}
	for name, tc := range map[string]struct {
		u    *unstructured.Unstructured
		want routes.Sandbox
	}{
		"of a claim":              {bound().Obj(), want},
		"of nobody":               {bound().Owners().Obj(), with(func(o *routes.Sandbox) { o.Claim = routes.UID{} })},
		"another Pod":             {bound().PodName("pod-x").Obj(), with(func(o *routes.Sandbox) { o.PodName = "pod-x" })},
		"suspended":               {bound().Set("Suspended", "spec", "operatingMode").Obj(), with(func(o *routes.Sandbox) { o.State = routes.Paused })},
		"suspended, v1alpha1":     {bound().Set(int64(0), "spec", "replicas").Obj(), with(func(o *routes.Sandbox) { o.State = routes.Paused })},
		"running, v1alpha1":       {bound().Set(int64(1), "spec", "replicas").Obj(), want},
		"being deleted":           {bound().Deleting(at).Obj(), with(func(o *routes.Sandbox) { o.State = routes.Dead })},
		"ends by itself":          {bound().Set("2026-11-22T09:00:00Z", "spec", "shutdownTime").Obj(), with(func(o *routes.Sandbox) { o.Expires = at })},
		"ends, nobody knows when": {bound().Set("soon", "spec", "shutdownTime").Obj(), with(func(o *routes.Sandbox) { o.State = routes.Paused })},
		"member of a pool": {
			builders.MakeMember(pool, template).Name("one").RV(7).UID("u").Created(at).Obj(),
			with(func(o *routes.Sandbox) { o.State, o.Claim = routes.Available, routes.UID{} }),
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := RouteOfSandbox(tc.u)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := RouteOfSandbox(builders.SandboxFrom(bound().Obj()).Set("x", "metadata", "resourceVersion").Obj()); err == nil {
		t.Error("no error for a resourceVersion without an order")
	}
}

func TestRouteOfPod(t *testing.T) {
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	sandbox := builders.MakeColdStart(builders.MakeClaim("team-a", "one").Obj(), builders.MakeTemplate("team-a", "python").Obj()).UID("u").Obj()
	pod := func() *builders.Pod {
		return builders.MakePod(sandbox).Stored("node").Ready(true).RV(9).UID("p").Created(at).Set("10.0.0.1", "status", "podIP")
	}
	want := routes.Pod{
		Namespace: "team-a", Name: "one", UID: routes.ParseUID("p"), Version: 9, Sandbox: "one", SandboxUID: routes.ParseUID("u"),
		Address: netip.MustParseAddr("10.0.0.1"), Created: at, Ready: true,
	}
	other := builders.SandboxFrom(sandbox).Name("other").UID("v").Obj()
	otherKind := builders.ControllerRef(sandbox)
	otherKind.Kind = "Router"
	with := func(change func(*routes.Pod)) routes.Pod {
		out := want
		change(&out)
		return out
	}
	for name, tc := range map[string]struct {
		u    *unstructured.Unstructured
		want routes.Pod
	}{
		"ready":         {pod().Obj(), want},
		"not ready":     {pod().Ready(false).Obj(), with(func(o *routes.Pod) { o.Ready = false })},
		"no address":    {pod().Unset("status", "podIP").Obj(), with(func(o *routes.Pod) { o.Address = netip.Addr{} })},
		"IPv6":          {pod().Set("fd00::1", "status", "podIP").Obj(), with(func(o *routes.Pod) { o.Address = netip.MustParseAddr("fd00::1") })},
		"failed":        {pod().Phase("Failed").Obj(), with(func(o *routes.Pod) { o.Ended = true })},
		"finished":      {pod().Phase("Succeeded").Obj(), with(func(o *routes.Pod) { o.Ended = true })},
		"being deleted": {pod().Deleting(at).Obj(), with(func(o *routes.Pod) { o.Ended = true })},
		"on the host":   {pod().Set(true, "spec", "hostNetwork").Obj(), with(func(o *routes.Pod) { o.SharesAddress = true })},
		"of a pool":     {pod().Owners(builders.ControllerRef(builders.MakePool("team-a", "pool").Obj())).Obj(), with(func(o *routes.Pod) { o.Sandbox, o.SandboxUID = "", routes.UID{} })},
		"of no Sandbox": {pod().Owners().Obj(), with(func(o *routes.Pod) { o.Sandbox, o.SandboxUID = "", routes.UID{} })},
		"of two Sandboxes, the second controls it":           {pod().Owners(unmarkedRef(other), builders.ControllerRef(sandbox)).Obj(), want},
		"of a Sandbox that does not control it":              {pod().Owners(unmarkedRef(sandbox)).Obj(), with(func(o *routes.Pod) { o.Sandbox, o.SandboxUID = "", routes.UID{} })},
		"controlled by another kind, with the Sandbox's UID": {pod().Owners(unmarkedRef(sandbox), otherKind).Obj(), with(func(o *routes.Pod) { o.Sandbox, o.SandboxUID = "", routes.UID{} })},
		"controlled by a name that is not the UID's":         {pod().Owners(builders.ControllerRef(builders.SandboxFrom(sandbox).Name("gone").UID("u").Obj())).Obj(), with(func(o *routes.Pod) { o.Sandbox = "gone" })},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := RouteOfPod(tc.u)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := RouteOfPod(pod().Set("x", "metadata", "resourceVersion").Obj()); err == nil {
		t.Error("no error for a resourceVersion without an order")
	}
}
