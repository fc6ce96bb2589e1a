package controlplane

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestOptionsValidate(t *testing.T) {
	cases := map[string]struct {
		options Options
		want    string
	}{
		"nothing": {},
		"everything": {options: Options{
			APIServers: 2, Nodes: 2048, Stages: "a", Scheduler: true, SchedulerConfig: "b",
			ControllerManager: true, ControllerManagerFlags: []string{"c"},
		}},
		"negative servers":       {options: Options{APIServers: -1}, want: "APIServers is -1"},
		"negative nodes":         {options: Options{Nodes: -1}, want: "Nodes is -1"},
		"too many nodes":         {options: Options{Nodes: 2049}, want: "use 0 to 2048"},
		"stages without kwok":    {options: Options{Stages: "a"}, want: "set Nodes"},
		"config, no scheduler":   {options: Options{SchedulerConfig: "a"}, want: "set Scheduler"},
		"flags, but no manager":  {options: Options{ControllerManagerFlags: []string{"a"}}, want: "set ControllerManager"},
		"servers are not limits": {options: Options{APIServers: 5}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.options.validate()
			if (err != nil) != (tc.want != "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want %q in it", err, tc.want)
			}
		})
	}
	if _, err := Start(t.Context(), Options{Nodes: -1}); err == nil {
		t.Error("Start took options that are not valid")
	}
}

func TestOptionsTools(t *testing.T) {
	cases := map[string]struct {
		options Options
		want    []string
	}{
		"nothing": {want: []string{Etcd, KubeAPIServer}},
		"nodes":   {options: Options{Nodes: 1}, want: []string{Etcd, KubeAPIServer, Kwok}},
		"everything": {
			options: Options{Nodes: 1, ControllerManager: true, Scheduler: true},
			want:    []string{Etcd, KubeAPIServer, Kwok, KubeControllerManager, KubeScheduler},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.options.tools()); diff != "" {
				t.Errorf("tools (-want,+got):\n%s", diff)
			}
		})
	}
}

func TestSchedulerConfig(t *testing.T) {
	connection := map[string]any{"kubeconfig": "/k", "qps": 200.0, "burst": 400.0}
	cases := map[string]struct {
		given string
		want  map[string]any
	}{
		"none": {want: map[string]any{
			"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
			"leaderElection": map[string]any{"leaderElect": false}, "clientConnection": connection,
		}},
		"some": {
			given: "leaderElection: {leaderElect: true}\nextenders: [{urlPrefix: u}]\nclientConnection: {kubeconfig: /other}",
			want: map[string]any{
				"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
				"leaderElection": map[string]any{"leaderElect": true}, "clientConnection": connection,
				"extenders": []any{map[string]any{"urlPrefix": "u"}},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out, err := schedulerConfig(tc.given, "/k")
			if err != nil {
				t.Fatal(err)
			}
			var got map[string]any
			if err := yaml.Unmarshal(out, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("configuration (-want,+got):\n%s", diff)
			}
		})
	}
	if _, err := schedulerConfig("a: b: c", "/k"); err == nil {
		t.Error("something that is not YAML was taken")
	}
}

func TestNodeNetworksDoNotOverlap(t *testing.T) {
	var networks []netip.Prefix
	addresses := map[string]bool{}
	for i := range maxNodes {
		n := node(i)
		network, err := netip.ParsePrefix(n.Spec.PodCIDR)
		if err != nil {
			t.Fatal(err)
		}
		if network != network.Masked() {
			t.Fatalf("network %s of node %d has host bits", network, i)
		}
		// Prefixes of one length overlap only if they are equal, and node i's
		// lies right above that of node i-1.
		if i > 0 && !networks[i-1].Addr().Less(network.Addr()) {
			t.Fatalf("network %s of node %d is not above %s", network, i, networks[i-1])
		}
		networks = append(networks, network)
		address, err := netip.ParseAddr(n.Status.Addresses[0].Address)
		if err != nil || addresses[address.String()] {
			t.Fatalf("address %q of node %d is not one or not unique: %v", n.Status.Addresses[0].Address, i, err)
		}
		addresses[address.String()] = true
	}
}
