package platform

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Served are the kinds of a platform, each in the version that the API server is asked in.
// There is no Claims where claims have no object.
type Served struct{ Templates, Sandboxes, Claims, Pools schema.GroupVersionKind }

// Discovery lists the resources of a group and version; NotFound when it is not
// served.
type Discovery func(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)

// Find finds these kinds, each in its preferred version; false when one of them is
// missing. An error says that it could not be found out.
func (d Discovery) Find(ctx context.Context, has Kinds) (Served, bool, error) {
	found := map[schema.GroupKind]*schema.GroupVersionKind{}
	groups := map[string]map[string]*schema.GroupVersionKind{}
	for _, kind := range has.all() {
		if groups[kind.Group] == nil {
			groups[kind.Group] = map[string]*schema.GroupVersionKind{}
		}
		into := &schema.GroupVersionKind{}
		found[kind.GroupKind], groups[kind.Group][kind.Kind] = into, into
	}
	for group, want := range groups {
		if complete, err := d.find(ctx, group, has.Versions, want); !complete {
			return Served{}, false, err
		}
	}
	k := Served{Templates: *found[has.Template.GroupKind], Sandboxes: *found[has.Member.GroupKind], Pools: *found[has.Pool.GroupKind]}
	if has.HasClaims() {
		k.Claims = *found[has.Claim.GroupKind]
	}
	return k, true, nil
}

// find looks for the kinds of one group; false when one of them is missing, or with an
// error.
func (d Discovery) find(ctx context.Context, group string, versions []string, want map[string]*schema.GroupVersionKind) (bool, error) {
	missing := len(want)
	for _, version := range versions {
		gv := schema.GroupVersion{Group: group, Version: version}
		list, err := d(ctx, gv.String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("asking for the resources of %s: %w", gv, err)
		}
		for kind, into := range want {
			is := func(r metav1.APIResource) bool { return r.Kind == kind }
			if into.Empty() && slices.ContainsFunc(list.APIResources, is) {
				*into = gv.WithKind(kind)
				missing--
			}
		}
		if missing == 0 {
			return true, nil
		}
	}
	return false, nil
}
