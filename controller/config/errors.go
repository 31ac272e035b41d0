package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// maxErrors is how many errors of one file are told; the rest are counted.
const maxErrors = 20

// maxQuoted is how many bytes of the file's own text an error repeats.
const maxQuoted = 60

// Error is one mistake in a configuration file.
type Error struct {
	File   string // the name given to [Parse]
	Line   int    // from 1; 0 when the mistake has no place in the text
	Column int    // from 1, in characters; 0 when Line is 0
	Path   string // the setting, such as pools.web.members.be1; may be empty
	Msg    string // what is wrong and what to do
}

// Error is one line: file:line:column: path: message.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": ")
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Msg)
	return b.String()
}

// Errors are the mistakes of one file in the order of its lines. It holds at
// most 20, and then one more that says how many were left out.
type Errors []*Error

// Error is one line for each mistake.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As find a single *Error.
func (e Errors) Unwrap() []error {
	list := make([]error, len(e))
	for i, one := range e {
		list[i] = one
	}
	return list
}

// position is a place in the file; the zero position is nowhere.
type position struct{ line, column int }

// keyPath leads from the top of the file to a setting. An element is a key, or an
// index such as "[2]".
type keyPath []string

func (p keyPath) child(element string) keyPath {
	return append(slices.Clone(p), element)
}

func (p keyPath) index(i int) keyPath { return p.child("[" + strconv.Itoa(i) + "]") }

// key is unambiguous, unlike String: names may contain dots.
func (p keyPath) key() string { return strings.Join(p, "\x00") }

// String is the form that people read: services.web.address[1].
func (p keyPath) String() string {
	var b strings.Builder
	for i, element := range p {
		if i > 0 && !strings.HasPrefix(element, "[") {
			b.WriteByte('.')
		}
		if isName(element) || strings.HasPrefix(element, "[") {
			b.WriteString(clip(element))
		} else {
			b.WriteString(quote(element))
		}
	}
	return b.String()
}

// document is a file while it is being read: where every setting stands and
// what is wrong.
type document struct {
	file    string
	where   map[string]position // by keyPath.key
	errs    []*Error
	omitted int // errors beyond maxErrors
}

// place finds the setting or, if the file leaves it out, what it belongs to.
func (d *document) place(p keyPath) (keyPath, position) {
	for len(p) > 0 {
		if at, ok := d.where[p.key()]; ok {
			return p, at
		}
		p = p[:len(p)-1]
	}
	return nil, position{1, 1}
}

// line is where the setting stands, for messages about another one.
func (d *document) line(p keyPath) int {
	_, at := d.place(p)
	return at.line
}

// fail reports a mistake in the setting at p.
func (d *document) fail(p keyPath, format string, args ...any) {
	p, at := d.place(p)
	d.failAt(at, p, format, args...)
}

func (d *document) failAt(at position, p keyPath, format string, args ...any) {
	if len(d.errs) >= maxErrors {
		d.omitted++
		return
	}
	d.errs = append(d.errs, &Error{
		File: d.file, Line: at.line, Column: at.column, Path: oneLine(p.String()), Msg: oneLine(fmt.Sprintf(format, args...)),
	})
}

// err is nil, or Errors.
func (d *document) err() error {
	if len(d.errs) == 0 {
		return nil
	}
	errs := Errors(slices.Clone(d.errs))
	slices.SortStableFunc(errs, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if d.omitted > 0 {
		errs = append(errs, &Error{File: d.file, Msg: fmt.Sprintf("%d more errors; mend these first", d.omitted)})
	}
	return errs
}

// oneLine escapes what would break a line, or a terminal.
func oneLine(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}
	return b.String()
}

// clip cuts text of the file to a length fit for a message.
func clip(s string) string {
	return cut(s, maxQuoted)
}

func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "..."
}

func quote(s string) string { return strconv.Quote(clip(s)) }
