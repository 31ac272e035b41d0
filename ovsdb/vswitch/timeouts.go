package vswitch

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"brlb/ovsdb"
)

// Timeouts are how long conntrack keeps connections in each state, by the names
// of CT_Timeout_Policy.timeouts; whole seconds.
type Timeouts map[string]time.Duration

// String lists them in the order of their names.
func (t Timeouts) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(t)) {
		parts = append(parts, fmt.Sprintf("%s=%v", name, t[name]))
	}
	return strings.Join(parts, ", ")
}

func (t Timeouts) column() ovsdb.Value {
	seconds := make(map[string]int64, len(t))
	for name, d := range t {
		seconds[name] = int64(d / time.Second)
	}
	return ovsdb.IntegerMap(seconds)
}

// Mark is a key in external_ids, and its value, that says whose a row is.
type Mark struct{ Key, Owner string }

func (m Mark) on(externalIDs map[string]string) bool {
	owner, ok := externalIDs[m.Key]
	return ok && owner == m.Owner
}

func (m Mark) column() ovsdb.Value { return ovsdb.StringMap(map[string]string{m.Key: m.Owner}) }

// SetTimeouts plans to give conntrack zones of a datapath ("system", "netdev")
// timeouts, by zone. Those that bear the mark and are not wanted are removed,
// from all datapaths. It fails, with what can be done all the same in the plan,
// if a zone has timeouts of somebody else, or if the database is of an Open
// vSwitch before 2.13.
//
// The row of a datapath that had none stays: ovs-vswitchd says there what the
// datapath can do.
func (v View) SetTimeouts(datapath string, mark Mark, want map[int64]Timeouts) (Plan, error) {
	root, ok := v.Root()
	if !ok || !v.Snapshot.Has(TableDatapath, "") || !v.Snapshot.Has(TableOpenVSwitch, "datapaths") {
		if len(want) == 0 {
			return Plan{}, nil
		}
		return Plan{}, errors.New("vswitch: the database has no place for conntrack timeouts, which need Open vSwitch 2.13 or newer")
	}
	var p Plan
	var taken []error
	for _, kind := range slices.Sorted(maps.Keys(root.Datapaths)) {
		wanted := want
		if kind != datapath {
			wanted = nil
		}
		dp, _ := v.Datapath(kind)
		taken = append(taken, p.adjustZones(v, zonesOf{kind, dp}, mark, wanted))
	}
	if _, there := root.Datapaths[datapath]; !there && len(want) > 0 {
		p.guard(TableOpenVSwitch, root.UUID, ovsdb.Columns{"datapaths": datapathRefs(root.Datapaths)})
		p.addDatapath(root, datapath, mark, want)
	}
	return p, errors.Join(taken...)
}

// zonesOf is a datapath with its type.
type zonesOf struct {
	kind string
	Datapath
}

func (dp zonesOf) name(zone int64) string {
	return fmt.Sprintf("conntrack zone %d of datapath %s", zone, dp.kind)
}

// adjustZones plans what the zones of a datapath lack, and have too much.
func (p *Plan) adjustZones(v View, dp zonesOf, mark Mark, want map[int64]Timeouts) error {
	p.guard(TableDatapath, dp.UUID, ovsdb.Columns{"ct_zones": zoneRefs(dp.CTZones)})
	where := []ovsdb.Condition{ovsdb.IsRow(dp.UUID)}
	zones := v.CTZones(dp.Datapath)
	var taken []error
	for _, number := range slices.Sorted(maps.Keys(zones)) {
		zone := zones[number]
		policy, has := v.CTTimeoutPolicy(zone)
		ours := has && mark.on(policy.ExternalIDs)
		timeouts, wanted := want[number]
		switch {
		case wanted && has && !ours:
			taken = append(taken, fmt.Errorf("vswitch: %s has timeouts that somebody else has set: remove them (ovs-vsctl del-zone-tp %s zone=%d), or want none here",
				dp.name(number), dp.kind, number))
		case wanted && ours:
			if !maps.Equal(policy.Timeouts, timeouts) {
				p.do(fmt.Sprintf("timeouts of %s: %v (was %v)", dp.name(number), timeouts, Timeouts(policy.Timeouts)),
					ovsdb.Update{Table: TableCTTimeoutPolicy, Where: []ovsdb.Condition{ovsdb.IsRow(policy.UUID)}, Row: ovsdb.Columns{"timeouts": timeouts.column()}})
			}
		case wanted:
			p.guard(TableCTZone, zone.UUID, ovsdb.Columns{"timeout_policy": ovsdb.EmptySet()})
			policy := p.addPolicy(dp.name(number), number, mark, timeouts)
			p.ops = append(p.ops, ovsdb.Update{Table: TableCTZone, Where: []ovsdb.Condition{ovsdb.IsRow(zone.UUID)}, Row: ovsdb.Columns{"timeout_policy": policy}})
		case mark.on(zone.ExternalIDs) && (ours || !has):
			p.do("timeouts removed from "+dp.name(number),
				ovsdb.Mutate{Table: TableDatapath, Where: where, Mutations: []ovsdb.Mutation{{Column: "ct_zones", Mutator: ovsdb.MutateDelete, Value: ovsdb.Integer(number)}}})
		case ours:
			p.do("timeouts removed from "+dp.name(number),
				ovsdb.Update{Table: TableCTZone, Where: []ovsdb.Condition{ovsdb.IsRow(zone.UUID)}, Row: ovsdb.Columns{"timeout_policy": ovsdb.EmptySet()}})
		}
	}
	missing := maps.Clone(want)
	maps.DeleteFunc(missing, func(number int64, _ Timeouts) bool { _, there := zones[number]; return there })
	if len(missing) > 0 {
		p.ops = append(p.ops,
			ovsdb.Mutate{Table: TableDatapath, Where: where, Mutations: []ovsdb.Mutation{{Column: "ct_zones", Mutator: ovsdb.MutateInsert, Value: p.addZones(dp, mark, missing)}}})
	}
	return errors.Join(taken...)
}

// addDatapath plans the row of a datapath that has none.
func (p *Plan) addDatapath(root OpenVSwitch, kind string, mark Mark, zones map[int64]Timeouts) {
	p.ops = append(p.ops,
		ovsdb.Insert{Table: TableDatapath, Name: "datapath", Row: ovsdb.Columns{"ct_zones": p.addZones(zonesOf{kind: kind}, mark, zones)}},
		ovsdb.Mutate{Table: TableOpenVSwitch, Where: []ovsdb.Condition{ovsdb.IsRow(root.UUID)},
			Mutations: []ovsdb.Mutation{{Column: "datapaths", Mutator: ovsdb.MutateInsert, Value: ovsdb.MapOf(ovsdb.Pair{Key: ovsdb.StringAtom(kind), Value: ovsdb.NamedUUIDAtom("datapath")})}}})
}

// addZones plans rows of zones, and returns what refers to them by number.
func (p *Plan) addZones(dp zonesOf, mark Mark, zones map[int64]Timeouts) ovsdb.Value {
	var refs []ovsdb.Pair
	for _, number := range slices.Sorted(maps.Keys(zones)) {
		policy := p.addPolicy(dp.name(number), number, mark, zones[number])
		zone := fmt.Sprintf("zone_%d", number)
		p.ops = append(p.ops, ovsdb.Insert{Table: TableCTZone, Name: zone, Row: ovsdb.Columns{"timeout_policy": policy, "external_ids": mark.column()}})
		refs = append(refs, ovsdb.Pair{Key: ovsdb.IntegerAtom(number), Value: ovsdb.NamedUUIDAtom(zone)})
	}
	return ovsdb.MapOf(refs...)
}

// addPolicy plans a row of timeouts, and returns what refers to it.
func (p *Plan) addPolicy(where string, number int64, mark Mark, timeouts Timeouts) ovsdb.Value {
	name := fmt.Sprintf("timeouts_%d", number)
	p.do(fmt.Sprintf("timeouts of %s: %v", where, timeouts),
		ovsdb.Insert{Table: TableCTTimeoutPolicy, Name: name, Row: ovsdb.Columns{"timeouts": timeouts.column(), "external_ids": mark.column()}})
	return ovsdb.NamedRef(name)
}

func zoneRefs(zones map[int64]ovsdb.UUID) ovsdb.Value {
	var pairs []ovsdb.Pair
	for number, u := range zones {
		pairs = append(pairs, ovsdb.Pair{Key: ovsdb.IntegerAtom(number), Value: ovsdb.UUIDAtom(u)})
	}
	return ovsdb.MapOf(pairs...)
}

func datapathRefs(datapaths map[string]ovsdb.UUID) ovsdb.Value {
	var pairs []ovsdb.Pair
	for kind, u := range datapaths {
		pairs = append(pairs, ovsdb.Pair{Key: ovsdb.StringAtom(kind), Value: ovsdb.UUIDAtom(u)})
	}
	return ovsdb.MapOf(pairs...)
}
