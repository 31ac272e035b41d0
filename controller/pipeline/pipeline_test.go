package pipeline

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"brlb/controller/config"
	"brlb/controller/state"
	"brlb/openflow"
)

var update = flag.Bool("update", false, "write testdata anew")

var start = time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)

const small = `
mac: 02:00:5e:00:01:02
zone: 5
gateways: [10.30.0.1/24]
pools:
  web:
    id: 1
    slots: 64
    members: {be1: 10.30.0.11:8080, be2: 10.30.0.12:8080, be3: {address: 10.40.0.13:8080, via: 10.30.0.254}}
  tls: {id: 2, slots: 64, members: {be1: 10.30.0.11:8443}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}
  tls: {address: [10.20.0.100, 10.20.0.101], ports: [443/tcp, 8443/tcp], pool: tls}
`

func parse(t testing.TB, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func hop(n int) state.NextHop {
	return state.NextHop{MAC: openflow.MAC{2, 0, 0, 0, 1, byte(n)}, Port: 2, Source: "arp"}
}

// reachable is a state that knows everything but verdicts.
func reachable(t testing.TB, text string) *state.State {
	t.Helper()
	s := state.New(parse(t, text), start)
	if err := s.LoadNumbers(""); err != nil {
		t.Fatal(err)
	}
	s.SetPorts([]state.Port{{Number: 1, Name: "p1", Live: true}, {Number: 2, Name: "p2", Live: true}}, start)
	for i, addr := range s.NextHops() {
		s.SetNextHop(addr, hop(i+1), start)
	}
	return s
}

// serving is a state in which every member is up.
func serving(t testing.TB, text string) *state.State {
	t.Helper()
	s := reachable(t, text)
	judge(s, state.Up, s.Probes()...)
	return s
}

func judge(s *state.State, h state.Health, ids ...state.ProbeID) {
	for _, id := range ids {
		s.SetVerdict(id, state.Verdict{Health: h, Since: start, Code: "L4OK"}, start)
	}
}

func addrPort(text string) netip.AddrPort { return netip.MustParseAddrPort(text) }

func byTCP(addr string) state.ProbeID {
	return state.ProbeID{Address: addrPort(addr), Check: "tcp"}
}

func render(t testing.TB, s *state.Snapshot) Set {
	t.Helper()
	set, _, err := NewRenderer().Render(s)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func nothingHeld(GroupID) bool { return false }

// text is a set of flows, a line each.
func text(s Set) string {
	var b strings.Builder
	for _, f := range s.Flows() {
		b.WriteString(f.String() + "\n")
	}
	return b.String()
}

// The pipeline of a small configuration, each flow below what is said of it.
func TestGoldenPipeline(t *testing.T) {
	s := serving(t, small).Snapshot()
	var b strings.Builder
	for _, f := range render(t, s).Flows() {
		if kind, _, slot := CookieParts(f.Cookie); kind == KindSlot && slot >= 4 {
			continue // more of the same
		}
		fmt.Fprintf(&b, "# %s\n%s\n", Explain(s, f), f)
	}
	golden(t, "testdata/pipeline.txt", b.String())
}

// golden compares with a file.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("-want +got, see -update:\n%s", diff)
	}
}

func TestExplainKnowsEveryFlow(t *testing.T) {
	for _, cfg := range []string{small, "miss: drop" + small, zoned, "conntrack: {limit: 9}" + small} {
		s := serving(t, cfg).Snapshot()
		for _, f := range render(t, s).Flows() {
			kind, _, _ := CookieParts(f.Cookie)
			if text := Explain(s, f); text == "" || text == kind.String() || strings.Contains(text, "member 0") || strings.HasSuffix(text, "nobody") {
				t.Errorf("%q for %s", text, f)
			}
			if f.Priority != prioFloor && Explain(s, f) == "floor: dropped and counted" {
				t.Errorf("called a floor: %s", f)
			}
		}
	}
	s := serving(t, small).Snapshot()
	for cookie, want := range map[uint64]string{
		0:                        "not brlb's",
		0xb51b << 48:             "not brlb's",
		Cookie(99, 1, 0):         "kind 99",
		Cookie(KindSlot, 1, 7):   "pool web: slot 7 belongs to nobody",
		Cookie(KindHash, 9, 0):   "pool 9: 5-tuple -> slot",
		Cookie(KindMember, 1, 9): "pool web: member 9 gets the packet: MACs, ttl, output",
	} {
		if got := Explain(s, &openflow.FlowMod{Cookie: cookie, Table: TableToMember}); got != want {
			t.Errorf("cookie %#x: %q, want %q", cookie, got, want)
		}
	}
}

func TestCookies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := Kind(rapid.Uint8().Draw(t, "kind"))
		pool := rapid.Uint16().Draw(t, "pool")
		index := rapid.Uint32Range(0, maxIndex).Draw(t, "index")
		cookie := Cookie(kind, pool, index)
		k, p, i := CookieParts(cookie)
		if k != kind || p != pool || i != index || !IsOwn(cookie) || cookie&CookieMask != Cookie(0, 0, 0) {
			t.Fatalf("cookie %#x: %v %d %d", cookie, k, p, i)
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		pool, member := rapid.Uint16().Draw(t, "pool"), rapid.Uint16().Draw(t, "member")
		if p, m := MarkParts(Mark(pool, member)); p != pool || m != member {
			t.Fatalf("mark of %d, %d: %d, %d", pool, member, p, m)
		}
	})
}

func TestConcerns(t *testing.T) {
	cases := []struct {
		table    uint8
		priority uint16
		cookie   uint64
		want     bool
	}{
		{200, 5, Cookie(KindSlot, 1, 1), true},
		{TableSlots, 5, 0, true},
		{TableClassify, prioVIP, 0, true},
		{TableClassify, prioMiss, 0, true},
		{TableClassify, 0, 0, false},
		{TableClassify, 32768, 0, false},
		{200, prioVIP, 0, false},
	}
	for _, c := range cases {
		if got := Concerns(c.table, c.priority, c.cookie); got != c.want {
			t.Errorf("table %d priority %d cookie %#x: %v", c.table, c.priority, c.cookie, got)
		}
	}
	for _, f := range render(t, serving(t, small).Snapshot()).Flows() {
		if !Concerns(f.Table, f.Priority, 0) {
			t.Errorf("a foreign flow in the place of this one is of no concern: %s", f)
		}
	}
}

// What the switch computes: vectors observed with Open vSwitch 3.1 for packets
// whose MACs are zero, as the pipeline makes them for the hash.
func TestSlotAsTheSwitchComputesIt(t *testing.T) {
	src, dst := addrPort("10.0.0.1:12345"), addrPort("10.0.0.100:80")
	for _, v := range []struct {
		pool uint16
		hash uint32
		slot int
	}{
		{0, 0x92a871c2, 450}, {1, 0xf9b94706, 774}, {7, 0x35b62cfa, 250}, {1024, 0xc1ee4d45, 325}, {65535, 0x666a959a, 410},
	} {
		hash, slot := Slot(&state.Pool{ID: v.pool, Slots: 1024}, Tuple{Proto: protoTCP, Src: src, Dst: dst})
		if hash != v.hash || slot != v.slot {
			t.Errorf("pool %d: hash %08x slot %d, the switch says %08x and %d", v.pool, hash, slot, v.hash, v.slot)
		}
	}
}

func TestTables(t *testing.T) {
	used := map[uint8]bool{}
	for _, f := range render(t, serving(t, small).Snapshot()).Flows() {
		used[f.Table] = true
	}
	for _, table := range Tables() {
		if !used[table] {
			t.Errorf("table %d has no flow", table)
		}
		if IsOwnTable(table) != (table != TableClassify) {
			t.Errorf("IsOwnTable(%d) is %v", table, IsOwnTable(table))
		}
		delete(used, table)
	}
	if len(used) > 0 {
		t.Errorf("flows in tables that are not listed: %v", used)
	}
}

// With affinity port, the bits of the port choose, and nothing else of a connection
// is looked at; protocols without ports have their hash.
func TestPortRows(t *testing.T) {
	const tuple = `
mac: 02:00:5e:00:01:02
pools:
  web: {id: 1, slots: 64, members: {be1: 10.30.0.11:8080}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}
`
	port := strings.Replace(tuple, "slots: 64", "slots: 64, affinity: port", 1)
	golden(t, "testdata/port.txt", changes(t, serving(t, tuple).Snapshot(), serving(t, port).Snapshot()))
	p := serving(t, port).Snapshot().Pool("web")
	for _, proto := range []uint8{protoTCP, protoUDP, protoSCTP} {
		for from, want := range map[uint16]int{0: 0, 1: 0, 2: 1, 3: 1, 126: 63, 128: 0, 65535: 63} {
			tuple := Tuple{Proto: proto, Src: netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), from), Dst: netip.MustParseAddrPort("10.20.0.100:80")}
			if _, got := Slot(p, tuple); got != want {
				t.Errorf("protocol %d, port %d: slot %d, want %d", proto, from, got, want)
			}
		}
	}
}
