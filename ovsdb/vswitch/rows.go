package vswitch

import (
	"fmt"
	"math"
	"time"

	"brlb/ovsdb"
)

// The types below are rows of the tables of their names, as one snapshot has
// them. Strings that may be absent are "" then; maps and slices are the
// caller's.

// OpenVSwitch is the root of the configuration.
type OpenVSwitch struct {
	UUID     ovsdb.UUID
	Bridges  []ovsdb.UUID
	Managers []ovsdb.UUID
	// Datapaths are the datapaths in use by type; empty before schema 8.2.0.
	Datapaths map[string]ovsdb.UUID
	// NextCfg counts requests to apply the configuration, CurCfg is the last
	// one that ovs-vswitchd has applied.
	NextCfg, CurCfg int64
	// OVSVersion is set by ovs-ctl only, and so may be "".
	OVSVersion    string
	DBVersion     string
	DatapathTypes []string
	IfaceTypes    []string
	OtherConfig   map[string]string
	ExternalIDs   map[string]string
}

// OpenVSwitchOf reads a row of the table Open_vSwitch.
func OpenVSwitchOf(r *ovsdb.Row) OpenVSwitch {
	return OpenVSwitch{
		UUID:          r.UUID(),
		Bridges:       r.Get("bridges").AsUUIDs(),
		Managers:      r.Get("manager_options").AsUUIDs(),
		Datapaths:     refsByName(r.Get("datapaths")),
		NextCfg:       integer(r, "next_cfg"),
		CurCfg:        integer(r, "cur_cfg"),
		OVSVersion:    text(r, "ovs_version"),
		DBVersion:     text(r, "db_version"),
		DatapathTypes: r.Get("datapath_types").AsStrings(),
		IfaceTypes:    r.Get("iface_types").AsStrings(),
		OtherConfig:   r.Get("other_config").AsStringMap(),
		ExternalIDs:   r.Get("external_ids").AsStringMap(),
	}
}

// FailMode is what a bridge does without its controllers.
type FailMode string

// The values of FailMode; not set means standalone.
const (
	FailModeNotSet     FailMode = ""
	FailModeSecure     FailMode = "secure"     // keeps its flows
	FailModeStandalone FailMode = "standalone" // drops them and forwards as a switch
)

// Bridge is a row of the table Bridge.
type Bridge struct {
	UUID        ovsdb.UUID
	Name        string
	Ports       []ovsdb.UUID
	Controllers []ovsdb.UUID
	FailMode    FailMode
	// Protocols are the OpenFlow versions that the bridge speaks; none means
	// its default, which is 1.0 to 1.5 since 2.12.
	Protocols []string
	// DatapathID is 16 hexadecimal digits, or "" while it is unknown.
	DatapathID   string
	DatapathType string // "" is the same as "system"
	FlowTables   map[int64]ovsdb.UUID
	ExternalIDs  map[string]string
	OtherConfig  map[string]string
}

// BridgeOf reads a row of the table Bridge.
func BridgeOf(r *ovsdb.Row) Bridge {
	return Bridge{
		UUID:         r.UUID(),
		Name:         text(r, "name"),
		Ports:        r.Get("ports").AsUUIDs(),
		Controllers:  r.Get("controller").AsUUIDs(),
		FailMode:     FailMode(text(r, "fail_mode")),
		Protocols:    r.Get("protocols").AsStrings(),
		DatapathID:   text(r, "datapath_id"),
		DatapathType: text(r, "datapath_type"),
		FlowTables:   refsByNumber(r.Get("flow_tables")),
		ExternalIDs:  r.Get("external_ids").AsStringMap(),
		OtherConfig:  r.Get("other_config").AsStringMap(),
	}
}

// Port is a row of the table Port: one interface, or several that are bonded.
type Port struct {
	UUID        ovsdb.UUID
	Name        string
	Interfaces  []ovsdb.UUID
	Tag         VLAN
	Trunks      []int64
	VLANMode    string
	BondMode    string
	ExternalIDs map[string]string
	OtherConfig map[string]string
}

// VLAN is an optional VLAN id: 0 to 4095 if Set.
type VLAN struct {
	ID  uint16
	Set bool
}

// PortOf reads a row of the table Port.
func PortOf(r *ovsdb.Row) Port {
	tag, set := r.Get("tag").AsInteger()
	return Port{
		UUID:        r.UUID(),
		Name:        text(r, "name"),
		Interfaces:  r.Get("interfaces").AsUUIDs(),
		Tag:         VLAN{uint16(tag), set},
		Trunks:      r.Get("trunks").AsIntegers(),
		VLANMode:    text(r, "vlan_mode"),
		BondMode:    text(r, "bond_mode"),
		ExternalIDs: r.Get("external_ids").AsStringMap(),
		OtherConfig: r.Get("other_config").AsStringMap(),
	}
}

// State is up, down or not known.
type State uint8

// The values of State.
const (
	StateUnknown State = iota // ovs-vswitchd has not said
	StateUp
	StateDown
)

func (s State) String() string {
	switch s {
	case StateUp:
		return "up"
	case StateDown:
		return "down"
	}
	return "unknown"
}

func stateOf(r *ovsdb.Row, column string) State {
	switch text(r, column) {
	case "up":
		return StateUp
	case "down":
		return StateDown
	}
	return StateUnknown
}

// OFPort is an interface's OpenFlow port number, which it gets when
// ovs-vswitchd has added it to the datapath.
type OFPort struct {
	number int64
	set    bool
}

// Number returns the port number; false while there is none.
func (p OFPort) Number() (uint32, bool) {
	if !p.set || p.number < 0 || p.number > 0xffffffff {
		return 0, false
	}
	return uint32(p.number), true
}

// Failed tells that the interface could not be added; its Error says why.
func (p OFPort) Failed() bool { return p.set && p.number < 0 }

func (p OFPort) String() string {
	switch {
	case p.Failed():
		return "failed"
	case !p.set:
		return "not assigned"
	}
	return fmt.Sprint(p.number)
}

// Interface is a row of the table Interface.
type Interface struct {
	UUID          ovsdb.UUID
	Name          string
	Type          string // "" is the same as "system"
	OFPort        OFPort
	OFPortRequest int64 // 0: none
	LinkState     State
	AdminState    State
	MACInUse      string
	MTU           int64 // 0: unknown
	Options       map[string]string
	BFD           map[string]string
	BFDStatus     map[string]string
	CFMFault      Condition
	LACPCurrent   Condition
	Error         string // why the interface could not be configured
	ExternalIDs   map[string]string
}

// Condition is true, false or not known.
type Condition uint8

// The values of Condition.
const (
	ConditionUnknown Condition = iota // or the feature is not configured
	ConditionFalse
	ConditionTrue
)

// InterfaceOf reads a row of the table Interface.
func InterfaceOf(r *ovsdb.Row) Interface {
	number, set := r.Get("ofport").AsInteger()
	return Interface{
		UUID:          r.UUID(),
		Name:          text(r, "name"),
		Type:          text(r, "type"),
		OFPort:        OFPort{number, set},
		OFPortRequest: integer(r, "ofport_request"),
		LinkState:     stateOf(r, "link_state"),
		AdminState:    stateOf(r, "admin_state"),
		MACInUse:      text(r, "mac_in_use"),
		MTU:           integer(r, "mtu"),
		Options:       r.Get("options").AsStringMap(),
		BFD:           r.Get("bfd").AsStringMap(),
		BFDStatus:     r.Get("bfd_status").AsStringMap(),
		CFMFault:      condition(r, "cfm_fault"),
		LACPCurrent:   condition(r, "lacp_current"),
		Error:         text(r, "error"),
		ExternalIDs:   r.Get("external_ids").AsStringMap(),
	}
}

// Controller is a row of the table Controller: an OpenFlow controller of a
// bridge.
type Controller struct {
	UUID            ovsdb.UUID
	Target          string
	Type            string         // "primary", "service", or "" to go by the target
	ConnectionMode  string         // "in-band", "out-of-band", or "" for the default, in-band
	InactivityProbe *time.Duration // nil: the default, 5 s; 0: none
	MaxBackoff      *time.Duration // nil: the default, 8 s
	IsConnected     bool           // false also while unknown, as after a restart of ovsdb-server
	Role            string         // "other", "master", "slave", or "" if not known
	Status          map[string]string
	ExternalIDs     map[string]string
	OtherConfig     map[string]string
}

// ControllerOf reads a row of the table Controller.
func ControllerOf(r *ovsdb.Row) Controller {
	connected, _ := r.Get("is_connected").AsBoolean()
	return Controller{
		UUID:            r.UUID(),
		Target:          text(r, "target"),
		Type:            text(r, "type"),
		ConnectionMode:  text(r, "connection_mode"),
		InactivityProbe: milliseconds(r, "inactivity_probe"),
		MaxBackoff:      milliseconds(r, "max_backoff"),
		IsConnected:     connected,
		Role:            text(r, "role"),
		Status:          r.Get("status").AsStringMap(),
		ExternalIDs:     r.Get("external_ids").AsStringMap(),
		OtherConfig:     r.Get("other_config").AsStringMap(),
	}
}

// Manager is a row of the table Manager: an OVSDB client that ovsdb-server
// connects to or listens for.
type Manager struct {
	UUID            ovsdb.UUID
	Target          string
	InactivityProbe *time.Duration // nil: the default, 5 s; 0: none
	MaxBackoff      *time.Duration // nil: the default, 8 s
	IsConnected     bool           // false also while unknown, as after a restart of ovsdb-server
	Status          map[string]string
	ExternalIDs     map[string]string
}

// ManagerOf reads a row of the table Manager.
func ManagerOf(r *ovsdb.Row) Manager {
	connected, _ := r.Get("is_connected").AsBoolean()
	return Manager{
		UUID:            r.UUID(),
		Target:          text(r, "target"),
		InactivityProbe: milliseconds(r, "inactivity_probe"),
		MaxBackoff:      milliseconds(r, "max_backoff"),
		IsConnected:     connected,
		Status:          r.Get("status").AsStringMap(),
		ExternalIDs:     r.Get("external_ids").AsStringMap(),
	}
}

// FlowTable is a row of the table Flow_Table: the configuration of one OpenFlow
// table of a bridge.
type FlowTable struct {
	UUID           ovsdb.UUID
	Name           string
	FlowLimit      *int64 // nil: none
	OverflowPolicy string // "refuse", "evict", or "" for the default, refuse
	Groups         []string
	Prefixes       []string
	ExternalIDs    map[string]string
}

// FlowTableOf reads a row of the table Flow_Table.
func FlowTableOf(r *ovsdb.Row) FlowTable {
	return FlowTable{
		UUID:           r.UUID(),
		Name:           text(r, "name"),
		FlowLimit:      optional(r, "flow_limit"),
		OverflowPolicy: text(r, "overflow_policy"),
		Groups:         r.Get("groups").AsStrings(),
		Prefixes:       r.Get("prefixes").AsStrings(),
		ExternalIDs:    r.Get("external_ids").AsStringMap(),
	}
}

// Datapath is a row of the table Datapath.
type Datapath struct {
	UUID         ovsdb.UUID
	Version      string
	CTZones      map[int64]ovsdb.UUID // by zone, 0 to 65535
	Capabilities map[string]string
	// CTZoneDefaultLimit is how many connections a zone without a limit of its
	// own may track; nil: no limit, or unknown to servers before schema 8.5.0.
	CTZoneDefaultLimit *int64
	ExternalIDs        map[string]string
}

// DatapathOf reads a row of the table Datapath.
func DatapathOf(r *ovsdb.Row) Datapath {
	return Datapath{
		UUID:               r.UUID(),
		Version:            text(r, "datapath_version"),
		CTZones:            refsByNumber(r.Get("ct_zones")),
		Capabilities:       r.Get("capabilities").AsStringMap(),
		CTZoneDefaultLimit: optional(r, "ct_zone_default_limit"),
		ExternalIDs:        r.Get("external_ids").AsStringMap(),
	}
}

// CTZone is a row of the table CT_Zone: the configuration of a conntrack zone.
type CTZone struct {
	UUID          ovsdb.UUID
	TimeoutPolicy ovsdb.UUID // zero: none
	// Limit is how many connections the zone may track; nil: the datapath's
	// default, or unknown to servers before schema 8.5.0.
	Limit       *int64
	ExternalIDs map[string]string
}

// CTZoneOf reads a row of the table CT_Zone.
func CTZoneOf(r *ovsdb.Row) CTZone {
	policy, _ := r.Get("timeout_policy").AsUUID()
	return CTZone{UUID: r.UUID(), TimeoutPolicy: policy, Limit: optional(r, "limit"), ExternalIDs: r.Get("external_ids").AsStringMap()}
}

// CTTimeoutPolicy is a row of the table CT_Timeout_Policy.
type CTTimeoutPolicy struct {
	UUID        ovsdb.UUID
	Timeouts    map[string]time.Duration // by state, "tcp_established" for example
	ExternalIDs map[string]string
}

// CTTimeoutPolicyOf reads a row of the table CT_Timeout_Policy.
func CTTimeoutPolicyOf(r *ovsdb.Row) CTTimeoutPolicy {
	p := CTTimeoutPolicy{UUID: r.UUID(), Timeouts: make(map[string]time.Duration), ExternalIDs: r.Get("external_ids").AsStringMap()}
	for state, seconds := range r.Get("timeouts").AsIntegerMap() {
		p.Timeouts[state] = duration(seconds, time.Second)
	}
	return p
}

func text(r *ovsdb.Row, column string) string {
	s, _ := r.Get(column).AsString()
	return s
}

func integer(r *ovsdb.Row, column string) int64 {
	n, _ := r.Get(column).AsInteger()
	return n
}

func optional(r *ovsdb.Row, column string) *int64 {
	n, ok := r.Get(column).AsInteger()
	if !ok {
		return nil
	}
	return &n
}

func milliseconds(r *ovsdb.Row, column string) *time.Duration {
	n, ok := r.Get(column).AsInteger()
	if !ok {
		return nil
	}
	d := duration(n, time.Millisecond)
	return &d
}

// duration returns n units, or the nearest duration there is.
func duration(n int64, unit time.Duration) time.Duration {
	limit := int64(math.MaxInt64 / unit)
	return time.Duration(max(-limit, min(n, limit))) * unit
}

func condition(r *ovsdb.Row, column string) Condition {
	b, ok := r.Get(column).AsBoolean()
	switch {
	case !ok:
		return ConditionUnknown
	case b:
		return ConditionTrue
	}
	return ConditionFalse
}

func refsByName(v ovsdb.Value) map[string]ovsdb.UUID {
	out := make(map[string]ovsdb.UUID, v.Len())
	for k, a := range v.Pairs() {
		out[k.Text()] = a.UUID()
	}
	return out
}

func refsByNumber(v ovsdb.Value) map[int64]ovsdb.UUID {
	out := make(map[int64]ovsdb.UUID, v.Len())
	for k, a := range v.Pairs() {
		out[k.Integer()] = a.UUID()
	}
	return out
}
