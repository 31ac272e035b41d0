package maglev

import (
	"errors"
	"fmt"
	"net/netip"
)

// CanonicalKey is the key of the member at an address and port:
// "10.30.0.11:8080" or "[2001:db8::1]:80" (RFC 5952). An IPv4-mapped IPv6
// address gives the key of the IPv4 address.
//
// It refuses what cannot be a member: an address that is missing, unspecified,
// multicast or has a zone, and port 0.
func CanonicalKey(address netip.Addr, port uint16) (string, error) {
	address = address.Unmap()
	switch {
	case !address.IsValid():
		return "", errors.New("member without an address: give one, as in 10.30.0.11:8080")
	case address.Zone() != "":
		return "", fmt.Errorf("member address %.80q has a zone: use an address without one", address)
	case address.IsUnspecified() || address.IsMulticast():
		return "", fmt.Errorf("member address %s is not one host's: use a unicast address", address)
	case port == 0:
		return "", fmt.Errorf("member %s has port 0: use a port from 1 to 65535", address)
	}
	return netip.AddrPortFrom(address, port).String(), nil
}

// ParseKey takes a key apart. It refuses text that is not exactly what
// [CanonicalKey] would write, and says what the canonical form is.
func ParseKey(key string) (netip.AddrPort, error) {
	parsed, err := netip.ParseAddrPort(key)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("member key %.80q is not address:port, as in 10.30.0.11:8080 or [2001:db8::1]:80", key)
	}
	canonical, err := CanonicalKey(parsed.Addr(), parsed.Port())
	if err != nil {
		return netip.AddrPort{}, err
	}
	if canonical != key {
		return netip.AddrPort{}, fmt.Errorf("member key %.80q is not canonical: write %q", key, canonical)
	}
	return parsed, nil
}
