package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Members that DNS knows.

// DNS says how the addresses of names are found.
type DNS struct {
	// Servers are asked one after the other; none means those of
	// /etc/resolv.conf.
	Servers []netip.AddrPort
	// MinTTL, 1s to 1h, is how long an answer holds at least.
	MinTTL time.Duration
}

// maxServers is how many DNS servers a file may name.
const maxServers = 8

// Name is a member of which the file says the name: every address that DNS has
// of Host, with Port, is a member.
type Name struct {
	Member        // without address; its name is the first part of the members'
	Host   string // complete, in lower case, without the final dot
	Port   uint16
}

// String is HOST:PORT, as in the file.
func (n Name) String() string { return fmt.Sprintf("%s:%d", n.Host, n.Port) }

// At is the member at one of the name's addresses.
func (n *Name) At(addr netip.Addr) Member {
	m := n.Member
	m.Name, m.Address = n.Name+"/"+addr.String(), netip.AddrPortFrom(addr, n.Port)
	return m
}

// entries are the pool's members and its names, as the file has them.
func (p *Pool) entries() []Member {
	entries := slices.Clone(p.Members)
	for i := range p.Names {
		entries = append(entries, p.Names[i].Member)
	}
	return entries
}

func (d *document) dns(e entry) DNS {
	f := d.mapping(e, "servers", "min_ttl")
	c := DNS{MinTTL: DefaultMinTTL}
	for _, x := range d.list(f["servers"]) {
		if server, ok := d.dnsServer(x); ok {
			c.Servers = append(c.Servers, server)
		}
	}
	if len(c.Servers) > maxServers {
		d.fail(f["servers"].path, "%d servers: at most %d are asked", len(c.Servers), maxServers)
	}
	d.duration(f["min_ttl"], &c.MinTTL, time.Second, time.Hour)
	return c
}

// dnsServer reads ADDRESS, or ADDRESS:PORT.
func (d *document) dnsServer(e entry) (netip.AddrPort, bool) {
	s, ok := d.text(e)
	if !ok {
		return netip.AddrPort{}, false
	}
	server, err := netip.ParseAddrPort(s)
	if addr, plain := netip.ParseAddr(s); plain == nil {
		server, err = netip.AddrPortFrom(addr, 53), nil
	}
	if err != nil || server.Port() == 0 || server.Addr().IsUnspecified() || server.Addr().IsMulticast() {
		d.fail(e.path, "%s is not the address of a server, such as 10.30.0.53 or 10.30.0.53:5353", quote(s))
		return netip.AddrPort{}, false
	}
	return server, true
}

// host reads NAME:PORT. It is false for what does not look like it, which may be
// an address.
func (d *document) host(e entry) (host string, port uint16, ok bool) {
	s, isText := scalarText(e.node)
	i := strings.LastIndexByte(s, ':')
	if !isText || i < 0 || strings.ContainsAny(s[:i], ":/[]% ") || !strings.ContainsFunc(s[:i], isLetter) {
		return "", 0, false
	}
	host = strings.ToLower(strings.TrimSuffix(s[:i], "."))
	if !isDNSName(host) {
		d.fail(e.path, "%s is not the name of a host: labels of 1 to 63 letters, digits, hyphens and underscores, with dots between, and not more than 253 in all", quote(s[:i]))
		return "", 0, true
	}
	n, err := strconv.ParseUint(s[i+1:], 10, 16)
	if err != nil || n == 0 {
		d.fail(e.path, "%s: the port of %s is a number, 1 to 65535", quote(s), clip(host))
		return "", 0, true
	}
	return host, uint16(n), true
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// isDNSName tells whether DNS can have a host of this name, in lower case.
// (RFC 1035, 2.3.4; underscores are in use)
func isDNSName(s string) bool {
	if len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, r := range label {
			if !isLetter(r) && (r < '0' || r > '9') && r != '-' && r != '_' {
				return false
			}
		}
	}
	return true
}

// checkNames finds names that are in a pool twice.
func (d *document) checkNames(at keyPath, names []Name) {
	for i, n := range names {
		for _, first := range names[:i] {
			if n.Host == first.Host && n.Port == first.Port && n.Host != "" {
				d.fail(at.child(n.Name).child("address"), "%s:%d is the name of member %s too (line %d): a pool has a member once, use weight for a larger share",
					clip(n.Host), n.Port, clip(first.Name), d.line(at.child(first.Name).child("address")))
				break
			}
		}
	}
}
