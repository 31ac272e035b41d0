package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
)

// format is the value of -o.
type format struct {
	value string
	known []string
}

// formatFlag adds -o to a reading command; wide says that it has such a form.
func formatFlag(c *cobra.Command, wide bool) *format {
	if wide {
		return formatsFlag(c, "text", "wide", "json", "yaml")
	}
	return formatsFlag(c, "text", "json", "yaml")
}

// formatsFlag adds -o with these forms; the first is the default.
func formatsFlag(c *cobra.Command, known ...string) *format {
	f := &format{value: known[0], known: known}
	c.Flags().VarP(f, "output", "o", "form of the output: "+strings.Join(f.known, ", "))
	c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(f.known, cobra.ShellCompDirectiveNoFileComp))
	return f
}

func (f *format) String() string { return f.value }
func (f *format) Type() string   { return "form" }
func (f *format) Set(s string) error {
	if !slices.Contains(f.known, s) {
		return fmt.Errorf("it must be %s", strings.Join(f.known, ", "))
	}
	f.value = s
	return nil
}

func (f *format) wide() bool { return f.value == "wide" }

// render turns a document into output: text calls draw on a screen, json and
// yaml need no help.
func (a *App) render(f *format, doc any, draw func(*screen)) ([]byte, error) {
	switch f.value {
	case "json":
		return asJSON(doc)
	case "yaml":
		data, err := json.Marshal(doc)
		if err != nil {
			return nil, err
		}
		return yaml.JSONToYAML(data)
	}
	s := a.screen()
	draw(s)
	return s.buf.Bytes(), nil
}

// print renders to standard output.
func (a *App) print(f *format, doc any, draw func(*screen)) error {
	data, err := a.render(f, doc, draw)
	if err != nil {
		return err
	}
	_, err = a.Stdout.Write(data)
	return err
}

func asJSON(doc any) ([]byte, error) {
	data, err := json.Marshal(doc, jsontext.WithIndent("  "))
	return append(data, '\n'), err
}

// A colour is an ANSI "select graphic rendition" parameter. (ECMA-48, 8.3.117)
type colour string

const (
	plain  colour = ""
	bold   colour = "1"
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
)

// screen collects text for people. Every text that is written to it loses its
// control characters first: names and messages come from elsewhere.
type screen struct {
	buf     bytes.Buffer
	colours bool
}

func (a *App) screen() *screen {
	return &screen{colours: a.Terminal && a.Getenv("NO_COLOR") == "" && a.Getenv("TERM") != "dumb"}
}

// linef writes one line.
func (s *screen) linef(format string, args ...any) {
	s.line(text(fmt.Sprintf(format, args...)))
}

// line writes pieces, each in its colour, as one line.
func (s *screen) line(pieces ...cell) {
	for _, p := range pieces {
		s.buf.WriteString(s.paint(p.colour, printable(p.text)))
	}
	s.buf.WriteByte('\n')
}

// block writes text of several lines, each indented.
func (s *screen) block(indent, text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		s.linef("%s%s", indent, strings.TrimRight(line, "\n"))
	}
}

func (s *screen) paint(c colour, text string) string {
	if !s.colours || c == plain {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// printable replaces what could move a terminal's cursor, or break a line.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsPrint(r):
			return r
		case r == '\n', r == '\t':
			return ' '
		}
		return '?'
	}, s)
}
