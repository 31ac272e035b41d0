package unixctl

import (
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"brlb/ovsdb/ovsdbtest"
)

// TestLinesReadsWhatCallReads: the same answer, whole and by lines, however it
// is cut into pieces on its way.
func TestLinesReadsWhatCallReads(t *testing.T) {
	for _, text := range []string{
		"", "\n", "one", "one\n", "one\ntwo\n\nfour", "quote \" backslash \\ slash / tab\t, bell \a and é\n",
		strings.Repeat(strings.Repeat("x", 1000)+"\n", 300),
	} {
		for _, answer := range []string{
			`{"id":7,"result":` + jsonText(text) + `,"error":null}`,
			` { "error" : null , "result" : ` + jsonText(text) + ` , "id" : 7 } `,
		} {
			want, err := readReply(strings.NewReader(answer), 7, "m")
			if err != nil || want != text {
				t.Fatalf("%q: %q, %v", answer, want, err)
			}
			for _, r := range []io.Reader{strings.NewReader(answer), iotest.OneByteReader(strings.NewReader(answer))} {
				var got strings.Builder
				err := readLines(r, 7, "m", func(line []byte) error {
					got.Write(line)
					got.WriteByte('\n')
					return nil
				})
				if err != nil || strings.TrimSuffix(got.String(), "\n") != strings.TrimSuffix(text, "\n") {
					t.Errorf("%q: %q, %v", answer, got.String(), err)
				}
			}
		}
	}
}

// jsonText writes a JSON string as Open vSwitch does.
func jsonText(s string) string {
	b, err := appendText(nil, s)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func TestLinesRefuses(t *testing.T) {
	long := strings.Repeat("x", MaxLine+1)
	for _, c := range []struct{ answer, want string }{
		{``, "closed the connection"},
		{`[]`, "where '{' is expected"},
		{`{"id":7,"result":"a\nb`, "is cut"},
		{`{"id":7,"result":"` + long + `"}`, "longer than"},
		{`{"id":7,"what":` + long + `}`, "longer than"},
		{`{"id":8,"result":"x"}`, "for request"},
		{`{"result":"x"}`, "for which request"},
		{`{"id":7,"result":null}`, "no result"},
		{`{"id":7,"result":{"a":1}}`, "plain value"},
		{`{"id":7,"result":"\q"}`, "escape"},
		{`{"id":7,"result":"\u00zz"}`, "escape"},
		{`{"id":7 "result":"x"}`, "for request"},
		{`{"id":7,"result":"x";}`, "comma"},
	} {
		err := readLines(strings.NewReader(c.answer), 7, "m", func([]byte) error { return nil })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v, want %q", c.answer, err, c.want)
		}
	}
	var refused *Error
	err := readLines(strings.NewReader(`{"id":7,"error":"no\n"}`), 7, "m", func([]byte) error { return nil })
	if !errors.As(err, &refused) || refused.Text != "no" {
		t.Errorf("a refused command: %v", err)
	}
	enough := errors.New("enough")
	err = readLines(strings.NewReader(`{"id":7,"result":"a\nb"}`), 7, "m", func([]byte) error { return enough })
	if !errors.Is(err, enough) {
		t.Errorf("each had enough: %v", err)
	}
}

// TestLinesOfARealDaemon: by lines and whole are the same there, too, and the
// connection goes on after each.
func TestLinesOfARealDaemon(t *testing.T) {
	srv := ovsdbtest.StartServer(t)
	c := Daemon(srv.Dir, "ovsdb-server")
	defer c.Close()
	whole, err := c.Call(t.Context(), "list-commands")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var lines []string
		err := c.Lines(t.Context(), func(line []byte) error { lines = append(lines, string(line)); return nil }, "list-commands")
		if err != nil || !slices.Equal(lines, strings.Split(strings.TrimSuffix(whole, "\n"), "\n")) {
			t.Fatalf("%q, %v; whole: %q", lines, err, whole)
		}
	}
	var refused *Error
	if err := c.Lines(t.Context(), func([]byte) error { return nil }, "no-such-command"); !errors.As(err, &refused) {
		t.Errorf("unknown command: %v", err)
	}
}

func FuzzLines(f *testing.F) {
	f.Add(`{"id":1,"result":"a\nb","error":null}`)
	f.Add(`{"id":1,"error":"x"}`)
	f.Add(`{"id":1,"result":"\u00e9\\"}`)
	f.Fuzz(func(t *testing.T, answer string) {
		lines := 0
		err := readLines(strings.NewReader(answer), 1, "m", func(line []byte) error {
			if len(line) > MaxLine {
				t.Errorf("a line of %d bytes", len(line))
			}
			lines++
			return nil
		})
		if err == nil && lines > len(answer) {
			t.Errorf("%s: %d lines", strconv.Quote(answer), lines)
		}
	})
}
