package health

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
)

// DialFunc opens the connection of an attempt. network is "tcp", address is an
// IP address and a port. It must return when ctx ends.
type DialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// probe makes one attempt. It returns soon after ctx ends: a deadline that
// passes is the endpoint's failure to answer in time, and the report says so.
type probe interface {
	probe(ctx context.Context, address netip.AddrPort) report
}

// report is what one attempt found, before the prober adds when and how long.
type report struct {
	code   Code
	detail string
}

// kind is what the rest of the package needs to know about a kind of probe.
type kind struct {
	// validate checks the fields that only some kinds have.
	validate func(Check) error
	// compile prepares what all attempts of a valid check share.
	compile func(Check, DialFunc) (probe, error)
}

var kinds = map[Type]kind{
	TCP:  {validate: validateTCP, compile: compileTCP},
	HTTP: {validate: validateHTTP, compile: compileHTTP},
}

func knownTypes() string {
	names := make([]string, 0, len(kinds))
	for t := range kinds {
		names = append(names, string(t))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

func validateTCP(c Check) error {
	if c.HTTP != (HTTPOptions{}) {
		return errors.New("check type tcp takes no http options; use type http, or leave them out")
	}
	return nil
}
