package health

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
)

// Agent is what an endpoint says of itself, in the words of HAProxy's agent
// check (configuration manual, "agent-check"): "up", "ready", "drain", "maint",
// "75%", and "down", "fail" or "stopped", which make the attempt a failure. A
// text after # is a reason for people.
//
// Unlike HAProxy's, each statement is complete: what it leaves out is as if
// never said. So an endpoint that says "drain" and then "50%" drains no more.
type Agent struct {
	Mode      AgentMode
	HasWeight bool
	Weight    int // percent of the configured weight, 0 to MaxAgentWeight, if HasWeight
}

// AgentMode is a state that an endpoint asks for.
type AgentMode uint8

// The modes.
const (
	NoMode    AgentMode = iota // it asks for none
	ReadyMode                  // it wants connections
	DrainMode                  // it wants no new connections
	MaintMode                  // it wants no connections
)

var agentModes = [...]string{NoMode: "", ReadyMode: "ready", DrainMode: "drain", MaintMode: "maint"}

// String returns the word for m: "", "ready", "drain" or "maint".
func (m AgentMode) String() string { return agentModes[m] }

// MaxAgentWeight is the highest weight that an endpoint may ask for, in percent.
const MaxAgentWeight = 1000

// String returns the statement in its own words, such as "drain 75%".
func (a Agent) String() string {
	words := make([]string, 0, 2)
	if a.Mode != NoMode {
		words = append(words, a.Mode.String())
	}
	if a.HasWeight {
		words = append(words, strconv.Itoa(a.Weight)+"%")
	}
	return strings.Join(words, " ")
}

// parseAgent reads a statement. down is the word by which the endpoint says
// that it is down, or empty.
func parseAgent(line string) (a Agent, down string, err error) {
	words, _, _ := strings.Cut(line, "#")
	for _, word := range strings.FieldsFunc(words, func(r rune) bool { return strings.ContainsRune(" \t\r\n,", r) }) {
		lower := strings.ToLower(word)
		percent, isPercent := strings.CutSuffix(lower, "%")
		switch {
		case lower == "up":
			down = ""
		case lower == "down", lower == "fail", lower == "failed", lower == "stopped":
			down = lower
		case lower == "ready":
			a.Mode = ReadyMode
		case lower == "drain":
			a.Mode = DrainMode
		case lower == "maint":
			a.Mode = MaintMode
		case strings.HasPrefix(lower, "maxconn:"): // bounds HAProxy's own queue; means nothing here
		case isPercent:
			n, err := strconv.ParseUint(percent, 10, 16)
			if err != nil || n > MaxAgentWeight {
				return Agent{}, "", fmt.Errorf("agent weight %s is out of range; want 0%% to %d%%", quote(word), MaxAgentWeight)
			}
			a.HasWeight, a.Weight = true, int(n)
		default:
			return Agent{}, "", fmt.Errorf("agent word %s is not known", quote(word))
		}
	}
	return a, down, nil
}

// withAgent adds what the endpoint says of itself to a report on its answer. A
// statement that is not understood is ignored, and the detail says so.
func (r report) withAgent(line string) report {
	a, down, err := parseAgent(line)
	if err != nil {
		r.detail += ", " + err.Error()
		return r
	}
	r.agent, r.stated = a, true
	if down != "" && r.code.Outcome() == Pass {
		r.code, r.detail = L7STS, r.detail+", but it says "+down
	}
	return r
}

func validateAgentLine(c Check) error { return validateExchange(c) }

// agentProbe reads one line from an agent, which may listen on a port of its
// own.
type agentProbe struct {
	dial DialFunc
	send []byte
}

func compileAgentLine(c Check, w way) (probe, error) {
	return agentProbe{w.dial, []byte(c.Send)}, nil
}

// maxAgentLine bounds the line of an agent, in bytes.
const maxAgentLine = 1024

func (p agentProbe) probe(ctx context.Context, address netip.AddrPort) report {
	conn, err := p.dial(ctx, "tcp", address.String())
	if err != nil {
		return dialFailed(err)
	}
	defer conn.Close()
	defer bindContext(ctx, conn)()
	if len(p.send) > 0 {
		if _, err := conn.Write(p.send); err != nil {
			return exchangeFailed(err, "line")
		}
	}
	line, err := readLine(conn)
	if err != nil {
		return exchangeFailed(err, "line")
	}
	if _, _, err := parseAgent(line); err != nil {
		return report{code: L7RSP, detail: err.Error()}
	}
	return report{code: L7OK, detail: "agent says " + quote(line)}.withAgent(line)
}

// readLine reads up to a line feed, or to the end if something came before it.
func readLine(r io.Reader) (string, error) {
	buf := make([]byte, maxAgentLine)
	for n := 0; n < len(buf); {
		got, err := r.Read(buf[n:])
		n += got
		if end := bytes.IndexByte(buf[:n], '\n'); end >= 0 {
			return strings.TrimSpace(string(buf[:end])), nil
		}
		if errors.Is(err, io.EOF) && n > 0 {
			return strings.TrimSpace(string(buf[:n])), nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", errTooLong
}
