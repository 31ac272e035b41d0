package ovsdb

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// appendQuoted writes a JSON string. Text that JSON cannot express has been
// refused by checkText before.
func appendQuoted(b []byte, s string) []byte {
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

// appendStrings writes an array of JSON strings.
func appendStrings(b []byte, ss ...string) []byte {
	b = append(b, '[')
	for i, s := range ss {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendQuoted(b, s)
	}
	return append(b, ']')
}

// checkText refuses strings that the database cannot hold.
func checkText(s string) error {
	if strings.IndexByte(s, 0) >= 0 {
		return fmt.Errorf("%s has a character U+0000, which the database cannot hold", quoteCut(s))
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("%s is not valid UTF-8", quoteCut(s))
	}
	return nil
}

// appendValue writes a <value> (RFC 7047 §5.1).
func appendValue(b []byte, v Value) ([]byte, error) {
	var err error
	if v.IsMap() {
		b = append(b, `["map",[`...)
		n := 0
		for k, a := range v.Pairs() {
			if n > 0 {
				b = append(b, ',')
			}
			n++
			b = append(b, '[')
			if b, err = appendAtomJSON(b, k); err != nil {
				return nil, err
			}
			b = append(b, ',')
			if b, err = appendAtomJSON(b, a); err != nil {
				return nil, err
			}
			b = append(b, ']')
		}
		return append(b, "]]"...), nil
	}
	n := v.Len()
	if n != 1 {
		b = append(b, `["set",[`...)
	}
	i := 0
	for a := range v.Atoms() {
		if i > 0 {
			b = append(b, ',')
		}
		i++
		if b, err = appendAtomJSON(b, a); err != nil {
			return nil, err
		}
	}
	if n != 1 {
		b = append(b, "]]"...)
	}
	return b, nil
}

func appendAtomJSON(b []byte, a Atom) ([]byte, error) {
	switch a.kind {
	case IntegerKind:
		return strconv.AppendInt(b, a.Integer(), 10), nil
	case RealKind:
		f := a.Real()
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, fmt.Errorf("the real %v cannot be expressed in JSON", f)
		}
		return jsontext.AppendFloat(b, f, 64), nil
	case BooleanKind:
		return strconv.AppendBool(b, a.Boolean()), nil
	case StringKind:
		if err := checkText(a.text); err != nil {
			return nil, err
		}
		return appendQuoted(b, a.text), nil
	case NamedUUIDKind:
		if err := checkRowName(a.text); err != nil {
			return nil, err
		}
		b = append(b, `["named-uuid",`...)
		return append(appendQuoted(b, a.text), ']'), nil
	case UUIDKind:
		b = append(b, `["uuid","`...)
		return append(a.uuid.append(b), `"]`...), nil
	}
	return nil, fmt.Errorf("an atom without a type")
}

// checkRowName tells whether s is an <id> (RFC 7047 §3.1).
func checkRowName(s string) error {
	for i, c := range []byte(s) {
		letter := 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return fmt.Errorf("the row name %s is not a letter or _ followed by letters, digits and _", quoteCut(s))
		}
	}
	if s == "" {
		return fmt.Errorf("a row name is empty")
	}
	return nil
}
