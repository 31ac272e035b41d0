package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// sound parses anything and checks what must hold whatever it is.
func sound(t *testing.T, data []byte) {
	t.Helper()
	c, err := Parse("f", data)
	if (c == nil) == (err == nil) {
		t.Fatalf("Config %v beside error %v", c, err)
	}
	if err == nil {
		return
	}
	var list Errors
	if !errors.As(err, &list) || len(list) == 0 || len(list) > maxErrors+1 {
		t.Fatalf("got %T with %d errors", err, len(list))
	}
	lines := bytes.Count(data, []byte("\n")) + bytes.Count(data, []byte("\r")) + 1
	for _, e := range list {
		if e.Msg == "" || e.Line < 0 || e.Line > lines || (e.Line > 0) != (e.Column > 0) {
			t.Errorf("%+v, in a file of %d lines", e, lines)
		}
		if text := e.Error(); !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("not one plain line: %q", text)
		}
	}
}

// TestPrefixes: a file that was cut while it was written is an error, or means
// something, but never a panic.
func TestPrefixes(t *testing.T) {
	for _, name := range files(t, "testdata/good/*.yaml") {
		data := read(t, name)
		for n := range data {
			sound(t, data[:n])
		}
	}
}

func TestExamplePrefixes(t *testing.T) {
	step := 1
	if testing.Short() {
		step = 29
	}
	data := []byte(Example())
	for n := 0; n < len(data); n += step {
		sound(t, data[:n])
	}
}

func TestHostileText(t *testing.T) {
	const many = 50_000
	for name, text := range map[string]string{
		"brackets":        strings.Repeat("[", many),
		"braces":          strings.Repeat("{a: ", many),
		"closing":         strings.Repeat("]", many),
		"dashes":          strings.Repeat("- ", many),
		"question marks":  strings.Repeat("? ", many),
		"anchors":         strings.Repeat("&a ", many),
		"tags":            strings.Repeat("!a ", many),
		"colons":          strings.Repeat("a: ", many),
		"documents":       strings.Repeat("---\n", many),
		"same key":        strings.Repeat("a: 1\n", many),
		"stairs":          stairs(500),
		"nameless":        strings.Repeat(":\n", many),
		"quotes":          strings.Repeat(`"`, many+1),
		"long key":        strings.Repeat("k", many) + ": 1",
		"long value":      "bridge: " + strings.Repeat("v", many),
		"long text":       "bridge: |\n" + strings.Repeat(" line\n", many),
		"escapes in name": "pools: {\"a\\nb\\e[31m\": {}, \"[0]\\n\": {}}",
		"newline in port": "services: {a: {ports: [\"8\\n0/udp\"]}}",
		"zone in address": "services: {a: {address: \"fe80::1%a\\tb\"}}",
		"odd key":         "? |\n  a\n: b\n",
		"null key":        "~: 1\nnull: 2\n",
	} {
		t.Run(name, func(t *testing.T) {
			sound(t, []byte(text))
			if _, err := Parse("f", []byte(text)); err == nil {
				t.Error("no error")
			}
		})
	}
}

func stairs(depth int) string {
	var b strings.Builder
	for i := range depth {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}

func TestIllegalText(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "f:1:1: the file is empty: ",
		"  \n\n":                             "f:1:1: the file is empty: ",
		"zone: 1\na: \x00":                   "f:2:4: a control character, or not UTF-8: ",
		"ä: \xff":                            "f:1:4: a control character, or not UTF-8: ",
		"a: \u0085\u0081":                    "f:1:5: a control character, or not UTF-8: ",
		strings.Repeat("#", MaxSize+1):       "f: the file is larger than 1048576 bytes: ",
		"a: " + strings.Repeat("<", maxLine): "f:1:1: the line is longer than 4096 bytes: ",
		"a: |\n" + strings.Repeat(" \n", maxBlank+1): "f:1002:1: more than 1000 blank lines in a row: ",
		"a:\n" + strings.Repeat("-\n", maxEntries):   "f:20001:1: more than 20000 settings in one file: ",
		"a: {" + strings.Repeat("a,\n", maxEntries):  "f:20000:2: more than 20000 settings in one file: ",
		strings.Repeat("a: 1\n", maxEntries+1):       "f:20001:2: more than 20000 settings in one file: ",
		"? a\n: b\n":                                 "f:1:1: keys that begin with a question mark are not supported: ",
	} {
		_, err := Parse("f", []byte(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(filepath.Join(dir, "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	if _, err := Load(dir); err == nil || !strings.HasPrefix(err.Error(), "read configuration: ") {
		t.Errorf("a directory: %v", err)
	}
	big := filepath.Join(dir, "big.yaml")
	if err := os.WriteFile(big, bytes.Repeat([]byte("# \n"), 10<<20/3), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(big); err == nil || !strings.Contains(err.Error(), "the file is larger") {
		t.Errorf("10 MiB: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		for _, name := range files(f, pattern) {
			f.Add(read(f, name))
		}
	}
	f.Add([]byte(Example()))
	f.Fuzz(func(t *testing.T, data []byte) { sound(t, data) })
}

func BenchmarkParse(b *testing.B) {
	for _, members := range []int{4, 1000, 19_000} {
		b.Run(fmt.Sprintf("members=%d", members), func(b *testing.B) {
			var text bytes.Buffer
			text.WriteString("pools:\n  web:\n    id: 1\n    slots: 65536\n    members:\n")
			for i := range members {
				fmt.Fprintf(&text, "      be%d: 10.30.%d.%d:8080\n", i, i/250, i%250+1)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse("f", text.Bytes()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
