package ovsdb

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// contentError says that JSON from the server, correct as such, does not mean
// what it should. The stream of messages can go on behind it.
type contentError struct{ what string }

func (e *contentError) Error() string { return e.what }

func contentErrorf(format string, args ...any) error {
	return &contentError{fmt.Sprintf(format, args...)}
}

func isContentError(err error) bool {
	var c *contentError
	return errors.As(err, &c)
}

// errTooLong ends a connection whose server sends a message beyond the limit.
var errTooLong = errors.New("a message is longer than Config.MaxMessage permits")

// limitedInput counts what is read against the message being decoded. The
// decoder reads ahead, so limit is a position in the stream.
type limitedInput struct {
	r           io.Reader
	read, limit int64
	err         error // stays, though the decoder may read again
}

func (l *limitedInput) Read(p []byte) (int, error) {
	if l.err == nil && l.read >= l.limit {
		l.err = errTooLong
	}
	if l.err != nil {
		return 0, l.err
	}
	if int64(len(p)) > l.limit-l.read {
		p = p[:l.limit-l.read]
	}
	n, err := l.r.Read(p)
	l.read += int64(n)
	l.err = err
	return n, err
}

// reader decodes the server's JSON as a stream: nothing longer than one atom
// has to be in memory. It is for one goroutine.
type reader struct {
	dec        *jsontext.Decoder
	input      *limitedInput
	base       int64 // where in the input dec began
	maxMessage int64
	values     valueBuilder // scratch of the value or row being decoded
	spans      []span       // scratch of the row being decoded
	scratch    []byte       // unquoted text with escapes
}

func newReader(in io.Reader, maxMessage int64) *reader {
	input := &limitedInput{r: in, limit: maxMessage}
	return &reader{dec: newDecoder(input), input: input, maxMessage: maxMessage}
}

// newDecoder returns a decoder that does not look for duplicate names: of those
// the last one counts here.
func newDecoder(in io.Reader) *jsontext.Decoder {
	return jsontext.NewDecoder(in, jsontext.AllowDuplicateNames(true))
}

// keptBuffer is how large a buffer may stay after the message that needed it.
const keptBuffer = 1 << 20

// nextMessage allows the input another message. It is called between messages.
func (r *reader) nextMessage() {
	if rest := r.dec.UnreadBuffer(); cap(rest) > keptBuffer {
		r.base = r.input.read - int64(len(rest))
		r.dec = newDecoder(io.MultiReader(bytes.NewReader(bytes.Clone(rest)), r.input))
	}
	if cap(r.scratch) > keptBuffer {
		r.scratch = nil
	}
	if cap(r.values.buf) > keptBuffer {
		r.values.buf = nil
	}
	r.input.limit = r.base + r.dec.InputOffset() + r.maxMessage
}

// enter reads the opening of an object or array and returns its depth.
func (r *reader) enter(kind jsontext.Kind) (depth int, err error) {
	if got := r.dec.PeekKind(); got != kind {
		if got == jsontext.KindInvalid {
			return 0, r.skipOne()
		}
		return 0, contentErrorf("found %s where %s belongs", got, kind)
	}
	_, err = r.dec.ReadToken()
	return r.dec.StackDepth(), err
}

func (r *reader) skipOne() error {
	err := r.dec.SkipValue()
	if err == nil {
		err = contentErrorf("a value is missing")
	}
	return err
}

// more tells whether the object or array that was entered has another member.
// When it has none its closing is read.
func (r *reader) more() (bool, error) {
	switch r.dec.PeekKind() {
	case '}', ']':
		_, err := r.dec.ReadToken()
		return false, err
	case jsontext.KindInvalid:
		return false, r.skipOne()
	}
	return true, nil
}

// end reads the closing of an array that must have no further element.
func (r *reader) end() error {
	more, err := r.more()
	if err == nil && more {
		err = contentErrorf("an array is longer than it should be")
	}
	return err
}

// leave skips whatever is left inside of the object or array at depth, and its
// closing.
func (r *reader) leave(depth int) error {
	for r.dec.StackDepth() >= depth {
		switch r.dec.PeekKind() {
		case '}', ']':
			if _, err := r.dec.ReadToken(); err != nil {
				return err
			}
		default:
			if err := r.dec.SkipValue(); err != nil {
				return err
			}
		}
	}
	return nil
}

// text reads a string, valid until the next read.
func (r *reader) text() ([]byte, error) {
	if kind := r.dec.PeekKind(); kind != '"' && kind != jsontext.KindInvalid {
		return nil, contentErrorf("found %s where a string belongs", kind)
	}
	raw, err := r.dec.ReadValue()
	if err != nil {
		return nil, err
	}
	return r.unquote(raw)
}

// ownText reads a string to keep.
func (r *reader) ownText() (string, error) {
	text, err := r.text()
	return string(text), err
}

func (r *reader) unquote(raw jsontext.Value) ([]byte, error) {
	for _, c := range raw {
		if c == '\\' {
			var err error
			r.scratch, err = jsontext.AppendUnquote(r.scratch[:0], raw)
			return r.scratch, err
		}
	}
	return raw[1 : len(raw)-1], nil
}

// value decodes a <value> of the column's type to the end of r.values.buf. The
// wire shows a set of one as a bare atom or as a set (RFC 7047 §5.1).
func (r *reader) value(c *Column) error {
	b := &r.values
	b.begin(c.Key.Kind, c.Value.Kind)
	isMap := c.Value.Kind != NoKind
	if !isMap && r.dec.PeekKind() != '[' {
		return r.bareAtom(c)
	}
	if _, err := r.enter('['); err != nil {
		return err
	}
	tag, err := r.text()
	if err != nil {
		return err
	}
	switch {
	case string(tag) == "uuid" && c.Key.Kind == UUIDKind && !isMap:
		at := len(b.buf)
		if err := r.uuidText(); err != nil {
			return err
		}
		b.added(at)
	case string(tag) == "set" && !isMap, string(tag) == "map" && isMap:
		if err := r.elements(c); err != nil {
			return err
		}
	default:
		return contentErrorf("found a %s where %ss belong", quoteCut(string(tag)), c.Key.Kind)
	}
	if err := r.end(); err != nil {
		return err
	}
	b.finish()
	return nil
}

func (r *reader) bareAtom(c *Column) error {
	at := len(r.values.buf)
	if err := r.atom(c.Key.Kind); err != nil {
		return err
	}
	r.values.added(at)
	return nil
}

// elements decodes the array behind "set" or "map".
func (r *reader) elements(c *Column) error {
	b := &r.values
	if _, err := r.enter('['); err != nil {
		return err
	}
	for {
		more, err := r.more()
		if err != nil || !more {
			return err
		}
		at := len(b.buf)
		if c.Value.Kind == NoKind {
			err = r.atom(c.Key.Kind)
		} else {
			err = r.pair(c)
		}
		if err != nil {
			return err
		}
		b.added(at)
	}
}

func (r *reader) pair(c *Column) error {
	if _, err := r.enter('['); err != nil {
		return err
	}
	if err := r.atom(c.Key.Kind); err != nil {
		return err
	}
	if err := r.atom(c.Value.Kind); err != nil {
		return err
	}
	return r.end()
}

// atom decodes one <atom> of kind k to the end of r.values.buf.
func (r *reader) atom(k Kind) error {
	b := &r.values
	if k == UUIDKind {
		if _, err := r.enter('['); err != nil {
			return err
		}
		tag, err := r.text()
		if err != nil {
			return err
		}
		if string(tag) != "uuid" {
			return contentErrorf("found a %s where a uuid belongs", quoteCut(string(tag)))
		}
		if err := r.uuidText(); err != nil {
			return err
		}
		return r.end()
	}
	switch kind := r.dec.PeekKind(); kind {
	case '{', '[', '}', ']', 'n':
		return contentErrorf("found %s where a %s belongs", kind, k)
	}
	raw, err := r.dec.ReadValue()
	if err != nil {
		return err
	}
	var a Atom
	switch kind := raw.Kind(); {
	case k == StringKind && kind == '"':
		text, err := r.unquote(raw)
		if err != nil {
			return err
		}
		b.buf = appendText(b.buf, text)
		return nil
	case k == IntegerKind && kind == '0':
		n, err := parseInteger(raw)
		if err != nil {
			return err
		}
		a = IntegerAtom(n)
	case k == RealKind && kind == '0':
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil {
			return contentErrorf("%s is not a real that 64 bits can hold", quoteCut(string(raw)))
		}
		a = RealAtom(f)
	case k == BooleanKind && (kind == 't' || kind == 'f'):
		a = BooleanAtom(kind == 't')
	default:
		return contentErrorf("found %s where a %s belongs", quoteCut(string(raw)), k)
	}
	b.buf = appendAtom(b.buf, a)
	return nil
}

func (r *reader) uuidText() error {
	text, err := r.text()
	if err != nil {
		return err
	}
	u, ok := parseUUID(text)
	if !ok {
		return contentErrorf("%s is not a uuid", quoteCut(string(text)))
	}
	r.values.buf = append(r.values.buf, u[:]...)
	return nil
}

// parseInteger reads a JSON number as the database does: any notation of an
// integer from -2^63 to 2^63-1.
func parseInteger(raw []byte) (int64, error) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err == nil {
		return n, nil
	}
	// Other notations (1e3, 5.0) are exact while a float64 is.
	const exact = 1 << 53
	if f, ferr := strconv.ParseFloat(string(raw), 64); ferr == nil && f == math.Trunc(f) && -exact < f && f < exact {
		return int64(f), nil
	}
	return 0, contentErrorf("%s is not an integer that 64 bits can hold", quoteCut(string(raw)))
}
