package app

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"sigs.k8s.io/yaml"

	"github.com/freshbind/freshbind/internal/config"
	"github.com/freshbind/freshbind/internal/manager"
	"github.com/freshbind/freshbind/scheduler"
)

func TestScheduling(t *testing.T) {
	cases := map[string]struct {
		change func(*manager.Scheduling)
		// want are words of the error; none for no error.
		want []string
	}{
		"as it comes":       {change: func(*manager.Scheduling) {}},
		"extender":          {change: func(o *manager.Scheduling) { o.Mode = config.SchedulingExtender }},
		"a typing error":    {change: func(o *manager.Scheduling) { o.Mode = "extender" }, want: []string{"--scheduling", "Extender"}},
		"the cluster's own": {change: func(o *manager.Scheduling) { o.SchedulerName = "default-scheduler" }, want: []string{"--scheduler-name", "another name"}},
		"no name":           {change: func(o *manager.Scheduling) { o.SchedulerName = "A b" }, want: []string{"--scheduler-name"}},
		"a weight":          {change: func(o *manager.Scheduling) { o.Weights.Node = 101 }, want: []string{"--scheduling-weight-node", "0 to 100"}},
		"another":           {change: func(o *manager.Scheduling) { o.Weights.Image = -1 }, want: []string{"--scheduling-weight-image", "0 to 100"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := defaultScheduling()
			tc.change(&o)
			err := validateScheduling(o)
			if (err != nil) != (len(tc.want) > 0) {
				t.Fatalf("error %v, want one with %v", err, tc.want)
			}
			for _, word := range tc.want {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("error %q does not say %q", err, word)
				}
			}
		})
	}
}

func schedulerConfig(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	cmd := newSchedulerConfigCommand(genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	cmd.SetArgs(args)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.Execute()
	return out.String(), err
}

func TestSchedulerConfig(t *testing.T) {
	out, err := schedulerConfig(t, "--url=https://10.0.0.1:443", "--ca-file=/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	var stanza map[string][]configv1.Extender
	if err := yaml.UnmarshalStrict([]byte(out), &stanza); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want := scheduler.Config{URL: "https://10.0.0.1:443", CAFile: "/ca.crt", Timeout: 1e9, Weight: 10, Ignorable: true}.Stanza()
	if diff := cmp.Diff(want["extenders"], any(stanza["extenders"])); diff != "" || len(stanza) != 1 {
		t.Errorf("stanza (-want,+got):\n%s\n%s", diff, out)
	}
	if !strings.Contains(out, "ignorable: true") {
		t.Errorf("it is not stated whether the extender is ignorable:\n%s", out)
	}
	second, err := schedulerConfig(t, "--second-scheduler", "--url=https://freshbind.freshbind-system.svc", "--ca-file=/ca.crt", "--ignorable=false", "--scheduler-name=mine")
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"kind: KubeSchedulerConfiguration", "schedulerName: mine", "resourceName: mine"} {
		if !strings.Contains(second, words) {
			t.Errorf("second scheduler: no %q in\n%s", words, second)
		}
	}
}

func TestSchedulerConfigRefusesWhatCannotWork(t *testing.T) {
	good := []string{"--url=https://10.0.0.1:443", "--ca-file=/ca.crt"}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no url":              {[]string{"--ca-file=/ca.crt"}, "--url"},
		"not over TLS":        {append(good, "--url=http://10.0.0.1"), "--url"},
		"with a path":         {append(good, "--url=https://10.0.0.1/x"), "--url"},
		"no CA":               {[]string{"--url=https://10.0.0.1:443"}, "--ca-file"},
		"no time":             {append(good, "--timeout=0s"), "--timeout"},
		"no weight":           {append(good, "--weight=0"), "--weight"},
		"all pods would wait": {append(good, "--ignorable=false"), "--second-scheduler"},
		"the cluster's own":   {append(good, "--second-scheduler", "--scheduler-name=default-scheduler"), "--scheduler-name"},
	} {
		t.Run(name, func(t *testing.T) {
			if out, err := schedulerConfig(t, tc.args...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("printed %q, error %v, want one that names %s", out, err, tc.want)
			}
		})
	}
}
