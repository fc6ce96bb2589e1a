package webhooks

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/freshbind/freshbind/internal/freshness"
	"github.com/freshbind/freshbind/internal/settings"
	"github.com/freshbind/freshbind/test/builders"
)

func floorOf(t *testing.T, selector *metav1.LabelSelector, enforce bool, st freshness.Strategy) settings.Floor {
	t.Helper()
	f, err := settings.NewFloor(selector, enforce, st)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestNoLabelGoesBelowAFloor(t *testing.T) {
	all := &metav1.LabelSelector{}
	audited := &metav1.LabelSelector{MatchLabels: map[string]string{settings.EnforcementKey: string(settings.Audit)}}
	other := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	unread := errors.New("no answer")
	for name, tc := range map[string]struct {
		floors settings.Floors
		err    error
		want   settings.Mode
	}{
		"no floor":               {nil, nil, settings.Audit},
		"for all":                {settings.Floors{floorOf(t, all, true, freshness.Recreate)}, nil, settings.Enforce},
		"for this one":           {settings.Floors{floorOf(t, audited, true, freshness.RollingUpdate)}, nil, settings.Enforce},
		"for others":             {settings.Floors{floorOf(t, other, true, freshness.Recreate)}, nil, settings.Audit},
		"known from the cache":   {settings.Floors{floorOf(t, audited, true, "")}, unread, settings.Enforce},
		"only of the strategies": {settings.Floors{floorOf(t, all, false, freshness.Recreate)}, nil, settings.Audit},
	} {
		t.Run(name, func(t *testing.T) {
			m := modes(t, settings.Audit, tc.err)
			m.Defaults.Floors = tc.floors
			got, err := m.Of(t.Context(), "ns", "")
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("Of = %s, %v, want %s, %v", got, err, tc.want, tc.err)
			}
			if known, err := m.Known(t.Context(), "ns", ""); err != nil || known != (tc.want == settings.Enforce) {
				t.Errorf("Known = %t, %v", known, err)
			}
			acts := tc.want == settings.Enforce && tc.err == nil
			if got, err := m.Acts(t.Context(), "ns", ""); got != acts || !errors.Is(err, tc.err) {
				t.Errorf("Acts = %t, %v, want %t, %v", got, err, acts, tc.err)
			}
		})
	}
}

// absent is an API server that has no namespace.
func absent(context.Context, string) (map[string]string, error) { return nil, nil }

func TestModesOfANamespaceThatIsGone(t *testing.T) {
	for _, byDefault := range []settings.Mode{settings.Audit, settings.Enforce} {
		m := modes(t, "", nil)
		m.Live, m.Defaults.Mode = absent, byDefault
		m.Defaults.Floors = settings.Floors{floorOf(t, &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, true, freshness.Recreate)}
		if got, err := m.Of(t.Context(), "gone", ""); got != byDefault || err != nil {
			t.Errorf("Of = %s, %v, want %s", got, err, byDefault)
		}
		if known, err := m.Known(t.Context(), "gone", ""); known != (byDefault == settings.Enforce) || err != nil {
			t.Errorf("Known = %t, %v", known, err)
		}
		if marked, err := m.Acts(t.Context(), "gone", ""); marked != (byDefault == settings.Enforce) || err != nil {
			t.Errorf("Acts = %t, %v", marked, err)
		}
		if marked, err := m.Acts(t.Context(), "gone", string(settings.Enforce)); !marked || err != nil {
			t.Errorf("Acts on what a pool enforced = %t, %v", marked, err)
		}
	}
}

func TestClaimsWaitWhereAnyPoolEnforces(t *testing.T) {
	unread := errors.New("no answer")
	pools := func(annotations ...string) func(context.Context, string) ([]*unstructured.Unstructured, error) {
		return func(_ context.Context, namespace string) ([]*unstructured.Unstructured, error) {
			var all []*unstructured.Unstructured
			for _, enforcement := range annotations {
				all = append(all, builders.MakePool(namespace, "python").Annotation(settings.EnforcementKey, enforcement).Obj())
			}
			return all, nil
		}
	}
	for name, tc := range map[string]struct {
		mode    settings.Mode
		err     error
		pools   func(context.Context, string) ([]*unstructured.Unstructured, error)
		want    bool
		wantErr bool
	}{
		"nobody enforces":        {mode: settings.Audit, pools: pools("audit")},
		"no pool says anything":  {mode: settings.Audit},
		"the namespace does":     {mode: settings.Enforce, pools: pools(), want: true},
		"a pool does":            {mode: settings.Audit, pools: pools("audit", "enforce"), want: true},
		"the namespace unread":   {err: unread, pools: pools("enforce"), wantErr: true},
		"the pools are not read": {mode: settings.Audit, pools: func(context.Context, string) ([]*unstructured.Unstructured, error) { return nil, unread }, wantErr: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := modes(t, tc.mode, tc.err)
			m.Pools = tc.pools
			got, err := m.ClaimsWait(t.Context(), "ns")
			if got != tc.want || (err != nil) != tc.wantErr || err != nil && !errors.Is(err, unread) {
				t.Errorf("ClaimsWait = %t, %v, want %t, error %t", got, err, tc.want, tc.wantErr)
			}
		})
	}
}
