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

func TestWhatIsServedOfAPlatform(t *testing.T) {
	g := &Guarded{Name: "first", Objects: onlyKinds{group: "a"}}
	unanswered := errors.New("no answer")
	for name, tc := range map[string]struct {
		serves map[string]bool
		err    error
		want   bool
	}{
		"its kinds":       {map[string]bool{"a/v1": true}, nil, true},
		"and another's":   {map[string]bool{"a/v1": true, "b/v1": true}, nil, true},
		"another's alone": {map[string]bool{"b/v1": true}, nil, false},
		"none":            {nil, nil, false},
		"no answer":       {nil, unanswered, false},
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
			got, found, err := g.find(t.Context(), ask)
			if !errors.Is(err, tc.err) || found != tc.want || found && (got.Guarded != g || got.Pools.Kind != "Box") {
				t.Errorf("find() = %v, %t, %v; want %t", got, found, err, tc.want)
			}
		})
	}
}
