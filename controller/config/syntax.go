package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	// MaxSize is the largest file that is read, in bytes.
	MaxSize = 1 << 20

	// The parser needs time with the square of what these bound. Nothing that a
	// person writes comes near.

	maxLine    = 4096   // bytes of a line
	maxBlank   = 1000   // blank lines in a row
	maxNesting = 16     // brackets within brackets, and "- - -" on one line
	maxEntries = 20_000 // keys, dashes and commas together

	// maxSyntaxMessage cuts the parser's own words, which may repeat the file's.
	maxSyntaxMessage = 200
)

// syntaxTree parses the text into the tree of its one document. On failure it
// reports why and returns nil.
func (d *document) syntaxTree(data []byte) (root ast.Node) {
	if len(data) > MaxSize {
		d.failAt(position{}, nil, "the file is larger than %d bytes: that is no configuration of brlb", MaxSize)
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // the mark that some editors put in front
	if !d.acceptText(data) {
		return nil
	}
	// A bad file must never end a running controller, whatever the parser does.
	defer func() {
		if r := recover(); r != nil {
			root = nil
			d.failAt(position{}, nil, "not valid YAML: the parser gave up: %s", cut(fmt.Sprint(r), maxSyntaxMessage))
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if !d.acceptTokens(tokens) {
		return nil
	}
	// Repeated keys are reported by the shape stage, all of them.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.failSyntax(err)
		return nil
	}
	return d.onlyDocument(file)
}

// acceptTokens refuses what would make the parser work hard and the features
// that a configuration of this kind does not need.
func (d *document) acceptTokens(tokens token.Tokens) bool {
	depth, line, dashes, entries := 0, 0, 0, 0
	for _, t := range tokens {
		at := tokenPosition(t)
		switch t.Type {
		case token.AnchorType, token.AliasType, token.MergeKeyType:
			d.failAt(at, nil, "YAML anchors, aliases and merge keys are not supported: write the value out")
			return false
		case token.TagType:
			d.failAt(at, nil, "YAML tags are not supported: remove %s", quote(t.Value))
			return false
		case token.DirectiveType:
			d.failAt(at, nil, "YAML directives are not supported: remove the line")
			return false
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.MappingValueType, token.CollectEntryType:
			entries++
		case token.MappingKeyType:
			d.failAt(at, nil, "keys that begin with a question mark are not supported: write `key: value`")
			return false
		case token.SequenceEntryType:
			if at.line != line {
				line, dashes = at.line, 0
			}
			dashes++
			entries++
		}
		if depth > maxNesting || dashes > maxNesting {
			d.failAt(at, nil, "nested more than %d levels deep: nothing in a configuration of brlb is", maxNesting)
			return false
		}
		if entries > maxEntries {
			d.failAt(at, nil, "more than %d settings in one file: that many members need several controllers", maxEntries)
			return false
		}
	}
	return true
}

// failSyntax reports an error of the parser in our form.
func (d *document) failSyntax(err error) {
	var syntax yaml.Error
	if !errors.As(err, &syntax) {
		d.failAt(position{}, nil, "not valid YAML: %s", cut(err.Error(), maxSyntaxMessage))
		return
	}
	d.failAt(tokenPosition(syntax.GetToken()), nil, "not valid YAML: %s", cut(syntax.GetMessage(), maxSyntaxMessage))
}

// onlyDocument is the body of a file that holds exactly one document.
func (d *document) onlyDocument(file *ast.File) ast.Node {
	if len(file.Docs) > 1 {
		at := tokenPosition(file.Docs[1].Start)
		d.failAt(at, nil, "a second YAML document: a configuration is one document, remove the --- line")
		return nil
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		d.failAt(position{1, 1}, nil, "the file is empty: it needs pools and services; `brlb check --example` prints a complete one")
		return nil
	}
	return file.Docs[0].Body
}

func tokenPosition(t *token.Token) position {
	if t == nil || t.Position == nil {
		return position{}
	}
	return position{t.Position.Line, t.Position.Column}
}

// nodePosition is where the text of a value begins. (The parser's own answer
// for a block mapping is its first colon.)
func nodePosition(n ast.Node) position {
	if m, ok := n.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		n = m.Values[0].Key
	}
	return tokenPosition(n.GetToken())
}

// acceptText refuses characters that YAML forbids (YAML 1.2, 5.1) and lines that
// would make the parser work hard.
func (d *document) acceptText(data []byte) bool {
	number, blank := 0, 0
	for line := range bytes.Lines(data) {
		number++
		if column := illegalColumn(line); column > 0 {
			d.failAt(position{number, column}, nil, "a control character, or not UTF-8: the file must be plain UTF-8 text")
			return false
		}
		if len(line) > maxLine {
			d.failAt(position{number, 1}, nil, "the line is longer than %d bytes: break it", maxLine)
			return false
		}
		blank++
		if len(bytes.TrimSpace(line)) > 0 {
			blank = 0
		}
		if blank > maxBlank {
			d.failAt(position{number, 1}, nil, "more than %d blank lines in a row: remove them", maxBlank)
			return false
		}
	}
	return true
}

// illegalColumn is where a line has its first forbidden character, or 0.
func illegalColumn(line []byte) int {
	for column := 1; len(line) > 0; column++ {
		r, size := utf8.DecodeRune(line)
		if r == utf8.RuneError && size == 1 || unicode.IsControl(r) && !strings.ContainsRune("\t\r\n\u0085", r) {
			return column
		}
		line = line[size:]
	}
	return 0
}
