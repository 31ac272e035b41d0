package config

import (
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// The shape stage for values that name something outside of the file: addresses,
// sockets, interfaces.

// maxSocket is the longest path of a unix socket. (sun_path, unix(7), less the
// final zero)
const maxSocket = 107

// SplitEndpoint takes an endpoint of a Config apart, into what net.Dial and
// net.Listen want: unix:/run/x.sock is "unix" and "/run/x.sock", tcp:HOST:PORT
// is "tcp" and "HOST:PORT". Both are empty if it is neither.
func SplitEndpoint(endpoint string) (network, address string) {
	network, address, _ = strings.Cut(endpoint, ":")
	if network != "unix" && network != "tcp" {
		return "", ""
	}
	return network, address
}

// endpoint reads unix:PATH or tcp:HOST:PORT into dst.
func (d *document) endpoint(e entry, dst *string) {
	s, ok := d.text(e)
	if !ok {
		return
	}
	network, address := SplitEndpoint(s)
	problem := "write unix:PATH or tcp:HOST:PORT"
	switch network {
	case "unix":
		problem = socketProblem(address)
	case "tcp":
		problem = hostPortProblem(address)
		if strings.HasPrefix(address, ":") {
			problem = "write tcp:HOST:PORT"
		}
	}
	if problem != "" {
		d.fail(e.path, "%s: %s", quote(s), problem)
		return
	}
	*dst = s
}

// socket reads the path of a unix socket into dst.
func (d *document) socket(e entry, dst *string) {
	s, ok := d.text(e)
	if !ok {
		return
	}
	if problem := socketProblem(s); problem != "" {
		d.fail(e.path, "%s: %s", quote(s), problem)
		return
	}
	*dst = s
}

func socketProblem(path string) string {
	switch {
	case !isCleanPath(path):
		return "a socket has an absolute path without `..`, spaces or control characters"
	case len(path) > maxSocket:
		return "the path of a socket is at most " + strconv.Itoa(maxSocket) + " bytes long"
	}
	return ""
}

// directory reads an absolute path into dst.
func (d *document) directory(e entry, dst *string) {
	s, ok := d.text(e)
	if !ok {
		return
	}
	switch s := strings.TrimRight(s, "/"); {
	case !isCleanPath(s):
		d.fail(e.path, "%s: a directory has an absolute path without `..`, spaces or control characters", quote(s))
	case len(s) > maxRunDir:
		d.fail(e.path, "is %d bytes long; at most %d leave room for the names of sockets", len(s), maxRunDir)
	default:
		*dst = s
	}
}

func isCleanPath(s string) bool {
	return strings.HasPrefix(s, "/") && len(s) > 1 && filepath.Clean(s) == s && isPrintable(s)
}

// isPrintable tells whether s holds ASCII letters, digits and punctuation only.
func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

// hostPort reads HOST:PORT into dst; an empty text stays empty.
func (d *document) hostPort(e entry, dst *string) {
	s, ok := d.text(e)
	if !ok {
		return
	}
	if s != "" {
		if problem := hostPortProblem(s); problem != "" {
			d.fail(e.path, "%s: %s", quote(s), problem)
			return
		}
	}
	*dst = s
}

func hostPortProblem(s string) string {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return "write HOST:PORT"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
		return "a port is a number, 1 to 65535"
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && !isHostName(host) {
		return "the host must be an address or a host name"
	}
	return ""
}

func isHostName(s string) bool {
	if len(s) > 253 {
		return false
	}
	letters := false
	for _, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
			letters = true
		case r >= '0' && r <= '9', r == '-', r == '.':
		default:
			return false
		}
	}
	return letters // else it is an address gone wrong
}

// bridge reads the name of a bridge, which is that of an interface as well.
func (d *document) bridge(e entry, dst *string) {
	s, ok := d.text(e)
	if !ok {
		return
	}
	if !isName(s) || len(s) > maxBridge {
		d.fail(e.path, "%s: a bridge's name is 1 to %d letters, digits, dots, underscores and hyphens, and begins with a letter or digit",
			quote(s), maxBridge)
		return
	}
	*dst = s
}

// word reads the name of a check or pool into dst.
func (d *document) word(e entry, dst *string) {
	if s, ok := d.text(e); ok {
		*dst = s
	}
}

// words reads a list of names; those that are wrong are empty.
func (d *document) words(e entry) []string {
	var names []string
	for _, x := range d.list(e) {
		var name string
		d.word(x, &name)
		names = append(names, name)
	}
	return names
}

// mac reads a unicast Ethernet address into dst.
func (d *document) mac(e entry, dst *MAC) {
	s, ok := d.text(e)
	if !ok {
		return
	}
	hw, err := net.ParseMAC(s)
	switch {
	case err != nil || len(hw) != len(dst):
		d.fail(e.path, "%s is not a MAC address, such as 02:00:5e:00:01:02", quote(s))
	case MAC(hw) == MAC{}:
		d.fail(e.path, "the zero address is nobody's: choose another, or remove the key for a derived one")
	case hw[0]&1 != 0:
		d.fail(e.path, "%s is a group address (the lowest bit of its first byte is set): a unicast address is needed", MAC(hw))
	default:
		*dst = MAC(hw)
	}
}

// addr reads an address of one host into dst.
func (d *document) addr(e entry, dst *netip.Addr) {
	s, ok := d.text(e)
	if !ok {
		return
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		if _, err := netip.ParseAddrPort(s); err == nil {
			d.fail(e.path, "%s: an address without port is expected here", quote(s))
			return
		}
		d.fail(e.path, "%s is not an address, such as 10.20.0.100", quote(s))
		return
	}
	if problem := HostProblem(a); problem != "" {
		d.fail(e.path, "%s %s", clip(s), problem)
		return
	}
	*dst = a
}

// addrPort reads ADDRESS:PORT into dst.
func (d *document) addrPort(e entry, dst *netip.AddrPort) {
	s, ok := d.text(e)
	if !ok {
		return
	}
	ap, err := netip.ParseAddrPort(s)
	switch {
	case err != nil && strings.Count(s, ":") > 1 && !strings.HasPrefix(s, "["):
		d.fail(e.path, "%s is not ADDRESS:PORT: an IPv6 address has brackets there, as in \"[2001:db8::11]:8080\"", quote(s))
	case err != nil:
		d.fail(e.path, "%s is not ADDRESS:PORT, such as 10.30.0.11:8080", quote(s))
	case HostProblem(ap.Addr()) != "":
		d.fail(e.path, "%s: %s %s", clip(s), ap.Addr(), HostProblem(ap.Addr()))
	case ap.Port() == 0:
		d.fail(e.path, "%s: port 0 is out of range: 1 to 65535", clip(s))
	default:
		*dst = ap
	}
}

// gateway reads ADDRESS/LENGTH. The result is the zero Prefix if wrong.
func (d *document) gateway(e entry) netip.Prefix {
	s, ok := d.text(e)
	if !ok {
		return netip.Prefix{}
	}
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		d.fail(e.path, "%s is not ADDRESS/LENGTH, such as 10.30.0.1/24", quote(s))
	case HostProblem(p.Addr()) != "":
		d.fail(e.path, "%s: %s %s", clip(s), p.Addr(), HostProblem(p.Addr()))
	case p.Bits() < 1 || p.Bits() >= p.Addr().BitLen():
		d.fail(e.path, "%s: the length of the network is 1 to %d", clip(s), p.Addr().BitLen()-1)
	case p.Bits() < p.Addr().BitLen()-1 && p.Addr() == p.Masked().Addr():
		d.fail(e.path, "%s is the network itself: write the gateway's own address in it, such as %s/%d", clip(s), p.Addr().Next(), p.Bits())
	case p.Bits() < 31 && p.Addr().Is4() && !p.Contains(p.Addr().Next()):
		d.fail(e.path, "%s is the broadcast address of its network: write the gateway's own address in it", clip(s))
	default:
		return p
	}
	return netip.Prefix{}
}

// HostProblem says why an address cannot be that of one host on a network; it is
// empty if it can.
func HostProblem(a netip.Addr) string {
	switch {
	case !a.IsValid():
		return "is no address"
	case a.Zone() != "":
		return "has a zone: write the address alone"
	case a.Is4In6():
		return "is an IPv4 address in IPv6 form: write it as " + a.Unmap().String()
	case a.IsLinkLocalUnicast() && a.Is6():
		return "is a link-local address, which only its own link knows: a global or unique local one is needed"
	case a.IsUnspecified():
		return "is the unspecified address: a host's own is needed"
	case a.IsLoopback():
		return "is a loopback address, which no bridge carries"
	case a.IsMulticast():
		return "is a multicast address: a unicast one is needed"
	case a == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
		return "is the broadcast address: a unicast one is needed"
	}
	return ""
}

// requestTarget reads the path of an HTTP request into dst. (RFC 9112, 3.2.1)
func (d *document) requestTarget(e entry, dst *string) {
	s, ok := d.text(e)
	if !ok {
		return
	}
	if !strings.HasPrefix(s, "/") || !isPrintable(s) || len(s) > 1024 {
		d.fail(e.path, "%s: the path of a request begins with / and is at most 1024 ASCII characters, without spaces", quote(s))
		return
	}
	*dst = s
}

// hostHeader reads a Host header into dst: a name or address, perhaps a port.
// (RFC 9110, 7.2)
func (d *document) hostHeader(e entry, dst *string) {
	s, ok := d.text(e)
	if !ok {
		return
	}
	_, err := netip.ParseAddr(s)
	if err != nil && !isHostName(s) && (hostPortProblem(s) != "" || strings.HasPrefix(s, ":")) {
		d.fail(e.path, "%s is not a host name or address, perhaps with a port", quote(s))
		return
	}
	*dst = s
}
