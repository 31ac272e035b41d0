package openflow

import "fmt"

// Field names something that a flow can match and, if Writable, that actions
// can set: a header field, a register, metadata (OF1.4 section 7.2.3,
// ovs-fields(7)). The constants stand in the order in which Open vSwitch
// writes a match, so that a match sorted by Field equals what it returns.
type Field uint8

// The fields of Open vSwitch 3.1. Where one has a code of OpenFlow (OXM) and
// one of Nicira (NXM), it is one Field here: a match is written with the first,
// Nicira's own actions with the second, as Open vSwitch does. InPortNXM, the
// 16-bit port of OpenFlow 1.0, is a field of its own and of use in actions.
const (
	// FieldUnknown is the Field of an OXM that this package does not know.
	FieldUnknown Field = iota
	PacketType
	DPHash
	RecircID
	ConjID
	InPort
	InPortNXM
	ActsetOutput
	EthSrc
	EthDst
	EthType
	VLANVID
	VLANPCP
	VLANTCI
	MPLSTC
	MPLSBOS
	MPLSTTL
	MPLSLabel
	IPv4Src
	IPv4Dst
	IPv6Src
	IPv6Dst
	IPFrag
	IPDSCP
	IPTOS
	IPECN
	IPTTL
	IPv6FLabel
	IPProto
	TCPSrc
	TCPDst
	TCPFlags
	UDPSrc
	UDPDst
	SCTPSrc
	SCTPDst
	ICMPv4Type
	ICMPv4Code
	ICMPv6Type
	ICMPv6Code
	IPv6NDTarget
	IPv6NDSLL
	IPv6NDTLL
	IPv6NDReserved
	IPv6NDOptionsType
	ARPOp
	ARPSPA
	ARPTPA
	ARPSHA
	ARPTHA
	TunnelID
	TunnelFlags
	TunnelIPv4Src
	TunnelIPv4Dst
	TunnelIPv6Src
	TunnelIPv6Dst
	TunnelGBPID
	TunnelGBPFlags
	TunnelMetadata0       // to TunnelMetadata0 + 63: see TunnelMetadata
	TunnelERSPANIdx Field = iota + tunnelMetadataFields - 1
	TunnelERSPANVer
	TunnelERSPANDir
	TunnelERSPANHWID
	TunnelGTPUFlags
	TunnelGTPUMsgType
	NSHFlags
	NSHTTL
	NSHMDType
	NSHNP
	NSHSPI
	NSHSI
	NSHC1
	NSHC2
	NSHC3
	NSHC4
	Reg0
	Reg1
	Reg2
	Reg3
	Reg4
	Reg5
	Reg6
	Reg7
	Reg8
	Reg9
	Reg10
	Reg11
	Reg12
	Reg13
	Reg14
	Reg15
	XReg0
	XReg1
	XReg2
	XReg3
	XReg4
	XReg5
	XReg6
	XReg7
	XXReg0
	XXReg1
	XXReg2
	XXReg3
	PktMark
	CTState
	CTZone
	CTMark
	CTLabel
	CTNwSrc
	CTIPv6Src
	CTNwDst
	CTIPv6Dst
	CTNwProto
	CTTpSrc
	CTTpDst
	Metadata
	fieldCount
)

// FieldMore is the Field of elements of a Match that go on with the octets of
// the one before (RawOXM, Field.Bytes).
const FieldMore Field = 255

const tunnelMetadataFields = 64

// Experimenter (vendor) ids.
const (
	ExperimenterNicira = 0x00002320 // Nicira, Open vSwitch
	ExperimenterONF    = 0x4f4e4600 // Open Networking Foundation
	ExperimenterNSH    = 0x005ad650 // network service header fields of Open vSwitch
)

// format says how a value of a field is written in text.
type format uint8

const (
	formatDecimal format = iota
	formatHex
	formatMAC
	formatIPv4
	formatIPv6
	formatPort
	formatFrag
	formatTCPFlags
	formatCTState
	formatTunnelFlags
	formatPacketType
	formatBytes
)

// need says what the rest of a match must hold for a field to make sense.
type need uint8

const (
	needNothing need = iota
	needEthernet
	needVLAN
	needMPLS
	needIPv4
	needIPv6
	needIP
	needARP
	needTCP
	needUDP
	needSCTP
	needICMPv4
	needICMPv6
	needND
	needNDSolicit
	needNDAdvert
	needNSH
	needCT
)

// fieldInfo is what is known of a field. match and action are its 32-bit OXM
// headers without mask: class 16 bits, number 7, mask flag 1, length 8 (OF1.4
// section 7.2.3.2), the length including the experimenter id where there is one.
type fieldInfo struct {
	name         string // as ovs-ofctl prints it in a match
	alias        string // another name that ovs-ofctl reads
	wire         string // specification's name of the code in match
	nxm          string // Nicira's name of the code in action, if that is another
	match        uint32
	action       uint32 // 0: as match
	experimenter uint32
	size         uint8  // octets of a value
	bits         uint16 // bits of these that mean something, from the lowest
	format       format
	need         need
	maskable     bool
	writable     bool
}

// info returns what is known of f; for FieldUnknown and numbers out of range
// a record of size 0.
func (f Field) info() *fieldInfo {
	if f >= fieldCount {
		f = FieldUnknown
	}
	return &fields[f]
}

// String returns ovs-ofctl's name of the field, such as "ip_dst" or "reg0".
func (f Field) String() string {
	if name := f.info().name; name != "" {
		return name
	}
	return fmt.Sprintf("field(%d)", uint8(f))
}

// Size is the number of octets of a value, 0 for FieldUnknown.
func (f Field) Size() int { return int(f.info().size) }

// Bits is the number of bits of a value that mean something.
func (f Field) Bits() int { return int(f.info().bits) }

// Maskable reports whether a match can have a mask for the field.
func (f Field) Maskable() bool { return f.info().maskable }

// Writable reports whether actions can set the field.
func (f Field) Writable() bool { return f.info().writable }

// actionHeader is the OXM header by which Open vSwitch's own actions name f.
func (f Field) actionHeader() uint32 {
	i := f.info()
	if i.action != 0 {
		return i.action
	}
	return i.match
}

// actionName is the name that goes with actionHeader, such as NXM_NX_REG0.
func (f Field) actionName() string {
	i := f.info()
	if i.nxm != "" {
		return i.nxm
	}
	return i.wire
}

// Reg returns the 32-bit register n, 0 to 15, and FieldUnknown beyond.
func Reg(n int) Field { return nth(Reg0, n, 16) }

// XReg returns the 64-bit register n, 0 to 7: Reg(2n) and Reg(2n+1).
func XReg(n int) Field { return nth(XReg0, n, 8) }

// XXReg returns the 128-bit register n, 0 to 3: Reg(4n) to Reg(4n+3).
func XXReg(n int) Field { return nth(XXReg0, n, 4) }

// TunnelMetadata returns the tunnel option field n, 0 to 63. A TLV table
// (TLVTableMod) says which option it is. It has up to 124 octets: see
// Field.Bytes.
func TunnelMetadata(n int) Field { return nth(TunnelMetadata0, n, tunnelMetadataFields) }

func nth(first Field, n, count int) Field {
	if n < 0 || n >= count {
		return FieldUnknown
	}
	return first + Field(n)
}

// oxm header bits.
const (
	oxmHasMask = 1 << 8
	oxmLenMask = 0xff
)

// oxmLen is the number of octets after a 32-bit OXM header.
func oxmLen(header uint32) int { return int(header & oxmLenMask) }

// isExperimenter reports whether a 32-bit experimenter id follows the header.
func isExperimenter(header uint32) bool { return header>>16 == 0xffff }
