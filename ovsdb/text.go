package ovsdb

import "strconv"

// maxQuoted bounds what an error message repeats of a peer's text.
const maxQuoted = 200

// quoteCut quotes text that a peer controls, and cuts it.
func quoteCut(s string) string {
	if len(s) > maxQuoted {
		return strconv.Quote(s[:maxQuoted]) + "..."
	}
	return strconv.Quote(s)
}

// cut shortens text that a peer controls where it needs no quotes, being one of
// a few words from a peer that behaves.
func cut(s string) string {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && c != ' ' {
			return quoteCut(s)
		}
	}
	return s[:min(len(s), maxQuoted)]
}
