package webhooks

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
