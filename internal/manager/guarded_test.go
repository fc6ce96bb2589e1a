package manager

import (
	"context"
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/platform"
)

// onlyKinds is a platform by its kinds.
type onlyKinds struct {
	GuardedObjects
	group string
}

func (o onlyKinds) Kinds() platform.Kinds {
	kind := platform.Kind{GroupKind: schema.GroupKind{Group: o.group, Kind: "Box"}, Resource: "boxes"}
	return platform.Kinds{Member: kind, Template: kind, Pool: kind, Versions: []string{"v1"}}
}

func TestTheFirstPlatformThatIsServedIsGuarded(t *testing.T) {
	first, second := &Guarded{Name: "first", Objects: onlyKinds{group: "a"}}, &Guarded{Name: "second", Objects: onlyKinds{group: "b"}}
	unanswered := errors.New("no answer")
	for name, tc := range map[string]struct {
		serves map[string]bool
		err    error
		want   *Guarded
	}{
		"the first":  {map[string]bool{"a/v1": true}, nil, first},
		"the second": {map[string]bool{"b/v1": true}, nil, second},
		"both":       {map[string]bool{"a/v1": true, "b/v1": true}, nil, first},
		"none":       {nil, nil, nil},
		"no answer":  {nil, unanswered, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ask := func(_ context.Context, gv string) (*metav1.APIResourceList, error) {
				if tc.err != nil {
					return nil, tc.err
				}
				if !tc.serves[gv] {
					return nil, apierrors.NewNotFound(schema.GroupResource{}, gv)
				}
				return &metav1.APIResourceList{APIResources: []metav1.APIResource{{Kind: "Box"}}}, nil
			}
			got, found, err := firstServed(t.Context(), ask, []*Guarded{first, second})
			if !errors.Is(err, tc.err) || found != (tc.want != nil) || found && (got.Guarded != tc.want || got.Pools.Kind != "Box") {
				t.Errorf("firstServed() = %v, %t, %v; want %v", got, found, err, tc.want)
			}
		})
	}
}
