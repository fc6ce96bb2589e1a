package chart

import (
	"net"
	"slices"
	"syscall"
	"testing"

	"github.com/vishvananda/netlink"
)

func TestAnAddressThatTheMachineHasIsNotTaken(t *testing.T) {
	none := func(*netlink.Addr) error { return nil }
	for name, tc := range map[string]struct {
		// has are the last bytes of the addresses that the machine has, fails is what
		// adding another one yields.
		has   []byte
		fails error
		want  string
		err   string
	}{
		"none":          {want: "198.18.0.1"},
		"two":           {has: []byte{1, 2}, want: "198.18.0.3"},
		"all":           {fails: syscall.EEXIST, err: "add an address: this machine has each of 100 that were tried (ip address show lo)"},
		"not permitted": {has: []byte{1}, fails: syscall.EPERM, err: "add address 198.18.0.2: operation not permitted"},
	} {
		t.Run(name, func(t *testing.T) {
			var drawn byte
			draw := func() net.IP { drawn++; return net.IPv4(198, 18, 0, drawn) }
			add := func(a *netlink.Addr) error {
				if slices.Contains(tc.has, a.IP.To4()[3]) {
					return syscall.EEXIST
				}
				return tc.fails
			}
			got, _, err := unusedAddress(draw, add, none)
			if got != tc.want {
				t.Errorf("address %q, want %q", got, tc.want)
			}
			if said := text(err); said != tc.err {
				t.Errorf("error %q, want %q", said, tc.err)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
