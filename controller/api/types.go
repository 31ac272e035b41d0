package api

import "time"

// Status is the answer of GET /v1/status: one bridge, whole.
type Status struct {
	Version     string    `json:"version"`
	Bridge      string    `json:"bridge"`
	Phase       string    `json:"phase"`                 // disconnected, handshake, inventory, waiting, converging, steady, standby
	Degraded    []string  `json:"degraded"`              // what is wrong, in sentences; empty when all is well
	Since       time.Time `json:"since"`                 // of the phase
	Revision    uint64    `json:"revision"`              // of the picture that should be
	Confirmed   uint64    `json:"confirmed"`             // newest revision that the switch has confirmed
	ConfirmedAt time.Time `json:"confirmed_at,omitzero"` // when the switch confirmed that
	InSync      bool      `json:"in_sync"`               // the switch holds what should be
	Switch      Switch    `json:"switch"`                // the Open vSwitch at the other end
	OVSDB       OVSDB     `json:"ovsdb"`                 //
	Conntrack   Conntrack `json:"conntrack"`             // the switch's connection table
	Services    []Service `json:"services"`              // sorted by name
	Pools       []Pool    `json:"pools"`                 // sorted by id
}

// Switch describes the OpenFlow peer.
type Switch struct {
	Connected   bool      `json:"connected"`
	Since       time.Time `json:"since,omitzero"`
	Description string    `json:"description,omitempty"` // e.g. "Open vSwitch 3.1.0"
	DatapathID  string    `json:"datapath_id,omitempty"`
	LastError   string    `json:"last_error,omitempty"`
	Ports       []Port    `json:"ports"`
	OwnFlows    int       `json:"own_flows"`
}

// Port is a port of the bridge.
type Port struct {
	Number uint32 `json:"number"`
	Name   string `json:"name"`
	Live   bool   `json:"live"`
}

// OVSDB describes the connection to ovsdb-server.
type OVSDB struct {
	Connected bool   `json:"connected"`
	Endpoint  string `json:"endpoint"`
	LastError string `json:"last_error,omitempty"`
	Lock      string `json:"lock"` // held, waiting, none
}

// Conntrack describes the switch's connection table.
type Conntrack struct {
	At       time.Time   `json:"at,omitzero"`     // when connections were last counted
	Zone     ZoneUsage   `json:"zone"`            // of pools without one of their own
	Pools    []ZoneUsage `json:"pools,omitempty"` // pools' own zones, by number
	Datapath TableUsage  `json:"datapath"`        // all zones
	// Problem says why connections are not counted, or not all.
	Problem string `json:"problem,omitempty"`
}

// ZoneUsage says how full a conntrack zone is.
type ZoneUsage struct {
	Number uint16   `json:"number"`
	Pools  []string `json:"pools,omitempty"` // whose own it is, sorted
	TableUsage
}

// TableUsage says how full a table is.
type TableUsage struct {
	Entries int `json:"entries"`
	Limit   int `json:"limit,omitzero"` // 0: none is known
}

// Service is what clients talk to.
type Service struct {
	Name      string   `json:"name"`
	Addresses []string `json:"addresses"`
	Ports     []string `json:"ports"`   // 80/tcp
	Pool      string   `json:"pool"`    // that serves it
	Primary   string   `json:"primary"` // that the configuration names first
	// Backup are the pools that serve when those before them do not.
	Backup []string `json:"backup,omitempty"`
}

// Pool is a set of members behind a slot table.
type Pool struct {
	Name    string  `json:"name"`
	ID      uint16  `json:"id"`
	Mode    string  `json:"mode"`
	Layout  string  `json:"layout"`
	Version string  `json:"layout_version"` // of the layout; part of the digest
	Slots   int     `json:"slots"`
	Digest  string  `json:"digest"`           // empty when no member owns a slot
	Anchor  *Anchor `json:"anchor,omitempty"` // of layout v2
	Active  int     `json:"active"`
	Waiting bool    `json:"waiting"` // for first verdicts; the switch keeps what it holds
	Problem string  `json:"problem,omitempty"`
	// Moving counts the slots whose open connections another member than the
	// owner still has, and MovingUntil is when there will be none; in stateless
	// pools.
	Moving      int       `json:"moving,omitzero"`
	MovingUntil time.Time `json:"moving_until,omitzero"`
	// MovingSoon says that owners do not get new connections of all of these slots
	// yet, but will within two seconds.
	MovingSoon bool `json:"moving_soon,omitzero"`
	// Emergency is the rule in force, if one is: panic, kept or short; Alarm is a
	// sentence about it.
	Emergency string   `json:"emergency,omitempty"`
	Alarm     string   `json:"alarm,omitempty"`
	Around    []string `json:"around,omitempty"` // pools that it is inside, if no service uses it
	Members   []Member `json:"members"`          // sorted by name
	Names     []Name   `json:"names,omitempty"`  // sorted by name
}

// Name is a member of which the configuration says the name. Its addresses are
// members themselves, called NAME/ADDRESS.
type Name struct {
	Name      string `json:"name"`
	Host      string `json:"host"`
	Port      uint16 `json:"port"`
	Addresses int    `json:"addresses"`
	// State is asking (no answer has come yet), resolved, stale (the newest answer
	// is of no use, the one before holds) or unresolved; Problem says why.
	State   string    `json:"state"`
	Since   time.Time `json:"since"`
	Problem string    `json:"problem,omitempty"`
}

// Anchor is the list of members from whose table layout v2 starts.
type Anchor struct {
	Digest string `json:"digest"` // nodes with other anchors may have other tables
	Pinned bool   `json:"pinned"` // by the configuration
	Stale  bool   `json:"stale"`  // it is not the list of the pool's members any more
	// RebaseMoves is how many slots a rebase would move; 0 unless it is stale.
	RebaseMoves int            `json:"rebase_moves"`
	Members     []AnchorMember `json:"members,omitempty"` // sorted by address; only in Slots
}

// AnchorMember is a member of an anchor.
type AnchorMember struct {
	Name    string `json:"name,omitempty"` // empty if the pool has no such member any more
	Address string `json:"address"`
	Weight  uint32 `json:"weight"`
}

// Member is one member of a pool.
type Member struct {
	Name     string    `json:"name"`
	Address  string    `json:"address"`
	Origin   string    `json:"origin,omitempty"` // POOL/MEMBER that it is, if it belongs to a pool inside this one
	Number   uint16    `json:"number"`
	State    string    `json:"state"` // up, down, unknown, draining, disabled
	Active   bool      `json:"active"`
	Reason   string    `json:"reason,omitempty"`  // why it owns no slots
	Despite  string    `json:"despite,omitempty"` // why it would own none, were there no emergency
	Since    time.Time `json:"since,omitzero"`    // of the health verdict or the admin state
	Admin    string    `json:"admin"`             // enabled, draining, disabled
	AdminWho string    `json:"admin_who,omitempty"`
	AdminWhy string    `json:"admin_why,omitempty"`
	// AdminUntil is when a drain ends: from then on the member is disabled.
	AdminUntil time.Time `json:"admin_until,omitzero"`
	Health     string    `json:"health"` // up, down, unknown
	Check      Check     `json:"check"`
	// Configured is the weight that the file, or OVSDB, gives. Weight is that in
	// force, which operators may have set, and Percent how much of it counts.
	Configured uint32          `json:"configured_weight"`
	Weight     uint32          `json:"weight"`
	Percent    uint32          `json:"percent"`
	Ramp       uint32          `json:"slow_start_percent,omitzero"` // while slow start holds it back
	WeightBy   *WeightOverride `json:"weight_override,omitempty"`
	Slots      int             `json:"slots"`
	Share      float64         `json:"share"` // of the pool's slots, 0..1
	// Connections are open through the switch now: TCP that not both ends have
	// closed, and what conntrack remembers of other protocols. Nil: not known.
	Connections *int   `json:"connections,omitempty"`
	MAC         string `json:"mac,omitempty"`
	Port        string `json:"port,omitempty"` // name of the bridge port towards the member
	Via         string `json:"via,omitempty"`
}

// Check is the newest probe result of a member.
type Check struct {
	Name            string    `json:"name"`
	Code            string    `json:"code,omitempty"`   // L4OK, L7STS, ...
	Detail          string    `json:"detail,omitempty"` // what was seen, without the duration: "200"
	DurationSeconds float64   `json:"duration_seconds"`
	At              time.Time `json:"at,omitzero"`
	Consecutive     int       `json:"consecutive"` // passes or failures in a row, this one included
	Needed          int       `json:"needed"`      // rise for a pass, fall for a failure
}

// Slots is the answer of GET /v1/slots?pool=NAME: who owns which slot.
type Slots struct {
	Pool    string   `json:"pool"`
	ID      uint16   `json:"id"`
	Slots   int      `json:"slots"`
	Layout  string   `json:"layout"`
	Version string   `json:"layout_version"`
	Digest  string   `json:"digest"`
	Anchor  *Anchor  `json:"anchor,omitempty"` // of layout v2
	Members []string `json:"members"`          // names
	Keys    []string `json:"keys"`             // addresses, in the same order
	Owner   []int    `json:"owner"`            // slot -> index into members, -1 for none
}

// ChangeRequest is the body of POST /v1/members/drain, /enable, /disable and
// /weight, and of POST /v1/overrides/clear.
type ChangeRequest struct {
	Member string `json:"member,omitempty"` // be1, web/be1 or 10.30.0.11:8080
	// Pool, without Member, means every member that the pool has now.
	Pool string `json:"pool,omitempty"`
	// Weight is for weight: "3", or "50%" of the configured one.
	Weight string `json:"weight,omitempty"`
	// DeadlineSeconds is for drain: when they have passed, the member is
	// disabled. 0 means never.
	DeadlineSeconds float64 `json:"deadline_seconds,omitzero"`
	Who             string  `json:"who"`
	Why             string  `json:"why,omitempty"`
	Force           bool    `json:"force,omitzero"`   // even if it empties the pool
	DryRun          bool    `json:"dry_run,omitzero"` // only say what would move
	// WaitSeconds makes the call return only when the switch has confirmed the
	// change or that time has passed (Change.Confirmed says which); 0 doesn't
	// wait. At most 600.
	WaitSeconds float64 `json:"wait_seconds,omitzero"`
}

// WeightOverride is a weight that an operator has set.
type WeightOverride struct {
	To  string    `json:"to"` // "3", or "50%" of the configured one
	Who string    `json:"who,omitempty"`
	Why string    `json:"why,omitempty"`
	At  time.Time `json:"at,omitzero"`
}

// Overrides is the answer of GET /v1/overrides: what operators have decided
// beside the configuration.
type Overrides struct {
	Overrides []Override `json:"overrides"` // sorted by pool and name
}

// Override is what operators have decided about one member.
type Override struct {
	Pool    string          `json:"pool"`
	Member  string          `json:"member,omitempty"` // empty if the configuration has no such member any more
	Address string          `json:"address"`
	State   string          `json:"state"` // enabled, draining, disabled
	Until   time.Time       `json:"until,omitzero"`
	Who     string          `json:"who,omitempty"`
	Why     string          `json:"why,omitempty"`
	At      time.Time       `json:"at,omitzero"`
	Weight  *WeightOverride `json:"weight,omitempty"`
}

// RebaseRequest is the body of POST /v1/pools/rebase.
type RebaseRequest struct {
	Pool        string  `json:"pool"` // may be empty when there is one pool
	Who         string  `json:"who"`
	Why         string  `json:"why,omitempty"`
	DryRun      bool    `json:"dry_run,omitzero"`
	WaitSeconds float64 `json:"wait_seconds,omitzero"` // as in ChangeRequest
}

// PlanRequest is the query of GET /v1/plan: a change that is not made.
type PlanRequest struct {
	Operation string // drain, enable, disable, weight, remove, add, rebase or layout
	Pool      string // may be empty when there is one pool, or when the member tells
	Member    string // as in ChangeRequest; of add: its name
	Address   string // add: ADDRESS:PORT
	Weight    uint32 // weight, add
	Layout    string // layout
	Compare   bool   // say also what each layout would make of it
}

// Change is the answer to a ChangeRequest, a RebaseRequest and a PlanRequest.
type Change struct {
	Member      string         `json:"member"`
	Pool        string         `json:"pool"`
	Text        string         `json:"text"`        // one sentence
	Connections string         `json:"connections"` // what it means for those that are open
	Moves       Moves          `json:"moves"`
	Members     []MemberMove   `json:"members"` // sorted by name
	Compare     []LayoutChange `json:"compare,omitempty"`
	Revision    uint64         `json:"revision"`
	Confirmed   bool           `json:"confirmed"`
}

// LayoutChange is what one layout would make of a change.
type LayoutChange struct {
	Layout  string `json:"layout"`
	Version string `json:"layout_version"`
	Moves   Moves  `json:"moves"`
	// MaxShare and MinShare are the largest and the least share of a member
	// afterwards, relative to what its weight entitles it to.
	MaxShare float64 `json:"max_share"`
	MinShare float64 `json:"min_share"`
	Error    string  `json:"error,omitempty"` // why the layout cannot be used
}

// Moves counts slots whose owner changes.
type Moves struct {
	Slots      int    `json:"slots"`       // M
	Moved      int    `json:"moved"`       // owners that change
	Needed     int    `json:"needed"`      // from or to a member that left, joined or has another weight
	Collateral int    `json:"collateral"`  // all others
	LowerBound int    `json:"lower_bound"` // no layout could move fewer
	Before     string `json:"digest_before"`
	After      string `json:"digest_after"`
}

// MemberMove says what a change does to one member.
type MemberMove struct {
	Name   string `json:"name"`
	Before int    `json:"slots_before"`
	After  int    `json:"slots_after"`
	Gained int    `json:"gained"`
	Lost   int    `json:"lost"`
	// Shares of the pool's slots, 0..1.
	ShareBefore float64 `json:"share_before"`
	ShareAfter  float64 `json:"share_after"`
}

// ReloadRequest is the body of POST /v1/reload.
type ReloadRequest struct {
	DryRun bool `json:"dry_run,omitzero"` // only say what would change
	// AllowShrink lets the configuration take away more than half of the members
	// or of the services.
	AllowShrink bool `json:"allow_shrink,omitzero"`
	// Config is a configuration to look at in place of brlb's file. It can only
	// be looked at: it needs DryRun.
	Config string `json:"config,omitempty"`
}

// ReloadResult is the answer to a ReloadRequest.
type ReloadResult struct {
	Changed bool        `json:"changed"`
	Changes []string    `json:"changes"` // one sentence each
	Pools   []PoolMoves `json:"pools"`   // whose slots move, once new members' probes pass
	// Refused says why the configuration cannot be taken over; only after a dry
	// run, which tells the rest all the same.
	Refused   string `json:"refused,omitempty"`
	Revision  uint64 `json:"revision"`
	Confirmed bool   `json:"confirmed,omitzero"` // the switch holds the new tables
}

// PoolMoves says what a configuration does to the slots of one pool.
type PoolMoves struct {
	Pool    string       `json:"pool"`
	Moves   Moves        `json:"moves"`
	Members []MemberMove `json:"members"` // sorted by name
}

// ReapplyResult is the answer of POST /v1/reapply.
type ReapplyResult struct {
	FlowMods int    `json:"flow_mods"` // rows that had to be corrected
	OwnFlows int    `json:"own_flows"` // rows on the switch afterwards
	Text     string `json:"text"`
}

// Flows is the answer of GET /v1/flows?set=desired|actual|diff.
type Flows struct {
	Set   string `json:"set"`
	Flows []Flow `json:"flows"`
}

// Flow is one flow in ovs-ofctl's syntax.
type Flow struct {
	Sign    string `json:"sign,omitempty"` // in a diff: "+" missing on the switch, "-" too much there
	Text    string `json:"text"`
	Explain string `json:"explain"` // what the row is for
	Packets uint64 `json:"packets,omitzero"`
	Bytes   uint64 `json:"bytes,omitzero"`
}

// TraceRequest is the query of GET /v1/trace.
type TraceRequest struct {
	Src     string // client address
	SrcPort uint16
	Dst     string // VIP; may be empty when there is one service
	DstPort uint16 // may be 0 when the service has one port
	Proto   string // tcp, udp or sctp; empty for tcp
	InPort  string // name of the bridge port (the segment) where the packet enters; may be empty
	VLAN    uint16 // id of the frame's VLAN, 0 for none; the slot does not depend on it
	// Fragment asks about a later fragment of a datagram instead of a first packet.
	Fragment bool
}

// Trace is the answer of GET /v1/trace.
type Trace struct {
	Flow    string `json:"flow"` // tcp 10.20.0.10:40000 -> 10.20.0.100:80
	Service string `json:"service"`
	Pool    string `json:"pool"`
	PoolID  uint16 `json:"pool_id"`
	Mode    string `json:"mode"` // nat, dsr or tunnel
	// Segment is the bridge port where the packet enters, as named or as the source
	// suggests; empty if it is not known. VLAN is the frame's, 0 for none.
	Segment string `json:"segment,omitempty"`
	VLAN    uint16 `json:"vlan,omitempty"`
	// Affinity says what decides the slot: none (the 5-tuple), source or port.
	Affinity string `json:"affinity"`
	Hash     string `json:"hash"` // 0x%08x
	Slot     int    `json:"slot"`
	Member   string `json:"member,omitempty"` // empty when nobody is active
	Address  string `json:"address,omitempty"`
	// MovingFrom is the member that keeps the slot's open connections, if that is
	// not the owner.
	MovingFrom string `json:"moving_from,omitempty"`
	// Hairpin is the gateway's address that the member sees in place of a client on
	// its own network. Without Segment that holds for clients behind the member's
	// own bridge port alone.
	Hairpin string `json:"hairpin,omitempty"`
	// Fragment is what becomes of a later fragment, if that was asked: one of the
	// constants below.
	Fragment string `json:"fragment,omitempty"`
	// Switch is what the switch itself answers, when it could be asked.
	Switch *SwitchTrace `json:"switch,omitempty"`
	// SwitchError says why it could not.
	SwitchError string `json:"switch_error,omitempty"`
}

// What becomes of a datagram's later fragments, which have no ports.
const (
	FragmentFollows = "follows" // conntrack knows where the first one went
	FragmentHashed  = "hashed"  // the source's address alone gives the slot
	FragmentDropped = "dropped"
)

// SwitchTrace is the switch's own ofproto/trace of the packet.
type SwitchTrace struct {
	Slot    int    `json:"slot"`   // reg1; -1 when the trace shows none
	Number  int    `json:"number"` // reg2; -1 when the trace shows none
	Member  string `json:"member,omitempty"`
	Agrees  bool   `json:"agrees"`
	Hairpin string `json:"hairpin,omitempty"` // source that the member sees, if it is not the client's
	// Learned says that the switch has learned of the connection while its slot moved,
	// and looks up no slot.
	Learned bool `json:"learned,omitempty"`
	// Tracked says that conntrack alone decides: the packet has no ports.
	Tracked bool   `json:"tracked,omitempty"`
	Actions string `json:"actions"`         // datapath actions
	Text    string `json:"text"`            // the whole trace
	Entry   string `json:"entry,omitempty"` // conntrack entry of the tuple, if there is one
}

// Verify is the answer of GET /v1/verify.
type Verify struct {
	OK     bool          `json:"ok"`
	Checks []VerifyCheck `json:"checks"`
}

// VerifyCheck is one invariant.
type VerifyCheck struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// Event is something that happened.
type Event struct {
	Seq    uint64    `json:"seq"`
	Time   time.Time `json:"time"`
	Pool   string    `json:"pool,omitempty"`
	Member string    `json:"member,omitempty"`
	Text   string    `json:"text"`
}

// Events is the answer of GET /v1/events?after=SEQ.
type Events struct {
	Events []Event `json:"events"`
}

// Readiness is the answer of GET /-/ready.
type Readiness struct {
	Ready   bool     `json:"ready"`
	Missing []string `json:"missing"` // sentences
}

// Error is the body of every answer that is not 2xx.
type Error struct {
	Message string `json:"error"`
}

// Metrics is what the Prometheus collector needs beside Status. Its counts
// never go back while brlb runs.
type Metrics struct {
	Status          *Status
	SlotsMoved      map[string]MoveCounts // by pool
	Bundles         map[string]uint64     // by outcome: applied, rejected, unknown
	BundleSeconds   Histogram
	ConvergeSeconds Histogram         // from the event to the confirmed table
	BundleRows      uint64            // flow-mods in applied bundles
	MessagesSent    map[string]uint64 // by OpenFlow message type
	MessagesRecv    map[string]uint64
	EventsDropped   uint64
	Sessions        uint64 // OpenFlow sessions since the start
	DriftRepairs    uint64
	Resent          uint64 // packets put back after their stale conntrack entry was flushed
	Answered        uint64 // packets answered by brlb instead of the switch
	Probes          map[ProbeKey]ProbeCounts
	ReloadOK        bool      // the newest attempt to load the configuration succeeded
	ReloadAt        time.Time // of the newest success
}

// MoveCounts counts moved slots since the start.
type MoveCounts struct{ Needed, Collateral uint64 }

// ProbeKey names a probe's series.
type ProbeKey struct{ Pool, Member, Check string }

// ProbeCounts counts probe results since the start.
type ProbeCounts struct {
	Results map[string]uint64 // by code
	Seconds Histogram
}

// Histogram is a cumulative histogram as Prometheus has it.
type Histogram struct {
	Bounds []float64 // upper bounds in seconds, ascending
	Counts []uint64  // observations <= bound, cumulative, same length
	Count  uint64
	Sum    float64
}
