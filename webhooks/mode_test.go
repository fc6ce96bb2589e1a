package webhooks

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/freshbind/freshbind/internal/floor"
	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/platform"
)

func floorOf(t *testing.T, selector *metav1.LabelSelector, enforce bool, st freshness.Strategy) floor.Floor {
	t.Helper()
	f, err := floor.New(selector, enforce, st)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestNoLabelGoesBelowAFloor(t *testing.T) {
	all := &metav1.LabelSelector{}
	audited := &metav1.LabelSelector{MatchLabels: map[string]string{platform.EnforcementKey: string(Audit)}}
	other := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	unread := errors.New("no answer")
	for name, tc := range map[string]struct {
		floors   floor.Floors
		err      error
		want     Mode
		strategy freshness.Strategy
	}{
		"no floor":               {nil, nil, Audit, ""},
		"for all":                {floor.Floors{floorOf(t, all, true, freshness.Recreate)}, nil, Enforce, freshness.Recreate},
		"for this one":           {floor.Floors{floorOf(t, audited, true, freshness.RollingUpdate)}, nil, Enforce, freshness.RollingUpdate},
		"for others":             {floor.Floors{floorOf(t, other, true, freshness.Recreate)}, nil, Audit, ""},
		"known from the cache":   {floor.Floors{floorOf(t, audited, true, "")}, unread, Enforce, ""},
		"only of the strategies": {floor.Floors{floorOf(t, all, false, freshness.Recreate)}, nil, Audit, freshness.Recreate},
	} {
		t.Run(name, func(t *testing.T) {
			m := modes(t, Audit, tc.err)
			m.Floors = tc.floors
			got, err := m.Of(t.Context(), "ns", "")
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("Of = %s, %v, want %s, %v", got, err, tc.want, tc.err)
			}
			if known, err := m.Known(t.Context(), "ns", ""); err != nil || known != (tc.want == Enforce) {
				t.Errorf("Known = %t, %v", known, err)
			}
			least, err := m.LeastStrategy(t.Context(), "ns")
			if least != tc.strategy || err != nil {
				t.Errorf("LeastStrategy = %q, %v, want %q", least, err, tc.strategy)
			}
			m.Live = nil
			if known, err := m.KnownStrategy(t.Context(), "ns"); known != tc.strategy || err != nil {
				t.Errorf("KnownStrategy = %q, %v, want %q", known, err, tc.strategy)
			}
			if known, err := m.KnownStrategy(t.Context(), "gone"); known != "" || err != nil {
				t.Errorf("KnownStrategy of a namespace that is gone = %q, %v", known, err)
			}
		})
	}
}

func TestAFloorOfStrategiesThatCannotBeReadIsAnError(t *testing.T) {
	m := modes(t, Audit, errors.New("no answer"))
	m.Floors = floor.Floors{floorOf(t, &metav1.LabelSelector{}, false, freshness.Recreate)}
	if _, err := m.LeastStrategy(t.Context(), "ns"); err == nil {
		t.Error("nothing was read, and nothing said so")
	}
}

// absent is an API server that has no namespace.
type absent struct{}

func (absent) Get(context.Context, schema.GroupResource, string, string) (*unstructured.Unstructured, error) {
	return nil, nil
}

func TestModesOfANamespaceThatIsGone(t *testing.T) {
	for _, byDefault := range []Mode{Audit, Enforce} {
		m := modes(t, "", nil)
		m.Live, m.Default = absent{}, byDefault
		m.Floors = floor.Floors{floorOf(t, &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, true, freshness.Recreate)}
		if got, err := m.Of(t.Context(), "gone", ""); got != byDefault || err != nil {
			t.Errorf("Of = %s, %v, want %s", got, err, byDefault)
		}
		if known, err := m.Known(t.Context(), "gone", ""); known != (byDefault == Enforce) || err != nil {
			t.Errorf("Known = %t, %v", known, err)
		}
		if least, err := m.LeastStrategy(t.Context(), "gone"); least != "" || err != nil {
			t.Errorf("LeastStrategy = %q, %v", least, err)
		}
		if enforced, err := m.Enforced(t.Context(), "gone"); enforced != (byDefault == Enforce) || err != nil {
			t.Errorf("Enforced = %t, %v", enforced, err)
		}
		if marked, err := m.Marks(t.Context(), "gone", ""); marked != (byDefault == Enforce) || err != nil {
			t.Errorf("Marks = %t, %v", marked, err)
		}
		if marked, err := m.Marks(t.Context(), "gone", string(Enforce)); !marked || err != nil {
			t.Errorf("Marks of what a pool enforced = %t, %v", marked, err)
		}
	}
}

func TestNoFloorsNoReads(t *testing.T) {
	m := &Modes{Default: Audit}
	if least, err := m.LeastStrategy(t.Context(), "ns"); least != "" || err != nil {
		t.Errorf("LeastStrategy = %q, %v", least, err)
	}
	if least, err := m.KnownStrategy(t.Context(), "ns"); least != "" || err != nil {
		t.Errorf("KnownStrategy = %q, %v", least, err)
	}
}
