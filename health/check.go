package health

import (
	"fmt"
	"net/netip"
	"time"
)

// Type names a kind of probe.
type Type string

// The kinds of probe.
const (
	TCP       Type = "tcp"   // the connection opens, and says what is expected
	HTTP      Type = "http"  // a request is answered with an expected status
	HTTPS     Type = "https" // the same over TLS
	GRPC      Type = "grpc"  // grpc.health.v1 says SERVING
	GRPCS     Type = "grpcs" // the same over TLS
	ICMP      Type = "icmp"  // an echo request is answered; needs CAP_NET_RAW
	UDP       Type = "udp"   // the expected datagram comes, or no port unreachable
	Exec      Type = "exec"  // a program ends with exit code 0
	AgentLine Type = "agent" // a line in HAProxy's agent words
)

// Limits of a Check.
const (
	minPeriod = 10 * time.Millisecond
	maxPeriod = time.Hour
	maxStreak = 100
)

// Target is an endpoint and the check that watches it. It is comparable: two
// equal targets are one and share one probe. Address must be valid, with a
// port other than 0, and Check complete ([Check.WithDefaults]).
type Target struct {
	Address netip.AddrPort
	Check   Check
}

// Check says how an endpoint is probed and how results become a verdict. It is
// plain comparable data; [Check.WithDefaults] fills what was left out and
// [Check.Validate] says what is wrong with it.
type Check struct {
	Type Type

	// Interval is the time from the start of one attempt to the start of the
	// next while the endpoint is up and passing. Default 1s.
	Interval time.Duration
	// Fast replaces Interval while the verdict is unknown or is changing (the
	// last result contradicts it). An attempt that takes longer is followed by
	// the next one at once. Default Interval/2; at most Interval.
	Fast time.Duration
	// Down replaces Interval while the endpoint is down. Default Interval.
	Down time.Duration
	// Timeout bounds a whole attempt, from connecting to the last byte that is
	// needed. Default 500ms, or Interval if that is shorter; at most Interval.
	Timeout time.Duration

	// Rise is how many passes in a row bring a down endpoint up. Default 2.
	Rise int
	// Fall is how many failures in a row bring an endpoint down. Default 3.
	Fall int

	// HTTP belongs to the types http and https.
	HTTP HTTPOptions
	// TLS belongs to the types https and grpcs.
	TLS TLSOptions
	// Send is what is sent once the connection is open (tcp, udp, agent), at
	// most MaxSend bytes; udp needs it. Expect is a text that the answer must
	// hold (tcp, udp) within its first MaxAnswer bytes; for tcp that may be a
	// banner, with nothing sent.
	Send, Expect string
	// Service is the name that a gRPC health request asks for; empty asks for
	// the server as a whole.
	Service string
	// Command is the absolute path of the program of an exec check.
	Command string
}

// WithDefaults returns c with every field that is zero and has a default
// filled in. It changes nothing else and accepts any c.
func (c Check) WithDefaults() Check {
	setDefault(&c.Type, TCP)
	setDefault(&c.Interval, time.Second)
	setDefault(&c.Fast, c.Interval/2)
	setDefault(&c.Down, c.Interval)
	setDefault(&c.Timeout, min(500*time.Millisecond, c.Interval))
	setDefault(&c.Rise, 2)
	setDefault(&c.Fall, 3)
	if c.Type == HTTP || c.Type == HTTPS {
		c.HTTP = c.HTTP.withDefaults()
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// DetectionBound is the longest time from the death of an endpoint that was up
// to the verdict down, when every attempt is conclusive:
// interval + fall*timeout + (fall-1)*fast.
func (c Check) DetectionBound() time.Duration {
	fall := time.Duration(c.Fall)
	return c.Interval + fall*c.Timeout + (fall-1)*c.Fast
}

// Validate returns nil for a check that can run, or the first thing that is
// wrong with it in one sentence that names the field and what is allowed.
func (c Check) Validate() error {
	kind, ok := kinds[c.Type]
	if !ok {
		return fmt.Errorf("check type %q is not known; want one of %s", cut(string(c.Type)), knownTypes())
	}
	for _, p := range []struct {
		name  string
		value time.Duration
	}{{"interval", c.Interval}, {"fast", c.Fast}, {"down", c.Down}, {"timeout", c.Timeout}} {
		if p.value < minPeriod || p.value > maxPeriod {
			return fmt.Errorf("%s %v is out of range; want %v to %v", p.name, p.value, minPeriod, maxPeriod)
		}
	}
	if c.Timeout > c.Interval {
		return fmt.Errorf("timeout %v is longer than interval %v; an attempt must end before the next one is due", c.Timeout, c.Interval)
	}
	if c.Fast > c.Interval {
		return fmt.Errorf("fast %v is longer than interval %v; fast is the shorter interval used while a verdict is changing", c.Fast, c.Interval)
	}
	for _, n := range []struct {
		name  string
		value int
	}{{"rise", c.Rise}, {"fall", c.Fall}} {
		if n.value < 1 || n.value > maxStreak {
			return fmt.Errorf("%s %d is out of range; want 1 to %d", n.name, n.value, maxStreak)
		}
	}
	if err := validateGroups(c); err != nil {
		return err
	}
	if kind.validate == nil {
		return nil
	}
	return kind.validate(c)
}
