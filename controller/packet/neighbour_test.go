package packet

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	"brlb/openflow"
)

func addr(text string) netip.Addr { return netip.MustParseAddr(text) }

// The octets were read back with tcpdump -e -vv, which agrees with the checksums.
func TestFramesForNeighbours(t *testing.T) {
	arpPadding := strings.Repeat("00", 18)
	request := "ffffffffffff 02005e000102 0806  0001 0800 06 04 0001  02005e000102 0a140064  000000000000 0a140064" + arpPadding
	reply := "ffffffffffff 02005e000102 0806  0001 0800 06 04 0002  02005e000102 0a140064  ffffffffffff 0a140064" + arpPadding
	advertisement := "333300000001 02005e000102 86dd  6000 0000 0020 3a ff  20010db8000000000000000000000100 ff020000000000000000000000000001" +
		"88 00 %s 0000 00  20010db8000000000000000000000100  02 01 02005e000102"
	cases := []struct {
		name string
		got  [][]byte
		want []string
	}{
		{"an ARP request", [][]byte{Ask(ownMAC, addr("10.30.0.1"), addr("10.30.0.11"))},
			[]string{"ffffffffffff 02005e000102 0806  0001 0800 06 04 0001  02005e000102 0a1e0001  000000000000 0a1e000b" + arpPadding}},
		{"an ARP probe", [][]byte{Ask(ownMAC, netip.Addr{}, addr("10.30.0.11"))},
			[]string{"ffffffffffff 02005e000102 0806  0001 0800 06 04 0001  02005e000102 00000000  000000000000 0a1e000b" + arpPadding}},
		{"an ARP request in a VLAN", [][]byte{Tag(Ask(ownMAC, netip.Addr{}, addr("10.30.0.11")), 100)},
			[]string{"ffffffffffff 02005e000102 8100 0064 0806  0001 0800 06 04 0001  02005e000102 00000000  000000000000 0a1e000b" + arpPadding}},
		{"a neighbour solicitation", [][]byte{Ask(ownMAC, netip.Addr{}, addr("2001:db8:30::1234:5678"))},
			[]string{"3333ff345678 02005e000102 86dd  6000 0000 0020 3a ff  fe800000000000000000 5efffe000102 ff0200000000000000000001ff345678" +
				"87 00 ced7 00000000  20010db8003000000000000012345678  01 01 02005e000102"}},
		{"gratuitous ARP", Announce(ownMAC, addr("10.20.0.100"), false), []string{request, reply}},
		{"an unsolicited advertisement", Announce(ownMAC, addr("2001:db8::100"), false),
			[]string{strings.Replace(advertisement, "%s", "982b 20", 1)}},
		{"an unsolicited advertisement of a gateway", Announce(ownMAC, addr("2001:db8::100"), true),
			[]string{strings.Replace(advertisement, "%s", "182b a0", 1)}},
	}
	for _, c := range cases {
		if len(c.got) != len(c.want) {
			t.Errorf("%s: %d frames, want %d", c.name, len(c.got), len(c.want))
			continue
		}
		for i, frame := range c.got {
			if want := unhex(t, c.want[i]); !bytes.Equal(frame, want) {
				t.Errorf("%s:\n got %x\nwant %x", c.name, frame, want)
			}
		}
	}
}

const arpReplyFrame = "02005e000102 02000000000b 0806  0001 0800 06 04 0002  02000000000b 0a1e000b  02005e000102 0a1e0001"

// advertisement is what a neighbour answers to brlb.
func advertisement(flags byte, dst netip.Addr) []byte {
	frame := newFrame(ownMAC, openflow.MAC{2, 0, 0, 0, 0, 0x0b}, nil, etherIPv6)
	return ndMessage(frame, addr("fe80::b"), dst, icmp6Advertise, flags, addr("2001:db8:30::b"), ndTargetLink, openflow.MAC{2, 0, 0, 0, 0, 0x0b})
}

// resum corrects the checksum of a neighbour discovery message that a test has
// changed.
func resum(frame []byte) []byte {
	message := frame[54:]
	message[2], message[3] = 0, 0
	l, _ := parseLink(frame)
	d, err := parseIPv6(l.payload)
	if err != nil {
		return frame
	}
	s := ^fold(pseudoSum(d.src, d.dst, protoICMPv6, len(d.payload())) + sum(d.payload()))
	message[2], message[3] = byte(s>>8), byte(s)
	return frame
}

func TestReadNeighbour(t *testing.T) {
	mac := openflow.MAC{2, 0, 0, 0, 0, 0x0b}
	four, six := Neighbour{Addr: addr("10.30.0.11"), MAC: mac}, Neighbour{Addr: addr("2001:db8:30::b"), MAC: mac}
	vlan := func(n Neighbour) Neighbour { n.VLAN = 100; return n }
	arp, nd := unhex(t, arpReplyFrame), advertisement(ndSolicited|ndOverride, LinkLocal(ownMAC))
	otherOption := resum(with(nd, 54+24, 14))
	cases := []struct {
		name  string
		frame []byte
		want  Neighbour // the zero Neighbour: refused
	}{
		{"a reply", arp, four},
		{"a reply with padding", append(bytes.Clone(arp), make([]byte, 18)...), four},
		{"a reply in a VLAN", tagged(arp, 100), vlan(four)},
		{"a reply in a VLAN within another", tagged(arp, 100, 7), vlan(four)},
		{"a reply with three tags", tagged(arp, 100, 7, 8), Neighbour{}},
		{"another hardware", with(arp, 14, 0, 6), Neighbour{}},
		{"another protocol", with(arp, 16, 0x86, 0xdd), Neighbour{}},
		{"MACs of 8 octets", with(arp, 18, 8), Neighbour{}},
		{"addresses of 16 octets", with(arp, 19, 16), Neighbour{}},
		{"a reply from a group address", with(arp, 22, 1), Neighbour{}},
		{"a reply from the zero address", with(arp, 22, 0, 0, 0, 0, 0, 0), Neighbour{}},
		{"an EtherType that is neither", with(arp, 12, 0x88, 0xcc), Neighbour{}},

		{"an advertisement", nd, six},
		{"an advertisement in a VLAN", tagged(nd, 100), vlan(six)},
		{"an advertisement that nobody solicited", advertisement(ndOverride, allNodes), six},
		{"an advertisement to all that says it was solicited", advertisement(ndSolicited, allNodes), Neighbour{}},
		{"an advertisement that a router has forwarded", with(nd, 14+7, 254), Neighbour{}},
		{"a wrong checksum", with(nd, 54+2, 0, 0), Neighbour{}},
		{"a solicitation", resum(with(nd, 54, icmp6Solicit)), Neighbour{}},
		{"another code", resum(with(nd, 54+1, 1)), Neighbour{}},
		{"a group as the target", resum(with(nd, 54+8, 0xff)), Neighbour{}},
		{"no MAC", otherOption, Neighbour{}},
		{"a group's MAC", resum(with(nd, 54+26, 0x33)), Neighbour{}},
		{"an option of no length", resum(with(nd, 54+25, 0)), Neighbour{}},
		{"an option that is cut", resum(with(nd, 54+25, 2)), Neighbour{}},
	}
	for _, c := range cases {
		got, err := ReadNeighbour(c.frame)
		if (err == nil) != (c.want != Neighbour{}) || got != c.want {
			t.Errorf("%s: %+v, %v", c.name, got, err)
		}
	}
	for _, good := range [][]byte{arp, nd} {
		for n := range good {
			if _, err := ReadNeighbour(good[:n]); err == nil {
				t.Errorf("the first %d octets of %x pass for a frame", n, good)
			}
		}
	}
}

func TestAdvertise(t *testing.T) {
	target := addr("2001:db8::100")
	group, groupMAC := solicitedNode(target)
	asker := openflow.MAC{2, 0, 0, 0, 0, 0x0a}
	solicitation := func(src, dst netip.Addr) []byte {
		return ndMessage(newFrame(groupMAC, asker, nil, etherIPv6), src, dst, icmp6Solicit, 0, target, ndSourceLink, asker)
	}
	// without takes the option away.
	without := func(frame []byte) []byte {
		frame = bytes.Clone(frame[:54+24])
		frame[14+5] = 24
		return resum(frame)
	}
	any := netip.IPv6Unspecified()
	detection := without(solicitation(any, group))
	head := "02000000000a 02005e000102 86dd 6000 0000 0020 3a ff 20010db8000000000000000000000100 20010db800000000000000000000000a"
	tail := "0000 00 20010db8000000000000000000000100 02 01 02005e000102"
	cases := []struct {
		name   string
		frame  []byte
		router bool
		want   string
	}{
		{"to the group", solicitation(addr("2001:db8::a"), group), false, head + "88 00 296c 60" + tail},
		{"to the address", solicitation(addr("2001:db8::a"), target), false, head + "88 00 296c 60" + tail},
		{"for a gateway", solicitation(addr("2001:db8::a"), group), true, head + "88 00 a96b e0" + tail},
		{"without the asker's MAC", without(solicitation(addr("2001:db8::a"), target)), false, head + "88 00 296c 60" + tail},
		{"whether the address is free", detection, false,
			"333300000001 02005e000102 86dd 6000 0000 0020 3a ff 20010db8000000000000000000000100 ff020000000000000000000000000001 88 00 982b 20" + tail},
		{"whether the address is free, with a MAC", solicitation(any, group), false, ""},
		{"whether the address is free, to one host", without(solicitation(any, target)), false, ""},
		{"from a group", solicitation(allNodes, group), false, ""},
		{"from a group's MAC", resum(with(solicitation(addr("2001:db8::a"), group), 54+26, 1)), false, ""},
		{"an advertisement", advertisement(0, allNodes), false, ""},
		{"ARP", unhex(t, arpReplyFrame), false, ""},
	}
	for _, c := range cases {
		got, err := Advertise(c.frame, ownMAC, func(a netip.Addr) bool { return c.router && a == target })
		if want := unhex(t, c.want); !bytes.Equal(got, want) || (err == nil) != (len(want) > 0) {
			t.Errorf("%s: %v\n got %x\nwant %x", c.name, err, got, want)
		}
	}
	if got, err := Advertise(tagged(detection, 100, 7), ownMAC, func(netip.Addr) bool { return false }); err != nil || !bytes.Equal(got[12:20], []byte{0x81, 0, 0, 100, 0x81, 0, 0, 7}) {
		t.Errorf("the tags are not kept: %x, %v", got, err)
	}
}
