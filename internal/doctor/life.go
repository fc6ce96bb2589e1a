package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/internal/selftest"
	"github.com/freshbind/freshbind/internal/settings"
)

// leaderLease is the name of the leader's Lease.
const leaderLease = "freshbind"

func (d *Doctor) platforms(ctx context.Context) ([]Finding, error) {
	k, found, err := d.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	others, err := d.othersFound(ctx)
	if err != nil {
		return nil, err
	}
	if !found && len(others) > 0 {
		return others, nil
	}
	if !found {
		return []Finding{warning("install "+d.Platform.Product+"; Freshbind finds it within seconds",
			"%s is not installed: there is nothing to guard", d.Name)}, nil
	}
	return append(ok("%s: sandboxes %s, pools %s", d.Name, k.Sandboxes.Version, k.Pools.Version), others...), nil
}

func (d *Doctor) lease(ctx context.Context, name string) (*coordinationv1.Lease, error) {
	var list coordinationv1.LeaseList
	if err := d.Client.List(ctx, &list, client.MatchingFields{metav1.ObjectNameField: name}); err != nil {
		return nil, fmt.Errorf("looking for lease %s: %w", name, err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	newest := slices.MaxFunc(list.Items, func(a, b coordinationv1.Lease) int { return renewed(&a).Compare(renewed(&b)) })
	return &newest, nil
}

func renewed(l *coordinationv1.Lease) time.Time {
	return ptr.Deref(l.Spec.RenewTime, metav1.MicroTime{}).Time
}

// late is by how much a lease has expired.
func (d *Doctor) late(l *coordinationv1.Lease) time.Duration {
	return d.Now().Sub(renewed(l)) - time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0))*time.Second
}

func (d *Doctor) leader(ctx context.Context) ([]Finding, error) {
	const look = "look at the logs of all replicas: without a leader nobody replaces, hides or offers members again"
	l, err := d.lease(ctx, leaderLease)
	switch {
	case err != nil:
		return nil, err
	case l == nil:
		return []Finding{warning(look, "no leader was ever elected (or leaderElection.enabled is false)")}, nil
	case ptr.Deref(l.Spec.HolderIdentity, "") == "":
		return []Finding{failed(look, "nobody leads since %s", renewed(l).Format(time.RFC3339))}, nil
	case d.late(l) > 0:
		return []Finding{failed(look, "the leader %s was last alive at %s", *l.Spec.HolderIdentity, renewed(l).Format(time.RFC3339))}, nil
	}
	return ok("%s leads", *l.Spec.HolderIdentity), nil
}

func (d *Doctor) selfTest(ctx context.Context) ([]Finding, error) {
	l, err := d.lease(ctx, selftest.LeaseName)
	if err != nil {
		return nil, err
	}
	const look = "look at the log of the leader; selfTest in the configuration turns it on"
	if l == nil {
		return []Finding{warning(look, "no self-test was ever made")}, nil
	}
	ago := d.Now().Sub(renewed(l)).Round(time.Second)
	result := l.Annotations[settings.SelfTestKey]
	switch {
	case d.late(l) > 0:
		return []Finding{warning(look, "the last self-test was %s ago", ago)}, nil
	case result != selftest.Passed:
		return []Finding{failed("look at the checks above: the message is the API server's answer to a bind", "the self-test of %s ago failed: %s", ago, result)}, nil
	}
	return ok("the self-test of %s ago passed", ago), nil
}

// refusal asks the API server itself, with the rights of whoever asks: in the
// namespace that the self-test has, and in one that enforces, as each may have
// webhooks of its own.
func (d *Doctor) refusal(ctx context.Context) ([]Finding, error) {
	k, found, err := d.Kinds(ctx)
	if err != nil || !found {
		return nil, err
	}
	may, err := d.mayCreate(ctx, k, d.TestNamespace)
	if err != nil {
		return nil, err
	}
	if !may {
		return nil, fmt.Errorf("you may not create sandboxes in namespace %s, not even in a dry run, so Freshbind was not tried", d.TestNamespace)
	}
	asked := []string{d.TestNamespace}
	enforcing, err := d.enforcing(ctx)
	if err != nil {
		return nil, err
	}
	// Where you may not try it, the comparison of webhooks has to do.
	if len(enforcing) > 0 && !slices.Contains(enforcing, d.TestNamespace) {
		if may, err = d.mayCreate(ctx, k, enforcing[0]); err != nil {
			return nil, err
		}
		if may {
			asked = append(asked, enforcing[0])
		}
	}
	for _, namespace := range asked {
		if findings, err := d.refusalIn(ctx, k, namespace); err != nil || len(findings) > 0 {
			return findings, err
		}
	}
	return ok("a dry run in namespace %s was refused by Freshbind, as it has to be", strings.Join(asked, ", and one in ")), nil
}

// enforcing are the namespaces that enforce and that Freshbind is for.
func (d *Doctor) enforcing(ctx context.Context) ([]string, error) {
	var namespaces corev1.NamespaceList
	if err := d.Client.List(ctx, &namespaces); err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	var out []string
	for _, ns := range namespaces.Items {
		if d.guards(ns) {
			out = append(out, ns.Name)
		}
	}
	slices.Sort(out)
	return out, nil
}

// guards reports whether a namespace enforces, and Freshbind is for it.
func (d *Doctor) guards(ns corev1.Namespace) bool {
	left := ns.Name == metav1.NamespaceSystem || ns.DeletionTimestamp != nil || len(d.Namespaces) > 0 && !slices.Contains(d.Namespaces, ns.Name)
	return !left && d.Enforced(ns.Labels)
}

// mayCreate reports whether who asks may create sandboxes in the namespace.
func (d *Doctor) mayCreate(ctx context.Context, k platform.Served, namespace string) (bool, error) {
	mine := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "create", Group: k.Sandboxes.Group, Version: "*", Resource: d.Platform.Member.Resource,
		},
	}}
	if err := d.Client.Create(ctx, mine); err != nil {
		return false, fmt.Errorf("asking what you may do: %w", err)
	}
	return mine.Status.Allowed, nil
}

// refusalIn finds nothing when a cold start in the namespace is refused.
func (d *Doctor) refusalIn(ctx context.Context, k platform.Served, namespace string) ([]Finding, error) {
	t := &selftest.Tester{
		Client: d.Client, Namespace: namespace, Sandboxes: k.Sandboxes, Claims: k.Claims, Clock: clock.RealClock{},
	}
	if err := t.Test(ctx); err != nil {
		if answer := apierrors.APIStatus(nil); !errors.As(err, &answer) && !strings.Contains(err.Error(), "was accepted") {
			// The API server has not answered.
			return nil, err
		}
		return []Finding{failed("look at the checks above, and at the log of the replicas", "%v", err)}, nil
	}
	return nil, nil
}

// enforcement names the namespaces with pools in which nothing is denied.
func (d *Doctor) enforcement(ctx context.Context) ([]Finding, error) {
	k, found, err := d.Kinds(ctx)
	if err != nil || !found {
		return nil, err
	}
	pools := &metav1.PartialObjectMetadataList{}
	gvk := k.Pools
	gvk.Kind += "List"
	pools.SetGroupVersionKind(gvk)
	if err := d.Client.List(ctx, pools); err != nil {
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	var namespaces corev1.NamespaceList
	if err := d.Client.List(ctx, &namespaces); err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	enforced := map[string]bool{}
	for _, ns := range namespaces.Items {
		enforced[ns.Name] = d.Enforced(labels.Set(ns.Labels))
	}
	var audited []string
	count := 0
	for _, p := range pools.Items {
		if enforced[p.Namespace] || p.Annotations[settings.EnforcementKey] == "enforce" {
			continue
		}
		count++
		audited = append(audited, p.Namespace)
	}
	if count == 0 {
		return ok("%d pools, all enforced", len(pools.Items)), nil
	}
	slices.Sort(audited)
	audited = slices.Compact(audited)
	return []Finding{warning("when status shows what you expect: kubectl label namespace "+audited[0]+" "+settings.EnforcementKey+"=enforce",
		"%d of %d pools are only audited, in namespaces %s", count, len(pools.Items), strings.Join(audited, ", "))}, nil
}
