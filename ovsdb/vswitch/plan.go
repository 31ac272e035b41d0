package vswitch

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"brlb/ovsdb"
)

// ErrChanged is returned when what a plan was made from is no longer so. Nothing
// was changed: take a new view and plan again.
var ErrChanged = errors.New("vswitch: the database has changed since the plan was made")

// OpenFlow14 is the name of OpenFlow 1.4 in Bridge.protocols.
const OpenFlow14 = "OpenFlow14"

// Plan is a change of the database: one transaction, and what it does in words.
// Its guards make the transaction fail if what it was made from has changed.
type Plan struct {
	// Changes are sentences for people, in the order of the operations; none if
	// everything is as it should be already.
	Changes []string

	guards, ops []ovsdb.Op
}

// Empty tells that there is nothing to do.
func (p Plan) Empty() bool { return len(p.Changes) == 0 }

// Ops returns the operations of the plan's transaction, guards first.
func (p Plan) Ops() []ovsdb.Op {
	if p.Empty() {
		return nil
	}
	return slices.Concat(p.guards, p.ops)
}

func (p *Plan) do(what string, ops ...ovsdb.Op) {
	p.Changes = append(p.Changes, what)
	p.ops = append(p.ops, ops...)
}

// guard makes the plan depend on the values of a row.
func (p *Plan) guard(table string, u ovsdb.UUID, row ovsdb.Columns) {
	p.guards = append(p.guards, ovsdb.Wait{
		Table: table, Where: []ovsdb.Condition{ovsdb.IsRow(u)},
		Columns: slices.Sorted(maps.Keys(row)), Until: ovsdb.UntilEqual, Rows: []ovsdb.Columns{row},
	})
}

// Apply commits the plan in one transaction, behind the operations of before: a
// lock's Assert usually. It does nothing if the plan is empty. Errors are those
// of [ovsdb.Client.Transact], and [ErrChanged].
func (p Plan) Apply(ctx context.Context, c *ovsdb.Client, before ...ovsdb.Op) error {
	if p.Empty() {
		return nil
	}
	_, err := p.transact(ctx, c, before, nil)
	return err
}

// ApplyAndWait is Apply, and waits until ovs-vswitchd has done what it has to do
// for it: until cur_cfg, which rep must hold, reaches the next_cfg of the
// transaction. If it returns ctx's error the plan is committed all the same.
func (p Plan) ApplyAndWait(ctx context.Context, c *ovsdb.Client, rep *ovsdb.Replica, before ...ovsdb.Op) error {
	if p.Empty() {
		return nil
	}
	results, err := p.transact(ctx, c, before, []ovsdb.Op{
		ovsdb.Mutate{Table: TableOpenVSwitch, Mutations: []ovsdb.Mutation{{Column: "next_cfg", Mutator: ovsdb.MutateAdd, Value: ovsdb.Integer(1)}}},
		ovsdb.Select{Table: TableOpenVSwitch, Columns: []string{"next_cfg"}},
	})
	if err != nil {
		return err
	}
	var want int64
	for _, r := range results[len(results)-1].Rows {
		want, _ = r.Get("next_cfg").AsInteger()
	}
	err = rep.Wait(ctx, func(s *ovsdb.Snapshot) bool {
		root, ok := View{s}.Root()
		return ok && root.CurCfg >= want
	})
	if err != nil {
		return fmt.Errorf("vswitch: committed, but ovs-vswitchd has not applied it (cur_cfg has not reached %d): %w", want, err)
	}
	return nil
}

func (p Plan) transact(ctx context.Context, c *ovsdb.Client, before, after []ovsdb.Op) ([]ovsdb.Result, error) {
	results, err := c.Transact(ctx, slices.Concat(before, p.Ops(), after)...)
	if errors.Is(err, ovsdb.ErrTimedOut) {
		return nil, fmt.Errorf("%w: %w", ErrChanged, err)
	}
	return results, err
}

// ControllerConfig is how a bridge should reach its OpenFlow controller.
type ControllerConfig struct {
	// Target is where the controller listens: "unix:PATH" inside of
	// ovs-vswitchd's run directory, "tcp:HOST:PORT" or "ssl:HOST:PORT".
	Target string
	// InactivityProbe is how long ovs-vswitchd waits before it probes a silent
	// controller; 0 leaves the column alone. In milliseconds, at least one.
	InactivityProbe time.Duration
	// MaxBackoff bounds the time between ovs-vswitchd's attempts to connect; 0
	// leaves the column alone. At least one second.
	MaxBackoff time.Duration
	// ExternalIDs are to be in the row's external_ids; other keys stay.
	ExternalIDs map[string]string
}

// SetController plans what makes ovs-vswitchd connect a bridge to a controller
// without a risk to its flows: a Controller row for the target, out-of-band,
// beside the rows of other controllers; fail_mode=secure, so that flows stay
// when the controller is away; and OpenFlow14 among the protocols, if the bridge
// restricts them.
//
// Open vSwitch removes all flows of a bridge when it gets its first controller.
// The plan's Changes say so where it applies.
func (v View) SetController(bridge string, cfg ControllerConfig) (Plan, error) {
	if cfg.Target == "" {
		return Plan{}, errors.New("vswitch: the controller has no target; name one, unix:brlb.sock for example")
	}
	br, err := v.needBridge(bridge)
	if err != nil {
		return Plan{}, err
	}
	var p Plan
	p.guard(TableBridge, br.UUID, ovsdb.Columns{
		"controller": ovsdb.Refs(br.Controllers...),
		"fail_mode":  optionalString(string(br.FailMode)),
		"protocols":  ovsdb.Strings(br.Protocols...),
	})
	where := []ovsdb.Condition{ovsdb.IsRow(br.UUID)}

	if br.FailMode != FailModeSecure {
		p.do(fmt.Sprintf("fail_mode of bridge %s: %s -> secure, so that its flows stay when the controller is away", bridge, orNotSet(string(br.FailMode))),
			ovsdb.Update{Table: TableBridge, Where: where, Row: ovsdb.Columns{"fail_mode": ovsdb.String(string(FailModeSecure))}})
	}
	if len(br.Protocols) > 0 && !slices.Contains(br.Protocols, OpenFlow14) {
		p.do(fmt.Sprintf("protocols of bridge %s: OpenFlow14 added to %s", bridge, strings.Join(br.Protocols, ", ")),
			ovsdb.Mutate{Table: TableBridge, Where: where, Mutations: []ovsdb.Mutation{{Column: "protocols", Mutator: ovsdb.MutateInsert, Value: ovsdb.Strings(OpenFlow14)}}})
	}

	controllers := v.Controllers(br)
	i := slices.IndexFunc(controllers, func(c Controller) bool { return c.Target == cfg.Target })
	if i >= 0 {
		p.adjustController(bridge, controllers[i], cfg)
		return p, nil
	}
	what := fmt.Sprintf("controller %s added to bridge %s", cfg.Target, bridge)
	if !slices.ContainsFunc(controllers, Controller.primary) {
		what += "; it is the first, so Open vSwitch removes all flows of the bridge now"
	}
	row := cfg.columns()
	row["target"] = ovsdb.String(cfg.Target)
	row["external_ids"] = ovsdb.StringMap(cfg.ExternalIDs)
	p.do(what,
		ovsdb.Insert{Table: TableController, Name: "controller", Row: row},
		ovsdb.Mutate{Table: TableBridge, Where: where, Mutations: []ovsdb.Mutation{{Column: "controller", Mutator: ovsdb.MutateInsert, Value: ovsdb.NamedRef("controller")}}})
	return p, nil
}

// primary tells whether ovs-vswitchd counts c among those without which the
// bridge is in its fail mode: not one that listens, nor one said to be a service.
func (c Controller) primary() bool {
	switch c.Type {
	case "primary":
		return true
	case "service":
		return false
	}
	return !strings.HasPrefix(c.Target, "p")
}

// columns are the columns that a controller's row must have, without those that
// are merged.
func (cfg ControllerConfig) columns() ovsdb.Columns {
	row := ovsdb.Columns{"connection_mode": ovsdb.String("out-of-band")}
	if cfg.InactivityProbe > 0 {
		row["inactivity_probe"] = ovsdb.Integer(max(1, cfg.InactivityProbe.Milliseconds()))
	}
	if cfg.MaxBackoff > 0 {
		row["max_backoff"] = ovsdb.Integer(max(1000, cfg.MaxBackoff.Milliseconds()))
	}
	return row
}

// adjustController plans what a row that exists lacks.
func (p *Plan) adjustController(bridge string, have Controller, cfg ControllerConfig) {
	held := ovsdb.Columns{"connection_mode": optionalString(have.ConnectionMode), "inactivity_probe": ovsdb.EmptySet(), "max_backoff": ovsdb.EmptySet()}
	if have.InactivityProbe != nil {
		held["inactivity_probe"] = ovsdb.Integer(have.InactivityProbe.Milliseconds())
	}
	if have.MaxBackoff != nil {
		held["max_backoff"] = ovsdb.Integer(have.MaxBackoff.Milliseconds())
	}
	where := []ovsdb.Condition{ovsdb.IsRow(have.UUID)}
	want := cfg.columns()
	for _, column := range slices.Sorted(maps.Keys(want)) {
		if held[column].Equal(want[column]) {
			continue
		}
		p.do(fmt.Sprintf("%s of controller %s of bridge %s: %v -> %v", column, cfg.Target, bridge, held[column], want[column]),
			ovsdb.Update{Table: TableController, Where: where, Row: ovsdb.Columns{column: want[column]}})
	}
	if what, mutations := mergeMap("external_ids", have.ExternalIDs, cfg.ExternalIDs, nil); what != "" {
		p.do(fmt.Sprintf("external_ids of controller %s of bridge %s: %s", cfg.Target, bridge, what),
			ovsdb.Mutate{Table: TableController, Where: where, Mutations: mutations})
	}
	p.guard(TableController, have.UUID, ovsdb.Columns{"target": ovsdb.String(have.Target)})
}

// SetBridgeExternalIDs plans to set some keys of a bridge's external_ids and to
// remove others. All other keys stay, whoever changes them meanwhile.
func (v View) SetBridgeExternalIDs(bridge string, set map[string]string, remove []string) (Plan, error) {
	br, err := v.needBridge(bridge)
	if err != nil {
		return Plan{}, err
	}
	var p Plan
	p.guard(TableBridge, br.UUID, ovsdb.Columns{"name": ovsdb.String(bridge)})
	if what, mutations := mergeMap("external_ids", br.ExternalIDs, set, remove); what != "" {
		p.do(fmt.Sprintf("external_ids of bridge %s: %s", bridge, what),
			ovsdb.Mutate{Table: TableBridge, Where: []ovsdb.Condition{ovsdb.IsRow(br.UUID)}, Mutations: mutations})
	}
	return p, nil
}

// mergeMap returns the mutations that set and remove keys of a map, and says
// what they do; nothing if the map is like that already.
func mergeMap(column string, have, set map[string]string, remove []string) (what string, mutations []ovsdb.Mutation) {
	var gone []string // keys to delete: inserting leaves existing keys alone
	var says []string
	insert := make(map[string]string)
	for _, k := range slices.Sorted(maps.Keys(set)) {
		old, there := have[k]
		switch {
		case there && old == set[k]:
			continue
		case there:
			says = append(says, fmt.Sprintf("%s=%q (was %q)", k, set[k], old))
		default:
			says = append(says, fmt.Sprintf("%s=%q", k, set[k]))
		}
		gone = append(gone, k)
		insert[k] = set[k]
	}
	for _, k := range remove {
		_, there := have[k]
		_, kept := set[k]
		if there && !kept {
			gone = append(gone, k)
			says = append(says, k+" removed")
		}
	}
	if len(says) == 0 {
		return "", nil
	}
	mutations = []ovsdb.Mutation{{Column: column, Mutator: ovsdb.MutateDelete, Value: ovsdb.Strings(gone...)}}
	if len(insert) > 0 {
		mutations = append(mutations, ovsdb.Mutation{Column: column, Mutator: ovsdb.MutateInsert, Value: ovsdb.StringMap(insert)})
	}
	return strings.Join(says, ", "), mutations
}

func (v View) needBridge(name string) (Bridge, error) {
	br, ok := v.Bridge(name)
	if !ok {
		return Bridge{}, fmt.Errorf("vswitch: there is no bridge %q; create it first: ovs-vsctl add-br %s", name, name)
	}
	return br, nil
}

func optionalString(s string) ovsdb.Value {
	if s == "" {
		return ovsdb.EmptySet()
	}
	return ovsdb.String(s)
}

func orNotSet(s string) string {
	if s == "" {
		return "not set"
	}
	return s
}
