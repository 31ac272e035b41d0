package controller

import (
	"cmp"
	"net/netip"
	"slices"

	"brlb/controller/config"
	"brlb/controller/conntrack"
	"brlb/controller/pipeline"
	"brlb/controller/state"
)

// standing is what a snapshot says about the switch's connections: whose may
// stay.
type standing struct {
	members map[uint16]place             // by number
	ports   map[netip.Addr][]config.Port // that are served, by VIP
	served  map[netip.Addr]bool          // VIPs that are served, or were

	flushable []uint8 // protocols whose entries the switch can be made to forget
}

// place is where a member is.
type place struct {
	addr netip.Addr
	port uint16 // 0 if it answers from any, as with ranges of ports
	zone uint16 // of its connections
	pool string
	name string
	cut  bool   // its connections are to end
	why  string // they are
}

func standingOf(s *state.Snapshot, served map[netip.Addr]bool) *standing {
	st := &standing{members: map[uint16]place{}, ports: map[netip.Addr][]config.Port{}, served: served, flushable: flushable}
	if s.Kernel { // see the pipeline's abortFlow
		st.flushable = []uint8{conntrack.ProtoTCP, conntrack.ProtoUDP}
	}
	for i := range s.Services {
		for _, vip := range s.Services[i].Addresses {
			st.ports[vip] = append(st.ports[vip], s.Services[i].Ports...)
		}
	}
	anyPort := keepPorts(s)
	for i := range s.Pools {
		for j := range s.Pools[i].Members {
			if m := &s.Pools[i].Members[j]; m.Number != 0 {
				port := m.Address.Port()
				if anyPort[s.Pools[i].ID] {
					port = 0
				}
				st.members[m.Number] = place{addr: m.Address.Addr(), port: port, zone: cmp.Or(s.Pools[i].Zone, s.Zone), pool: m.ID.Pool, name: m.Name, cut: m.Cut, why: whyCut(m)}
			}
		}
	}
	return st
}

// keepPorts lists the pools whose members get packets on the ports that clients
// use.
func keepPorts(s *state.Snapshot) map[uint16]bool {
	pools := map[uint16]bool{}
	for i := range s.Services {
		if slices.ContainsFunc(s.Services[i].Ports, config.Port.Kept) {
			for _, id := range s.Services[i].PoolIDs {
				pools[id] = true
			}
		}
	}
	return pools
}

func whyCut(m *state.Member) string {
	switch {
	case !m.Cut:
		return ""
	case m.Admin.State == state.Disabled:
		return "its drain has come to the deadline"
	}
	return "it is down"
}

// servedBy lists the VIPs of a snapshot.
func servedBy(s *state.Snapshot) []netip.Addr {
	var vips []netip.Addr
	for i := range s.Services {
		vips = append(vips, s.Services[i].Addresses...)
	}
	return vips
}

// flushable are the protocols whose entries may be flushed.
var flushable = []uint8{conntrack.ProtoTCP, conntrack.ProtoUDP, conntrack.ProtoSCTP}

// protoOf is a protocol as the configuration calls it.
func protoOf(number uint8) config.Proto {
	switch number {
	case conntrack.ProtoTCP:
		return config.ProtoTCP
	case conntrack.ProtoUDP:
		return config.ProtoUDP
	case conntrack.ProtoSCTP:
		return config.ProtoSCTP
	}
	return ""
}

// fate is what is to become of an entry.
type fate int

const (
	stays fate = iota
	goes
	unknown // the number of its member is none of the configuration's
)

// fate judges an entry. Entries of ICMP stay: they live for a minute at most, and
// flushing some of them makes ovs-vswitchd abort (see openflow.CTFlush). Those of
// connections that have ended stay: until the flush arrives, their clients may use
// their ports again, and a SYN on such an entry finds its way by itself. What is in
// another zone than the pool's, which had that one once, nobody finds again. What may
// belong to another brlb that uses the same zone stays: an entry is this one's if
// its number, and the address where its answers come from, are those of one member.
func (st *standing) fate(e *conntrack.Entry) fate {
	_, number := pipeline.MarkParts(e.Mark)
	if number == 0 || !e.Open() || !slices.Contains(st.flushable, e.Proto) {
		return stays
	}
	m, known := st.members[number]
	switch {
	case !known:
		return unknown
	case m.addr != e.Reply.Src:
		return stays
	case m.cut, m.zone != e.Zone, st.served[e.Orig.Dst] && !st.serves(e):
		return goes
	}
	return stays
}

// serves says whether a service has the address and port that an entry came to.
func (st *standing) serves(e *conntrack.Entry) bool {
	proto := protoOf(e.Proto)
	return slices.ContainsFunc(st.ports[e.Orig.Dst], func(p config.Port) bool { return p.Contains(proto, e.Orig.DstPort) })
}

// leaving lists the numbers whose entries might stay before, and may not now;
// after a start, where nothing was before, those whose entries may not.
func (st *standing) leaving(before *standing) []uint16 {
	var numbers []uint16
	if before == nil {
		for number, m := range st.members {
			if m.cut {
				numbers = append(numbers, number)
			}
		}
		return numbers
	}
	for number, m := range before.members {
		if now, there := st.members[number]; !m.cut && (!there || now.cut) {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// lessThan says whether entries that might stay before may have to go now.
func (st *standing) lessThan(before *standing) bool {
	if before == nil || len(st.leaving(before)) > 0 {
		return true
	}
	for vip, ports := range before.ports {
		for _, port := range ports {
			if !slices.Contains(st.ports[vip], port) {
				return true
			}
		}
	}
	return false
}

// shares says whether another member, whose connections may stay, may answer
// from the address and port of this one.
func (st *standing) shares(number uint16, m place) bool {
	for other, o := range st.members {
		if other != number && !o.cut && o.addr == m.addr && (o.port == m.port || o.port == 0 || m.port == 0) {
			return true
		}
	}
	return false
}
