package config

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"brlb/health"
)

// Config is everything that an operator tells brlb. It is built by [Parse] and
// must not be changed afterwards: readers share it without locks.
type Config struct {
	// Bridge is the Open vSwitch bridge that brlb controls.
	Bridge string
	// RunDir is Open vSwitch's run directory, where its sockets live.
	RunDir string
	// OVSDB is where ovsdb-server listens: unix:PATH or tcp:HOST:PORT.
	OVSDB string
	// OpenFlow says how brlb and the switch find each other.
	OpenFlow OpenFlow
	// API says where people and machines reach brlb.
	API API
	// MAC answers ARP for VIPs and gateways; the zero MAC means that brlb
	// derives one from the bridge.
	MAC MAC
	// Zone is the conntrack zone of all pools but those with one of their own,
	// 1..65535.
	Zone      uint16
	Conntrack Conntrack // of Zone
	// Gateways are addresses, each with its network, that brlb answers ARP and
	// ping for on the members' side; sorted, without duplicates.
	Gateways []netip.Prefix
	// Miss says what happens to packets that are none of brlb's business.
	Miss Miss
	// StartDeadline is how long after the start brlb waits for first verdicts
	// before it acts without them.
	StartDeadline time.Duration
	// DNS says how the addresses of names are found.
	DNS DNS
	// NeighbourRefresh is how often a known next hop is asked for again.
	NeighbourRefresh time.Duration

	// ProbeAllow are the networks whose addresses may be probed; sorted. Empty
	// allows all.
	ProbeAllow []netip.Prefix
	// ProbeSource4 and ProbeSource6 are the local addresses of probes of IPv4 and
	// IPv6 members; the zero Addr leaves it to the kernel.
	ProbeSource4, ProbeSource6 netip.Addr
	// ProbeDevice is the network interface that probes must use; empty leaves it
	// to the kernel.
	ProbeDevice string
	// ProbeNetns is the path of the network namespace that probes are made from;
	// empty means brlb's own.
	ProbeNetns string
	// AllowExec permits checks that start programs.
	AllowExec bool

	Checks   []Check   // sorted by name; holds every check that a pool names
	Pools    []Pool    // sorted by name
	Services []Service // sorted by name
}

// OpenFlow says how brlb and the switch find each other.
type OpenFlow struct {
	Mode OpenFlowMode
	// Listen is where brlb listens in controller mode: unix:PATH or
	// tcp:ADDRESS:PORT. It is empty in service mode.
	Listen string
	// Target is what gets dialled: by Open vSwitch in controller mode (this
	// string is written into OVSDB), by brlb in service mode.
	Target string
	// Insecure permits plain TCP beyond the loopback interface.
	Insecure bool
}

// OpenFlowMode says who dials whom.
type OpenFlowMode string

const (
	// ModeController: brlb is the bridge's OpenFlow controller, the switch dials.
	ModeController OpenFlowMode = "controller"
	// ModeService: brlb dials the bridge's management socket.
	ModeService OpenFlowMode = "service"
)

// API says where people and machines reach brlb.
type API struct {
	// Socket is the path of the unix socket for reading and changing.
	Socket string
	// HTTP is the host:port for reading over TCP; empty means off.
	HTTP string
}

// Miss says what happens to packets that are none of brlb's business.
type Miss string

const (
	MissNormal Miss = "normal" // switched as if brlb were not there
	MissDrop   Miss = "drop"
)

// MAC is an Ethernet address. The zero value means "not set": it is no valid
// unicast address of a host.
type MAC [6]byte

// IsSet tells whether the file names a MAC.
func (m MAC) IsSet() bool { return m != MAC{} }

// String is the usual form, 02:00:5e:00:01:02.
func (m MAC) String() string {
	return fmt.Sprintf("%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4], m[5])
}

// Check says how to find out whether a member works: everything that its type
// needs, complete and valid.
type Check struct {
	Name string
	// Port is probed in place of the member's own, unless it is 0.
	Port uint16
	health.Check
}

// PortCheck is the type of a check without probes: a member is up while the port
// that leads to it lives. Package health does not know it.
const PortCheck health.Type = "port"

// ByPort tells whether the check is of type port.
func (c *Check) ByPort() bool { return c.Type == PortCheck }

// Layouts that other settings of a pool depend on, and modes. The names of all
// layouts are maglev's.
const (
	LayoutV2     = "v2"     // the default; has an anchor
	LayoutSticky = "sticky" // goes on from the table before
	LayoutCrush  = "crush"  // places over failure domains

	ModeNAT    = "nat"    // stateful: the member sees its own address as destination
	ModeDSR    = "dsr"    // stateless: the member has the VIP itself, and answers directly
	ModeTunnel = "tunnel" // the same, but packets reach the member in a tunnel
)

// Pool is a set of members behind a slot table.
type Pool struct {
	Name string
	// ID, 1..65535, is unique. It salts the layout and the switch's hash: another
	// id is another layout.
	ID uint16
	// Slots is the size of the slot table, a power of two, 64..65536.
	Slots int
	// Layout is the algorithm that fills the table, by maglev's name.
	Layout string
	// Anchor pins layout v2's anchor; sorted by name, Via and Domain are not set.
	// If it is empty, brlb keeps the anchor itself.
	Anchor []Member
	// BalanceSlack, 0 or 1, is by how many slots a member of a v2 table may miss
	// its exact share while others are away.
	BalanceSlack uint8
	// Pins fix slots to members; sorted by slot.
	Pins []Pin
	// Mode says how packets reach members.
	Mode string
	// Transition is for how long the owner before keeps the open connections of a
	// slot that has moved; for stateless pools.
	Transition time.Duration
	Tunnel     Tunnel // of mode tunnel
	// Zone is the pool's own conntrack zone, 1..65535; 0 if it has none. Pools with
	// the same one have the same Conntrack.
	Zone      uint16
	Conntrack Conntrack // of Zone; the zero value without one
	// IPv6 says of which family the members are: all of IPv6, or all of IPv4.
	IPv6 bool
	// Affinity says what of a packet decides the slot.
	Affinity Affinity
	// Check names an entry of Config.Checks.
	Check string
	// OnDown says what becomes of a member's connections when it goes down.
	OnDown OnDown
	// OnAllDown says what happens while fewer than MinActive members are active.
	OnAllDown OnAllDown
	// MinActive, 1..65535, is how many active members make a pool that works.
	MinActive int
	// PanicBelow, 0..100, is the percentage of members that may serve of which
	// at least so many must be active; with fewer, probes are not believed.
	PanicBelow int
	// SlowStart is how long a member that has become active takes to get its
	// whole weight; 0 gives it at once.
	SlowStart time.Duration
	HoldDown  HoldDown
	// BFD is turned on at the ports that lead to the members; the zero value
	// turns on none.
	BFD BFD
	// FromOVSDB permits further members, declared on OVSDB Interface rows.
	FromOVSDB bool
	// Nested are further pools whose members are this pool's too; sorted by name.
	Nested []Nested
	// Members are sorted by name; empty only if FromOVSDB, or if there are Nested or
	// Names. Addresses are unique within a pool. All weights may be 0: then nobody
	// owns a slot and the pool's
	// packets are dropped.
	Members []Member
	Names   []Name // sorted by name
}

// OnDown says what becomes of a member's open connections when its check says
// that it is down.
type OnDown string

const (
	OnDownReset OnDown = "reset" // they are forgotten: the client's next packet is answered by a reset
	OnDownKeep  OnDown = "keep"  // they are left alone
)

// OnAllDown says what becomes of a pool's traffic when no member is active.
type OnAllDown string

const (
	OnAllDownDrop   OnAllDown = "drop"
	OnAllDownKeep   OnAllDown = "keep"   // the last active members go on getting it
	OnAllDownReject OnAllDown = "reject" // clients are told: TCP reset, SCTP ABORT, ICMP port unreachable
)

// Affinity says what of a packet decides the slot.
type Affinity string

const (
	AffinityNone   Affinity = "none"   // protocol, addresses and ports
	AffinitySource Affinity = "source" // the client's address alone
	AffinityPort   Affinity = "port"   // the client's port alone
)

// OtherPorts says what becomes of packets to ports of a VIP that no service has.
type OtherPorts string

const (
	OtherPortsReject OtherPorts = "reject" // TCP reset, SCTP ABORT, ICMP port unreachable
	OtherPortsDrop   OtherPorts = "drop"
)

// HoldDown keeps a member out that has gone down After times Within that time,
// until it is that long ago. The zero value never does.
type HoldDown struct {
	After  int // 0, or 1..MaxFalls
	Within time.Duration
}

// BFD says how the ends of a link watch each other (RFC 5880).
type BFD struct {
	// MinTx and MinRx, 10ms to 10s, are the shortest gaps at which the switch
	// sends, and wants to be sent, control packets.
	MinTx, MinRx time.Duration
	// Mult, 1 to 255, is how many missed packets make the port down. 0 if BFD is
	// not asked for.
	Mult uint8
}

// MaxFalls is the greatest HoldDown.After.
const MaxFalls = 100

// Member is an endpoint that serves clients.
type Member struct {
	Name    string
	Address netip.AddrPort
	// Weight, 0..65535, is the member's share relative to the others. With 0 it
	// is probed but owns no slot.
	Weight uint32
	// Via is the router that leads to the member; the zero Addr means that the
	// member is a neighbour itself.
	Via netip.Addr
	// Domain is the failure domain that the member is in, from the widest to the
	// narrowest: zone-a/rack-3/host-7. Only crush pools have them.
	Domain string
}

// Pin fixes a slot to a member, whatever the layout says.
type Pin struct {
	Slot int
	Key  string // of the member
}

// Key identifies the member in layouts and digests: its canonical address:port.
func (m Member) Key() string { return m.Address.String() }

// Service is what clients talk to. Its VIPs are of one family; a service of the
// file with both is two, the second with /ipv6 after its name.
type Service struct {
	Name      string
	Addresses []netip.Addr // VIPs; sorted, at least one
	Ports     []Port       // sorted, at least one
	Pool      string       // names an entry of Config.Pools
	// Backup names further entries, each of which serves when all before it do
	// not work.
	Backup []string
	// ReturnAfter is how long a pool must have worked before it takes over again
	// from one behind it.
	ReturnAfter time.Duration
	// OtherPorts is the same for all services of a VIP.
	OtherPorts OtherPorts

	pool6   string // as Pool and Backup, for the IPv6 half
	backup6 []string
}

// Check finds a check by name.
func (c *Config) Check(name string) (Check, bool) {
	return find(c.Checks, func(x Check) bool { return x.Name == name })
}

// MayProbe tells whether an address may be probed.
func (c *Config) MayProbe(addr netip.Addr) bool {
	return len(c.ProbeAllow) == 0 || slices.ContainsFunc(c.ProbeAllow, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// Pool finds a pool by name.
func (c *Config) Pool(name string) (Pool, bool) {
	return find(c.Pools, func(x Pool) bool { return x.Name == name })
}

// Service finds a service by name.
func (c *Config) Service(name string) (Service, bool) {
	return find(c.Services, func(x Service) bool { return x.Name == name })
}

// Member finds a member of the pool by name.
func (p Pool) Member(name string) (Member, bool) {
	return find(p.Members, func(x Member) bool { return x.Name == name })
}

// Stateless says whether the switch knows none of the pool's connections.
func (p Pool) Stateless() bool { return p.Mode != ModeNAT }

func find[T any](list []T, match func(T) bool) (T, bool) {
	if i := slices.IndexFunc(list, match); i >= 0 {
		return list[i], true
	}
	var none T
	return none, false
}

// Equal tells whether two configurations mean the same. Both must come from
// [Parse] (which leaves what is empty nil) or be built alike.
func (c *Config) Equal(other *Config) bool { return reflect.DeepEqual(c, other) }
