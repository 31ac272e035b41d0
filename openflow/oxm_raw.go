package openflow

import "encoding/binary"

// Fields that this package does not know, and those of variable length
// (TunnelMetadata), have octets for value and mask. An OXM has room for 32 of
// them; where there are more, they go on in the next elements of the Match,
// whose Field is FieldMore.

// rawRoom is how many octets of a raw value are in one OXM.
const rawRoom = 32

// RawOXM is a field that this package does not know: its 32-bit header, whose
// length octet is ignored, and the octets after it (experimenter id, value,
// mask), at most 255. It is to be appended to a Match, and has more than one
// element if there are more than 32 octets.
func RawOXM(header uint32, payload []byte) Match {
	return rawMatch(OXM{header: header &^ (oxmLenMask | oxmHasMask), masked: header&oxmHasMask != 0}, payload)
}

// Bytes is f, a field of variable length (TunnelMetadata), with the value v of
// at most 124 octets. It is to be appended to a Match, and has more than one
// element if there are more than 32 octets.
func (f Field) Bytes(v []byte) Match { return rawMatch(OXM{Field: f}, v) }

// MaskedBytes is f, a field of variable length, with those bits of v that are
// set in mask, which is as long as v. With no octets it matches packets that
// have the option at all. It is to be appended to a Match, and has more than
// one element if there are more than 32 octets in both together.
func (f Field) MaskedBytes(v, mask []byte) Match {
	both := append(append([]byte(nil), v...), mask...)
	return rawMatch(OXM{Field: f, masked: true}, both)
}

func rawMatch(head OXM, octets []byte) Match {
	head.size = uint16(min(len(octets), 1<<16-1))
	more := head.putOctets(octets)
	return appendMore(Match{head}, more)
}

// putOctets fills value and mask and returns what they have no room for.
func (o *OXM) putOctets(b []byte) (more []byte) {
	var room [rawRoom]byte
	n := copy(room[:], b)
	o.value = uint128{binary.BigEndian.Uint64(room[:]), binary.BigEndian.Uint64(room[8:])}
	o.mask = uint128{binary.BigEndian.Uint64(room[16:]), binary.BigEndian.Uint64(room[24:])}
	return b[n:]
}

// octets is what putOctets put.
func (o *OXM) octets() (room [rawRoom]byte) {
	binary.BigEndian.PutUint64(room[:], o.value.hi)
	binary.BigEndian.PutUint64(room[8:], o.value.lo)
	binary.BigEndian.PutUint64(room[16:], o.mask.hi)
	binary.BigEndian.PutUint64(room[24:], o.mask.lo)
	return room
}

// appendMore appends the elements for octets that the last one has no room for.
func appendMore(m Match, octets []byte) Match {
	for len(octets) > 0 {
		o := OXM{Field: FieldMore}
		octets = o.putOctets(octets)
		m = append(m, o)
	}
	return m
}

// parts is how many elements the field m[i] has: itself and those that go on
// with its octets.
func (m Match) parts(i int) int {
	n := 1
	for i+n < len(m) && m[i+n].Field == FieldMore {
		n++
	}
	return n
}

// Octets returns the value and the mask of m[i], a field of variable length;
// for FieldUnknown all that follows the header, and no mask.
func (m Match) Octets(i int) (value, mask []byte) {
	o := &m[i]
	all := rawOctets(m[i : i+m.parts(i)])
	if o.masked && o.Field != FieldUnknown {
		return all[:len(all)/2], all[len(all)/2:]
	}
	return all, nil
}

// rawOctets are the octets of one field.
func rawOctets(parts Match) []byte {
	var all []byte
	for i := range parts {
		room := parts[i].octets()
		all = append(all, room[:]...)
	}
	return all[:min(int(parts[0].size), len(all))]
}

// Header returns the 32-bit header of the field as a match has it, without
// length: class, number and mask flag.
func (o OXM) Header() uint32 {
	h := o.header
	if o.Field != FieldUnknown {
		h = o.Field.info().match &^ oxmLenMask
	}
	if o.masked {
		h |= oxmHasMask
	}
	return h
}

// appendRawOXM appends one unknown or variable-length field.
func appendRawOXM(b []byte, parts Match) ([]byte, error) {
	o := &parts[0]
	n := int(o.size)
	switch {
	case o.Field == FieldMore:
		return b, encodeErrorf("FieldMore without the field that it goes on")
	case n > oxmLenMask:
		return b, encodeErrorf("%v: %d octets; a field has at most %d", o.Field, n, oxmLenMask)
	case n == 0 && (o.value != uint128{} || o.mask != uint128{}):
		return b, encodeErrorf("%v: a number; it has octets (Field.Bytes)", o.Field)
	case n > rawRoom*len(parts) || len(parts) > 1 && n <= rawRoom*(len(parts)-1):
		return b, encodeErrorf("%v: %d octets in %d elements (an action has one, of %d octets)", o.Field, n, len(parts), rawRoom)
	case o.Field != FieldUnknown && o.masked && n%2 != 0:
		return b, encodeErrorf("%v: value and mask are of different length", o.Field)
	}
	b = append32(b, o.Header()|uint32(n))
	return append(b, rawOctets(parts)...), nil
}
