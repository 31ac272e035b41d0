package config

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Proto is a transport protocol of a service.
type Proto string

// The protocols. ProtoAny stands for all, ports or not.
const (
	ProtoTCP  Proto = "tcp"
	ProtoUDP  Proto = "udp"
	ProtoSCTP Proto = "sctp"
	ProtoAny  Proto = "any"
)

// Port is a port of a service, or a range of them.
type Port struct {
	First, Last uint16 // 1..65535, First <= Last; both 0 with ProtoAny
	Proto       Proto
}

// String is the form of the file: 80/tcp, 5000-5100/udp, any.
func (p Port) String() string {
	switch {
	case p.Proto == ProtoAny:
		return string(p.Proto)
	case p.First == p.Last:
		return fmt.Sprintf("%d/%s", p.First, p.Proto)
	}
	return fmt.Sprintf("%d-%d/%s", p.First, p.Last, p.Proto)
}

// Kept says whether members get packets on the port that the client used,
// instead of on their own: so it is with ranges and with all protocols.
func (p Port) Kept() bool { return p.Proto == ProtoAny || p.First != p.Last }

// Contains says whether packets of a protocol to a port belong to the service.
func (p Port) Contains(proto Proto, number uint16) bool {
	return p.Proto == ProtoAny || p.Proto == proto && p.First <= number && number <= p.Last
}

func (p Port) overlaps(o Port) bool {
	return p.Proto == o.Proto && p.First <= o.Last && o.First <= p.Last
}

// Compare orders ports by number, then by protocol.
func (p Port) Compare(o Port) int {
	return cmp.Or(cmp.Compare(p.First, o.First), cmp.Compare(p.Last, o.Last), cmp.Compare(p.Proto, o.Proto))
}

func (p Port) isSet() bool { return p.Proto != "" }

// port reads 80/tcp, 5000-5100/udp, any, or 80 alone, which means tcp. The
// result is zero if wrong.
func (d *document) port(e entry) Port {
	s, ok := d.text(e)
	if !ok {
		return Port{}
	}
	if s == string(ProtoAny) {
		return Port{Proto: ProtoAny}
	}
	numbers, word, found := strings.Cut(s, "/")
	proto := Proto(word)
	if !found {
		proto = ProtoTCP
	}
	switch proto {
	case ProtoTCP, ProtoUDP, ProtoSCTP:
	default:
		d.fail(e.path, "%s is not a port: write a number and protocol, such as 80/tcp, 53/udp or 5000-5100/udp, or any for all", quote(s))
		return Port{}
	}
	from, to, isRange := strings.Cut(numbers, "-")
	if !isRange {
		to = from
	}
	first, ok := d.portNumber(e, s, from)
	if !ok {
		return Port{}
	}
	last, ok := d.portNumber(e, s, to)
	if !ok {
		return Port{}
	}
	if isRange && first >= last {
		d.fail(e.path, "%s: the first port of a range is below the last", quote(s))
		return Port{}
	}
	return Port{First: first, Last: last, Proto: proto}
}

// portNumber reads one number of a port.
func (d *document) portNumber(e entry, whole, number string) (uint16, bool) {
	n, err := strconv.ParseUint(number, 10, 16)
	switch {
	case err != nil && !isOutOfRange(err):
		d.fail(e.path, "%s is not a port: write a number and protocol, such as 80/tcp, 53/udp or 5000-5100/udp, or any for all", quote(whole))
	case err != nil || n == 0:
		d.fail(e.path, "%s is out of range: 1 to 65535", clip(whole))
	case number != strconv.FormatUint(n, 10):
		d.fail(e.path, "%s: write the number without leading zeros", quote(whole))
	default:
		return uint16(n), true
	}
	return 0, false
}
