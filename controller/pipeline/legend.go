package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Legend says what stands where in the pipeline.
type Legend struct {
	Tables    []TableLegend `json:"tables"`
	Registers []FieldLegend `json:"registers"`
	Conntrack []FieldLegend `json:"conntrack"`
	Cookie    []FieldLegend `json:"cookie"`
}

// TableLegend says what a table is for.
type TableLegend struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
	Rows string `json:"rows"` // what they are, or do
	Miss string `json:"miss"` // what becomes of a packet that no row takes
}

// FieldLegend says what is in a register, or in some bits of a field.
type FieldLegend struct {
	Name  string `json:"name"` // reg0, ct_mark[0..15]; for cookies the bits alone
	Holds string `json:"holds"`
	Set   []int  `json:"set,omitempty"`  // the tables whose rows do so
	Read  []int  `json:"read,omitempty"` // likewise
}

// SetIn lists the tables in which the field is set: 0, 2.
func (f *FieldLegend) SetIn() string { return listed(f.Set) }

// ReadIn lists the tables in which the field is read.
func (f *FieldLegend) ReadIn() string { return listed(f.Read) }

func listed(tables []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(tables), " ", ", "), "[]")
}

// NewLegend returns the legend of every pipeline that brlb makes.
func NewLegend() *Legend {
	const (
		counted = "dropped, counted"
		never   = "dropped (nothing comes here that has no row)"
	)
	return &Legend{
		Tables: []TableLegend{
			{TableClassify, "classify", "a service's VIP and port; what members send from their service ports; ARP, solicitations and ping for own addresses; whatever else goes to a VIP or to brlb's MAC", "none of brlb's business: `NORMAL`, or with `miss: drop` dropped, but for the bridge's own host, where probes come from"},
			{TableOwn, "own", "answers ARP, neighbour solicitations and ping; what the switch cannot answer goes to the controller", never},
			{TableVIP, "vip", "after conntrack, on the way to a VIP: known connection, new connection, SYN on a stale entry", counted},
			{TableReply, "reply", "after conntrack, on the way back", "addressed to brlb: dropped; else none of brlb's business"},
			{TableRest, "rest", "to a VIP, but to no service: ICMP errors and fragments go through conntrack; with `other_ports: reject` the client is told", counted},
			{TableForUs, "for us", "to brlb's MAC, but of no service: ICMP errors and fragments go through conntrack", counted},
			{TableAdvertise, "advertise", "a neighbour solicitation that table 1 has made an advertisement: its flags and the MAC", never},
			{TableReuse, "reuse", "SYNs, with the userspace conntrack of Open vSwitch 3.0 to 3.2: from a port that was used a moment ago?", never},
			{TablePlace, "place", "without conntrack: a learned connection goes to the slot's new owner", "it stays with the member before"},
			{TableLearned, "learned", "without conntrack: connections opened while their slot moved; the switch adds these rows itself", "opened while its slot did not move"},
			{TableHash, "hash", "one or more a pool: which slot", counted},
			{TableSlots, "slots", "one a slot: which member owns it", "no member owns the slot: dropped, counted; with `on_all_down: reject` the client is told"},
			{TableMember, "member", "one or more a member: NAT, and what is remembered of the connection; or MACs; or a tunnel", counted},
			{TableToMember, "to member", "one a member: MACs, ttl, output", "the member is gone: dropped, counted"},
			{TableToClient, "to client", "MACs and port of the connection's first packet, ttl, output", "dropped"},
			{TableError, "error", "an ICMPv6 error from the members' side gets the VIP as its source, before it is translated", "about no known connection: dropped"},
			{TableHairpin, "hairpin", "what members send to a gateway: answers to clients that they know as that gateway", "dropped"},
		},
		Registers: []FieldLegend{
			{"reg0", "pool id", []int{0, 2, 4}, []int{10, 11, 12}},
			{"reg1", "slot", []int{10}, []int{11}},
			{"reg2", "member number", []int{2, 8, 11}, []int{12, 13}},
			{"reg3", "1 in a packet that the controller has sent again, 2 in one that only opens a flow", nil, []int{2, 7, 13}},
			{"reg4", "1 if the destination port stays, 2 if reg2 has the member of a learned connection", []int{2, 11}, []int{10, 12}},
			{"reg5", "the VLAN tag (TCI) with which the packet came", []int{10}, []int{11, 12}},
			{"reg6", "whether a connection was learned", []int{11}, []int{8}},
			{"reg7", "number of the member to which the slot moves; then how many octets a packet may have in a tunnel", []int{11, 12}, []int{8}},
			{"reg8", "1 if the packet leaves by the port by which its connection came, 2 once its source is translated", []int{2, 12, 13}, []int{12, 13}},
			{"reg9", "bit 0: the packet is too long for its tunnel; bit 1: its SCTP association must end", []int{12, 13}, []int{13}},
			{"reg10", "the conntrack zone, if it is a pool's own", []int{0, 4}, []int{7, 13}},
		},
		Conntrack: []FieldLegend{
			{"ct_mark[0..15]", "member number", []int{12}, []int{2, 13}},
			{"ct_mark[16..31]", "pool id", []int{12}, []int{2, 13}},
			{"ct_label[0..47]", "MAC address from which the first packet came", []int{12}, []int{14}},
			{"ct_label[48..63]", "port by which it came", []int{12}, []int{14}},
			{"ct_label[64..79]", "its VLAN tag (TCI)", []int{12}, []int{14}},
			{"ct_label[80]", "whether the connection leaves by the port by which it came", []int{12}, []int{2}},
			{"ct_mark in zone XOR 0x4000", "the connection's zone, if it is a pool's own", []int{13}, []int{16}},
			{"ct_mark in zone XOR 0x8000", "1: the port has been used; 2: the controller was asked to flush its entry", []int{0, 7}, []int{7}},
		},
		Cookie: []FieldLegend{
			{"48..63", fmt.Sprintf("%#x, brlb's tag", cookieTag), nil, nil},
			{"40..47", "kind: " + kinds(), nil, nil},
			{"24..39", "pool id, 0 for rows of no pool", nil, nil},
			{"0..23", "index: the slot, or the member number", nil, nil},
		},
	}
}

func kinds() string {
	var all []string
	for _, k := range slices.Sorted(maps.Keys(kindNames)) {
		all = append(all, fmt.Sprintf("%d %v", k, k))
	}
	return strings.Join(all, ", ")
}
