package agentsandbox

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/fair"
	"github.com/freshbind/freshbind/test/builders"
)

// Rendering for advice takes the CPU that verdicts need.
func TestAdviceWaitsForItsTurn(t *testing.T) {
	pool := builders.MakePool("ns", "python").Set(1, "status", "readyReplicas").Obj()
	member := idleMembers(pool, adviseV1, "a", 1)[0]
	claim := builders.MakeClaimV1Alpha1("ns", "c1", "python", "default").Obj()
	for name, tc := range map[string]struct {
		old, obj *unstructured.Unstructured
		// late takes the only place when pools are listed.
		late bool
	}{
		"what a claim asks for":        {obj: builders.MakeClaim("ns", "c1").Env("", "A", "b").Obj()},
		"what members a claim has":     {obj: claim, late: true},
		"what a template renders to":   {obj: builders.MakeTemplate("ns", "of-no-pool").Obj()},
		"what members an edit changes": {old: adviseV1, obj: adviseV2, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				a, _ := newAdviser(true, true, pool, adviseV1, member)
				a.Platform.Turns = fair.NewTurns(1, 1)
				take := func() {
					if _, err := a.Platform.Turns.Take(t.Context(), "ns"); err != nil {
						t.Error(err)
					}
				}
				if !tc.late {
					take()
				}
				a.Lister.Pools = func(context.Context, string) ([]*unstructured.Unstructured, error) {
					if tc.late {
						take()
					}
					return []*unstructured.Unstructured{pool}, nil
				}
				if effect, err := a.Predict(ctx, tc.old, tc.obj); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Predict() = %v, error %v, want that the time is up", effect, err)
				}
			})
		})
	}
}
