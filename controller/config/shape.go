package config

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// maxList is how many elements a list may have.
const maxList = 128

// maxName is how long a name may be, in bytes.
const maxName = 63

// isName tells whether s may name a check, pool, member or service.
func isName(s string) bool {
	for i, r := range s {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		case i > 0 && (r == '.' || r == '_' || r == '-'):
		default:
			return false
		}
	}
	return s != "" && len(s) <= maxName
}

// entry is a setting of the file: its path, where its key stands, and its value,
// which is nil where the file leaves it out. Readers below keep the default in
// that case.
type entry struct {
	path keyPath
	key  position
	node ast.Node
}

// isEmpty tells whether the file leaves the setting out, or has nothing in it.
func (e entry) isEmpty() bool {
	switch n := e.node.(type) {
	case nil, *ast.NullNode:
		return true
	case *ast.MappingNode:
		return len(n.Values) == 0
	case *ast.SequenceNode:
		return len(n.Values) == 0
	}
	return false
}

// name is the last element of the path: what a named entry is called.
func (e entry) name() string { return e.path[len(e.path)-1] }

// fields are the settings of a mapping with fixed keys.
type fields map[string]entry

// mapping reads a mapping whose keys are known. It is nil if the file has
// something else there, which is reported.
func (d *document) mapping(e entry, known ...string) fields {
	if !d.isMapping(e) {
		return nil
	}
	found := fields{}
	for _, child := range d.entries(e) {
		key := child.name()
		found[key] = child
		if !slices.Contains(known, key) {
			d.failAt(child.key, child.path, "unknown key; %s", didYouMean(key, known))
		}
	}
	return found
}

// named reads a mapping whose keys are names, in the order of the file.
func (d *document) named(e entry) []entry {
	if !d.isMapping(e) {
		return nil
	}
	children := d.entries(e)
	for _, child := range children {
		if !isName(child.name()) {
			d.failAt(child.key, child.path, "a name is 1 to %d letters, digits, dots, underscores and hyphens, and begins with a letter or digit", maxName)
		}
	}
	return children
}

// isMapping tells whether the setting is a mapping, or left out. Anything else
// is reported.
func (d *document) isMapping(e entry) bool {
	switch e.node.(type) {
	case nil, *ast.NullNode, *ast.MappingNode:
		return true
	}
	subject := ""
	if len(e.path) == 0 {
		subject = "the file "
	}
	d.fail(e.path, "%sis %s, where `key: value` lines are expected", subject, kind(e.node))
	return false
}

// entries reads any mapping, notes where its settings stand, and reports
// repeated keys, of which the first one counts.
func (d *document) entries(e entry) []entry {
	m, ok := e.node.(*ast.MappingNode)
	if !ok {
		return nil
	}
	children := make([]entry, 0, len(m.Values))
	for _, pair := range m.Values {
		at := nodePosition(pair.Key)
		key, ok := scalarText(pair.Key)
		if !ok {
			d.failAt(at, e.path, "a key must be plain text on one line")
			continue
		}
		child := entry{e.path.child(key), at, pair.Value}
		if first, again := d.where[child.path.key()]; again {
			d.failAt(at, child.path, "is set twice: first on line %d", first.line)
			continue
		}
		if _, ok := scalarText(pair.Value); ok {
			at = nodePosition(pair.Value)
		}
		d.where[child.path.key()] = at
		children = append(children, child)
	}
	return children
}

// list reads a list, or one value that stands for a list of one.
func (d *document) list(e entry) []entry {
	switch n := e.node.(type) {
	case nil, *ast.NullNode:
		return nil
	case *ast.SequenceNode:
		if len(n.Values) > maxList {
			d.fail(e.path, "has %d elements; at most %d are supported", len(n.Values), maxList)
			return nil
		}
		elements := make([]entry, len(n.Values))
		for i, value := range n.Values {
			at := nodePosition(value)
			elements[i] = entry{e.path.index(i), at, value}
			d.where[elements[i].path.key()] = at
		}
		return elements
	default:
		return []entry{e}
	}
}

// text reads a scalar as it is written. ok is false if the setting is left out,
// or is no scalar, which is reported.
func (d *document) text(e entry) (s string, ok bool) {
	if e.node == nil {
		return "", false
	}
	if _, null := e.node.(*ast.NullNode); null {
		d.fail(e.path, "has no value: give it one, or remove the key for the default")
		return "", false
	}
	s, ok = scalarText(e.node)
	if !ok {
		hint := ""
		if m, is := e.node.(*ast.MappingNode); is && !m.IsFlowStyle && len(m.Values) == 1 {
			hint = ": quote it if its colon is part of it" // the parser is strict in nested brackets
		}
		d.fail(e.path, "is %s, where a single value is expected%s", kind(e.node), hint)
	}
	return s, ok
}

// integer reads a decimal number from low to high into dst.
func integer[T int | uint8 | uint16 | uint32](d *document, e entry, dst *T, low, high int64) {
	s, ok := d.text(e)
	if !ok {
		return
	}
	n, err := strconv.ParseInt(s, 10, 64)
	_, quoted := e.node.(*ast.StringNode)
	switch {
	case isOutOfRange(err), err == nil && (n < low || n > high):
		d.fail(e.path, "%s is out of range: %d to %d", clip(s), low, high)
	case err != nil:
		d.fail(e.path, "%s is not a whole number", quote(s))
	case quoted, s != strconv.FormatInt(n, 10):
		d.fail(e.path, "write the number plainly, without quotes, sign or leading zeros: %d", n)
	default:
		*dst = T(n)
	}
}

func isOutOfRange(err error) bool {
	n, ok := err.(*strconv.NumError)
	return ok && n.Err == strconv.ErrRange
}

// boolean reads true or false into dst.
func (d *document) boolean(e entry, dst *bool) {
	s, ok := d.text(e)
	if !ok {
		return
	}
	if b, ok := e.node.(*ast.BoolNode); ok {
		*dst = b.Value
		return
	}
	d.fail(e.path, "%s: write true or false", quote(s))
}

// duration reads a time with its unit, from low to high, into dst.
func (d *document) duration(e entry, dst *time.Duration, low, high time.Duration) {
	s, ok := d.text(e)
	if !ok {
		return
	}
	v, err := time.ParseDuration(s)
	switch {
	case err != nil:
		d.fail(e.path, "%s is not a duration: write a number with its unit, such as 500ms, 2s or 1m30s", quote(s))
	case v < low || v > high:
		d.fail(e.path, "%s is out of range: %v to %v", clip(s), low, high)
	default:
		*dst = v
	}
}

// choice reads one of a few words into dst. It is false if the file says
// something else, which is reported.
func choice[T ~string](d *document, e entry, dst *T, supported ...T) bool {
	s, ok := d.text(e)
	if !ok {
		return e.node == nil
	}
	words := make([]string, len(supported))
	for i, word := range supported {
		if T(s) == word {
			*dst = word
			return true
		}
		words[i] = string(word)
	}
	d.fail(e.path, "%s is not supported: this version knows %s", quote(s), enumerate(words, "and"))
	return false
}

// enumerate joins words as a sentence does: a, b and c.
func enumerate(words []string, last string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + last + " " + words[len(words)-1]
}

// scalarText is a value as it is written, without quotes.
func scalarText(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	default:
		return "", false
	}
}

// kind names what stands in the file, for messages.
func kind(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	default:
		return "a single value"
	}
}
