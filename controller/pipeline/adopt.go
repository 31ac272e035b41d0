package pipeline

import (
	"cmp"
	"net/netip"
	"slices"

	"brlb/controller/config"
	"brlb/controller/state"
	"brlb/openflow"
)

// Members reads the members out of a set that came from a switch: their
// numbers, addresses, next hops, and which slots each owns. Rows that this
// version of brlb would not have written so are left out.
func Members(s Set) []state.Adopted {
	type key struct{ pool, number uint16 }
	found := map[key]*state.Adopted{}
	entry := func(f *openflow.FlowMod) *state.Adopted {
		_, pool, number := CookieParts(f.Cookie)
		k := key{pool, uint16(number)}
		if found[k] == nil {
			found[k] = &state.Adopted{PoolID: k.pool, Number: k.number}
		}
		return found[k]
	}
	slots := map[key][]uint16{}
	for id, group := range s {
		for i := range group.Rows {
			f := group.Rows[i].Mod
			switch {
			case id.Kind == KindMember && f.Table == TableMember:
				if addr, ok := memberAddress(f); ok && addr.Port() != 0 {
					entry(f).Address = addr
				}
			case id.Kind == KindMember && f.Table == TableToMember:
				if hop, ok := hopOf(f); ok {
					m := entry(f)
					m.Next, m.HasNext = hop, true
				}
			case id.Kind == KindSlot:
				if owner, ok := SlotOwner(f); ok {
					_, _, slot := CookieParts(f.Cookie)
					k := key{id.Pool, owner}
					slots[k] = append(slots[k], uint16(slot))
				}
			}
		}
	}
	var members []state.Adopted
	for k, m := range found {
		if m.Address.IsValid() {
			m.Slots = slots[k]
			members = append(members, *m)
		}
	}
	slices.SortFunc(members, func(a, b state.Adopted) int { return int(a.Number) - int(b.Number) })
	return members
}

// Fronts reads out of a set that came from a switch which pool serves each VIP
// and port, or the first of a range of ports.
func Fronts(s Set) []state.Front {
	var fronts []state.Front
	for id, group := range s {
		if id.Kind != KindService {
			continue
		}
		for i := range group.Rows {
			f := group.Rows[i].Mod
			if f.Table != TableClassify {
				continue
			}
			front := state.Front{Proto: config.ProtoAny, PoolID: id.Pool}
			for _, field := range []openflow.Field{openflow.IPv4Dst, openflow.IPv6Dst} {
				if addr, found := f.Match.Get(field); found {
					front.Address = addr.IP()
				}
			}
			for _, proto := range []config.Proto{config.ProtoTCP, config.ProtoUDP, config.ProtoSCTP} {
				if port, found := f.Match.Get(transportOf(proto).dst); found {
					front.Proto, front.Port = proto, uint16(port.Uint64())
				}
			}
			fronts = append(fronts, front)
		}
	}
	slices.SortFunc(fronts, func(a, b state.Front) int {
		return cmp.Or(a.Address.Compare(b.Address), cmp.Compare(a.Proto, b.Proto), cmp.Compare(a.Port, b.Port))
	})
	return fronts
}

// applied returns the actions that a flow carries out at once.
func applied(f *openflow.FlowMod) openflow.ApplyActions {
	for _, i := range f.Instructions {
		if actions, ok := i.(openflow.ApplyActions); ok {
			return actions
		}
	}
	return nil
}

// SlotOwner returns the member number that a slot row loads.
func SlotOwner(f *openflow.FlowMod) (uint16, bool) { return loaded(f, openflow.Reg2) }

// Heir returns the member number that the row of a slot which moves gives to new
// connections.
func Heir(f *openflow.FlowMod) (uint16, bool) { return loaded(f, openflow.Reg7) }

func loaded(f *openflow.FlowMod, register openflow.Field) (uint16, bool) {
	for _, a := range applied(f) {
		if load, ok := a.(openflow.RegLoad); ok && load.Dst == register.Whole() && load.Value <= 0xffff {
			return uint16(load.Value), true
		}
	}
	return 0, false
}

// Links returns the number of links of a pool's multipath row.
func Links(f *openflow.FlowMod) (int, bool) {
	for _, a := range applied(f) {
		if m, ok := a.(openflow.Multipath); ok {
			return int(m.MaxLink) + 1, true
		}
	}
	return 0, false
}

// memberAddress reads a member's address out of its row.
func memberAddress(f *openflow.FlowMod) (netip.AddrPort, bool) {
	for _, a := range applied(f) {
		if note, ok := a.(openflow.Note); ok {
			return noted(note)
		}
		ct, ok := a.(openflow.CT)
		if !ok {
			continue
		}
		for _, nested := range ct.Exec {
			if nat, ok := nested.(openflow.NAT); ok && nat.MinAddr.IsValid() {
				return netip.AddrPortFrom(nat.MinAddr, nat.MinPort), true
			}
		}
	}
	return netip.AddrPort{}, false
}

func hopOf(f *openflow.FlowMod) (hop state.NextHop, ok bool) {
	for _, a := range applied(f) {
		switch a := a.(type) {
		case openflow.SetField:
			switch a.OXM.Field {
			case openflow.EthDst:
				hop.MAC = a.OXM.MAC()
			case openflow.TunnelIPv4Dst, openflow.TunnelIPv6Dst:
				hop.Source = "tunnel"
			}
		case openflow.RegLoad:
			if a.Dst == vlan {
				hop.VLAN = uint16(a.Value) &^ tagPresent
			}
		case openflow.Output:
			hop.Port, ok = uint32(a.Port), true
		}
	}
	return hop, ok && hop.MAC != openflow.MAC{}
}
