package resolve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

const (
	// timeout is how long one server may take for an answer.
	timeout = time.Second
	// rounds is how often each server is asked before it is a failure.
	rounds = 2
	// udpSize is the largest answer over UDP that passes everywhere unfragmented.
	// (DNS flag day 2020)
	udpSize = 1232
	// resolvConf names the servers of a machine.
	resolvConf = "/etc/resolv.conf"
)

// ask asks the servers, one after the other, until one has an answer: addresses,
// or that there are none.
func ask(ctx context.Context, servers []netip.AddrPort, name Name) Answer {
	if len(servers) == 0 {
		var err error
		if servers, err = systemServers(resolvConf); err != nil {
			return Answer{Problem: err.Error()}
		}
	}
	var failed []string
	for range rounds {
		failed = failed[:0]
		for _, server := range servers {
			reply, err := exchange(ctx, server, name)
			if err == nil {
				return read(reply, name, server)
			}
			failed = append(failed, fmt.Sprintf("%s: %v", server, err))
		}
	}
	return Answer{Problem: strings.Join(failed, "; ")}
}

// systemServers are the first three servers that a file like /etc/resolv.conf
// names. (MAXNS, resolv.conf(5))
func systemServers(path string) ([]netip.AddrPort, error) {
	file, err := dns.ClientConfigFromFile(path)
	if err != nil {
		return nil, fmt.Errorf("no DNS server is known: %w", err)
	}
	var servers []netip.AddrPort
	for _, text := range file.Servers {
		if addr, err := netip.ParseAddr(text); err == nil && len(servers) < 3 {
			servers = append(servers, netip.AddrPortFrom(addr, 53))
		}
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("no DNS server is known: %s names none", path)
	}
	return servers, nil
}

// exchange asks one server, again over TCP if the answer does not fit. Its error
// says why the answer is not one.
func exchange(ctx context.Context, server netip.AddrPort, name Name) (*dns.Msg, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	query := new(dns.Msg)
	query.SetQuestion(dns.Fqdn(name.Host), name.recordType())
	query.SetEdns0(udpSize, false)
	var reply *dns.Msg
	for _, network := range []string{"udp", "tcp"} {
		var err error
		if reply, err = over(ctx, network, server, query); err != nil {
			return nil, plain(err)
		}
		if !reply.Truncated {
			break
		}
	}
	switch {
	case !reply.Response || len(reply.Question) != 1 || reply.Question[0].Qtype != query.Question[0].Qtype ||
		!strings.EqualFold(reply.Question[0].Name, query.Question[0].Name):
		return nil, errors.New("the answer belongs to another question")
	case reply.Rcode != dns.RcodeSuccess && reply.Rcode != dns.RcodeNameError:
		return nil, fmt.Errorf("it says %s", rcode(reply.Rcode))
	}
	return reply, nil
}

// over sends a query over udp or tcp and returns what comes back before ctx ends.
func over(ctx context.Context, network string, server netip.AddrPort, query *dns.Msg) (*dns.Msg, error) {
	client := dns.Client{Net: network, Timeout: timeout}
	conn, err := client.DialContext(ctx, server.String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() }) // an exchange does not look at ctx
	defer stop()
	reply, _, err := client.ExchangeWithConnContext(ctx, query, conn)
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return reply, err
}

// plain leaves addresses and ports of this end out of an error, so that the same
// failure is the same text.
func plain(err error) error {
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		return fmt.Errorf("no answer in %v", timeout)
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		return call.Err
	}
	return err
}

func rcode(code int) string {
	if text, ok := dns.RcodeToString[code]; ok {
		return text
	}
	return fmt.Sprintf("RCODE %d", code)
}

func (n Name) recordType() uint16 {
	if n.V6 {
		return dns.TypeAAAA
	}
	return dns.TypeA
}

// read takes the addresses out of a reply: those of the name, or of the name
// that it is an alias of.
func read(reply *dns.Msg, name Name, server netip.AddrPort) Answer {
	if reply.Rcode == dns.RcodeNameError {
		return Answer{Problem: fmt.Sprintf("NXDOMAIN: %s knows no such name", server)}
	}
	owner, ttl := dns.CanonicalName(name.Host), uint32(maxTTL/time.Second)
	for range reply.Answer { // no chain of aliases is longer
		alias := aliasOf(reply, owner)
		if alias == nil {
			break
		}
		owner, ttl = dns.CanonicalName(alias.Target), min(ttl, alias.Hdr.Ttl)
	}
	var addrs []netip.Addr
	var useless []string
	for _, record := range reply.Answer {
		addr, ok := address(record, name.V6)
		switch {
		case !ok || dns.CanonicalName(record.Header().Name) != owner:
		case !isHost(addr):
			useless = append(useless, addr.String())
		default:
			addrs = append(addrs, addr)
			ttl = min(ttl, record.Header().Ttl)
		}
	}
	slices.SortFunc(addrs, netip.Addr.Compare)
	addrs = slices.Compact(addrs)
	if len(addrs) > 0 {
		answer := Answer{Addrs: addrs, TTL: time.Duration(ttl) * time.Second}
		if len(addrs) > MaxAddrs {
			answer.Addrs = addrs[:MaxAddrs:MaxAddrs]
			answer.Problem = fmt.Sprintf("%s has %d addresses: the first %d are members", server, len(addrs), MaxAddrs)
		}
		return answer
	}
	if len(useless) > 0 {
		return Answer{Problem: fmt.Sprintf("%s has only %s, which no host can have", server, useless[0])}
	}
	return Answer{Problem: fmt.Sprintf("%s has no %s record of it", server, dns.TypeToString[name.recordType()])}
}

func aliasOf(reply *dns.Msg, owner string) *dns.CNAME {
	for _, record := range reply.Answer {
		if alias, ok := record.(*dns.CNAME); ok && dns.CanonicalName(alias.Hdr.Name) == owner {
			return alias
		}
	}
	return nil
}

// address is the address in a record of the wanted family.
func address(record dns.RR, v6 bool) (netip.Addr, bool) {
	var ip net.IP
	switch r := record.(type) {
	case *dns.A:
		ip = r.A
	case *dns.AAAA:
		ip = r.AAAA
	}
	addr, ok := netip.AddrFromSlice(ip)
	if !ok || (record.Header().Rrtype == dns.TypeAAAA) != v6 {
		return netip.Addr{}, false
	}
	if v6 {
		return addr, addr.Is6() && !addr.Is4In6()
	}
	return addr.Unmap(), true
}

// isHost says whether a member can have an address.
func isHost(addr netip.Addr) bool {
	return !addr.IsUnspecified() && !addr.IsLoopback() && !addr.IsMulticast() && !addr.IsLinkLocalUnicast() &&
		addr != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}
