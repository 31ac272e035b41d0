package openflow

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// decoder reads b from pos up to end. The first fault sticks: it moves end to
// pos, so that nothing more is read, all loops end, and later reads return
// zeros. A decoder so reads top to bottom and asks once, with fault.
type decoder struct {
	b        []byte // the whole message, so that offsets in errors are true
	pos, end int
	depth    int // of actions within actions
	bad      bool
	err      *ParseError // what failf said; nil if bad for want of octets
}

// fault is the first fault, nil if there was none.
func (d *decoder) fault() *ParseError {
	if d.bad && d.err == nil {
		d.err = &ParseError{Kind: ErrTruncated, Offset: d.pos, What: "more octets are needed"}
	}
	return d.err
}

func (d *decoder) failf(kind ParseErrorKind, format string, args ...any) {
	if !d.bad {
		d.err = &ParseError{Kind: kind, Offset: d.pos, What: fmt.Sprintf(format, args...)}
	}
	d.stop()
}

func (d *decoder) stop() { d.bad, d.end = true, d.pos }

func (d *decoder) left() int { return d.end - d.pos }

func (d *decoder) u8() uint8 {
	p := d.pos
	if d.end-p < 1 {
		d.stop()
		return 0
	}
	d.pos = p + 1
	return d.b[p]
}

func (d *decoder) u16() uint16 {
	p := d.pos
	if d.end-p < 2 {
		d.stop()
		return 0
	}
	d.pos = p + 2
	return binary.BigEndian.Uint16(d.b[p:])
}

func (d *decoder) u32() uint32 {
	p := d.pos
	if d.end-p < 4 {
		d.stop()
		return 0
	}
	d.pos = p + 4
	return binary.BigEndian.Uint32(d.b[p:])
}

func (d *decoder) u64() uint64 {
	p := d.pos
	if d.end-p < 8 {
		d.stop()
		return 0
	}
	d.pos = p + 8
	return binary.BigEndian.Uint64(d.b[p:])
}

// skip passes over n octets of padding.
func (d *decoder) skip(n int) {
	if d.end-d.pos < n {
		d.stop()
		return
	}
	d.pos += n
}

// skipPad passes over what is left of the window if it is less than 8 octets:
// the padding at the end of an action.
func (d *decoder) skipPad() {
	if d.left() < 8 {
		d.pos = d.end
	}
}

// take returns the next n octets, which alias the input; nil for none.
func (d *decoder) take(n int) []byte {
	p := d.pos
	if n < 0 || d.end-p < n {
		d.stop()
		return nil
	}
	if n == 0 {
		return nil
	}
	d.pos = p + n
	return d.b[p : p+n : p+n]
}

// rest returns all that is left, which aliases the input; nil if nothing is.
func (d *decoder) rest() []byte { return d.take(d.end - d.pos) }

// text returns n octets up to the first NUL as a string.
func (d *decoder) text(n int) string {
	v := d.take(n)
	if i := bytes.IndexByte(v, 0); i >= 0 {
		v = v[:i]
	}
	return string(v)
}

func (d *decoder) mac() (m MAC) {
	copy(m[:], d.take(6))
	return m
}

// enter narrows the window to the next n octets and returns the old end, which
// leave wants back.
func (d *decoder) enter(n int) (outer int) {
	outer = d.end
	if n < 0 || d.end-d.pos < n {
		d.stop()
		return outer
	}
	d.end = d.pos + n
	return outer
}

// leave passes over what was not read of the window and widens it again, unless
// there was a fault.
func (d *decoder) leave(outer int) {
	if !d.bad {
		d.pos, d.end = d.end, outer
	}
}

// tlv reads the type and length that begin an action, instruction or property
// and enters its window. length counts the 4 octets just read; it must be at
// least min, and not more than what is left.
func (d *decoder) tlv(min int, what string) (typ uint16, length, outer int) {
	typ, l := d.u16(), d.u16()
	length = int(l)
	switch {
	case d.bad:
	case length < min:
		d.failf(ErrBadLength, "%s type %d: length %d is below %d", what, typ, length, min)
	case length-4 > d.left():
		d.failf(ErrBadLength, "%s type %d: length %d is more than the %d octets left", what, typ, length, d.left()+4)
	default:
		return typ, length, d.enter(length - 4)
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
	case d.bad:
	case length < min:
		d.failf(ErrBadLength, "%s: length %d is below %d", what, length, min)
	case rest > d.left():
		d.failf(ErrBadLength, "%s: length %d is more than the %d octets left", what, length, d.left()+n+2)
	default:
		return d.enter(rest)
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
