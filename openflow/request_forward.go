package openflow

// RequestForward tells a controller of a GroupMod or MeterMod of another one
// (OF1.4 section 7.4.6). Open vSwitch sends it for groups.
type RequestForward struct {
	RequestXid uint32 // transaction id of the request, on the other connection
	Request    Message
}

// Type returns TypeRequestForward.
func (*RequestForward) Type() Type { return TypeRequestForward }

func (m *RequestForward) appendBody(b []byte) ([]byte, error) {
	switch m.Request.(type) {
	case nil:
		return b, encodeErrorf("request forward without a request")
	case *RequestForward, *BundleAdd:
		return b, encodeErrorf("%v within a request forward", m.Request.Type())
	}
	return appendMessage(b, Version, m.RequestXid, m.Request)
}

func parseRequestForward(d *decoder) *RequestForward {
	m := &RequestForward{}
	h, err := ParseHeader(d.b[d.pos:d.end])
	switch {
	case err != nil || int(h.Length) != d.left():
		d.failf(ErrBadLength, "forwarded request: length %d, %d octets left", h.Length, d.left())
	case h.Version != Version:
		d.failf(ErrBadVersion, "forwarded request: version %d, want %d", h.Version, Version)
	case h.Type == TypeRequestForward || h.Type == TypeBundleAdd:
		d.failf(ErrBadValue, "%v within a request forward", h.Type)
	default:
		d.skip(HeaderLen)
		m.RequestXid = h.Xid
		m.Request = parseBody(d, h)
	}
	return m
}
