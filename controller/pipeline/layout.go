package pipeline

import "fmt"

// Tables of the bridge that brlb uses. Table 0 is shared with others; the
// remaining ones are brlb's own.
const (
	TableClassify  = 0  // VIP tuples, replies of members, ARP, ND and ping for own addresses
	TableOwn       = 1  // answers ARP, ND and ping
	TableVIP       = 2  // after ct(nat) on the way to a VIP
	TableReply     = 3  // after ct(nat) on the way back
	TableRest      = 4  // to a VIP, but to no service: ICMP errors, fragments, what is refused
	TableForUs     = 5  // to brlb's MAC, but of no service: ICMP errors, fragments
	TableAdvertise = 6  // a solicitation that has become an advertisement (ND)
	TableReuse     = 7  // SYNs, where the switch needs that: has the port been used a moment ago?
	TablePlace     = 8  // stateless: a connection that was learned goes to the slot's new owner
	TableLearned   = 9  // stateless: connections opened while their slot moved
	TableHash      = 10 // reg0=pool -> multipath -> reg1=slot
	TableSlots     = 11 // reg0=pool, reg1=slot -> reg2=member
	TableMember    = 12 // reg2=member -> ct(commit,nat)
	TableToMember  = 13 // MACs, ttl, output towards the member
	TableToClient  = 14 // MACs and port remembered at commit
	TableError     = 15 // ICMPv6 errors from the members' side, before ct(nat)
	TableHairpin   = 16 // answers to clients that members know as a gateway
)

// ownTables lists the tables in which no flow of anybody else belongs.
var ownTables = [...]uint8{TableOwn, TableVIP, TableReply, TableRest, TableForUs, TableAdvertise, TableReuse, TablePlace, TableLearned, TableHash, TableSlots, TableMember, TableToMember, TableToClient, TableError, TableHairpin}

// IsOwnTable says whether a table is brlb's alone.
func IsOwnTable(table uint8) bool {
	for _, own := range ownTables {
		if own == table {
			return true
		}
	}
	return false
}

// Tables lists all tables that hold flows of brlb, in order.
func Tables() []uint8 { return append([]uint8{TableClassify}, ownTables[:]...) }

// Values of registers; NewLegend says what each holds.
const (
	// resent marks a packet that the controller sends again, so that it doesn't
	// come back a second time.
	resent = 1
	// opening marks a packet that only opens a flow.
	opening = 2
	// portKept in reg4: the destination port stays.
	portKept = 1
	// Placed in reg4: reg2 holds the member of a learned connection.
	Placed = 2
)

// Priorities. Table 0 is shared, so brlb's rows stand well above what people
// usually choose there, and the miss row at the bottom.
const (
	prioFence     = 32030 // what comes in through a tunnel
	prioAnswer    = 32020 // answers to brlb's own ARP and ND questions
	prioAnnounced = 32015 // what next hops say of themselves
	prioOwn       = 32010 // ARP, ND and ping for own addresses
	prioWatch     = 32005 // the same as the next: SYNs and, of stateful pools, FINs
	prioVIP       = 32000 // a service's address and port
	prioWatchAny  = 31995 // likewise
	prioErrorAny  = 31993 // likewise, what such a service cannot hash
	prioVIPAny    = 31990 // a service's address, all protocols
	prioToGateway = 31500 // to a gateway's address
	prioReply     = 31000 // what a member sends from its service port
	prioVIPRest   = 30000 // whatever else goes to a VIP: never forwarded
	prioForUs     = 29000 // whatever else goes to brlb's MAC: likewise
	prioHost      = 2     // with miss: drop, to and from the bridge's own device
	prioMiss      = 1

	prioRow       = 100 // rows of own tables
	prioTooBig    = 130 // a packet that is too long for its tunnel
	prioHairpin   = 112 // a connection that leaves by the port by which it came
	prioOpened    = 120 // a packet that has only opened a flow
	prioNoRoom    = 119 // a new connection that conntrack has no room for
	prioAbort     = 118 // an SCTP association that must end
	prioSpecial   = 110 // rows before those
	prioSilence   = 60  // what is neither served nor refused
	prioRefuse    = 50  // what is refused: the client is told
	prioAbortRest = 10  // what is left of SCTP associations whose member is gone
	prioFloor     = 0   // what remains: dropped, counted

	// Table 2, after ct(nat): what still has the VIP as destination is new; all
	// else has been translated by an entry.
	prioPing   = 460 // a ping that came in fragments
	prioNew    = 450
	prioNewAny = 440 // the same, of services for all protocols
	// A fragment of a new flow; the priority below it is that of what comes again.
	prioNewFragment = 435
	prioReused      = 400 // SYN on an entry of an active member
	prioStale       = 300 // SYN on an entry of any other member
	prioStuck       = 290 // the same, sent again in vain
	prioKnown       = 200 // any other packet with an entry
	prioInvalid     = 120 // SYN that conntrack calls invalid

	prioQuoting = 30 // an ICMP error about nothing that conntrack knows

	prioUnbroken = 50 // table 3: addressed to us, without an entry
	prioToHost   = 40 // the same, to the bridge's own device
)

// Kind says what a flow is for. It stands in the flow's cookie.
type Kind uint8

// The kinds.
const (
	KindBase    Kind = 1 // what the pipeline needs whatever the services
	KindOwn     Kind = 2 // own addresses: ARP, ND, ping
	KindService Kind = 3 // a service's VIP rows
	KindReply   Kind = 4 // replies of members
	KindHash    Kind = 5 // a pool's multipath row
	KindSlot    Kind = 6 // slot rows
	KindMember  Kind = 7 // member rows
	KindMoving  Kind = 8 // rows of slots that move
	KindLearned Kind = 9 // rows that the switch adds itself: connections opened meanwhile
)

var kindNames = map[Kind]string{
	KindBase: "base", KindOwn: "own", KindService: "service", KindReply: "reply",
	KindHash: "hash", KindSlot: "slot", KindMember: "member",
	KindMoving: "moving", KindLearned: "learned",
}

// String is the word that `brlb flows --explain` uses.
func (k Kind) String() string {
	if name, ok := kindNames[k]; ok {
		return name
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// A cookie is, from the top: tag 16 bits, kind 8, pool id 16, index 24. The
// index is the slot or the member number.
const (
	cookieTag = 0xb71b

	// CookieMask selects the tag: flows whose cookie matches Cookie(0,0,0)
	// under this mask are brlb's own.
	CookieMask = 0xffff_0000_0000_0000

	maxIndex = 1<<24 - 1
)

// ControllerID is what brlb's connections to the switch are to call themselves,
// so that packets for the controller come to brlb alone, and not to another
// controller of the bridge that would make something else of them.
const ControllerID = cookieTag

// Cookie composes a cookie.
func Cookie(kind Kind, pool uint16, index uint32) uint64 {
	return cookieTag<<48 | uint64(kind)<<40 | uint64(pool)<<24 | uint64(index&maxIndex)
}

// IsOwn says whether a cookie carries brlb's tag.
func IsOwn(cookie uint64) bool { return cookie>>48 == cookieTag }

// CookieParts takes a cookie of brlb apart.
func CookieParts(cookie uint64) (kind Kind, pool uint16, index uint32) {
	return Kind(cookie >> 40), uint16(cookie >> 24), uint32(cookie & maxIndex)
}

// Concerns says whether a change that somebody else made to a flow with these
// properties may have changed what brlb's flows do.
func Concerns(table uint8, priority uint16, cookie uint64) bool {
	if kind, _, _ := CookieParts(cookie); IsOwn(cookie) && kind == KindLearned {
		return false // the switch adds and removes them itself
	}
	if IsOwn(cookie) || IsOwnTable(table) {
		return true
	}
	if table != TableClassify {
		return false
	}
	switch priority {
	case prioFence, prioAnswer, prioAnnounced, prioOwn, prioWatch, prioVIP, prioWatchAny, prioErrorAny, prioVIPAny, prioToGateway, prioReply, prioVIPRest, prioForUs, prioMiss:
		return true
	}
	return false
}
