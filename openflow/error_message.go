package openflow

import "fmt"

// Error tells that a request was refused (OF1.4 section 7.5.4). Its transaction
// id is the request's. It is a Go error; errors.Is(err, openflow.BadRequestIsSlave) and
// the like tell which.
type Error struct {
	Code ErrorCode
	// Data is the request, by Open vSwitch whole. It aliases the parsed octets.
	// In an error about hello it is text.
	Data []byte
}

// ErrorCode is the kind of an Error: type and code, or for errors of
// experimenters the experimenter and its own type. It is a Go error, so that it
// can be the target of errors.Is.
//
// It is experimenter<<32 | type<<16 | code; for experimenters the type is 0xffff.
type ErrorCode uint64

const errorTypeExperimenter = 0xffff

// NewErrorCode makes the code of a standard error.
func NewErrorCode(typ, code uint16) ErrorCode { return ErrorCode(typ)<<16 | ErrorCode(code) }

// NewExperimenterErrorCode makes the code of an experimenter's error.
func NewExperimenterErrorCode(experimenter uint32, expType uint16) ErrorCode {
	return ErrorCode(experimenter)<<32 | errorTypeExperimenter<<16 | ErrorCode(expType)
}

// Type is the error type, 0xffff for those of experimenters.
func (c ErrorCode) Type() uint16 { return uint16(c >> 16) }

// Code is the code within the type, or an experimenter's own type.
func (c ErrorCode) Code() uint16 { return uint16(c) }

// Experimenter is the id of an experimenter, else 0.
func (c ErrorCode) Experimenter() uint32 { return uint32(c >> 32) }

// String returns the specification's name, such as "OFPBRC_IS_SLAVE".
func (c ErrorCode) String() string {
	if name, ok := errorNames[c]; ok {
		return name
	}
	if c.Type() == errorTypeExperimenter {
		return fmt.Sprintf("error %d of experimenter %#x", c.Code(), c.Experimenter())
	}
	return fmt.Sprintf("error type %d code %d", c.Type(), c.Code())
}

func (c ErrorCode) Error() string { return "openflow: " + c.String() }

// Type returns TypeError.
func (*Error) Type() Type { return TypeError }

func (m *Error) Error() string {
	if h, err := ParseHeader(m.Data); err == nil {
		return fmt.Sprintf("openflow: switch refused %v (xid %#x): %s", h.Type, h.Xid, m.Code.String())
	}
	if m.Code.Type() == HelloFailedIncompatible.Type() && len(m.Data) > 0 {
		return fmt.Sprintf("openflow: %s: %.100q", m.Code.String(), m.Data)
	}
	return m.Code.Error()
}

// Is reports whether target is the ErrorCode of m.
func (m *Error) Is(target error) bool {
	code, ok := target.(ErrorCode)
	return ok && code == m.Code
}

func (m *Error) appendBody(b []byte) ([]byte, error) {
	b = append16(append16(b, m.Code.Type()), m.Code.Code())
	if m.Code.Type() == errorTypeExperimenter {
		b = append32(b, m.Code.Experimenter())
	}
	return append(b, m.Data...), nil
}

func parseError(d *decoder) *Error {
	typ, code := d.u16(), d.u16()
	m := &Error{Code: NewErrorCode(typ, code)}
	if typ == errorTypeExperimenter {
		m.Code = NewExperimenterErrorCode(d.u32(), code)
	}
	m.Data = d.rest()
	return m
}
