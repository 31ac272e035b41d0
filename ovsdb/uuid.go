package ovsdb

import (
	"bytes"
	"fmt"
)

// UUID identifies one row, or one server (RFC 7047 §3.1). The zero UUID is the
// default of a column that must hold exactly one reference.
type UUID [16]byte

// ParseUUID reads the 36 character form 8-4-4-4-12 in hexadecimal digits of
// either case.
func ParseUUID(s string) (UUID, error) {
	u, ok := parseUUID([]byte(s))
	if !ok {
		return UUID{}, fmt.Errorf("ovsdb: %s is not a uuid of the form 8-4-4-4-12", quoteCut(s))
	}
	return u, nil
}

func parseUUID(s []byte) (u UUID, ok bool) {
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return UUID{}, false
	}
	n := 0
	for i := 0; i < 36; i += 2 {
		if i == 8 || i == 13 || i == 18 || i == 23 {
			i++ // the dash
		}
		hi, lo := unhex(s[i]), unhex(s[i+1])
		if hi > 15 || lo > 15 {
			return UUID{}, false
		}
		u[n] = hi<<4 | lo
		n++
	}
	return u, true
}

func unhex(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10
	}
	return 0xff
}

// String returns the form that ovsdb-server writes: lower case, 8-4-4-4-12.
func (u UUID) String() string { return string(u.append(make([]byte, 0, 36))) }

func (u UUID) append(b []byte) []byte {
	const digits = "0123456789abcdef"
	for i, c := range u {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			b = append(b, '-')
		}
		b = append(b, digits[c>>4], digits[c&15])
	}
	return b
}

// Compare orders UUIDs as ovsdb-server does.
func (u UUID) Compare(v UUID) int { return bytes.Compare(u[:], v[:]) }

// IsZero tells whether u is the zero UUID, which names no row.
func (u UUID) IsZero() bool { return u == UUID{} }

// nibble is the i-th step of the path to u in a tree of rows.
func (u UUID) nibble(i int) uint8 {
	if i&1 == 0 {
		return u[i>>1] >> 4
	}
	return u[i>>1] & 15
}
