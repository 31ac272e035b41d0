package cli

import (
	"strings"
	"unicode/utf8"
)

// cell is a piece of text in one colour.
type cell struct {
	text   string
	colour colour
}

func text(s string) cell               { return cell{text: s} }
func coloured(c colour, s string) cell { return cell{s, c} }

// table is columns of text, two spaces apart and two from the left. A column
// whose title begins with ">" is aligned to the right.
type table struct {
	titles []string
	rows   [][]cell
}

func newTable(titles ...string) *table { return &table{titles: titles} }

// row adds a row; it may be shorter than the titles.
func (t *table) row(cells ...cell) { t.rows = append(t.rows, cells) }

// table writes the titles and the rows.
func (s *screen) table(t *table) {
	right := make([]bool, len(t.titles))
	header := make([]cell, len(t.titles))
	width := make([]int, len(t.titles))
	for i, title := range t.titles {
		name, isRight := strings.CutPrefix(title, ">")
		header[i], right[i], width[i] = text(name), isRight, utf8.RuneCountInString(name)
	}
	for _, row := range t.rows {
		for i := range row {
			row[i].text = printable(row[i].text)
			width[i] = max(width[i], utf8.RuneCountInString(row[i].text))
		}
	}
	for _, row := range append([][]cell{header}, t.rows...) {
		for len(row) > 0 && row[len(row)-1].text == "" {
			row = row[:len(row)-1]
		}
		pieces := make([]cell, 0, 2*len(row))
		for i, c := range row {
			fill := strings.Repeat(" ", width[i]-utf8.RuneCountInString(c.text))
			switch {
			case right[i]:
				pieces = append(pieces, text("  "+fill), c)
			case i == len(row)-1:
				pieces = append(pieces, text("  "), c) // no spaces at the end of a line
			default:
				pieces = append(pieces, text("  "), c, text(fill))
			}
		}
		s.line(pieces...)
	}
}
