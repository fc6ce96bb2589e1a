package agentsandbox

import (
	"context"
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

func floorOf(t *testing.T, labels map[string]string, strategy freshness.Strategy) settings.Floor {
	t.Helper()
	f, err := settings.NewFloor(&metav1.LabelSelector{MatchLabels: labels}, false, strategy)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func makeNamespace(name string, labels map[string]string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	u.SetName(name)
	u.SetLabels(labels)
	return u
}

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
		"unread":            {"OnReplenish", freshness.RollingUpdate, unread, ""},
	} {
		t.Run(name, func(t *testing.T) {
			template := builders.MakeTemplate("ns", "python").Image("sandbox:v1").Obj()
			pool := builders.MakePool("ns", "python")
			if tc.spec != "" {
				pool.Strategy(tc.spec)
			}
			member, pod := running(template)
			claim := builders.MakeClaim("ns", "c1").Names("python-abc").Obj()
			labels := map[string]string{"tier": "prod"}
			s := newStore(template, pool.Obj(), member, pod, claim, makeNamespace("ns", labels))
			s.fail["namespace/ns"] = tc.err
			p := newPlatform(s, nil)
			p.Defaults.Floors = settings.Floors{floorOf(t, labels, tc.floor), floorOf(t, map[string]string{"tier": "test"}, freshness.Recreate)}
			w, _ := p.Classify(admissionv1.Update, member, builders.Bound(member, claim, template).Obj())
			facts, err := p.Snapshot(t.Context(), w)
			if !errors.Is(err, tc.err) {
				t.Fatalf("Snapshot: %v, want %v", err, tc.err)
			}
			inspection, err := p.Inspect(t.Context(), pool.Obj(), template)
			if !errors.Is(err, tc.err) {
				t.Fatalf("Inspect: %v, want %v", err, tc.err)
			}
			unused := newStore()
			known := CachedInspector{newPlatform(unused, nil), func(_ context.Context, name string) (map[string]string, error) {
				if name != "ns" {
					t.Errorf("the floor of namespace %q was asked for", name)
				}
				return labels, tc.err
			}}
			known.Defaults = p.Defaults
			predicted, err := known.Inspect(t.Context(), pool.Obj(), template)
			if !errors.Is(err, tc.err) {
				t.Fatalf("Inspect for a prediction: %v, want %v", err, tc.err)
			}
			if _, err := known.InspectBarePod(t.Context(), pool.Obj(), template, pod); !errors.Is(err, tc.err) {
				t.Fatalf("InspectBarePod for a prediction: %v, want %v", err, tc.err)
			}
			if len(unused.read) > 0 {
				t.Errorf("a prediction read %v", unused.read)
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

func TestWithoutFloorsForStrategiesNoNamespaceIsReadForThem(t *testing.T) {
	template := builders.MakeTemplate("ns", "python").Obj()
	s := newStore(template)
	p := newPlatform(s, nil)
	if _, err := p.Inspect(t.Context(), builders.MakePool("ns", "python").Obj(), template); err != nil || len(s.read) > 0 {
		t.Errorf("Inspect read %v, error %v", s.read, err)
	}
}
