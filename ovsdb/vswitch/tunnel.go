package vswitch

import (
	"errors"
	"fmt"
	"slices"

	"brlb/ovsdb"
)

// Tunnel is a port through which flows send frames to any host: they say to which
// one, and with which key.
type Tunnel struct {
	Name string
	Type string // "vxlan", "geneve", "gre"
}

// options are what Interface.options say of such a port. A kernel's datapath sends
// UDP without a checksum unless it is told, which receivers over IPv6 drop (RFC 8200
// section 8.1). The checksum of GRE is another thing, and makes packets longer.
func (t Tunnel) options() map[string]string {
	options := map[string]string{"remote_ip": "flow", "key": "flow"}
	if t.Type != "gre" {
		options["csum"] = "true"
	}
	return options
}

// noVLAN has no stations: what the bridge floods stays out of a port in it, and
// what comes in there reaches nobody, unless flows say otherwise.
const noVLAN = 4095

// SetTunnels plans to give a bridge the ports of some tunnels. A key in the
// external_ids of their interfaces, mark, says that the caller has made them:
// those that are not wanted are removed. It fails, with what can be done all the
// same in the plan, if a name is taken by an interface that is not so marked or
// that is elsewhere.
func (v View) SetTunnels(bridge, mark string, want []Tunnel) (Plan, error) {
	br, err := v.needBridge(bridge)
	if err != nil {
		return Plan{}, err
	}
	var p Plan
	p.guard(TableBridge, br.UUID, ovsdb.Columns{"name": ovsdb.String(bridge), "ports": ovsdb.Refs(br.Ports...)})
	where := []ovsdb.Condition{ovsdb.IsRow(br.UUID)}
	there := map[string]bool{}
	for _, port := range v.Ports(br) {
		for _, i := range v.Interfaces(port) {
			if _, ours := i.ExternalIDs[mark]; !ours {
				continue
			}
			n := slices.IndexFunc(want, func(t Tunnel) bool { return t.Name == i.Name })
			if n < 0 {
				p.do(fmt.Sprintf("port %s removed from bridge %s", port.Name, bridge),
					ovsdb.Mutate{Table: TableBridge, Where: where, Mutations: []ovsdb.Mutation{{Column: "ports", Mutator: ovsdb.MutateDelete, Value: ovsdb.Refs(port.UUID)}}})
				continue
			}
			there[i.Name] = true
			p.adjustTunnel(port, i, want[n])
		}
	}
	var taken []error
	for n, t := range want {
		if there[t.Name] {
			continue
		}
		if _, exists := v.InterfaceByName(t.Name); exists {
			taken = append(taken, fmt.Errorf("vswitch: bridge %s needs a port %s for tunnels, and an interface of that name exists: remove it, or have one bridge alone use tunnels of type %s", bridge, t.Name, t.Type))
			continue
		}
		iface, port := fmt.Sprintf("tunnel_interface_%d", n), fmt.Sprintf("tunnel_port_%d", n)
		p.do(fmt.Sprintf("port %s added to bridge %s: type=%s, remote_ip=flow, key=flow", t.Name, bridge, t.Type),
			ovsdb.Insert{Table: TableInterface, Name: iface, Row: ovsdb.Columns{
				"name": ovsdb.String(t.Name), "type": ovsdb.String(t.Type),
				"options": ovsdb.StringMap(t.options()), "external_ids": ovsdb.StringMap(map[string]string{mark: "true"}),
			}},
			ovsdb.Insert{Table: TablePort, Name: port, Row: ovsdb.Columns{
				"name": ovsdb.String(t.Name), "interfaces": ovsdb.NamedRef(iface), "tag": ovsdb.Integer(noVLAN),
			}},
			ovsdb.Mutate{Table: TableBridge, Where: where, Mutations: []ovsdb.Mutation{{Column: "ports", Mutator: ovsdb.MutateInsert, Value: ovsdb.NamedRef(port)}}})
	}
	return p, errors.Join(taken...)
}

// adjustTunnel plans what a port that exists lacks.
func (p *Plan) adjustTunnel(port Port, i Interface, want Tunnel) {
	if i.Type != want.Type {
		p.do(fmt.Sprintf("type of interface %s: %s -> %s", i.Name, orNotSet(i.Type), want.Type),
			ovsdb.Update{Table: TableInterface, Where: []ovsdb.Condition{ovsdb.IsRow(i.UUID)}, Row: ovsdb.Columns{"type": ovsdb.String(want.Type)}})
	}
	p.mergeInterface(i, "options", i.Options, want.options(), nil)
	if port.Tag != (VLAN{ID: noVLAN, Set: true}) {
		p.do(fmt.Sprintf("tag of port %s: %d", port.Name, noVLAN),
			ovsdb.Update{Table: TablePort, Where: []ovsdb.Condition{ovsdb.IsRow(port.UUID)}, Row: ovsdb.Columns{"tag": ovsdb.Integer(noVLAN)}})
	}
}
