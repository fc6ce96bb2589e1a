package alerts

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

const files = "../../charts/freshbind/files"

// recorded returns what the chart records of series, after so long.
func recorded(t *testing.T, series []string, after time.Duration) []string {
	t.Helper()
	list, err := os.ReadFile(filepath.Join(files, "slo.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	text := "groups:\n- name: freshbind\n  rules:\n  " + strings.ReplaceAll(string(list), "\n", "\n  ") + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	storage := promqltest.LoadedStorage(t, "load "+step.String()+"\n  "+strings.Join(series, "\n  ")+"\n")
	t.Cleanup(func() { _ = storage.Close() })
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	query := rules.EngineQueryFunc(engine, storage)
	m := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: query, Queryable: storage, AppendableV2: storage,
		Context: t.Context(), Logger: slog.New(slog.DiscardHandler), Parser: parser.NewParser(parser.Options{}),
	})
	groups, errs := m.LoadGroups(step, labels.EmptyLabels(), "", nil, false, file)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	at := time.Unix(0, 0).Add(after)
	var out []string
	for _, group := range groups {
		group.Eval(t.Context(), at)
		for _, rule := range group.Rules() {
			if rule.Health() != rules.HealthGood {
				t.Fatalf("%s: %v", rule.Name(), rule.LastError())
			}
			found, err := query(t.Context(), rule.Name(), at)
			if err != nil {
				t.Fatal(err)
			}
			for _, sample := range found {
				set := sample.Metric.Map()
				delete(set, "__name__")
				out = append(out, fmt.Sprintf("%s %s%s %.3f", rule.Name(), set["cluster"], set["namespace"], sample.F))
			}
		}
	}
	slices.Sort(out)
	return out
}

func TestServiceLevels(t *testing.T) {
	s := func(name, values string, set ...string) string { return ours(t, name, values, set...) }
	// windows are the records of one ratio, in order.
	windows := func(name string, values map[string]string) []string {
		var out []string
		for _, w := range []string{"1h", "30m", "5m", "6h"} {
			if v, ok := values[w]; ok {
				out = append(out, fmt.Sprintf("cluster:%s:ratio_rate%s east %s", name, w, v))
			}
		}
		return out
	}
	everywhere := func(v string) map[string]string { return map[string]string{"5m": v, "30m": v, "1h": v, "6h": v} }
	verdict := func(values, verdict string) string {
		return s("freshbind_bind_verdicts_total", values, "verdict", verdict)
	}
	bucket := func(values, le string) string {
		return s("freshbind_verdict_duration_seconds_bucket", values, "le", le)
	}
	members := func(state, namespace, values string) string {
		return s("freshbind_pool_members", values, "state", state, "namespace", namespace, "warmpool_name", "python")
	}
	for name, tc := range map[string]struct {
		series []string
		want   []string
	}{
		"nothing was ever undecided": {
			[]string{verdict("0+8x960", "allow"), verdict("0+2x960", "deny")},
			windows("freshbind_verdicts_undecided", everywhere("0.000")),
		},
		"one of a hundred is": {
			[]string{verdict("0+99x960", "allow"), verdict("0+1x960", "error")},
			windows("freshbind_verdicts_undecided", everywhere("0.010")),
		},
		// Eight hours are 960 steps. Only the last half hour goes wrong.
		"all are, for half an hour": {
			[]string{verdict("0+1x900 900x60", "allow"), verdict("0x900 1+1x59", "error")},
			windows("freshbind_verdicts_undecided", map[string]string{"5m": "1.000", "30m": "1.000", "1h": "0.502", "6h": "0.083"}),
		},
		"nobody asks": {[]string{verdict("5x960", "allow"), bucket("5x960", "0.5"), bucket("5x960", "+Inf")}, nil},
		"a quarter is slow": {
			[]string{bucket("0+3x960", "0.5"), bucket("0+4x960", "1"), bucket("0+4x960", "+Inf")},
			windows("freshbind_verdicts_slow", everywhere("0.250")),
		},
		"members of namespaces": {
			[]string{
				members("updated", "prod", "3x960"), members("stale", "prod", "1x960"), members("unknown", "prod", "0x960"),
				members("ready", "prod", "4x960"), members("claimable", "prod", "2x960"),
				members("updated", "empty", "0x960"), members("stale", "empty", "0x960"), members("ready", "empty", "0x960"), members("claimable", "empty", "0x960"),
			},
			[]string{"namespace:freshbind_pool_members_claimable:ratio eastprod 0.500", "namespace:freshbind_pool_members_updated:ratio eastprod 0.750"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, recorded(t, tc.series, 8*time.Hour)); diff != "" {
				t.Errorf("recorded (-want,+got):\n%s", diff)
			}
		})
	}
}

// What dashboards ask Prometheus for is PromQL, of metrics that there are, by labels
// that they have.
func TestDashboardsAskForWhatThereIs(t *testing.T) {
	known := registered(t)
	// Prometheus adds these.
	added := []string{"cluster", "instance", "job", "le", "pod", "__name__"}
	for _, file := range []string{"dashboard.json", "dashboard-namespace.json"} {
		content, err := os.ReadFile(filepath.Join(files, file))
		if err != nil {
			t.Fatal(err)
		}
		var board struct {
			Panels []struct {
				Title   string
				Targets []struct{ Expr string }
			}
		}
		if err := json.Unmarshal(content, &board); err != nil {
			t.Fatal(err)
		}
		asked := 0
		for _, panel := range board.Panels {
			for _, target := range panel.Targets {
				expr, err := parser.NewParser(parser.Options{}).ParseExpr(strings.ReplaceAll(target.Expr, "$namespace", ".*"))
				if err != nil {
					t.Errorf("%s, %s: %v", file, panel.Title, err)
					continue
				}
				for _, selector := range parser.ExtractSelectors(expr) {
					asked++
					name := ""
					for _, m := range selector {
						if m.Name == "__name__" {
							name = strings.TrimSuffix(m.Value, "_bucket")
						}
					}
					has, ok := known[name]
					if !ok {
						t.Errorf("%s, %s: nobody registers %q", file, panel.Title, name)
					}
					for _, m := range selector {
						if ok && !slices.Contains(has, m.Name) && !slices.Contains(added, m.Name) {
							t.Errorf("%s, %s: metric %s has no label %s, only %v", file, panel.Title, name, m.Name, has)
						}
					}
				}
			}
		}
		if asked == 0 {
			t.Errorf("%s asks for nothing", file)
		}
	}
}
