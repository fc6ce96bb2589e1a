package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestParseOptions(t *testing.T) {
	byDefault := options{lag: 1500 * time.Millisecond, lagOn: []string{"templates"}, rounds: 3, upstream: "v1.0.3"}
	with := func(change func(*options)) options {
		o := byDefault
		change(&o)
		return o
	}
	cases := map[string]struct {
		env  map[string]string
		want options
		err  string
	}{
		"nothing set": {want: byDefault},
		"all of the demo's own cluster": {
			env: map[string]string{envLag: "3", envLagOn: "sandboxes,templates", envRounds: "2", envUpstream: "v0.5.5", envKeep: "1", envImages: "a:1,a:2"},
			want: options{
				lag: 3 * time.Second, lagOn: []string{"templates", "sandboxes"}, rounds: 2, upstream: "v0.5.5", keep: true, images: []string{"a:1", "a:2"},
			},
		},
		"no lag":           {env: map[string]string{envLag: "0"}, want: with(func(o *options) { o.lag = 0 })},
		"explicitly not":   {env: map[string]string{envKeep: "0"}, want: byDefault},
		"a bad lag":        {env: map[string]string{envLag: "soon"}, err: `DEMO_LAG: "soon" is neither a duration (1.5s) nor a number of seconds (1.5)`},
		"late claims":      {env: map[string]string{envLagOn: "pools,claims"}, err: `DEMO_LAG_ON: "pools,claims" is not a list of some of templates, pools, sandboxes, each once, separated by commas`},
		"late twice":       {env: map[string]string{envLagOn: "pools,pools"}, err: `DEMO_LAG_ON: "pools,pools" is not a list of some of templates, pools, sandboxes, each once, separated by commas`},
		"no rounds":        {env: map[string]string{envRounds: "0"}, err: `DEMO_ROUNDS: "0" is not a whole number of 1 or more`},
		"unknown release":  {env: map[string]string{envUpstream: "v9"}, err: `DEMO_UPSTREAM: "v9" is not a release that is here: use one of v1.0.3, v0.5.6, v0.5.5, v0.4.6`},
		"keep what":        {env: map[string]string{envKeep: "maybe"}, err: `DEMO_KEEP: "maybe" is neither 1 nor 0`},
		"one image":        {env: map[string]string{envImages: "a:1"}, err: `DEMO_IMAGES: "a:1" is not a list of two or more images, separated by commas`},
		"the same image":   {env: map[string]string{envImages: "a:1,b:1,a:1"}, err: "DEMO_IMAGES: a:1 follows itself: an update has to change the image"},
		"host, no context": {env: map[string]string{envWebhookHost: "10.0.0.1"}, err: "DEMO_WEBHOOK_HOST: only with KUBE_CONTEXT: the demo's own cluster calls 127.0.0.1"},
		"a cluster of the user's": {
			env:  map[string]string{envContext: "kind-x", envWebhookHost: "10.0.0.1", envRounds: "1"},
			want: options{rounds: 1, context: "kind-x", webhookHost: "10.0.0.1", images: []string{"nginx:1.28-alpine", "nginx:1.29-alpine"}},
		},
		"a lag there":     {env: map[string]string{envContext: "kind-x", envLag: "1"}, err: "DEMO_LAG: not with KUBE_CONTEXT: that cluster's own agent-sandbox is used, as it is; unset one of them"},
		"late there":      {env: map[string]string{envContext: "kind-x", envLagOn: "pools"}, err: "DEMO_LAG_ON: not with KUBE_CONTEXT: that cluster's own agent-sandbox is used, as it is; unset one of them"},
		"late kruise":     {env: map[string]string{envPlatform: "kruise", envLagOn: "pools"}, err: "DEMO_LAG_ON: not with DEMO_PLATFORM=kruise, which plays that system on the demo's own cluster; unset one of them"},
		"a release there": {env: map[string]string{envContext: "kind-x", envUpstream: "v1.0.3"}, err: "DEMO_UPSTREAM: not with KUBE_CONTEXT: that cluster's own agent-sandbox is used, as it is; unset one of them"},
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

func TestDelays(t *testing.T) {
	got := options{lag: time.Second, lagOn: []string{"templates", "pools", "sandboxes"}}.delays()
	want := map[schema.GroupResource]time.Duration{
		{Group: "extensions.agents.x-k8s.io", Resource: "sandboxtemplates"}: time.Second,
		{Group: "extensions.agents.x-k8s.io", Resource: "sandboxwarmpools"}: time.Second,
		{Group: "agents.x-k8s.io", Resource: "sandboxes"}:                   time.Second,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("delays() (-want,+got):\n%s", diff)
	}
	if got := (options{lag: time.Second, lagOn: []string{"pools"}}).delays(); len(got) != 1 {
		t.Errorf("delays() of one = %v", got)
	}
}

func TestSettling(t *testing.T) {
	cases := map[string]struct {
		options options
		want    time.Duration
	}{
		"sandboxes are late":     {options{lag: 3 * time.Second, lagOn: []string{"pools", "sandboxes"}}, 4 * time.Second},
		"sandboxes are not late": {options{lag: 3 * time.Second, lagOn: []string{"templates", "pools"}}, 0},
		"no lag":                 {options{lagOn: []string{"sandboxes"}}, 0},
		"another's cluster":      {options{}, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := tc.options.settling(); got != tc.want {
				t.Errorf("settling() = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestImage(t *testing.T) {
	cases := map[string]struct {
		options options
		want    []string
	}{
		"made up":     {options{}, []string{"sandbox:v1", "sandbox:v2", "sandbox:v3"}},
		"two in turn": {options{images: []string{"a", "b"}}, []string{"a", "b", "a"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for i := range tc.want {
				got = append(got, tc.options.image(i))
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("image() (-want,+got):\n%s", diff)
			}
		})
	}
}
