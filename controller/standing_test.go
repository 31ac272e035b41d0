package controller

import (
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"brlb/controller/conntrack"
	"brlb/controller/pipeline"
	"brlb/controller/state"
	"brlb/openflow"
)

const standingConfig = `
pools:
  web: {id: 1, slots: 64, members: {be1: 10.30.0.11:80, be2: 10.30.0.12:80}}
  api: {id: 2, slots: 64, members: {be1: 10.30.0.11:80, be3: 10.30.0.13:80}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}
  api: {address: 10.20.0.101, ports: [80/tcp], pool: api}
`

// entryOf is a connection that came to a VIP and went to a member.
func entryOf(m *state.Member, pool uint16, vip string) *conntrack.Entry {
	client := netip.MustParseAddr("10.20.0.10")
	return &conntrack.Entry{
		Proto: conntrack.ProtoTCP, Zone: 18200, Mark: pipeline.Mark(pool, m.Number),
		Orig:      conntrack.Tuple{Src: client, Dst: netip.MustParseAddr(vip), SrcPort: 40000, DstPort: 80},
		Reply:     conntrack.Tuple{Src: m.Address.Addr(), Dst: client, SrcPort: m.Address.Port(), DstPort: 40000},
		OrigState: conntrack.Established, ReplyState: conntrack.Established,
	}
}

func everyVIP(s *state.Snapshot) map[netip.Addr]bool {
	served := map[netip.Addr]bool{netip.MustParseAddr("10.20.0.109"): true} // no longer
	for _, vip := range servedBy(s) {
		served[vip] = true
	}
	return served
}

// TestFate: whose entries stay, and whose go.
func TestFate(t *testing.T) {
	s := state.AllActive(parse(t, standingConfig))
	web := s.Pool("web")
	be1, be2 := &web.Members[0], &web.Members[1]
	be2.Cut = true
	st := standingOf(s, everyVIP(s))
	for _, c := range []struct {
		name   string
		entry  *conntrack.Entry
		change func(*conntrack.Entry)
		want   fate
	}{
		{"of a member", entryOf(be1, 1, "10.20.0.100"), nil, stays},
		{"of a member that is cut", entryOf(be2, 1, "10.20.0.100"), nil, goes},
		{"of a connection that is over", entryOf(be2, 1, "10.20.0.100"), func(e *conntrack.Entry) { e.OrigState, e.ReplyState = conntrack.TimeWait, conntrack.TimeWait }, stays},
		{"of UDP", entryOf(be2, 1, "10.20.0.100"), func(e *conntrack.Entry) { e.Proto = conntrack.ProtoUDP }, goes},
		{"of ICMP", entryOf(be2, 1, "10.20.0.100"), func(e *conntrack.Entry) { e.Proto = conntrack.ProtoICMP }, stays},
		{"of ICMPv6", entryOf(be2, 1, "10.20.0.100"), func(e *conntrack.Entry) { e.Proto = conntrack.ProtoICMPv6 }, stays},
		{"of a pool that has another id now", entryOf(be1, 9, "10.20.0.100"), nil, stays},
		{"to a VIP that is served no longer", entryOf(be1, 1, "10.20.0.109"), nil, goes},
		{"to a port that is served no longer", entryOf(be1, 1, "10.20.0.100"), func(e *conntrack.Entry) { e.Orig.DstPort = 81 }, goes},
		{"to a port of another protocol", entryOf(be1, 1, "10.20.0.100"), func(e *conntrack.Entry) { e.Proto = conntrack.ProtoUDP }, goes},
		{"to a VIP that is another brlb's", entryOf(be1, 1, "10.99.0.1"), nil, stays},
		{"of another brlb's member of that number", entryOf(be2, 1, "10.20.0.100"), func(e *conntrack.Entry) { e.Reply.Src = netip.MustParseAddr("10.99.0.2") }, stays},
		{"of the pool when it had another zone", entryOf(be1, 1, "10.20.0.100"), func(e *conntrack.Entry) { e.Zone = 18201 }, goes},
		{"of nobody", entryOf(be2, 1, "10.20.0.100"), func(e *conntrack.Entry) { e.Mark = 0 }, stays},
		{"of a number that nobody has", entryOf(be2, 1, "10.20.0.100"), func(e *conntrack.Entry) { e.Mark = pipeline.Mark(1, 999) }, unknown},
	} {
		if c.change != nil {
			c.change(c.entry)
		}
		if got := st.fate(c.entry); got != c.want {
			t.Errorf("%s: fate %d, want %d", c.name, got, c.want)
		}
	}
}

// TestLeaving: which changes make it urgent to look at the table.
func TestLeaving(t *testing.T) {
	s := state.AllActive(parse(t, standingConfig))
	before := standingOf(s, everyVIP(s))
	be1 := s.Pool("web").Members[0].Number
	look := func(name string, change func(*standing), urgent bool, leaving ...uint16) {
		t.Helper()
		now := standingOf(s, everyVIP(s))
		change(now)
		if now.lessThan(before) != urgent || !slices.Equal(now.leaving(before), leaving) {
			t.Errorf("%s: urgent %v, leaving %v", name, now.lessThan(before), now.leaving(before))
		}
	}
	look("nothing", func(*standing) {}, false)
	look("a member gone", func(st *standing) { delete(st.members, be1) }, true, be1)
	look("a member cut", func(st *standing) { m := st.members[be1]; m.cut = true; st.members[be1] = m }, true, be1)
	look("a member new", func(st *standing) { st.members[77] = place{} }, false)
	look("a VIP gone", func(st *standing) { clear(st.ports) }, true)

	m := before.members[be1]
	m.cut = true
	before.members[be1] = m
	look("a cut member back", func(*standing) {}, false)
	look("a cut member gone", func(st *standing) { delete(st.members, be1) }, false)
	if got := before.leaving(nil); !slices.Equal(got, []uint16{be1}) || !before.lessThan(nil) {
		t.Errorf("after a start: leaving %v", got)
	}
	// Pool api has the same address and port.
	if !before.shares(be1, m) {
		t.Error("nobody shares be1's address")
	}
	if be2 := s.Pool("web").Members[1].Number; before.shares(be2, before.members[be2]) {
		t.Error("somebody shares be2's address")
	}
}

// TestAnyPort: a pool of which members answer from any port shares their
// addresses with every other one.
func TestAnyPort(t *testing.T) {
	s := state.AllActive(parse(t, strings.Replace(strings.ReplaceAll(standingConfig, "13:80", "12:81"), "ports: [80/tcp], pool: web", "ports: [80-90/tcp], pool: web", 1)))
	st := standingOf(s, everyVIP(s))
	be2 := st.members[s.Pool("web").Members[1].Number]
	if be2.port != 0 || !st.shares(s.Pool("web").Members[1].Number, be2) {
		t.Errorf("be2 at port %d shares its address with nobody", be2.port)
	}
}

func TestZoneUsage(t *testing.T) {
	for text, want := range map[string]usage{
		"default limit=0\nzone=18200,limit=50,count=3\n": {used: 3, limit: 50},
		"default limit=0\nzone=18200,limit=0,count=0\n":  {},
		"default limit=0\n":                              {},
		"zone=182000,limit=50,count=3\n":                 {},
		"zone=18200,limit=x,count=3\n":                   {},
		"":                                               {},
	} {
		if got := zoneUsage(text, "zone=18200"); got != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func TestNearlyFull(t *testing.T) {
	for _, c := range []struct {
		used, limit int
		near        bool
	}{{89, 100, false}, {90, 100, true}, {120, 100, true}, {5, 0, false}, {0, 0, false}, {0, 1, false}} {
		u := usage{used: c.used, limit: c.limit}
		if u.nearFull() != c.near {
			t.Errorf("%+v", u)
		}
		for _, wrong := range [][]string{(&connections{zones: []zoneUse{{usage: u}}}).wrong(), (&connections{datapath: u}).wrong()} {
			if len(wrong) > 0 != c.near {
				t.Errorf("%+v: %q", u, wrong)
			}
		}
	}
}

func TestTupleText(t *testing.T) {
	f := openflow.CTFlush{Proto: conntrack.ProtoTCP, Orig: openflow.CTTuple{
		Src: netip.MustParseAddr("2001:db8::1"), Dst: netip.MustParseAddr("2001:db8::2"), SrcPort: 1, DstPort: 2}}
	if got := tupleText(&f); got != "ct_ipv6_src=2001:db8::1,ct_ipv6_dst=2001:db8::2,ct_nw_proto=6,ct_tp_src=1,ct_tp_dst=2" {
		t.Error(got)
	}
	f.Orig.Src, f.Orig.Dst = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	if got := tupleText(&f); !strings.HasPrefix(got, "ct_nw_src=10.0.0.1,ct_nw_dst=10.0.0.2,") {
		t.Error(got)
	}
}

func TestKernelUsage(t *testing.T) {
	dir := t.TempDir()
	if got := kernelUsage(dir); got != (usage{}) {
		t.Errorf("without a table: %+v", got)
	}
	for name, text := range map[string]string{"nf_conntrack_count": "17\n", "nf_conntrack_max": "262144\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := kernelUsage(dir); got != (usage{used: 17, limit: 262144}) {
		t.Errorf("%+v", got)
	}
}
