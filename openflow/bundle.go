package openflow

// BundleControl opens, closes, commits or discards a bundle (OF1.4 section
// 7.3.9.1).
type BundleControl struct {
	ID         uint32
	Kind       BundleControlType
	Flags      BundleFlags // the same in all messages of a bundle; replies of Open vSwitch have 0
	Properties []RawProperty
}

// BundleControlType says what a BundleControl asks or answers.
type BundleControlType uint16

// The types.
const (
	BundleOpenRequest    BundleControlType = 0
	BundleOpenReply      BundleControlType = 1
	BundleCloseRequest   BundleControlType = 2
	BundleCloseReply     BundleControlType = 3
	BundleCommitRequest  BundleControlType = 4
	BundleCommitReply    BundleControlType = 5
	BundleDiscardRequest BundleControlType = 6
	BundleDiscardReply   BundleControlType = 7
)

// BundleFlags of a bundle.
type BundleFlags uint16

// The flags.
const (
	BundleAtomic  BundleFlags = 1 // all or nothing
	BundleOrdered BundleFlags = 2 // in the order of the messages
)

// BundleAdd puts a message into a bundle (OF1.4 section 7.3.9.6). The message
// gets the transaction id of the BundleAdd. Open vSwitch takes FlowMod,
// GroupMod, PortMod and PacketOut.
type BundleAdd struct {
	ID         uint32
	Flags      BundleFlags
	Message    Message
	Properties []RawProperty
}

// Type returns TypeBundleControl.
func (*BundleControl) Type() Type { return TypeBundleControl }

// Type returns TypeBundleAdd.
func (*BundleAdd) Type() Type { return TypeBundleAdd }

func (m *BundleControl) appendBody(b []byte) ([]byte, error) {
	b = append16(append16(append32(b, m.ID), uint16(m.Kind)), uint16(m.Flags))
	return appendRawProperties(b, m.Properties)
}

func (m *BundleAdd) appendBody(b []byte) ([]byte, error) { return m.appendWithXid(b, 0) }

// appendWithXid is appendBody with the transaction id of the message within.
func (m *BundleAdd) appendWithXid(b []byte, xid uint32) ([]byte, error) {
	b = append16(append(append32(b, m.ID), 0, 0), uint16(m.Flags))
	switch m.Message.(type) {
	case nil:
		return b, encodeErrorf("bundle add without a message")
	case *BundleAdd, *BundleControl:
		return b, encodeErrorf("bundle message within a bundle")
	}
	start := len(b)
	b, err := appendMessage(b, Version, xid, m.Message)
	if err != nil || len(m.Properties) == 0 {
		return b, err
	}
	return appendRawProperties(pad8(b, start), m.Properties)
}

func parseBundleControl(d *decoder) *BundleControl {
	m := &BundleControl{ID: d.u32(), Kind: BundleControlType(d.u16()), Flags: BundleFlags(d.u16())}
	m.Properties = parseRawProperties(d, "bundle property")
	return m
}

func parseBundleAdd(d *decoder, h Header) *BundleAdd {
	m := &BundleAdd{ID: d.u32()}
	d.skip(2)
	m.Flags = BundleFlags(d.u16())
	start := d.pos
	if d.bad {
		return m
	}
	inner, err := ParseHeader(d.b[start:d.end])
	switch {
	case err != nil || int(inner.Length) > d.left():
		d.failf(ErrBadLength, "message in a bundle: length %d, %d octets left", inner.Length, d.left())
		return m
	case inner.Version != h.Version:
		d.failf(ErrBadVersion, "message in a bundle: version %d, want %d", inner.Version, h.Version)
		return m
	case inner.Xid != h.Xid:
		d.failf(ErrBadValue, "message in a bundle: xid %#x, want %#x as around it", inner.Xid, h.Xid)
		return m
	case inner.Type == TypeBundleAdd || inner.Type == TypeBundleControl:
		d.failf(ErrBadValue, "bundle message within a bundle")
		return m
	}
	outer := d.enter(int(inner.Length))
	d.skip(HeaderLen)
	m.Message = parseBody(d, inner)
	if !d.bad && d.pos != d.end {
		d.failf(ErrBadLength, "message in a bundle: %d octets after its end", d.left())
	}
	d.leave(outer)
	if d.left() > 0 {
		d.skip(min(-int(inner.Length)&7, d.left()))
		m.Properties = parseRawProperties(d, "bundle property")
	}
	return m
}
