package ovsdb

import (
	"strings"
	"testing"
)

func TestParseSchema(t *testing.T) {
	for text, want := range map[string]string{
		`{`:                    "schema",
		`[]`:                   "schema",
		`{"version":"evil\n"}`: "not of the form",
		`{"tables":{"T":{"columns":{"c":{"type":"color"}}}}}`:                                                "unknown type",
		`{"tables":{"T":{"columns":{"c":{"type":{"key":"integer","min":2}}}}}}`:                              "minimum",
		`{"tables":{"T":{"columns":{"c":{"type":{"key":"integer","max":0}}}}}}`:                              "minimum",
		`{"tables":{"T":{"columns":{"c":{"type":{"key":"integer","max":[]}}}}}}`:                             `column "T"."c"`,
		`{"tables":{"T":{"columns":{"c":{}}}}}`:                                                              `column "T"."c"`,
		`{"tables":{"T":{"columns":{"c":{"type":{"key":{"type":"string","enum":["set",["a",1]]}}}}}}}`:       "enum",
		`{"tables":{"T":{"columns":{"c":{"type":{"key":{"type":"string","enum":["set",["a"]]},"max":1}}}}}}`: "",
	} {
		s, err := ParseSchema([]byte(text))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, %v", text, s, err)
		}
		if err == nil && (s.Tables["T"].Columns["c"].Key.Enum != Strings("a") || !s.Tables["T"].Root) {
			t.Errorf("%+v", s.Tables["T"])
		}
	}
}
