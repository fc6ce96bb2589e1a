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
// There is no Claims where claims have no object, and no SharedTemplates where pools can
// refer to none.
type Served struct{ Templates, SharedTemplates, Sandboxes, Claims, Pools schema.GroupVersionKind }

// Discovery lists the resources of a group and version; NotFound when it is not
// served.
type Discovery func(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)

// Find finds these kinds, each in its preferred version; false when one of them is
// missing that has to be there. An error says that it could not be found out.
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
		if err := d.find(ctx, group, has.Versions, want); err != nil {
			return Served{}, false, err
		}
	}
	for _, kind := range has.required() {
		if found[kind.GroupKind].Empty() {
			return Served{}, false, nil
		}
	}
	k := Served{Templates: *found[has.Template.GroupKind], Sandboxes: *found[has.Member.GroupKind], Pools: *found[has.Pool.GroupKind]}
	if has.HasClaims() {
		k.Claims = *found[has.Claim.GroupKind]
	}
	if !has.SharedTemplate.Empty() {
		k.SharedTemplates = *found[has.SharedTemplate.GroupKind]
	}
	return k, true, nil
}

// find finds those of a group that are served.
func (d Discovery) find(ctx context.Context, group string, versions []string, want map[string]*schema.GroupVersionKind) error {
	missing := len(want)
	for _, version := range versions {
		gv := schema.GroupVersion{Group: group, Version: version}
		list, err := d(ctx, gv.String())
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("asking for the resources of %s: %w", gv, err)
		}
		for kind, into := range want {
			is := func(r metav1.APIResource) bool { return r.Kind == kind }
			if into.Empty() && slices.ContainsFunc(list.APIResources, is) {
				*into = gv.WithKind(kind)
				missing--
			}
		}
		if missing == 0 {
			return nil
		}
	}
	return nil
}
