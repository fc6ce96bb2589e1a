package agentsandbox

import (
	"fmt"
	"net/netip"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/routes"
)

// RouteOfSandbox returns what a Sandbox of any version says about where it can be
// reached. An error says that its resourceVersion has no order.
func RouteOfSandbox(u *unstructured.Unstructured) (routes.Sandbox, error) {
	v, err := routes.ParseVersion(u.GetResourceVersion())
	if err != nil {
		return routes.Sandbox{}, fmt.Errorf("reading sandbox %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	o := routes.Sandbox{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: routes.ParseUID(string(u.GetUID())), Version: v,
		PodName: PodNameOf(u), Created: u.GetCreationTimestamp().Time,
	}
	owner := controllerOf(u)
	if owner.Kind == freshness.OwnedByClaim {
		o.Claim = routes.ParseUID(owner.UID)
	}
	expires, readable := shutdownOf(u)
	o.Expires = expires
	switch {
	case u.GetDeletionTimestamp() != nil:
		o.State = routes.Dead
	case !readable || suspended(u):
		o.State = routes.Paused
	case owner.Kind == freshness.OwnedByPool:
		o.State = routes.Available
	default:
		o.State = routes.Running
	}
	return o, nil
}

// suspended reads operatingMode, and what was in its place up to v1alpha1.
func suspended(sandbox *unstructured.Unstructured) bool {
	replicas, found, _ := unstructured.NestedInt64(sandbox.Object, "spec", "replicas")
	return str(sandbox.Object, "spec", "operatingMode") == "Suspended" || found && replicas == 0
}

// shutdownOf is when a Sandbox ends by itself; zero for never. The second result
// is false for a time that nobody can read.
func shutdownOf(sandbox *unstructured.Unstructured) (time.Time, bool) {
	text := str(sandbox.Object, "spec", "shutdownTime")
	if text == "" {
		return time.Time{}, true
	}
	at, err := time.Parse(time.RFC3339, text)
	return at, err == nil
}

// RouteOfPod is RouteOfSandbox for Pods.
func RouteOfPod(u *unstructured.Unstructured) (routes.Pod, error) {
	v, err := routes.ParseVersion(u.GetResourceVersion())
	if err != nil {
		return routes.Pod{}, fmt.Errorf("reading pod %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	p := routes.Pod{
		Namespace: u.GetNamespace(), Name: u.GetName(), UID: routes.ParseUID(string(u.GetUID())), Version: v,
		Created: u.GetCreationTimestamp().Time, Ready: isReady(u),
	}
	if name := PodSandbox(u); name != "" {
		p.Sandbox, p.SandboxUID = name, routes.ParseUID(platform.ControllerUID(u))
	}
	// A Pod without an address has none to route to: the zero Addr says so.
	p.Address, _ = netip.ParseAddr(str(u.Object, "status", "podIP"))
	phase := str(u.Object, "status", "phase")
	p.Ended = u.GetDeletionTimestamp() != nil || phase == "Failed" || phase == "Succeeded"
	p.SharesAddress, _, _ = unstructured.NestedBool(u.Object, "spec", "hostNetwork")
	return p, nil
}
