package openflow

import "fmt"

// ParseErrorKind tells what kind of fault a ParseError found. The kinds are
// errors themselves, for errors.Is.
type ParseErrorKind string

// The kinds of ParseError.
const (
	ErrTruncated  ParseErrorKind = "cut short"              // fewer octets than the format or a length demands
	ErrBadLength  ParseErrorKind = "impossible length"      // a length that contradicts its surroundings
	ErrBadVersion ParseErrorKind = "wrong protocol version" // a header with another version
	ErrBadValue   ParseErrorKind = "impossible value"       // a value that the format excludes
)

// Error returns the kind as text.
func (k ParseErrorKind) Error() string { return string(k) }

// ParseError says that octets are not a message, where, and why.
type ParseError struct {
	Kind   ParseErrorKind
	Offset int    // from the first octet of the message
	What   string // what was read and what was wrong with it
}

func (e *ParseError) Error() string {
	return fmt.Sprintf("openflow: %s: %s (at octet %d)", e.What, string(e.Kind), e.Offset)
}

// Unwrap returns the kind.
func (e *ParseError) Unwrap() error { return e.Kind }

// EncodeError says that a value cannot be put on the wire: it does not fit its
// field or the message. It is the caller's mistake.
type EncodeError struct {
	What string
}

func (e *EncodeError) Error() string { return "openflow: " + e.What }

func encodeErrorf(format string, args ...any) error {
	return &EncodeError{What: fmt.Sprintf(format, args...)}
}
