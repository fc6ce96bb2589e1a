package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	// lookEvery is how often the API server is asked what it serves, two small
	// requests for which no rights are needed, while it is not known or in doubt.
	lookEvery = 5 * time.Second
	// sureFor is how many times that is as long as nobody doubts it.
	sureFor = 12
	// steadyFor is how many looks in a row have to agree on a change before it is
	// acted on: an API server that starts serves no custom resources for a moment.
	steadyFor = 3
)

type kinds struct{ templates, sandboxes, claims, pools schema.GroupVersionKind }

// served lists the resources of a group and version; NotFound when it is not
// served.
type served func(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)

// kinds finds the platform's kinds, each in its preferred version; false when
// one of them is missing. An error says that it could not be found out.
func (s served) kinds(ctx context.Context) (kinds, bool, error) {
	var k kinds
	has := builtIn.Kinds()
	groups := map[string]map[string]*schema.GroupVersionKind{}
	for kind, into := range map[schema.GroupKind]*schema.GroupVersionKind{
		has.Member.GroupKind: &k.sandboxes, has.Template.GroupKind: &k.templates,
		has.Claim.GroupKind: &k.claims, has.Pool.GroupKind: &k.pools,
	} {
		if groups[kind.Group] == nil {
			groups[kind.Group] = map[string]*schema.GroupVersionKind{}
		}
		groups[kind.Group][kind.Kind] = into
	}
	for group, want := range groups {
		if complete, err := s.find(ctx, group, want); err != nil || !complete {
			return kinds{}, false, err
		}
	}
	return k, true, nil
}

func (s served) find(ctx context.Context, group string, want map[string]*schema.GroupVersionKind) (bool, error) {
	missing := len(want)
	for _, version := range builtIn.Kinds().Versions {
		gv := schema.GroupVersion{Group: group, Version: version}
		list, err := s(ctx, gv.String())
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
