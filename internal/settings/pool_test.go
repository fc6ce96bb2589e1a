package settings

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMaxUnavailable(t *testing.T) {
	cases := map[string]struct {
		value    string
		replicas int
		want     int
	}{
		"number":             {"3", 20, 3},
		"percent":            {"25%", 20, 5},
		"rounded down":       {"25%", 7, 1},
		"never nothing":      {"25%", 3, 1},
		"default":            {"", 20, 5},
		"unreadable":         {"many", 20, 5},
		"negative":           {"-1", 20, 5},
		"more than there is": {"100%", 4, 4},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := (Pool{MaxUnavailableKey: tc.value}).MaxUnavailable(tc.replicas); got != tc.want {
				t.Errorf("MaxUnavailable(%q, %d) = %d, want %d", tc.value, tc.replicas, got, tc.want)
			}
		})
	}
}

func TestPool(t *testing.T) {
	type parsed struct {
		Enforces, Paused, ByName, RefusesRepair, AdmitsAny bool
		Restarted                                          time.Time
		Deadline, MinReady                                 time.Duration
		InjectedPaths                                      string
	}
	now := time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)
	nothing := parsed{Deadline: DefaultDeadline}
	for name, tc := range map[string]struct {
		pool Pool
		want parsed
	}{
		"nothing": {nil, nothing},
		"everything": {
			Pool{
				EnforcementKey: "enforce", PausedKey: "true", ClaimsKey: "by-name", RepairKey: "false", AdmitKey: "any",
				RestartedAtKey: "2026-01-31T23:59:00+01:00", ProgressDeadlineKey: "90s", MinReadySecondsKey: "5", InjectedPathsKey: "service",
			},
			parsed{
				Enforces: true, Paused: true, ByName: true, RefusesRepair: true, AdmitsAny: true,
				Restarted: time.Date(2026, 1, 31, 22, 59, 0, 0, time.UTC), Deadline: 90 * time.Second, MinReady: 5 * time.Second, InjectedPaths: "service",
			},
		},
		"nothing that can be read": {
			Pool{
				EnforcementKey: "Enforce", PausedKey: "yes", RepairKey: "no", AdmitKey: "all", RestartedAtKey: "yesterday",
				ProgressDeadlineKey: "-1s", MinReadySecondsKey: "5s", InjectedPathsKey: "spec",
			},
			nothing,
		},
		"restarted now":        {Pool{RestartedAtKey: "2026-02-01T12:00:00Z"}, parsed{Deadline: DefaultDeadline, Restarted: now}},
		"restarted later":      {Pool{RestartedAtKey: "2026-02-01T12:00:01Z"}, nothing},
		"less than no time":    {Pool{MinReadySecondsKey: "-1", ProgressDeadlineKey: "0s"}, nothing},
		"longer than a number": {Pool{MinReadySecondsKey: "3000000000"}, nothing},
		"by name, misspelt":    {Pool{ClaimsKey: "by name"}, parsed{Deadline: DefaultDeadline, ByName: true}},
	} {
		t.Run(name, func(t *testing.T) {
			p := tc.pool
			got := parsed{p.Enforces(), p.Paused(), p.ByName(), p.RefusesRepair(), p.AdmitsAny(), p.Restarted(now), p.Deadline(), p.MinReady(), p.InjectedPaths().String()}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Pool (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestRestartsIn(t *testing.T) {
	now := time.Date(2026, 2, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		says string
		want time.Duration
	}{
		"nothing":      {"", 0},
		"no time":      {"tomorrow", 0},
		"in an hour":   {"2026-02-01T13:00:00Z", time.Hour},
		"now":          {"2026-02-01T12:00:00Z", 0},
		"an hour ago":  {"2026-02-01T11:00:00Z", 0},
		"in two zones": {"2026-02-01T14:00:00+01:00", time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (Pool{RestartedAtKey: tc.says}).RestartsIn(now); got != tc.want {
				t.Errorf("RestartsIn = %s, want %s", got, tc.want)
			}
		})
	}
}
