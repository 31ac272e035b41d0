package health

import (
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"
)

// Outcome is what one attempt means for a verdict.
type Outcome uint8

// The outcomes of an attempt.
const (
	Inconclusive Outcome = iota // our own side failed: says nothing about the endpoint
	Pass
	Fail
)

// String returns "inconclusive", "pass" or "fail".
func (o Outcome) String() string {
	switch o {
	case Pass:
		return "pass"
	case Fail:
		return "fail"
	default:
		return "inconclusive"
	}
}

// Code classifies the result of an attempt, in the words of HAProxy's check
// status (HAProxy management guide, "show stat", field check_status). LATE is
// ours.
type Code uint8

// The codes. Those that end in OK pass; SOCKERR and LATE are inconclusive; the
// others are failures.
const (
	INI      Code = iota // no attempt was made yet
	L4OK                 // the connection opened, and no more was asked
	L4TOUT               // the connection did not open in time
	L4CON                // the connection was refused, reset or could not reach the host
	L6RSP                // the TLS handshake failed
	L6TOUT               // the TLS handshake did not end in time
	L7OK                 // the answer was as expected
	L7TOUT               // the answer did not come in time
	L7RSP                // the answer was not understood, cut short or of unexpected content
	L7STS                // the answer had an unexpected status
	PROCOK               // the program ended with exit code 0
	PROCERR              // the program ended with another exit code
	PROCTOUT             // the program did not end in time
	SOCKERR              // a local error: descriptors, ports, buffers, routes, permissions
	LATE                 // no answer in time, but this process was not running for part of that time
)

var codeNames = [...]string{
	INI: "INI", L4OK: "L4OK", L4TOUT: "L4TOUT", L4CON: "L4CON", L6RSP: "L6RSP", L6TOUT: "L6TOUT",
	L7OK: "L7OK", L7TOUT: "L7TOUT", L7RSP: "L7RSP", L7STS: "L7STS",
	PROCOK: "PROCOK", PROCERR: "PROCERR", PROCTOUT: "PROCTOUT", SOCKERR: "SOCKERR", LATE: "LATE",
}

// String returns the code's name, such as "L7OK".
func (c Code) String() string {
	if int(c) < len(codeNames) {
		return codeNames[c]
	}
	return "Code(" + strconv.Itoa(int(c)) + ")"
}

// Outcome says what c means for a verdict.
func (c Code) Outcome() Outcome {
	switch c {
	case L4OK, L7OK, PROCOK:
		return Pass
	case INI, SOCKERR, LATE:
		return Inconclusive
	default:
		return Fail
	}
}

// TimedOut reports whether c blames the endpoint for not answering in time.
func (c Code) TimedOut() bool {
	return c == L4TOUT || c == L6TOUT || c == L7TOUT || c == PROCTOUT
}

// Result is one attempt.
type Result struct {
	Start    time.Time     // when the attempt began
	Late     time.Duration // how long after it was due it began, at least 0
	Duration time.Duration // how long it took
	Code     Code
	Detail   string // what was seen: "200", "connection refused"; text of the endpoint is quoted and cut
	Agent    Agent  // what the endpoint last said of itself; zero if it never did
}

// Sentence returns what happened and how long it took, such as "200 in 1.2ms".
func (r Result) Sentence() string {
	if r.Code == INI {
		return "not probed yet"
	}
	return r.Detail + " in " + roundDuration(r.Duration).String()
}

// String returns the code and the sentence, such as "L7OK 200 in 1.2ms".
func (r Result) String() string { return r.Code.String() + " " + r.Sentence() }

// roundDuration keeps two or three significant digits: nobody reads more.
func roundDuration(d time.Duration) time.Duration {
	switch {
	case d >= 100*time.Millisecond:
		return d.Round(time.Millisecond)
	case d >= time.Millisecond:
		return d.Round(100 * time.Microsecond)
	default:
		return d.Round(10 * time.Microsecond)
	}
}

// maxQuoted bounds how much of an endpoint's text a Detail repeats, in bytes.
const maxQuoted = 80

// quote makes text from outside safe to print: cut, then quoted.
func quote(s string) string { return strconv.QuoteToASCII(cut(s)) }

// cut shortens s to maxQuoted bytes at a rune boundary and marks the cut.
func cut(s string) string {
	if len(s) <= maxQuoted {
		return s
	}
	end := maxQuoted
	for end > maxQuoted-utf8.UTFMax && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s...(%d bytes)", s[:end], len(s))
}
