package pipeline

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"brlb/openflow"
)

// Each network gives its clients the address of one gateway; every gateway gets
// the answers.
func TestHairpinRows(t *testing.T) {
	fr := frame{zone: 5}
	var got strings.Builder
	for _, f := range fr.hairpinFlows([]netip.Prefix{
		netip.MustParsePrefix("10.30.0.1/24"), netip.MustParsePrefix("10.30.0.254/24"), netip.MustParsePrefix("2001:db8:30::1/64"),
	}, nil) {
		if f.Table == TableClassify || f.Table == TableToMember {
			got.WriteString(f.String() + "\n")
		}
	}
	const want = `ADD priority=31500,ip,nw_dst=10.30.0.1 cookie:0xb71b010000000000 actions=ct(table=16,zone=16389,nat)
ADD table:13 priority=112,ip,reg8=0x1,nw_src=10.30.0.0/24 cookie:0xb71b010000000000 actions=load:0x2->NXM_NX_REG8[],ct(commit,table=13,zone=16389,nat(src=10.30.0.1))
ADD priority=31500,ip,nw_dst=10.30.0.254 cookie:0xb71b010000000000 actions=ct(table=16,zone=16389,nat)
ADD priority=31500,ipv6,ipv6_dst=2001:db8:30::1 cookie:0xb71b010000000000 actions=ct(table=16,zone=16389,nat)
ADD table:13 priority=112,ipv6,reg8=0x1,ipv6_src=2001:db8:30::/64 cookie:0xb71b010000000000 actions=load:0x2->NXM_NX_REG8[],ct(commit,table=13,zone=16389,nat(src=2001:db8:30::1))
ADD table:13 priority=112,ct_state=+inv+trk,reg8=0x2 cookie:0xb71b010000000000 actions=drop
`
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A connection between two ports of the bridge is not turned, whatever the
// client's address.
func TestOnlyOnePortTurns(t *testing.T) {
	s := serving(t, small).Snapshot()
	var rows int
	for _, f := range render(t, s).Flows() {
		if f.Table != TableMember || f.Priority != prioHairpin {
			continue
		}
		rows++
		_, _, number := CookieParts(f.Cookie)
		port, _ := f.Match.Get(openflow.InPort)
		for _, p := range s.Pools {
			for _, m := range p.Members {
				if uint32(m.Number) == number && p.ID == uint16(f.Cookie>>24) && m.Next.Port != uint32(port.Uint64()) {
					t.Errorf("%s is behind port %d: %s", m.Name, m.Next.Port, f)
				}
			}
		}
	}
	if rows == 0 {
		t.Error("no row turns anything")
	}
}
