package health

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// DialFunc opens the connection of an attempt. network is "tcp" or "udp" with
// an IP address and a port in address, or "ip4:icmp" or "ip6:ipv6-icmp" with an
// IP address alone. It must return when ctx ends.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// ConnectFunc opens a TCP connection and closes it at once. It must return when
// ctx ends.
type ConnectFunc func(ctx context.Context, address netip.AddrPort) error

// probe makes one attempt. It returns soon after ctx ends: a deadline that
// passes is the endpoint's failure to answer in time, and the report says so.
type probe interface {
	probe(ctx context.Context, address netip.AddrPort) report
}

// report is what one attempt found, before the prober adds when and how long.
type report struct {
	code   Code
	detail string
	agent  Agent // what the endpoint says of itself
	stated bool  // whether agent is to replace what it said before
}

// kind is what the rest of the package needs to know about a kind of probe.
type kind struct {
	// validate checks the options of the kind; nil if nothing can be wrong.
	validate func(Check) error
	// compile prepares what all attempts of a valid check share.
	compile func(Check, way) (probe, error)
}

// way is how attempts get to their endpoints.
type way struct {
	dial    DialFunc
	connect ConnectFunc
	netns   string // in which programs run; empty: this process's
}

var kinds = map[Type]kind{
	TCP:       {validateExchange, compileTCP},
	HTTP:      {validateHTTP, compileHTTP},
	HTTPS:     {validateHTTPS, compileHTTP},
	GRPC:      {validateGRPC, compileGRPC},
	GRPCS:     {validateGRPC, compileGRPC},
	ICMP:      {nil, compileICMP},
	UDP:       {validateUDP, compileUDP},
	Exec:      {validateExec, compileExec},
	AgentLine: {validateAgentLine, compileAgentLine},
}

// validateGroups refuses options that the type of c does not have.
func validateGroups(c Check) error {
	for _, g := range []struct {
		name  string
		set   bool
		types []Type
	}{
		{"http options", c.HTTP != (HTTPOptions{}), []Type{HTTP, HTTPS}},
		{"tls options", c.TLS != (TLSOptions{}), []Type{HTTPS, GRPCS}},
		{"send", c.Send != "", []Type{TCP, UDP, AgentLine}},
		{"expect", c.Expect != "", []Type{TCP, UDP}},
		{"service", c.Service != "", []Type{GRPC, GRPCS}},
		{"command", c.Command != "", []Type{Exec}},
	} {
		if g.set && !slices.Contains(g.types, c.Type) {
			return fmt.Errorf("check type %s takes no %s; only %s do", c.Type, g.name, joinTypes(g.types))
		}
	}
	return nil
}

func joinTypes(types []Type) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	return strings.Join(names, ", ")
}

func knownTypes() string { return joinTypes(slices.Sorted(maps.Keys(kinds))) }
