package openflow

// Hello is the first message of each end (OF1.4 section 7.5.1). The version to
// use is the greatest that both bitmaps have; without a bitmap, the smaller of
// the two header versions.
type Hello struct {
	// Version goes into the header: the greatest one that the sender has. Zero
	// is the Version of this package.
	Version uint8
	// Versions has bit v set if the sender has version v (1.4 is 1<<5). Zero:
	// no bitmap.
	Versions uint32
	// Elements are those of other types, and bitmaps of more than 32 bits.
	Elements []RawProperty
}

// HelloVersionBitmap is the bitmap of a Hello with versions v.
func HelloVersionBitmap(v ...uint8) uint32 {
	bits := uint32(0)
	for _, n := range v {
		bits |= 1 << n
	}
	return bits
}

const helloVersionBitmap = 1

// Type returns TypeHello.
func (*Hello) Type() Type { return TypeHello }

func (m *Hello) appendBody(b []byte) ([]byte, error) {
	if m.Versions != 0 {
		b = append32(append(b, 0, helloVersionBitmap, 0, 8), m.Versions)
	}
	return appendRawProperties(b, m.Elements)
}

func parseHello(d *decoder, version uint8) *Hello {
	m := &Hello{Version: version}
	// The elements of a version after ours are not ours to judge.
	for d.left() >= 4 && !d.bad {
		typ, length, outer := d.tlv(4, "hello element")
		if typ == helloVersionBitmap && length == 8 && m.Versions == 0 {
			m.Versions = d.u32()
		} else {
			m.Elements = append(m.Elements, RawProperty{Type: typ, Data: d.rest()})
		}
		d.leave(outer)
		d.skip(min(-length&7, d.left()))
	}
	return m
}

// EchoRequest asks for an EchoReply with the same Data (OF1.4 section 7.5.2).
// Data aliases the parsed octets.
type EchoRequest struct{ Data []byte }

// EchoReply answers an EchoRequest. Data aliases the parsed octets.
type EchoReply struct{ Data []byte }

// Type returns TypeEchoRequest.
func (*EchoRequest) Type() Type { return TypeEchoRequest }

// Type returns TypeEchoReply.
func (*EchoReply) Type() Type { return TypeEchoReply }

func (m *EchoRequest) appendBody(b []byte) ([]byte, error) { return append(b, m.Data...), nil }
func (m *EchoReply) appendBody(b []byte) ([]byte, error)   { return append(b, m.Data...), nil }

// BarrierRequest is answered when all before it is done (OF1.4 section 7.3.7).
type BarrierRequest struct{}

// BarrierReply answers a BarrierRequest.
type BarrierReply struct{}

// Type returns TypeBarrierRequest.
func (*BarrierRequest) Type() Type { return TypeBarrierRequest }

// Type returns TypeBarrierReply.
func (*BarrierReply) Type() Type { return TypeBarrierReply }

func (*BarrierRequest) appendBody(b []byte) ([]byte, error) { return b, nil }
func (*BarrierReply) appendBody(b []byte) ([]byte, error)   { return b, nil }
