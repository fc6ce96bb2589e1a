package app

import (
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/google/go-cmp/cmp"
)

func TestSentinelOptions(t *testing.T) {
	good := []string{"--gateway-service", "sandbox-system/sandbox-gateway"}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"service":         {args: good},
		"URL":             {args: []string{"--gateway-url", "http://10.0.0.1:7789/refresh"}},
		"no gateway":      {want: "--gateway-service, --gateway-url: say where the gateways are"},
		"no namespace":    {args: []string{"--gateway-service", "sandbox-gateway"}, want: `--gateway-service "sandbox-gateway": write it as namespace/name`},
		"no URL":          {args: []string{"--gateway-url", "10.0.0.1:7789"}, want: `--gateway-url "10.0.0.1:7789" is no http or https URL`},
		"port":            {args: append(good, "--refresh-port", "0"), want: "--refresh-port: 0 is no port"},
		"interval":        {args: append(good, "--interval", "1ms"), want: "--interval: 1ms is too short, use 1s or more"},
		"rate":            {args: append(good, "--rate", "0"), want: "--rate: 0 is not between 1 and 10000"},
		"timeout":         {args: append(good, "--timeout", "0s"), want: "--timeout: 0s is not positive"},
		"keep":            {args: append(good, "--keep", "1s"), want: "--keep: 1s is too short, use 1m or more"},
		"too many":        {args: append(good, "--max-deletions", "2000000"), want: "--max-deletions: 2000000 is not between 1 and 1000000"},
		"nothing to keep": {args: append(good, "--max-deletions", "0"), want: "--max-deletions: 0 is not between 1 and 1000000"},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewSentinelOptions()
			cmd := &cobra.Command{}
			o.AddFlags(cmd.Flags())
			if err := cmd.ParseFlags(tc.args); err != nil {
				t.Fatal(err)
			}
			err := o.Complete()
			if err == nil {
				err = o.Validate()
			}
			if diff := cmp.Diff(tc.want, message(err)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
	o := NewSentinelOptions()
	o.Services = []string{"a/b", "a/c"}
	if err := o.Complete(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]types.NamespacedName{{Namespace: "a", Name: "b"}, {Namespace: "a", Name: "c"}}, o.services); diff != "" {
		t.Errorf("Services (-want +got):\n%s", diff)
	}
}
