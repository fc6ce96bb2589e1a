package alerts

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/promql/promqltest"
	"github.com/prometheus/prometheus/rules"
)

// step is how often series have a sample, and rules are evaluated.
const step = 30 * time.Second

// rulesFile is the chart's list of rules as a file of Prometheus.
func rulesFile(t *testing.T) string {
	t.Helper()
	list, err := os.ReadFile("../../charts/freshbind/files/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yaml")
	text := "groups:\n- name: freshbind\n  rules:\n  " + strings.ReplaceAll(string(list), "\n", "\n  ") + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// firing returns the alerts that fire after so long, each with its labels and with
// what it says.
func firing(t *testing.T, series []string, after time.Duration) []string {
	t.Helper()
	storage := promqltest.LoadedStorage(t, "load "+step.String()+"\n  "+strings.Join(series, "\n  ")+"\n")
	t.Cleanup(func() { _ = storage.Close() })
	engine := promqltest.NewTestEngine(t, false, 0, promqltest.DefaultMaxSamplesPerQuery)
	m := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(engine, storage), Queryable: storage, AppendableV2: storage,
		Context: t.Context(), Logger: slog.New(slog.DiscardHandler), Parser: parser.NewParser(parser.Options{}),
		NotifyFunc: func(context.Context, string, ...*rules.Alert) {},
	})
	groups, errs := m.LoadGroups(step, labels.EmptyLabels(), "", nil, false, rulesFile(t))
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var out []string
	for _, group := range groups {
		for at := time.Duration(0); at <= after; at += step {
			group.Eval(t.Context(), time.Unix(0, 0).Add(at))
		}
		for _, rule := range group.AlertingRules() {
			if rule.Health() != rules.HealthGood {
				t.Fatalf("%s: %v", rule.Name(), rule.LastError())
			}
			for _, alert := range rule.ActiveAlerts() {
				if alert.State == rules.StateFiring {
					out = append(out, describe(alert))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// describe returns an alert's name and labels, and its summary.
func describe(a *rules.Alert) string {
	set := a.Labels.Map()
	name := set[model.AlertNameLabel]
	delete(set, model.AlertNameLabel)
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(set)) {
		if k != "severity" {
			pairs = append(pairs, k+"="+set[k])
		}
	}
	return fmt.Sprintf("%s{%s} %s", name, strings.Join(pairs, ","), a.Annotations.Get("summary"))
}

// ours is a series of the program as cluster east's Prometheus has it, or another
// cluster's. Labels that a case does not care about have some value.
func ours(t *testing.T, name, values string, set ...string) string {
	t.Helper()
	has := map[string]string{"cluster": "east", "job": "freshbind", "instance": "10.0.0.1:8080", "pod": "freshbind-1"}
	known, ok := registered(t)[strings.TrimSuffix(name, "_bucket")]
	if !ok {
		t.Fatalf("the program registers no metric %s", name)
	}
	for _, label := range known {
		has[label] = "some"
	}
	for i := 0; i < len(set); i += 2 {
		_, target := has[set[i]]
		if !target && !(set[i] == "le" && strings.HasSuffix(name, "_bucket")) {
			t.Fatalf("metric %s has no label %s, only %v", name, set[i], known)
		}
		has[set[i]] = set[i+1]
	}
	var pairs []string
	for _, k := range slices.Sorted(maps.Keys(has)) {
		pairs = append(pairs, fmt.Sprintf("%s=%q", k, has[k]))
	}
	return name + "{" + strings.Join(pairs, ",") + "} " + values
}

func TestEachAlertFiresWhenItShallAndOnlyThen(t *testing.T) {
	s := func(name, values string, set ...string) string { return ours(t, name, values, set...) }
	const hour, minutes = time.Hour, 20 * time.Minute
	manager := []string{"component", "manager"}
	west := []string{"cluster", "west", "component", "manager"}
	rejected := func(values, errorType string) string {
		return s("apiserver_admission_webhook_rejection_count", values, "name", "bind.freshbind.dev", "error_type", errorType)
	}
	up := s("freshbind_build_info", "1x240", manager...)
	cases := map[string]struct {
		series []string
		after  time.Duration
		want   []string
	}{
		"all is well": {[]string{
			up, s("freshbind_self_test_success", "1x240"), s("freshbind_self_test_timestamp_seconds", "0+30x240"),
			s("leader_election_master_status", "1x240", "name", "freshbind"), s("leader_election_master_status", "0x240", "name", "freshbind", "pod", "freshbind-2"),
			s("freshbind_bind_verdicts_total", "0+9x240", "verdict", "allow"), s("freshbind_bind_verdicts_total", "0x240", "verdict", "error"),
			s("freshbind_verdict_duration_seconds_bucket", "0+9x240", "le", "0.1"), s("freshbind_verdict_duration_seconds_bucket", "0+9x240", "le", "+Inf"),
			s("freshbind_rollout_state", "1x240", "state", "Complete"), s("freshbind_rollout_state", "0x240", "state", "Failed"),
			s("freshbind_pool_members", "9x240", "state", "ready"), s("freshbind_pool_members", "0x240", "state", "unknown"),
			s("freshbind_serving_certificate_not_after_timestamp_seconds", "7776000x240"),
			s("freshbind_routes_view_age_seconds", "1x240"), s("freshbind_routes_view_max_age_seconds", "5x240"),
			s("freshbind_sentinel_round_seconds", "5x240"), s("freshbind_sentinel_messages_total", "0+9x240", "result", "sent"),
			s("freshbind_sentinel_messages_total", "0x240", "result", "failed"),
			rejected("0+9x240", "no_error"), s("apiserver_admission_webhook_fail_open_count", "0x240", "name", "audit-bind.freshbind.dev"),
		}, 2 * hour, nil},

		"nobody is scraped at all": {[]string{s("freshbind_build_info", "1x240", "component", "routes")}, minutes, []string{
			"FreshbindDown{component=manager} No replica of Freshbind is scraped.",
		}},
		"one cluster of two is gone": {[]string{up, s("freshbind_build_info", "1x10 _x230", west...)}, minutes, []string{
			"FreshbindDown{cluster=west} No replica of Freshbind is scraped.",
		}},
		"one has its routes only": {[]string{up, s("freshbind_build_info", "1x10 _x230", west...), s("freshbind_build_info", "1x240", "cluster", "west", "component", "routes")}, minutes, []string{
			"FreshbindDown{cluster=west} No replica of Freshbind is scraped.",
		}},
		"the only cluster is gone": {[]string{s("freshbind_build_info", "1x10 _x230", manager...)}, minutes, []string{
			"FreshbindDown{cluster=east} No replica of Freshbind is scraped.", "FreshbindDown{component=manager} No replica of Freshbind is scraped.",
		}},
		"a replica of two is gone": {[]string{up, s("freshbind_build_info", "1x10 _x230", "component", "manager", "pod", "freshbind-2")}, minutes, nil},
		"a restart":                {[]string{s("freshbind_build_info", "1x10 _x8 1x230", manager...)}, 8 * time.Minute, nil},
		"a new version":            {[]string{s("freshbind_build_info", "1x10 _x230", append(manager, "version", "v1")...), s("freshbind_build_info", "_x10 1x230", append(manager, "version", "v2")...)}, minutes, nil},

		"the webhooks are out of reach":  {[]string{up, rejected("0+1x240", "calling_webhook_error")}, minutes, []string{"FreshbindUnreachable{cluster=east,name=bind.freshbind.dev} The API server cannot complete calls of webhook bind.freshbind.dev."}},
		"they refuse":                    {[]string{up, rejected("0+1x240", "no_error")}, minutes, nil},
		"somebody else's are":            {[]string{up, s("apiserver_admission_webhook_rejection_count", "0+1x240", "name", "bind.example.com", "error_type", "calling_webhook_error")}, minutes, nil},
		"one call was lost, an hour ago": {[]string{up, rejected("0 1x239", "calling_webhook_error")}, hour, nil},
		"writes pass unasked":            {[]string{up, s("apiserver_admission_webhook_fail_open_count", "0+1x240", "name", "stamp.freshbind.dev")}, minutes, []string{"FreshbindFailedOpen{cluster=east,name=stamp.freshbind.dev} The API server lets writes pass without an answer from webhook stamp.freshbind.dev."}},
		"others' writes do":              {[]string{up, s("apiserver_admission_webhook_fail_open_count", "0+1x240", "name", "x.example.com")}, minutes, nil},

		"the self-test fails":      {[]string{up, s("freshbind_self_test_success", "0x240")}, minutes, []string{"FreshbindSelfTestFailing{cluster=east} A write that Freshbind has to refuse is not refused."}},
		"it fails in one replica":  {[]string{up, s("freshbind_self_test_success", "1x240"), s("freshbind_self_test_success", "0x240", "pod", "freshbind-2")}, minutes, []string{"FreshbindSelfTestFailing{cluster=east} A write that Freshbind has to refuse is not refused."}},
		"it failed for a moment":   {[]string{up, s("freshbind_self_test_success", "1x10 0x3 1x226")}, 7 * time.Minute, nil},
		"it hangs":                 {[]string{up, s("freshbind_self_test_timestamp_seconds", "0x240")}, hour, []string{"FreshbindSelfTestMissing{cluster=east} The self-test has not run for ten minutes."}},
		"it hangs in one replica":  {[]string{up, s("freshbind_self_test_timestamp_seconds", "0x240"), s("freshbind_self_test_timestamp_seconds", "0+30x240", "pod", "freshbind-2")}, hour, nil},
		"it hangs in one cluster":  {[]string{up, s("freshbind_self_test_timestamp_seconds", "0x240", "cluster", "west"), s("freshbind_self_test_timestamp_seconds", "0+30x240")}, hour, []string{"FreshbindSelfTestMissing{cluster=west} The self-test has not run for ten minutes."}},
		"nobody leads":             {[]string{up, s("leader_election_master_status", "0x240", "name", "freshbind")}, minutes, []string{"FreshbindNoLeader{cluster=east} No replica of Freshbind leads."}},
		"somebody else leads not":  {[]string{up, s("leader_election_master_status", "0x240", "name", "other")}, minutes, nil},
		"a change of leader":       {[]string{up, s("leader_election_master_status", "1x10 0x230", "name", "freshbind"), s("leader_election_master_status", "0x12 1x228", "name", "freshbind", "pod", "freshbind-2")}, minutes, nil},
		"nobody leads in the west": {[]string{up, s("leader_election_master_status", "1x240", "name", "freshbind"), s("leader_election_master_status", "0x240", "name", "freshbind", "cluster", "west")}, minutes, []string{"FreshbindNoLeader{cluster=west} No replica of Freshbind leads."}},

		"binds cannot be decided":   {[]string{up, s("freshbind_bind_verdicts_total", "0+9x240", "verdict", "error", "operation", "bind", "reason", "Undecided")}, minutes, []string{"FreshbindUndecided{cluster=east,operation=bind,reason=Undecided} Freshbind cannot decide on some writes (bind)."}},
		"they are refused":          {[]string{up, s("freshbind_bind_verdicts_total", "0+9x240", "verdict", "deny")}, minutes, nil},
		"verdicts are slow":         {[]string{up, s("freshbind_verdict_duration_seconds_bucket", "0+1x240", "le", "0.5", "operation", "bind"), s("freshbind_verdict_duration_seconds_bucket", "0+9x240", "le", "1", "operation", "bind"), s("freshbind_verdict_duration_seconds_bucket", "0+9x240", "le", "+Inf", "operation", "bind")}, hour, []string{"FreshbindSlow{cluster=east,operation=bind} Verdicts on bind take more than half a second."}},
		"few are":                   {[]string{up, s("freshbind_verdict_duration_seconds_bucket", "0+999x240", "le", "0.5", "operation", "bind"), s("freshbind_verdict_duration_seconds_bucket", "0+1000x240", "le", "1", "operation", "bind"), s("freshbind_verdict_duration_seconds_bucket", "0+1000x240", "le", "+Inf", "operation", "bind")}, hour, nil},
		"a rollout has failed":      {[]string{up, s("freshbind_rollout_state", "1x240", "state", "Failed", "namespace", "prod", "warmpool_name", "python")}, minutes, []string{"FreshbindRolloutFailed{cluster=east,instance=10.0.0.1:8080,job=freshbind,namespace=prod,pod=freshbind-1,state=Failed,warmpool_name=python} The rollout of pool prod/python has failed."}},
		"a rollout goes on":         {[]string{up, s("freshbind_rollout_state", "1x240", "state", "Progressing"), s("freshbind_rollout_state", "0x240", "state", "Failed")}, minutes, nil},
		"members equal no revision": {[]string{up, s("freshbind_pool_members", "2x240", "state", "unknown", "namespace", "prod", "warmpool_name", "python")}, hour, []string{"FreshbindUnknownMembers{cluster=east,instance=10.0.0.1:8080,job=freshbind,namespace=prod,pod=freshbind-1,state=unknown,warmpool_name=python} Pool prod/python has members that equal no revision."}},
		"members are stale":         {[]string{up, s("freshbind_pool_members", "2x240", "state", "stale"), s("freshbind_pool_members", "0x240", "state", "unknown")}, hour, nil},
		"the certificate runs out":  {[]string{up, s("freshbind_serving_certificate_not_after_timestamp_seconds", "600000x240")}, 2 * hour, []string{"FreshbindCertificateExpiring{cluster=east} Freshbind's serving certificate expires within a week."}},
		"there is none yet":         {[]string{up, s("freshbind_serving_certificate_not_after_timestamp_seconds", "0x240")}, 2 * hour, nil},
		"routes are old":            {[]string{up, s("freshbind_routes_view_age_seconds", "60x240"), s("freshbind_routes_view_max_age_seconds", "5x240")}, minutes, []string{"FreshbindRoutesViewTooOld{cluster=east,instance=10.0.0.1:8080,job=freshbind,pod=freshbind-1} A replica that serves routes cannot prove that its view is recent enough."}},
		"routes are not complete":   {[]string{up, s("freshbind_routes_view_age_seconds", strings.Repeat("+Inf ", 60)), s("freshbind_routes_view_max_age_seconds", "5x240")}, minutes, []string{"FreshbindRoutesViewTooOld{cluster=east,instance=10.0.0.1:8080,job=freshbind,pod=freshbind-1} A replica that serves routes cannot prove that its view is recent enough."}},
		"routes are young":          {[]string{up, s("freshbind_routes_view_age_seconds", "4x240"), s("freshbind_routes_view_max_age_seconds", "5x240")}, minutes, nil},
		"the sentinel is slow":      {[]string{up, s("freshbind_sentinel_round_seconds", "90x240")}, minutes, []string{"FreshbindSentinelBehind{cluster=east,instance=10.0.0.1:8080,job=freshbind,pod=freshbind-1} A gateway is not told in time which sandboxes were deleted."}},
		"a gateway cannot be told":  {[]string{up, s("freshbind_sentinel_messages_total", "0+1x240", "result", "failed"), s("freshbind_sentinel_round_seconds", "5x240")}, minutes, []string{"FreshbindSentinelBehind{cluster=east,instance=10.0.0.1:8080,job=freshbind,pod=freshbind-1,result=failed} A gateway is not told in time which sandboxes were deleted."}},
		"a gateway could not, once": {[]string{up, s("freshbind_sentinel_messages_total", "0 1x239", "result", "failed"), s("freshbind_sentinel_round_seconds", "5x240")}, hour, nil},
		"a gateway refuses, or not": {[]string{up, s("freshbind_sentinel_messages_total", "0+1x240", "result", "refused"), s("freshbind_sentinel_round_seconds", "5x240")}, minutes, nil},
	}
	fired := map[string]bool{}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, firing(t, tc.series, tc.after)); diff != "" {
				t.Errorf("firing alerts (-want,+got):\n%s", diff)
			}
		})
		for _, w := range tc.want {
			alert, _, _ := strings.Cut(w, "{")
			fired[alert] = true
		}
	}
	for _, alert := range alertNames(t) {
		if !fired[alert] {
			t.Errorf("no case has alert %s fire", alert)
		}
	}
}
