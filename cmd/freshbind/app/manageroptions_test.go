package app

import (
	"strings"
	"testing"
	"time"
)

func TestWebhookAddress(t *testing.T) {
	const noPort = "is not a number from 1 to 65535"
	for address, want := range map[string]string{
		":9443": "", "127.0.0.1:1": "", "[::1]:65535": "",
		"127.0.0.1:0": `port "0" ` + noPort, ":65536": noPort, ":-1": noPort, ":https": noPort, "127.0.0.1": "want host:port",
	} {
		o := NewManagerOptions()
		o.WebhookAddress = address
		err := o.Complete()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "--webhook-bind-address: ")) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
	}
}

func TestTooLittleTime(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*ManagerOptions)
		want   string
	}{
		"for requests":  {func(o *ManagerOptions) { o.GracePeriod = -1 }, "--grace-period: -1ns is negative"},
		"for a release": {func(o *ManagerOptions) { o.ReleasePeriod = time.Second - 1 }, "--release-period: 999.999999ms is too short, at least 1s"},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewManagerOptions()
			tc.change(o)
			if err := o.Validate(); err == nil || err.Error() != tc.want {
				t.Errorf("Validate() = %v, want %q", err, tc.want)
			}
		})
	}
}
