package openflow

import "fmt"

// Multipath hashes the packet's headers and writes a link number, 0 to
// MaxLink, into Dst: Open vSwitch's way to choose one of many. Permitted in
// ApplyActions only.
type Multipath struct {
	Fields    HashFields
	Basis     uint16 // salts the hash
	Algorithm LinkAlgorithm
	MaxLink   uint16 // number of links - 1
	Arg       uint32 // for LinkIterHash
	Dst       Subfield
}

// HashFields says what the hash of Multipath covers.
type HashFields uint16

// The hashes of Open vSwitch 3.1.
const (
	HashEthSrc           HashFields = 0
	HashSymmetricL4      HashFields = 1 // MACs, VLAN, addresses, and ports of TCP and SCTP
	HashSymmetricL3L4    HashFields = 2 // addresses and ports of TCP and SCTP
	HashSymmetricL3L4UDP HashFields = 3 // and ports of UDP
	HashNwSrc            HashFields = 4
	HashNwDst            HashFields = 5
	HashSymmetricL3      HashFields = 6
)

// LinkAlgorithm says how Multipath makes a link number of the hash.
type LinkAlgorithm uint16

// The link algorithms of Open vSwitch.
const (
	LinkModuloN       LinkAlgorithm = 0
	LinkHashThreshold LinkAlgorithm = 1
	LinkHRW           LinkAlgorithm = 2
	LinkIterHash      LinkAlgorithm = 3
)

func (a Multipath) appendAction(b []byte) ([]byte, error) {
	ofs, err := a.Dst.offsetBits()
	if err != nil {
		return b, err
	}
	header, err := fieldHeader32(a.Dst.Field)
	if err != nil {
		return b, err
	}
	b = append16(nxStart(b, 32, nxMultipath), uint16(a.Fields))
	b = append(append16(b, a.Basis), 0, 0)
	b = append16(append16(b, uint16(a.Algorithm)), a.MaxLink)
	b = append(append32(b, a.Arg), 0, 0)
	return append32(append16(b, ofs), header), nil
}

func parseMultipath(d *decoder) (Action, bool) {
	m := Multipath{Fields: HashFields(d.u16()), Basis: d.u16()}
	d.skip(2)
	m.Algorithm = LinkAlgorithm(d.u16())
	m.MaxLink, m.Arg = d.u16(), d.u32()
	d.skip(2)
	ofs, f := d.u16(), d.fieldHeader32()
	m.Dst = subfieldFrom(f, ofs)
	return m, f != FieldUnknown
}

// LinkBundle sends the packet to one of several ports, chosen by hash or by
// which is live ("bundle"), or with Dst writes its number there ("bundle_load").
type LinkBundle struct {
	Fields    HashFields
	Basis     uint16
	Algorithm BundleAlgorithm
	Members   []PortNo
	Dst       Subfield // zero: send the packet
}

// BundleAlgorithm says how LinkBundle chooses.
type BundleAlgorithm uint16

// The algorithms.
const (
	BundleActiveBackup BundleAlgorithm = 0 // the first that is live
	BundleHRW          BundleAlgorithm = 1 // by hash, among those that are live
)

// bundleMemberType says that the members are 16-bit ports.
const bundleMemberType = 0x00000002

func (a LinkBundle) appendAction(b []byte) ([]byte, error) {
	subtype, ofs, header := uint16(nxBundle), uint16(0), uint32(0)
	if a.Dst != (Subfield{}) {
		var err error
		subtype = nxBundleLoad
		if ofs, err = a.Dst.offsetBits(); err != nil {
			return b, err
		}
		if header, err = fieldHeader32(a.Dst.Field); err != nil {
			return b, err
		}
	}
	if len(a.Members) > maxBundleMembers {
		return b, encodeErrorf("bundle of %d members; Open vSwitch takes %d", len(a.Members), maxBundleMembers)
	}
	start := len(b)
	b = append16(append16(nxStart(b, 0, subtype), uint16(a.Algorithm)), uint16(a.Fields))
	b = append16(append32(append16(b, a.Basis), bundleMemberType), uint16(len(a.Members)))
	b = append(append32(append16(b, ofs), header), 0, 0, 0, 0)
	for _, p := range a.Members {
		port, err := p.uint16()
		if err != nil {
			return b, err
		}
		b = append16(b, port)
	}
	return patchLen(pad8(b, start), start, "bundle")
}

// maxBundleMembers is what Open vSwitch takes (BUNDLE_MAX_MEMBERS).
const maxBundleMembers = 2048

func parseBundle(d *decoder, subtype uint16) (Action, bool) {
	a := LinkBundle{Algorithm: BundleAlgorithm(d.u16()), Fields: HashFields(d.u16()), Basis: d.u16()}
	kind, n, ofs := d.u32(), int(d.u16()), d.u16()
	if kind != bundleMemberType || n > maxBundleMembers {
		return nil, false
	}
	if subtype == nxBundleLoad {
		f := d.fieldHeader32()
		if f == FieldUnknown {
			return nil, false
		}
		a.Dst = subfieldFrom(f, ofs)
	} else {
		d.skip(4)
	}
	d.skip(4)
	for range n {
		if d.bad {
			break
		}
		a.Members = append(a.Members, portFrom16(d.u16()))
	}
	d.skipPad()
	return a, true
}

// String returns ovs-ofctl's name of the hash.
func (h HashFields) String() string {
	switch h {
	case HashEthSrc:
		return "eth_src"
	case HashSymmetricL4:
		return "symmetric_l4"
	case HashSymmetricL3L4:
		return "symmetric_l3l4"
	case HashSymmetricL3L4UDP:
		return "symmetric_l3l4+udp"
	case HashNwSrc:
		return "nw_src"
	case HashNwDst:
		return "nw_dst"
	case HashSymmetricL3:
		return "symmetric_l3"
	}
	return fmt.Sprintf("hash(%d)", uint16(h))
}

// String returns ovs-ofctl's name of the algorithm.
func (a LinkAlgorithm) String() string {
	switch a {
	case LinkModuloN:
		return "modulo_n"
	case LinkHashThreshold:
		return "hash_threshold"
	case LinkHRW:
		return "hrw"
	case LinkIterHash:
		return "iter_hash"
	}
	return fmt.Sprintf("algorithm(%d)", uint16(a))
}

// String returns ovs-ofctl's name of the algorithm.
func (a BundleAlgorithm) String() string {
	switch a {
	case BundleActiveBackup:
		return "active_backup"
	case BundleHRW:
		return "hrw"
	}
	return fmt.Sprintf("algorithm(%d)", uint16(a))
}
