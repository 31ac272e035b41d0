package bridge

import (
	"net/netip"
	"testing"

	"brlb/controller/config"
	"brlb/controller/packet"
	"brlb/controller/pipeline"
	"brlb/controller/state"
	"brlb/openflow"
)

// A packet that is too long for its tunnel is answered out of the port by which it
// came, with what fits.
func TestTooBigIsAnswered(t *testing.T) {
	for _, c := range []struct {
		name     string
		src, dst netip.AddrPort
		gateways []netip.Prefix
		from     string
	}{
		{"by a gateway", client, vip, gateways(), "10.30.0.1"},
		{"by the VIP", client, vip, nil, "10.20.0.100"},
		{"IPv6, by the VIP", client6, vip6, nil, "2001:db8:20::100"},
	} {
		m := handedUp(segment(t, 6, c.src, c.dst), 6, c.src, c.dst)
		m.Table = pipeline.TableToMember
		m.Match = openflow.Match{openflow.InPort.Exact(3), openflow.Reg7.Exact(1450), openflow.Reg9.Exact(1)}
		messages, err := answer(m, &Wants{MAC: ownMAC, Gateways: c.gateways})
		if err != nil || len(messages) != 1 {
			t.Errorf("%s: %v, %v", c.name, messages, err)
			continue
		}
		out := messages[0].(*openflow.PacketOut)
		quoted, err := packet.Quoted(out.Data)
		if want := (packet.Tuple{Proto: 6, Src: c.src, Dst: c.dst}); err != nil || quoted != want {
			t.Errorf("%s: it is about %+v, %v", c.name, quoted, err)
		}
		ends, err := packet.ReadTuple(out.Data)
		if err != nil || ends.Src.Addr().String() != c.from || ends.Dst.Addr() != c.src.Addr() {
			t.Errorf("%s: it is from %s to %s, %v", c.name, ends.Src, ends.Dst, err)
		}
		if len(out.Actions) != 1 || out.Actions[0] != openflow.Action(openflow.Output{Port: 3}) {
			t.Errorf("%s: %v", c.name, out.Actions)
		}
	}
}

// An ICMP error about what a member of a stateless pool sent goes to that member.
func TestErrorsAreSentOn(t *testing.T) {
	cfg, err := config.Parse("test.yaml", []byte(`
pools: {web: {id: 1, mode: dsr, members: {be1: "10.30.0.11:80", be2: "10.30.0.12:80"}}}
services: {web: {address: 10.20.0.100, ports: [80/tcp], pool: web}}
`))
	if err != nil {
		t.Fatal(err)
	}
	s := state.AllActive(cfg)
	m := handedUp([]byte("the error"), 1, client, vip)
	out := sendOn(m, packet.Tuple{Proto: 6, Src: vip, Dst: client}, s)
	_, slot := pipeline.Slot(&s.Pools[0], pipeline.Tuple{Proto: 6, Src: client, Dst: vip})
	if len(out) != 1 {
		t.Fatalf("%v", out)
	}
	sent := out[0].(*openflow.PacketOut)
	if string(sent.Data) != "the error" || sent.InPort != 3 || len(sent.Actions) != 2 ||
		sent.Actions[0] != openflow.Action(openflow.SetField{OXM: openflow.Reg2.Exact(uint64(s.Pools[0].Owner(slot).Number))}) {
		t.Errorf("%+v", sent)
	}
	for name, quoted := range map[string]packet.Tuple{
		"another port": {Proto: 6, Src: netip.AddrPortFrom(vip.Addr(), 81), Dst: client},
		"UDP":          {Proto: 17, Src: vip, Dst: client},
	} {
		if out := sendOn(m, quoted, s); len(out) > 0 {
			t.Errorf("%s: %v", name, out)
		}
	}
	if out := sendOn(m, packet.Tuple{Proto: 6, Src: vip, Dst: client}, nil); len(out) > 0 {
		t.Errorf("before anything is known: %v", out)
	}
}
