package chart

import (
	"fmt"
	"math/rand/v2"
	"net"

	"github.com/vishvananda/netlink"
)

// addAddress gives this machine one more address, of the range that is kept for
// benchmarks (RFC 2544): EndpointSlices refuse loopback's. It needs the right to.
func addAddress() (address string, remove func() error, err error) {
	link, err := netlink.LinkByName("lo")
	if err != nil {
		return "", nil, fmt.Errorf("find the loopback interface: %w", err)
	}
	ip := net.IPv4(198, 18, byte(rand.IntN(256)), byte(1+rand.IntN(254)))
	addr := &netlink.Addr{IPNet: &net.IPNet{IP: ip, Mask: net.CIDRMask(32, 32)}}
	if err := netlink.AddrAdd(link, addr); err != nil {
		return "", nil, fmt.Errorf("add address %s: %w", ip, err)
	}
	return ip.String(), func() error { return netlink.AddrDel(link, addr) }, nil
}
