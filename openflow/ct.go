package openflow

import (
	"encoding/binary"
	"net/netip"
)

// CT sends the packet through the connection tracker (ovs-actions(7), "ct").
type CT struct {
	Commit  bool     // keep the connection
	Force   bool     // with Commit: replace one of the opposite direction
	Zone    uint16   // the zone, unless ZoneSrc is set
	ZoneSrc Subfield // 16 bits of a field that hold the zone; the zero Subfield for none
	Table   uint8    // go on there with the tracked packet, CTNoTable to not
	ALG     uint16   // 21 for FTP, 69 for TFTP, 0 for none
	Exec    []Action // NAT, and settings of CTMark and CTLabel
}

// CTNoTable is the CT.Table that says: no recirculation.
const CTNoTable = 0xff

const (
	ctCommit = 1
	ctForce  = 2

	algFTP  = 21
	algTFTP = 69
)

// NAT, within CT.Exec, translates addresses. The zero NAT applies what the
// connection already has ("nat"). A Min that is not valid is a range not given;
// a Max that is not valid equals Min.
type NAT struct {
	Flags            NATFlags
	MinAddr, MaxAddr netip.Addr
	MinPort, MaxPort uint16 // 0: not given
}

// NATFlags of a NAT action.
type NATFlags uint16

// The flags. Open vSwitch's userspace datapath has NATPersistent and NATRandom
// since 3.4.
const (
	NATSrc        NATFlags = 1
	NATDst        NATFlags = 2
	NATPersistent NATFlags = 4
	NATHash       NATFlags = 8
	NATRandom     NATFlags = 16
)

// Bits that say which parts of a range a NAT action has.
const (
	natIPv4Min = 1 << iota
	natIPv4Max
	natIPv6Min
	natIPv6Max
	natPortMin
	natPortMax
)

// CTClear forgets what the connection tracker said of the packet.
type CTClear struct{}

func (a CT) appendAction(b []byte) ([]byte, error) {
	start := len(b)
	flags := uint16(0)
	if a.Commit {
		flags |= ctCommit
	}
	if a.Force {
		flags |= ctForce
	}
	b = append16(nxStart(b, 0, nxCT), flags)
	if a.ZoneSrc != (Subfield{}) {
		header, err := fieldHeader32(a.ZoneSrc.Field)
		if err != nil {
			return b, err
		}
		ofs, err := a.ZoneSrc.offsetBits()
		if err != nil {
			return b, err
		}
		b = append16(append32(b, header), ofs)
	} else {
		b = append16(append32(b, 0), a.Zone)
	}
	b = append16(append(b, a.Table, 0, 0, 0), a.ALG)
	b, err := appendActions(b, a.Exec)
	if err != nil {
		return b, err
	}
	return patchLen(b, start, "ct")
}

func parseCT(d *decoder) (Action, bool) {
	flags, src, zone := d.u16(), d.fieldHeaderOrNone(), d.u16()
	a := CT{Commit: flags&ctCommit != 0, Force: flags&ctForce != 0}
	if flags&^(ctCommit|ctForce) != 0 || src.unknown {
		return nil, false
	}
	if src.field != FieldUnknown {
		a.ZoneSrc = subfieldFrom(src.field, zone)
	} else {
		a.Zone = zone
	}
	a.Table = d.u8()
	d.skip(3)
	a.ALG = d.u16()
	var ok bool
	a.Exec, ok = parseNestedActions(d)
	return a, ok
}

// parseNestedActions reads actions within an action; false if they are nested
// too deep.
func parseNestedActions(d *decoder) ([]Action, bool) {
	if d.depth >= maxNesting {
		return nil, false
	}
	d.depth++
	list := parseActions(d, nil)
	d.depth--
	return list, true
}

// optionalField is a field header that may be zero, for "none".
type optionalField struct {
	field   Field
	unknown bool // the header names a field that is not known
}

func (d *decoder) fieldHeaderOrNone() optionalField {
	if d.left() >= 4 && binary.BigEndian.Uint32(d.b[d.pos:]) == 0 {
		d.skip(4)
		return optionalField{}
	}
	f := d.fieldHeader32()
	return optionalField{field: f, unknown: f == FieldUnknown}
}

func (a NAT) appendAction(b []byte) ([]byte, error) {
	start := len(b)
	present := uint16(0)
	min, max := a.MinAddr, a.MaxAddr
	if max == min {
		max = netip.Addr{}
	}
	if max.IsValid() && (!min.IsValid() || min.Is4() != max.Is4()) {
		return b, encodeErrorf("nat range %v-%v: needs two addresses of one family", min, max)
	}
	maxPort := a.MaxPort
	if maxPort == a.MinPort {
		maxPort = 0
	}
	if maxPort != 0 && a.MinPort == 0 {
		return b, encodeErrorf("nat ports 0-%d: needs a first port", maxPort)
	}
	set := func(given bool, bit uint16) {
		if given {
			present |= bit
		}
	}
	set(min.Is4(), natIPv4Min)
	set(max.Is4(), natIPv4Max)
	set(min.Is6(), natIPv6Min)
	set(max.Is6(), natIPv6Max)
	set(a.MinPort != 0, natPortMin)
	set(maxPort != 0, natPortMax)

	b = append(nxStart(b, 0, nxNAT), 0, 0)
	b = append16(append16(b, uint16(a.Flags)), present)
	b = appendAddr(appendAddr(b, min), max)
	if a.MinPort != 0 {
		b = append16(b, a.MinPort)
	}
	if maxPort != 0 {
		b = append16(b, maxPort)
	}
	return patchLen(pad8(b, start), start, "nat")
}

// appendAddr appends the 4 or 16 octets of a, nothing for the zero Addr.
func appendAddr(b []byte, a netip.Addr) []byte {
	switch v := addrValue4or16(a); {
	case a.Is4():
		return appendValue(b, v, 4)
	case a.Is6():
		return appendValue(b, v, 16)
	}
	return b
}

// addrValue4or16 is addrValue, for the zero Addr too.
func addrValue4or16(a netip.Addr) uint128 {
	if !a.IsValid() {
		return uint128{}
	}
	return addrValue(a)
}

func parseNAT(d *decoder) (Action, bool) {
	d.skip(2)
	a := NAT{Flags: NATFlags(d.u16())}
	present := d.u16()
	if present&^(natPortMax<<1-1) != 0 || present&(natIPv4Min|natIPv4Max) != 0 && present&(natIPv6Min|natIPv6Max) != 0 {
		return nil, false
	}
	read := func(size int) netip.Addr { return addrFromValue(d.value(size), size) }
	if present&natIPv4Min != 0 {
		a.MinAddr = read(4)
	}
	if present&natIPv4Max != 0 {
		a.MaxAddr = read(4)
	}
	if present&natIPv6Min != 0 {
		a.MinAddr = read(16)
	}
	if present&natIPv6Max != 0 {
		a.MaxAddr = read(16)
	}
	if present&natPortMin != 0 {
		a.MinPort = d.u16()
	}
	if present&natPortMax != 0 {
		a.MaxPort = d.u16()
	}
	d.skipPad()
	// What would be written in another way than it was read stays as octets.
	plain := a.MaxAddr.IsValid() && (!a.MinAddr.IsValid() || a.MaxAddr == a.MinAddr) ||
		present&natPortMin != 0 && a.MinPort == 0 ||
		present&natPortMax != 0 && (a.MaxPort == 0 || a.MaxPort == a.MinPort || a.MinPort == 0)
	return a, !plain
}

func (CTClear) appendAction(b []byte) ([]byte, error) {
	return appendZeros(nxStart(b, 16, nxCTClear), 6), nil
}
