package main

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/freshbind/freshbind/internal/checker"
	"github.com/freshbind/freshbind/test/scenario"
)

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestParseOptions(t *testing.T) {
	all := []string{"v1.0.3", "v0.5.6", "v0.5.5", "v0.4.6"}
	cases := map[string]struct {
		env  map[string]string
		want options
		err  string
	}{
		"nothing set": {want: options{versions: all, lags: []time.Duration{1500 * time.Millisecond, 0}, rounds: 4}},
		"narrowed": {
			env:  map[string]string{envVersions: "v0.5.5,v0.4.6", envLags: "0,250ms", envRounds: "1"},
			want: options{versions: []string{"v0.5.5", "v0.4.6"}, lags: []time.Duration{0, 250 * time.Millisecond}, rounds: 1},
		},
		"unknown release": {
			env: map[string]string{envVersions: "v0.5.5,v9"},
			err: `UPSTREAM_VERSIONS: "v9" is not a release that is here: use v1.0.3, v0.5.6, v0.5.5, v0.4.6, separated by commas`,
		},
		"a bad lag": {env: map[string]string{envLags: "0,"}, err: `UPSTREAM_LAGS: "" is neither a duration (1.5s) nor a number of seconds (1.5)`},
		"no rounds": {env: map[string]string{envRounds: "-1"}, err: `UPSTREAM_ROUNDS: "-1" is not a whole number of 1 or more`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parseOptions(func(name string) string { return tc.env[name] })
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(options{})); diff != "" || message(err) != tc.err {
				t.Errorf("parseOptions() error %q, want %q (-want,+got):\n%s", message(err), tc.err, diff)
			}
		})
	}
}

func goodResult() result {
	return result{version: "v1.0.3", lag: 1500 * time.Millisecond, made: 50, Summary: checker.Summary{
		Claims: 50, Ready: 50, Warm: 20, Cold: 30, ReadyP50: checker.Seconds(2 * time.Second),
		Classes: map[checker.Class]int{checker.Fresh: 50},
	}}
}

func TestResult(t *testing.T) {
	cases := map[string]struct {
		change func(*result)
		want   []string
		line   string
	}{
		"good": {func(*result) {}, nil, "upstream: version=v1.0.3 lag=1.5s stale=0 claims=50 ready=50 ghosts=0"},
		"a stale bind, not in time": {
			func(r *result) {
				r.lag, r.Classes, r.late = 0, map[checker.Class]int{checker.Stale: 1}, []error{errors.New("too late")}
			},
			[]string{"too late", "1 stale bind"}, "upstream: version=v1.0.3 lag=0s stale=1 claims=50 ready=50 ghosts=0",
		},
		"a ghost, not ready": {
			func(r *result) { r.Ready, r.ghosts = 49, 2 },
			[]string{"1 of 50 claims did not become ready", "2 ghosts"},
			"upstream: version=v1.0.3 lag=1.5s stale=0 claims=50 ready=49 ghosts=2",
		},
		"events lost, not judged": {
			func(r *result) { r.lost, r.Classes = 1, map[checker.Class]int{checker.Unjudged: 1} },
			[]string{"the recording lost events 1 times: what it shows proves nothing", "1 bind could not be judged"},
			"upstream: version=v1.0.3 lag=1.5s stale=0 claims=50 ready=50 ghosts=0",
		},
		"not recorded": {
			func(r *result) { r.Claims, r.Ready = 0, 0 },
			[]string{"50 claims were made and 0 recorded", "50 of 50 claims did not become ready"},
			"upstream: version=v1.0.3 lag=1.5s stale=0 claims=50 ready=0 ghosts=0",
		},
		"nothing done": {
			func(r *result) { r.made, r.Summary = 0, checker.Summary{} },
			[]string{"no claim was made"}, "upstream: version=v1.0.3 lag=1.5s stale=0 claims=0 ready=0 ghosts=0",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := goodResult()
			tc.change(&r)
			if diff := cmp.Diff(tc.want, r.faults()); diff != "" || r.good() != (len(tc.want) == 0) {
				t.Errorf("faults(), good() = %v (-want,+got):\n%s", r.good(), diff)
			}
			if diff := cmp.Diff(tc.line, r.line()); diff != "" {
				t.Errorf("line() (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	r := goodResult()
	r.Classes[checker.Raced] = 1
	r.late = []error{errors.New("two\nlines")}
	want := "v1.0.3, templates 1.5s late: 50 claims, 20 warm, 30 cold, ready after 2.00 s (p50); " +
		"refused 3 binds, 1 cold start, 0 births; 0 ghosts; took 14 s\n" +
		"  besides: 1 bind raced with an update\n  fault: two\n  lines"
	got := r.progress(scenario.Refused{Binds: 3, ColdStarts: 1}, 14*time.Second)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("progress() (-want,+got):\n%s", diff)
	}
}
