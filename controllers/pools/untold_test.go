package pools

import (
	"context"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
	"github.com/freshbind/freshbind/test/builders"
)

// incomparable is a platform whose template does not show what members are built from.
type incomparable struct{ Platform }

func (incomparable) Inspect(context.Context, *unstructured.Unstructured, *unstructured.Unstructured) (*platform.Inspection, error) {
	return platform.NewInspection(nil, freshness.Snapshot{Operation: freshness.Stored, Pool: &freshness.Pool{Strategy: freshness.Recreate}}, ""), nil
}

func TestNothingIsSaidOfMembersThatCannotBeCompared(t *testing.T) {
	pool := builders.MakePool("ns", "python").Obj()
	r := newHarness(t, nil, pool, v1.DeepCopy(), of(pool, v1, "m").Obj())
	r.platform = incomparable{r.platform}
	s, err := r.look(t.Context(), r.record(client.ObjectKeyFromObject(pool), pool.GetUID()), pool, v1)
	if s != nil || err != nil {
		t.Errorf("something is: %+v, %v", s, err)
	}
}
