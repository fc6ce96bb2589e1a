package agentsandbox

import (
	"context"
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/test/builders"
)

// One floor, seen by verdicts, by the planner of pools and by predictions, which do
// not read it.
func TestStrategyIsNotBelowTheFloor(t *testing.T) {
	unread := errors.New("no answer")
	for name, tc := range map[string]struct {
		spec  string
		floor freshness.Strategy
		err   error
		want  freshness.Strategy
	}{
		"no floor":          {"OnReplenish", "", nil, freshness.OnReplenish},
		"below":             {"OnReplenish", freshness.RollingUpdate, nil, freshness.RollingUpdate},
		"the default below": {"", freshness.Recreate, nil, freshness.Recreate},
		"above":             {"Recreate", freshness.RollingUpdate, nil, freshness.Recreate},
		"unknown":           {"Sometimes", freshness.RollingUpdate, nil, freshness.RollingUpdate},
		"unread":            {"OnReplenish", "", unread, ""},
	} {
		t.Run(name, func(t *testing.T) {
			template := builders.MakeTemplate("ns", "python").Image("sandbox:v1").Obj()
			pool := builders.MakePool("ns", "python")
			if tc.spec != "" {
				pool.Strategy(tc.spec)
			}
			member, pod := running(template)
			claim := builders.MakeClaim("ns", "c1").Names("python-abc").Obj()
			p := newPlatform(newStore(template, pool.Obj(), member, pod, claim), nil)
			p.Floor = func(_ context.Context, namespace string) (freshness.Strategy, error) {
				if namespace != "ns" {
					t.Errorf("the floor of namespace %q was asked for", namespace)
				}
				return tc.floor, tc.err
			}
			w, _ := p.Classify(admissionv1.Update, member, builders.Bound(member, claim, template).Obj())
			facts, err := p.Snapshot(t.Context(), w)
			if !errors.Is(err, tc.err) {
				t.Fatalf("Snapshot: %v, want %v", err, tc.err)
			}
			inspection, err := p.Inspect(t.Context(), pool.Obj(), template)
			if !errors.Is(err, tc.err) {
				t.Fatalf("Inspect: %v, want %v", err, tc.err)
			}
			known := CachedInspector{newPlatform(newStore(), nil), p.Floor}
			known.Floor = func(context.Context, string) (freshness.Strategy, error) {
				t.Error("a prediction read a floor")
				return "", nil
			}
			predicted, err := known.Inspect(t.Context(), pool.Obj(), template)
			if !errors.Is(err, tc.err) {
				t.Fatalf("Inspect for a prediction: %v, want %v", err, tc.err)
			}
			if _, err := known.InspectBarePod(t.Context(), pool.Obj(), template, pod); !errors.Is(err, tc.err) {
				t.Fatalf("InspectBarePod for a prediction: %v, want %v", err, tc.err)
			}
			if tc.err != nil {
				return
			}
			if got := predicted.Strategy(); got != tc.want {
				t.Errorf("a prediction sees %s, want %s", got, tc.want)
			}
			if got := facts.Pool.Strategy; got != tc.want {
				t.Errorf("a verdict sees %s, want %s", got, tc.want)
			}
			if got := inspection.Strategy(); got != tc.want {
				t.Errorf("the planner sees %s, want %s", got, tc.want)
			}
		})
	}
}
