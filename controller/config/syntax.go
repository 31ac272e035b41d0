package config

import (
	"bytes"
	"errors"
	"fmt"
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
	// maxNesting bounds brackets within brackets, and "- - -" on one line. The
	// parser recurses, and needs time with the square of the depth.
	maxNesting = 16
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
	if at, ok := firstIllegal(data); ok {
		d.failAt(at, nil, "a control character, or not UTF-8: the file must be plain UTF-8 text")
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
	depth, line, dashes := 0, 0, 0
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
		case token.SequenceEntryType, token.MappingKeyType:
			if at.line != line {
				line, dashes = at.line, 0
			}
			dashes++
		}
		if depth > maxNesting || dashes > maxNesting {
			d.failAt(at, nil, "nested more than %d levels deep: nothing in a configuration of brlb is", maxNesting)
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

// firstIllegal finds the first character that YAML forbids. (YAML 1.2, 5.1)
func firstIllegal(data []byte) (position, bool) {
	at := position{1, 1}
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == '\n':
			at = position{at.line + 1, 0}
		case r == utf8.RuneError && size == 1, r < ' ' && r != '\t' && r != '\r', r >= 0x7f && r < 0xa0 && r != 0x85:
			return at, true
		}
		at.column++
		data = data[size:]
	}
	return position{}, false
}
