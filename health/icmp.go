package health

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
)

// ICMP message types: RFC 792 and RFC 4443 section 4.
const (
	echoReply4   = 0
	echoRequest4 = 8
	echoRequest6 = 128
	echoReply6   = 129
)

// icmpProbe sends one echo request and waits for its reply. It uses a raw
// socket that is connected to the target, so it needs CAP_NET_RAW and hears
// nobody else; identifier, sequence number and payload are drawn anew for each
// attempt, so a late reply to an earlier one is not taken for this one's.
type icmpProbe struct{ dial DialFunc }

func compileICMP(_ Check, w way) (probe, error) { return icmpProbe{w.dial}, nil }

func (p icmpProbe) probe(ctx context.Context, address netip.AddrPort) report {
	ip := address.Addr().Unmap()
	network, request, reply := "ip4:icmp", byte(echoRequest4), byte(echoReply4)
	if ip.Is6() {
		network, request, reply = "ip6:ipv6-icmp", echoRequest6, echoReply6
	}
	conn, err := p.dial(ctx, network, ip.String())
	if err != nil {
		return dialFailed(err)
	}
	defer conn.Close()
	defer bindContext(ctx, conn)()
	sent := echoMessage(request, rand.Uint32(), rand.Uint64())
	if _, err := conn.Write(sent); err != nil {
		return dialFailed(err)
	}
	buf := make([]byte, 512)
	for {
		n, err := conn.Read(buf)
		if timedOut(err) {
			return report{code: L4TOUT, detail: "no echo reply"}
		}
		if err != nil {
			return dialFailed(err)
		}
		if isEchoReply(buf[:n], reply, sent) {
			return report{code: L4OK, detail: "echo reply"}
		}
	}
}

// echoMessage builds an echo request. idAndSeq fills the identifier and the
// sequence number, payload the data.
func echoMessage(kind byte, idAndSeq uint32, payload uint64) []byte {
	m := []byte{kind, 0, 0, 0}
	m = binary.BigEndian.AppendUint32(m, idAndSeq)
	m = binary.BigEndian.AppendUint64(m, payload)
	if kind == echoRequest4 { // of ICMPv6 the kernel computes it
		binary.BigEndian.PutUint16(m[2:], internetChecksum(m))
	}
	return m
}

// isEchoReply reports whether packet is the reply of type kind to the request
// sent. An IPv4 raw socket hands out the IP header too.
func isEchoReply(packet []byte, kind byte, sent []byte) bool {
	if len(packet) > 0 && packet[0]>>4 == 4 {
		headerLen := int(packet[0]&0x0f) * 4
		if headerLen > len(packet) {
			return false
		}
		packet = packet[headerLen:]
	}
	return len(packet) == len(sent) && packet[0] == kind && packet[1] == 0 && bytes.Equal(packet[4:], sent[4:])
}

// internetChecksum is that of RFC 1071, for an even number of bytes.
func internetChecksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}
