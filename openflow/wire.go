package openflow

import (
	"encoding/binary"
	"fmt"
)

// decoder reads b from pos up to end. The first error sticks: later reads
// return zeros, so that a decoder reads top to bottom and asks once.
type decoder struct {
	b        []byte // the whole message, so that offsets in errors are true
	pos, end int
	depth    int // of actions within actions
	err      *ParseError
}

func (d *decoder) failf(kind ParseErrorKind, format string, args ...any) {
	if d.err == nil {
		d.err = &ParseError{Kind: kind, Offset: d.pos, What: fmt.Sprintf(format, args...)}
	}
	d.pos = d.end
}

// need makes sure that n octets are left.
func (d *decoder) need(n int, what string) bool {
	if d.end-d.pos < n || d.err != nil {
		d.truncated(n, what)
		return false
	}
	return true
}

func (d *decoder) truncated(n int, what string) {
	d.failf(ErrTruncated, "%s: need %d octets, have %d", what, n, d.end-d.pos)
}

func (d *decoder) left() int { return d.end - d.pos }

func (d *decoder) u8() uint8 {
	if d.end-d.pos < 1 {
		d.truncated(1, "integer")
		return 0
	}
	v := d.b[d.pos]
	d.pos++
	return v
}

func (d *decoder) u16() uint16 {
	if d.end-d.pos < 2 {
		d.truncated(2, "integer")
		return 0
	}
	v := binary.BigEndian.Uint16(d.b[d.pos:])
	d.pos += 2
	return v
}

func (d *decoder) u32() uint32 {
	if d.end-d.pos < 4 {
		d.truncated(4, "integer")
		return 0
	}
	v := binary.BigEndian.Uint32(d.b[d.pos:])
	d.pos += 4
	return v
}

func (d *decoder) u64() uint64 {
	if d.end-d.pos < 8 {
		d.truncated(8, "integer")
		return 0
	}
	v := binary.BigEndian.Uint64(d.b[d.pos:])
	d.pos += 8
	return v
}

// skip passes over n octets of padding.
func (d *decoder) skip(n int) {
	if d.need(n, "padding") {
		d.pos += n
	}
}

// skipPad passes over what is left of the window if it is less than 8 octets:
// the padding at the end of an action.
func (d *decoder) skipPad() {
	if d.left() < 8 {
		d.pos = d.end
	}
}

// take returns the next n octets, which alias the input; nil for none.
func (d *decoder) take(n int, what string) []byte {
	if !d.need(n, what) || n == 0 {
		return nil
	}
	v := d.b[d.pos : d.pos+n : d.pos+n]
	d.pos += n
	return v
}

// rest returns all that is left, which aliases the input; nil if nothing is.
func (d *decoder) rest() []byte {
	if d.pos == d.end {
		return nil
	}
	v := d.b[d.pos:d.end:d.end]
	d.pos = d.end
	return v
}

// text returns n octets up to the first NUL as a string.
func (d *decoder) text(n int) string {
	v := d.take(n, "string")
	for i, c := range v {
		if c == 0 {
			return string(v[:i])
		}
	}
	return string(v)
}

func (d *decoder) mac() (m MAC) {
	copy(m[:], d.take(6, "MAC address"))
	return m
}

// enter narrows the window to the next n octets and returns the old end, which
// leave wants back.
func (d *decoder) enter(n int, what string) (outer int) {
	outer = d.end
	if d.need(n, what) {
		d.end = d.pos + n
	}
	return outer
}

// leave passes over what was not read of the window and widens it again.
func (d *decoder) leave(outer int) {
	if d.err != nil {
		d.pos = outer
	} else {
		d.pos = d.end
	}
	d.end = outer
}

// tlv reads the type and length that begin an action, instruction or property
// and enters its window. length counts the 4 octets just read; it must be at
// least min, and not more than what is left.
func (d *decoder) tlv(min int, what string) (typ uint16, length, outer int) {
	typ, l := d.u16(), d.u16()
	length = int(l)
	switch {
	case d.err != nil:
	case length < min:
		d.failf(ErrBadLength, "%s type %d: length %d is below %d", what, typ, length, min)
	case length-4 > d.left():
		d.failf(ErrBadLength, "%s type %d: length %d is more than the %d octets left", what, typ, length, d.left()+4)
	default:
		return typ, length, d.enter(length-4, what)
	}
	return typ, length, d.end
}

// entry reads the 16-bit length that begins an entry of a list, which counts
// from there, and enters the entry's window.
func (d *decoder) entry(min int, what string) (outer int) { return d.entryAfter(0, min, what) }

// entryAfter is entry for a length that follows the entry's first n octets.
func (d *decoder) entryAfter(n, min int, what string) (outer int) {
	length := int(d.u16())
	rest := length - n - 2
	switch {
	case d.err != nil:
	case length < min:
		d.failf(ErrBadLength, "%s: length %d is below %d", what, length, min)
	case rest > d.left():
		d.failf(ErrBadLength, "%s: length %d is more than the %d octets left", what, length, d.left()+n+2)
	default:
		return d.enter(rest, what)
	}
	return d.end
}

// MAC is an Ethernet address.
type MAC [6]byte

// String returns the address as 02:00:00:00:00:01.
func (m MAC) String() string {
	const digits = "0123456789abcdef"
	b := make([]byte, 0, 17)
	for i, c := range m {
		if i > 0 {
			b = append(b, ':')
		}
		b = append(b, digits[c>>4], digits[c&15])
	}
	return string(b)
}

func (m MAC) uint64() uint64 {
	return uint64(m[0])<<40 | uint64(m[1])<<32 | uint64(m[2])<<24 | uint64(m[3])<<16 | uint64(m[4])<<8 | uint64(m[5])
}

func macFromUint64(v uint64) MAC {
	return MAC{byte(v >> 40), byte(v >> 32), byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}
}

func append16(b []byte, v uint16) []byte { return binary.BigEndian.AppendUint16(b, v) }
func append32(b []byte, v uint32) []byte { return binary.BigEndian.AppendUint32(b, v) }
func append64(b []byte, v uint64) []byte { return binary.BigEndian.AppendUint64(b, v) }

// appendZeros appends n zero octets.
func appendZeros(b []byte, n int) []byte {
	const zeros = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	for ; n > len(zeros); n -= len(zeros) {
		b = append(b, zeros...)
	}
	return append(b, zeros[:n]...)
}

// pad8 pads what was appended since start to a multiple of 8.
func pad8(b []byte, start int) []byte {
	return appendZeros(b, -(len(b)-start)&7)
}

// appendText appends s in a field of n octets, padded with NULs.
func appendText(b []byte, s string, n int, what string) ([]byte, error) {
	if len(s) > n {
		return b, encodeErrorf("%s of %d octets; the field has %d", what, len(s), n)
	}
	return appendZeros(append(b, s...), n-len(s)), nil
}

// patchLen writes the number of octets appended since start as the 16-bit
// length at start+2, where actions, instructions and properties have it.
func patchLen(b []byte, start int, what string) ([]byte, error) {
	return patchLenAt(b, start, start+2, what)
}

// patchLenAt is patchLen with the length at another place.
func patchLenAt(b []byte, start, at int, what string) ([]byte, error) {
	n := len(b) - start
	if n > MaxMessageLen {
		return b, encodeErrorf("%s of %d octets; its length field can state %d at most", what, n, MaxMessageLen)
	}
	binary.BigEndian.PutUint16(b[at:], uint16(n))
	return b, nil
}
