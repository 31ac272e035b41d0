// Package vswitch knows the tables of the Open_vSwitch database
// (ovs-vswitchd.conf.db(5)) that a controller of a bridge needs: typed rows, a
// [View] of a snapshot that follows their references, and [Plan]s that change
// them.
//
// Views and plans are pure functions of a snapshot. Only [Plan.Apply] and
// [Plan.ApplyAndWait] talk to a server.
//
// It reads databases from schema 8.2.0 (Open vSwitch 2.13) on. What an older
// schema lacks reads as not set. Ephemeral columns, such as the state of a link,
// are lost when ovsdb-server restarts, and not set means unknown until
// ovs-vswitchd has written them again some seconds later.
package vswitch

import (
	"brlb/ovsdb"
)

// Names of tables.
const (
	TableOpenVSwitch     = "Open_vSwitch"
	TableBridge          = "Bridge"
	TablePort            = "Port"
	TableInterface       = "Interface"
	TableController      = "Controller"
	TableManager         = "Manager"
	TableFlowTable       = "Flow_Table"
	TableCTZone          = "CT_Zone"
	TableCTTimeoutPolicy = "CT_Timeout_Policy"
	TableDatapath        = "Datapath"
)

// Monitor returns what a replica must hold for a [View]: the tables of this
// package with the columns of its rows. Statistics, which change every five
// seconds, are not among them.
func Monitor() ovsdb.MonitorSpec {
	byName := [][]string{{"name"}}
	return ovsdb.MonitorSpec{Tables: []ovsdb.TableSpec{
		{Table: TableOpenVSwitch,
			Columns:         []string{"bridges", "manager_options", "cur_cfg", "next_cfg", "ovs_version", "other_config", "external_ids"},
			OptionalColumns: []string{"db_version", "datapaths", "datapath_types", "iface_types"}},
		{Table: TableBridge, Indexes: byName,
			Columns: []string{"name", "ports", "controller", "fail_mode", "protocols", "datapath_id", "datapath_type", "flow_tables", "external_ids", "other_config"}},
		{Table: TablePort, Indexes: byName,
			Columns: []string{"name", "interfaces", "tag", "trunks", "vlan_mode", "bond_mode", "external_ids", "other_config"}},
		{Table: TableInterface, Indexes: byName,
			Columns: []string{"name", "type", "ofport", "ofport_request", "link_state", "admin_state", "mac_in_use", "mtu", "options",
				"bfd", "bfd_status", "cfm_fault", "lacp_current", "error", "external_ids"}},
		{Table: TableController,
			Columns:         []string{"target", "connection_mode", "inactivity_probe", "max_backoff", "is_connected", "role", "status", "external_ids", "other_config"},
			OptionalColumns: []string{"type"}},
		{Table: TableManager,
			Columns: []string{"target", "inactivity_probe", "max_backoff", "is_connected", "status", "external_ids"}},
		{Table: TableFlowTable,
			Columns: []string{"name", "flow_limit", "overflow_policy", "groups", "prefixes"}, OptionalColumns: []string{"external_ids"}},
		{Table: TableCTZone, Optional: true,
			Columns: []string{"timeout_policy", "external_ids"}, OptionalColumns: []string{"limit"}},
		{Table: TableCTTimeoutPolicy, Optional: true,
			Columns: []string{"timeouts", "external_ids"}},
		{Table: TableDatapath, Optional: true,
			Columns: []string{"datapath_version", "ct_zones", "external_ids"}, OptionalColumns: []string{"capabilities", "ct_zone_default_limit"}},
	}}
}

// View reads the typed rows of a snapshot.
type View struct{ Snapshot *ovsdb.Snapshot }

// Root returns the one row of the table Open_vSwitch; false if the database is
// not initialised.
func (v View) Root() (OpenVSwitch, bool) {
	for r := range v.Snapshot.Rows(TableOpenVSwitch) {
		return OpenVSwitchOf(r), true
	}
	return OpenVSwitch{}, false
}

// Bridges returns all bridges, in the order of their UUIDs.
func (v View) Bridges() []Bridge { return all(v, TableBridge, BridgeOf) }

// Bridge returns the bridge of that name.
func (v View) Bridge(name string) (Bridge, bool) { return named(v, TableBridge, name, BridgeOf) }

// PortByName returns the port of that name.
func (v View) PortByName(name string) (Port, bool) { return named(v, TablePort, name, PortOf) }

// InterfaceByName returns the interface of that name.
func (v View) InterfaceByName(name string) (Interface, bool) {
	return named(v, TableInterface, name, InterfaceOf)
}

// Ports returns the ports of a bridge.
func (v View) Ports(b Bridge) []Port { return follow(v, TablePort, b.Ports, PortOf) }

// Interfaces returns the interfaces of a port, several for a bond.
func (v View) Interfaces(p Port) []Interface {
	return follow(v, TableInterface, p.Interfaces, InterfaceOf)
}

// BridgeInterfaces returns the interfaces of all ports of a bridge.
func (v View) BridgeInterfaces(b Bridge) []Interface {
	var out []Interface
	for _, p := range v.Ports(b) {
		out = append(out, v.Interfaces(p)...)
	}
	return out
}

// Controllers returns the OpenFlow controllers of a bridge.
func (v View) Controllers(b Bridge) []Controller {
	return follow(v, TableController, b.Controllers, ControllerOf)
}

// Managers returns the OVSDB managers that ovsdb-server serves.
func (v View) Managers() []Manager { return all(v, TableManager, ManagerOf) }

// FlowTables returns the configuration of a bridge's flow tables by number.
func (v View) FlowTables(b Bridge) map[int64]FlowTable {
	out := make(map[int64]FlowTable, len(b.FlowTables))
	for number, u := range b.FlowTables {
		if r := v.Snapshot.Row(TableFlowTable, u); r != nil {
			out[number] = FlowTableOf(r)
		}
	}
	return out
}

// Datapath returns the datapath of a type ("system", "netdev").
func (v View) Datapath(kind string) (Datapath, bool) {
	root, ok := v.Root()
	if !ok {
		return Datapath{}, false
	}
	r := v.Snapshot.Row(TableDatapath, root.Datapaths[kind])
	if r == nil {
		return Datapath{}, false
	}
	return DatapathOf(r), true
}

// CTZones returns the configuration of a datapath's conntrack zones by number.
func (v View) CTZones(d Datapath) map[int64]CTZone {
	out := make(map[int64]CTZone, len(d.CTZones))
	for zone, u := range d.CTZones {
		if r := v.Snapshot.Row(TableCTZone, u); r != nil {
			out[zone] = CTZoneOf(r)
		}
	}
	return out
}

// CTTimeoutPolicy returns the timeouts of a conntrack zone; false if it has none
// of its own.
func (v View) CTTimeoutPolicy(z CTZone) (CTTimeoutPolicy, bool) {
	r := v.Snapshot.Row(TableCTTimeoutPolicy, z.TimeoutPolicy)
	if r == nil {
		return CTTimeoutPolicy{}, false
	}
	return CTTimeoutPolicyOf(r), true
}

func all[T any](v View, table string, of func(*ovsdb.Row) T) []T {
	var out []T
	for r := range v.Snapshot.Rows(table) {
		out = append(out, of(r))
	}
	return out
}

func named[T any](v View, table, name string, of func(*ovsdb.Row) T) (T, bool) {
	for r := range v.Snapshot.Find(table, "name", ovsdb.String(name)) {
		return of(r), true
	}
	var none T
	return none, false
}

func follow[T any](v View, table string, refs []ovsdb.UUID, of func(*ovsdb.Row) T) []T {
	out := make([]T, 0, len(refs))
	for _, u := range refs {
		if r := v.Snapshot.Row(table, u); r != nil {
			out = append(out, of(r))
		}
	}
	return out
}
