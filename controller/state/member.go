package state

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"brlb/controller/config"
	"brlb/openflow"
)

// MemberID names a member of a pool: the pool's name and the member's key,
// its canonical address:port.
type MemberID struct {
	Pool string
	Key  string
}

// Health is the verdict of the probes.
type Health string

// The health verdicts. Unknown: no conclusive probe yet.
const (
	Unknown Health = "unknown"
	Up      Health = "up"
	Down    Health = "down"
)

// ProbeID names one probe: an address and the check that runs against it.
// Pools that share both share the probe and its verdict.
type ProbeID struct {
	Address netip.AddrPort
	Check   string
}

// Verdict is the health of one probe target.
type Verdict struct {
	Health Health
	Since  time.Time
	Code   string // L4OK, L4TOUT, ... L7TOUT
	Detail string // a sentence for people, e.g. "200 in 1.2ms"
	Says   Statement
}

// Statement is what a member says of itself in its answers to probes.
type Statement struct {
	Leave     string // "drain" or "maint": it wants no new connections
	HasWeight bool
	Percent   uint32 // of its weight, 0..1000, if HasWeight
}

// NextHop is where frames for an address must go.
type NextHop struct {
	MAC    openflow.MAC
	Port   uint32 // OpenFlow port number on the bridge
	VLAN   uint16 // VLAN id of frames on that port, 1..4094; 0: untagged
	Source string // "ovsdb", "arp", "nd", "tunnel" or "adopted" (found in the switch's flows)
}

// Question is what an address's next hop is asked by, in a person's words.
func Question(addr netip.Addr) string {
	if addr.Is4() {
		return "ARP"
	}
	return "neighbour discovery"
}

// Port is a port of the bridge, as the switch describes it.
type Port struct {
	Number uint32
	Name   string
	Live   bool // OFPPS_LIVE: carrier and BFD, CFM, LACP where configured
	MAC    openflow.MAC
}

// Member is one member of a pool in a Snapshot.
type Member struct {
	ID      MemberID
	Name    string
	Address netip.AddrPort
	Via     netip.Addr // router that leads to the member; zero if on link
	Check   string
	// Configured is the weight that the file, or OVSDB, gives. Weight is that in
	// force, which operators may have set, and Percent how much of it counts.
	Configured uint32
	Weight     uint32
	Percent    uint32 // 0..1000
	Domain     string // failure domain, for layout crush
	// Origin is the member of another pool, one inside this one, that it is; the
	// zero value if it belongs to this pool.
	Origin MemberID
	// Nominal is its weight in the pool's anchor. Part, in pools that contain
	// others, is its weight in the table: there both are parts of the whole.
	Nominal  uint32
	Part     uint32
	Number   uint16 // ct_mark[0..15] and reg2; stable for the life of the key
	Admin    Override
	Health   Verdict
	Next     NextHop
	HasNext  bool
	Active   bool
	Adopted  bool   // owned slots when brlb connected or its check changed, and has no verdict since
	Reason   string // why it is not active; empty when it is
	Despite  string // why it would not be, were there no emergency
	Ramp     uint32 // percent of its weight that slow start gives it; 0 when it has all
	Slots    int
	Cut      bool // its open connections are to end
	Declared bool // comes from an OVSDB Interface row, not from the file
	// Rival is a pool of another conntrack zone that has a member with the same
	// address and port, so that this one's answers would be taken for that one's;
	// "" if there is none.
	Rival string

	fit   bool // nothing but its health may keep it from being active
	alien bool // of the address family that the pool is not
}

// Key returns the member's canonical address:port.
func (m *Member) Key() string { return m.ID.Key }

// member is what the configuration or OVSDB says of a member.
type member struct {
	id       MemberID
	name     string
	address  netip.AddrPort
	via      netip.Addr
	check    string
	weight   uint32
	domain   string
	tunnel   config.Tunnel // that leads to it; the zero value for none
	declared bool
	learned  bool // from OVSDB or DNS, not from the file
	rival    string
	alien    bool
}

func (m *member) nextHopAddr() netip.Addr {
	if m.via.IsValid() {
		return m.via
	}
	return m.address.Addr()
}

func (m *member) probe() ProbeID { return ProbeID{Address: m.address, Check: m.check} }

func fromConfig(pool *config.Pool, m *config.Member) member {
	return member{
		id:      MemberID{Pool: pool.Name, Key: m.Address.String()},
		name:    m.Name,
		address: m.Address,
		via:     m.Via,
		check:   pool.Check,
		weight:  m.Weight,
		domain:  m.Domain,
		tunnel:  pool.Tunnel,
		alien:   m.Address.Addr().Is6() != pool.IPv6,
	}
}

func fromDeclared(pool *config.Pool, d *Declared) member {
	name := d.Name
	if name == "" {
		name = d.Interface
	}
	return member{
		id:       MemberID{Pool: pool.Name, Key: d.Address.String()},
		name:     name,
		address:  d.Address,
		check:    pool.Check,
		weight:   d.Weight,
		domain:   d.Domain,
		tunnel:   pool.Tunnel,
		declared: true,
		learned:  true,
		alien:    d.Address.Addr().Is6() != pool.IPv6,
	}
}

const noNumber = "all 65535 member numbers are in use"

// inactive says why a member must not own slots, or returns "".
func (s *State) inactive(m *Member) string {
	switch {
	case !s.numbered:
		return "waiting for OVSDB, which keeps the member numbers"
	case m.Number == 0:
		return noNumber
	case m.alien && m.Address.Addr().Is6():
		return "it has an IPv6 address, and the pool's members are IPv4"
	case m.alien:
		return "it has an IPv4 address, and the pool's members are IPv6"
	case s.own[m.Address.Addr()]:
		return fmt.Sprintf("%s is an address of brlb's own, a VIP or gateway", m.Address.Addr())
	case m.Rival != "":
		return fmt.Sprintf("pool %s has a member that answers from there too, and another conntrack zone: give both pools the same conntrack, zone included", m.Rival)
	case s.unsuited(m) != "":
		return s.unsuited(m)
	case !s.mayJudge(m):
		return fmt.Sprintf("%s is in none of the networks of probe_allow, so it is not probed", m.Address.Addr())
	case m.Admin.State != Enabled:
		return describeOverride(m.Admin)
	case m.Health.Health == Down:
		return strings.TrimSpace("down: " + m.Health.Code + " " + m.Health.Detail)
	case m.Health.Health == Unknown && !m.Adopted && !s.byPort[m.Check]:
		return "no verdict yet"
	case m.Health.Says.Leave != "":
		return "its agent says " + m.Health.Says.Leave
	case !m.HasNext && m.Next.Source == viaTunnel:
		return fmt.Sprintf("no tunnel: port %s is not on the bridge", s.tunnelPort(m.ID.Pool))
	case !m.HasNext && m.Via.IsValid():
		return fmt.Sprintf("no next hop: router %s has not answered %s", m.Via, Question(m.Via))
	case !m.HasNext:
		return fmt.Sprintf("no next hop: nobody has answered %s for %s", Question(m.Address.Addr()), m.Address.Addr())
	}
	port, ok := s.ports[m.Next.Port]
	switch {
	case !ok:
		return fmt.Sprintf("port %d is not on the bridge", m.Next.Port)
	case !port.Live:
		return fmt.Sprintf("port %s (%d) is down", port.Name, port.Number)
	}
	return ""
}

// unsuited says why a member cannot serve a stateless pool, or returns "".
func (s *State) unsuited(m *Member) string {
	for _, port := range s.mustListen[m.ID.Pool] {
		if m.Address.Port() != port.First {
			return fmt.Sprintf("it listens on port %d, and the pool's mode leaves ports as they are: a service has %s", m.Address.Port(), port)
		}
	}
	return ""
}
