package pipeline

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"brlb/controller/state"
	"brlb/openflow"
)

// every has whatever makes rows of its own.
const every = `
mac: 02:00:5e:00:01:02
zone: 5
gateways: [10.30.0.1/24, "2001:db8:30::1/64"]
pools:
  web: {id: 1, slots: 64, on_all_down: reject, members: {be1: 10.30.0.11:8080, be2: 10.30.0.12:8080}}
  web6: {id: 2, slots: 64, members: {be1: "[2001:db8:30::11]:8080"}}
  own: {id: 3, slots: 64, conntrack: {limit: 9}, members: {be3: 10.30.0.13:8080}}
  dsr: {id: 4, slots: 64, mode: dsr, affinity: source, members: {be4: 10.30.0.14:80, be5: 10.30.0.15:80}}
  far: {id: 5, slots: 64, mode: tunnel, members: {be6: 10.50.0.16:80}}
  port: {id: 6, slots: 64, affinity: port, members: {be7: 10.30.0.17:8080}}
services:
  web: {address: [10.20.0.100, "2001:db8:20::100"], ports: [80/tcp, 53/udp, 9/sctp, 8000-8001/tcp], pool: web, pool6: web6, other_ports: reject}
  own: {address: 10.20.0.101, ports: [80/tcp, 53/udp], pool: own}
  dsr: {address: 10.20.0.102, ports: [any], pool: dsr}
  far: {address: 10.20.0.103, ports: [80/tcp], pool: far}
  any: {address: 10.20.0.104, ports: [any], pool: port}
`

// everyRow renders every kind of row.
func everyRow(t *testing.T) []*openflow.FlowMod {
	t.Helper()
	var rows []*openflow.FlowMod
	for _, kernel := range []bool{false, true} {
		s := serving(t, every)
		s.SetKernel(kernel)
		s.SetFlushReused(!kernel)
		s.SetPorts([]state.Port{{Number: 1, Name: "p1", Live: true}, {Number: 2, Name: "p2", Live: true}, {Number: 7, Name: "brlb-vxlan", Live: true}}, start)
		snapshot := s.Snapshot()
		snapshot.Pool("dsr").Moving = &state.Moving{From: map[int]state.Leaving{0: {Key: "10.30.0.14:80"}}}
		rows = append(rows, render(t, snapshot).Flows()...)
	}
	return rows
}

// mention is one of a register, or of what conntrack remembers: written or not, and
// which bits.
var mention = regexp.MustCompile(`(->|multipath\([^)]*|result_dst=)?(?:NXM_NX_)?((?i:reg\d+|ct_mark|ct_label))(\[[0-9.]+\])?`)

// tables are those that set or read something.
type tables map[string]map[int]bool

func (t tables) add(name string, ids ...int) {
	if t[name] == nil {
		t[name] = map[int]bool{}
	}
	for _, id := range ids {
		t[name][id] = true
	}
}

// The legend has every table, register, bit and kind that rows have, and no other.
func TestLegend(t *testing.T) {
	legend := NewLegend()
	var wantIDs, ids []int
	set, read, wantSet, wantRead := tables{}, tables{}, tables{}, tables{}
	bits, wantBits := map[string]bool{}, map[string]bool{}
	used := map[Kind]bool{KindLearned: true} // rows that only the switch makes
	for _, table := range legend.Tables {
		ids = append(ids, table.ID)
	}
	for _, fields := range [][]FieldLegend{legend.Registers, legend.Conntrack} {
		for _, f := range fields {
			m := mention.FindStringSubmatch(f.Name)
			wantSet.add(m[2], f.Set...)
			wantRead.add(m[2], f.Read...)
			wantBits[m[2]+m[3]] = true
		}
	}
	for _, f := range everyRow(t) {
		table := int(f.Table)
		if !slices.Contains(wantIDs, table) {
			wantIDs = append(wantIDs, table)
		}
		kind, _, _ := CookieParts(f.Cookie)
		used[kind] = true
		match, actions, _ := strings.Cut(f.String(), "actions=")
		for _, m := range mention.FindAllStringSubmatch(match, -1) {
			read.add(strings.ToLower(m[2]), table)
		}
		for _, m := range mention.FindAllStringSubmatch(actions, -1) {
			field, where := strings.ToLower(m[2]), read
			if m[1] != "" {
				where = set
			}
			where.add(field, table)
			if strings.HasPrefix(field, "ct_") {
				bits[field+m[3]] = true
			}
		}
	}
	for _, f := range legend.Registers {
		bits[f.Name] = true
		set.add(f.Name) // reg3 is the controller's to set
	}
	slices.Sort(wantIDs)
	for name, diff := range map[string]string{
		"tables": cmp.Diff(wantIDs, ids), "set": cmp.Diff(set, wantSet), "read": cmp.Diff(read, wantRead), "bits": cmp.Diff(bits, wantBits),
		"kinds": cmp.Diff(slices.Sorted(maps.Keys(used)), slices.Sorted(maps.Keys(kindNames))),
	} {
		if diff != "" {
			t.Errorf("%s, - of the rows, + of the legend:\n%s", name, diff)
		}
	}
}
