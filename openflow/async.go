package openflow

// GetAsyncRequest asks which asynchronous messages the connection gets (OF1.4
// section 7.3.10).
type GetAsyncRequest struct{ Properties AsyncProperties }

// GetAsyncReply tells which asynchronous messages the connection gets.
type GetAsyncReply struct{ Properties AsyncProperties }

// SetAsync says which asynchronous messages the connection wants. Types that it
// does not name keep what they have.
type SetAsync struct{ Properties AsyncProperties }

// AsyncProperties is a list of masks.
type AsyncProperties []AsyncProperty

// AsyncProperty is the mask of reasons for which one type of message is wanted,
// in one set of roles: bit n for reason n.
type AsyncProperty struct {
	Type AsyncType
	Mask uint32
	// Data holds what a property has beyond a mask: those of experimenters. It
	// aliases the parsed octets.
	Data []byte
}

// AsyncType is a type of message and the roles in which the mask counts.
type AsyncType uint16

// The types.
const (
	AsyncPacketInSlave        AsyncType = 0
	AsyncPacketInMaster       AsyncType = 1 // and equal, as all that end in Master
	AsyncPortStatusSlave      AsyncType = 2
	AsyncPortStatusMaster     AsyncType = 3
	AsyncFlowRemovedSlave     AsyncType = 4
	AsyncFlowRemovedMaster    AsyncType = 5
	AsyncRoleStatusSlave      AsyncType = 6
	AsyncRoleStatusMaster     AsyncType = 7
	AsyncTableStatusSlave     AsyncType = 8
	AsyncTableStatusMaster    AsyncType = 9
	AsyncRequestForwardSlave  AsyncType = 10
	AsyncRequestForwardMaster AsyncType = 11
	AsyncExperimenterSlave    AsyncType = 0xfffe
	AsyncExperimenterMaster   AsyncType = 0xffff
)

// Type returns TypeGetAsyncRequest.
func (*GetAsyncRequest) Type() Type { return TypeGetAsyncRequest }

// Type returns TypeGetAsyncReply.
func (*GetAsyncReply) Type() Type { return TypeGetAsyncReply }

// Type returns TypeSetAsync.
func (*SetAsync) Type() Type { return TypeSetAsync }

func (m *GetAsyncRequest) appendBody(b []byte) ([]byte, error) { return m.Properties.append(b) }
func (m *GetAsyncReply) appendBody(b []byte) ([]byte, error)   { return m.Properties.append(b) }
func (m *SetAsync) appendBody(b []byte) ([]byte, error)        { return m.Properties.append(b) }

func (list AsyncProperties) append(b []byte) ([]byte, error) {
	for _, p := range list {
		start := len(b)
		b = append32(append(append16(b, uint16(p.Type)), 0, 0), p.Mask)
		var err error
		if b, err = patchLen(append(b, p.Data...), start, "property"); err != nil {
			return b, err
		}
		b = pad8(b, start)
	}
	return b, nil
}

func parseAsync(d *decoder) AsyncProperties {
	var list AsyncProperties
	for d.left() > 0 {
		typ, length, outer := d.tlv(8, "async property")
		p := AsyncProperty{Type: AsyncType(typ), Mask: d.u32(), Data: d.rest()}
		d.leave(outer)
		d.skip(-length & 7)
		if !d.bad {
			list = append(list, p)
		}
	}
	return list
}
