package chart

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"

	"github.com/vishvananda/netlink"
)

// addressTries is how many addresses are tried before one is found that nobody has.
const addressTries = 100

// addAddress gives this machine one more address, of the range that is kept for
// benchmarks (RFC 2544): EndpointSlices refuse loopback's. It needs the right to. An
// address that the machine has is another run's, or was left by one that was killed.
func addAddress() (address string, remove func() error, err error) {
	link, err := netlink.LinkByName("lo")
	if err != nil {
		return "", nil, fmt.Errorf("find the loopback interface: %w", err)
	}
	return unusedAddress(
		func() net.IP { return net.IPv4(198, 18, byte(rand.IntN(256)), byte(1+rand.IntN(254))) },
		func(addr *netlink.Addr) error { return netlink.AddrAdd(link, addr) },
		func(addr *netlink.Addr) error { return netlink.AddrDel(link, addr) })
}

func unusedAddress(draw func() net.IP, add, remove func(*netlink.Addr) error) (string, func() error, error) {
	for range addressTries {
		ip := draw()
		addr := &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: net.CIDRMask(32, 32)}}
		err := add(addr)
		if errors.Is(err, syscall.EEXIST) {
			continue
		}
		if err != nil {
			return "", nil, fmt.Errorf("add address %s: %w", ip, err)
		}
		return ip.String(), func() error { return remove(addr) }, nil
	}
	return "", nil, fmt.Errorf("add an address: this machine has each of %d that were tried (ip address show lo)", addressTries)
}
