package unixctl

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxLine bounds a line of an answer that is read by Lines, and other parts of
// that answer, in bytes.
const MaxLine = 16 << 10

// Lines runs a command as Call does, and hands its output over line by line as
// it comes, so that an answer of many megabytes needs no memory. A line is valid
// until each returns. An error of each ends the reading, and is returned.
//
// After any error, lines may have been handed over already.
func (c *Conn) Lines(ctx context.Context, each func(line []byte) error, method string, params ...string) error {
	return c.run(ctx, method, params, func(r io.Reader, id uint64) error {
		return readLines(r, id, method, each)
	})
}

// readLines reads exactly one response: an object of which the result, if it is
// a string, is handed over by lines.
func readLines(r io.Reader, id uint64, method string, each func([]byte) error) error {
	in := &lineReader{in: bufio.NewReaderSize(io.LimitReader(r, MaxReply), 64<<10)}
	var answered, failed, hasResult bool
	var failure string
	if err := in.expect('{'); err != nil {
		if errors.Is(err, io.EOF) {
			err = errors.New("the daemon closed the connection")
		}
		return err
	}
	for {
		key, err := in.value()
		if err == nil {
			err = in.expect(':')
		}
		if err != nil {
			return in.cut(err)
		}
		quoted, err := in.isString()
		if err != nil {
			return in.cut(err)
		}
		if key == "result" && quoted {
			hasResult = true
			if err := in.lines(each); err != nil {
				return in.cut(err)
			}
		} else {
			value, err := in.value()
			switch {
			case err != nil:
				return in.cut(err)
			case key == "id" && value != strconv.FormatUint(id, 10):
				return fmt.Errorf("the answer is for request %s, not %d", quoteCut(value), id)
			case key == "id":
				answered = true
			case key == "error" && (quoted || value != "null"):
				failed, failure = true, value
			}
		}
		b, err := in.next()
		if err != nil {
			return in.cut(err)
		}
		switch b {
		case ',':
			continue
		case '}':
		default:
			return fmt.Errorf("the answer has %q where a comma or its end is expected", b)
		}
		switch {
		case !answered:
			return errors.New("the answer says not for which request it is")
		case failed:
			return &Error{Method: method, Text: strings.TrimSuffix(failure, "\n")}
		case !hasResult:
			return errors.New("the answer has no result")
		}
		return nil
	}
}

// lineReader reads the parts of a JSON object. What it keeps is bounded by
// MaxLine.
type lineReader struct {
	in   *bufio.Reader
	part []byte
}

// cut explains an end of the input within the answer.
func (l *lineReader) cut(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("the answer is cut, or longer than %d MiB", MaxReply>>20)
	}
	return err
}

// next returns the next byte that is not white space.
func (l *lineReader) next() (byte, error) {
	for {
		b, err := l.in.ReadByte()
		if err != nil || b != ' ' && b != '\n' && b != '\t' && b != '\r' {
			return b, err
		}
	}
}

func (l *lineReader) expect(want byte) error {
	b, err := l.next()
	if err == nil && b != want {
		err = fmt.Errorf("the answer has %q where %q is expected", b, want)
	}
	return err
}

// isString says whether a string comes next.
func (l *lineReader) isString() (bool, error) {
	b, err := l.next()
	if err != nil {
		return false, err
	}
	return b == '"', l.in.UnreadByte()
}

// value reads a string, or a number or word as it is.
func (l *lineReader) value() (string, error) {
	quoted, err := l.isString()
	if err != nil {
		return "", err
	}
	l.part = l.part[:0]
	if quoted {
		l.in.Discard(1) // it has been seen
		for {
			end, err := l.fill(false)
			if err != nil {
				return "", err
			}
			if end {
				return string(l.part), nil
			}
		}
	}
	for {
		b, err := l.in.ReadByte()
		switch {
		case err != nil:
			return "", err
		case b == ',' || b == '}' || b == ':':
			return strings.TrimSpace(string(l.part)), l.in.UnreadByte()
		case b == '{' || b == '[':
			return "", fmt.Errorf("the answer has %q, where a plain value is expected", b)
		}
		if err := l.append(b); err != nil {
			return "", err
		}
	}
}

// lines hands over the lines of the string that comes next.
func (l *lineReader) lines(each func([]byte) error) error {
	l.in.Discard(1)
	for {
		l.part = l.part[:0]
		end, err := l.fill(true)
		if err != nil {
			return err
		}
		if !end || len(l.part) > 0 {
			if err := each(l.part); err != nil {
				return err
			}
		}
		if end {
			return nil
		}
	}
}

// fill appends what comes next of a string to part: up to its end or, if asked
// to, up to a newline.
func (l *lineReader) fill(stopAtNewline bool) (end bool, err error) {
	for {
		if _, err := l.in.Peek(1); err != nil {
			return false, err
		}
		chunk, _ := l.in.Peek(l.in.Buffered())
		n := bytes.IndexAny(chunk, `"\`)
		if n != 0 {
			if n < 0 {
				n = len(chunk)
			}
			if err := l.append(chunk[:n]...); err != nil {
				return false, err
			}
			l.in.Discard(n)
			continue
		}
		l.in.Discard(1)
		if chunk[0] == '"' {
			return true, nil
		}
		b, err := l.escaped()
		if err != nil {
			return false, err
		}
		if stopAtNewline && len(b) == 1 && b[0] == '\n' {
			return false, nil
		}
		if err := l.append(b...); err != nil {
			return false, err
		}
	}
}

// escaped reads what follows a backslash.
func (l *lineReader) escaped() ([]byte, error) {
	b, err := l.in.ReadByte()
	if err != nil {
		return nil, err
	}
	switch b {
	case 'n':
		return []byte{'\n'}, nil
	case 't':
		return []byte{'\t'}, nil
	case 'r':
		return []byte{'\r'}, nil
	case 'b':
		return []byte{'\b'}, nil
	case 'f':
		return []byte{'\f'}, nil
	case '"', '\\', '/':
		return []byte{b}, nil
	case 'u':
		hex, err := l.in.Peek(4)
		if err != nil {
			return nil, err
		}
		code, err := strconv.ParseUint(string(hex), 16, 16)
		if err != nil {
			return nil, fmt.Errorf("the answer has the escape \\u%q", hex)
		}
		l.in.Discard(4)
		// Half of a surrogate pair becomes U+FFFD: control sockets speak ASCII.
		return utf8.AppendRune(nil, rune(code)), nil
	}
	return nil, fmt.Errorf("the answer has the escape \\%q", b)
}

func (l *lineReader) append(b ...byte) error {
	if len(l.part)+len(b) > MaxLine {
		return fmt.Errorf("a line of the answer is longer than %d bytes", MaxLine)
	}
	l.part = append(l.part, b...)
	return nil
}
