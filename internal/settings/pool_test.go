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
		"less than no time":    {Pool{MinReadySecondsKey: "-1", ProgressDeadlineKey: "0s"}, nothing},
		"longer than a number": {Pool{MinReadySecondsKey: "3000000000"}, nothing},
		"by name, misspelt":    {Pool{ClaimsKey: "by name"}, parsed{Deadline: DefaultDeadline, ByName: true}},
	} {
		t.Run(name, func(t *testing.T) {
			p := tc.pool
			got := parsed{p.Enforces(), p.Paused(), p.ByName(), p.RefusesRepair(), p.AdmitsAny(), p.Restarted(), p.Deadline(), p.MinReady(), p.InjectedPaths().String()}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Pool (-want,+got):\n%s", diff)
			}
		})
	}
}
