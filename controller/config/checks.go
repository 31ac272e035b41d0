package config

import (
	"encoding/hex"
	"maps"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"brlb/health"
)

// The shape stage for checks. What a probe can do is the business of package
// health; here stands how a file says it, and which setting is to blame.

// checkTypes are the kinds of probe, in the order in which errors name them.
var checkTypes = []health.Type{
	health.TCP, health.HTTP, health.HTTPS, health.GRPC, health.GRPCS, health.ICMP, health.UDP, health.Exec, health.AgentLine, PortCheck,
}

// commonKeys belong to checks of every type that probes.
var commonKeys = []string{"type", "interval", "fast", "down", "timeout", "rise", "fall"}

// typeKey is a setting that belongs to checks of some types.
type typeKey struct {
	key   string
	types []health.Type
}

func typeKeys() []typeKey {
	web := []health.Type{health.HTTP, health.HTTPS}
	secure := []health.Type{health.HTTPS, health.GRPCS}
	sends := []health.Type{health.TCP, health.UDP, health.AgentLine}
	expects := []health.Type{health.TCP, health.UDP}
	return []typeKey{
		{"port", slices.DeleteFunc(slices.Clone(checkTypes), func(t health.Type) bool { return t == health.ICMP || t == PortCheck })},
		{"path", web}, {"method", web}, {"host", web}, {"headers", web}, {"status", web},
		{"contains", web}, {"match", web}, {"agent_header", web},
		{"sni", secure}, {"ca", secure}, {"cert", secure}, {"key", secure}, {"skip_verify", secure},
		{"send", sends}, {"send_hex", sends}, {"expect", expects}, {"expect_hex", expects},
		{"service", []health.Type{health.GRPC, health.GRPCS}},
		{"command", []health.Type{health.Exec}},
	}
}

// check reads one check. A type that is not known is reported alone: whose the
// other keys are is unknown as well.
func (d *document) check(e entry) Check {
	keys := slices.Clone(commonKeys)
	for _, k := range typeKeys() {
		keys = append(keys, k.key)
	}
	f := d.mapping(e, keys...)
	c := DefaultCheck(e.name())
	c.Fast, c.Down, c.Timeout = 0, 0, 0
	known := choice(d, f["type"], &c.Type, checkTypes...)
	if c.ByPort() {
		d.acceptOnlyType(f)
		c.derive()
		return c
	}
	if known && d.acceptKeys(f, c.Type) {
		integer(d, f["port"], &c.Port, 1, 65535)
		d.exchange(f, &c)
		d.request(f, &c)
		d.tls(f, &c)
		d.option(f["service"], func(h *health.Check, s string) { h.Service = s }, &c)
		d.option(f["command"], func(h *health.Check, s string) { h.Command = s }, &c)
		d.checkNeeds(e, f, c)
	}
	d.duration(f["interval"], &c.Interval, minInterval, maxInterval)
	d.duration(f["timeout"], &c.Timeout, minInterval, maxInterval)
	d.duration(f["fast"], &c.Fast, minInterval, maxInterval)
	d.duration(f["down"], &c.Down, minInterval, maxInterval)
	integer(d, f["rise"], &c.Rise, 1, maxTurns)
	integer(d, f["fall"], &c.Fall, 1, maxTurns)
	c.derive()
	return c
}

// acceptKeys reports settings that checks of the type do not have. It is false
// if there are some.
func (d *document) acceptKeys(f fields, of health.Type) bool {
	var own []string
	for _, k := range typeKeys() {
		if slices.Contains(k.types, of) {
			own = append(own, k.key)
		}
	}
	allowed := "has none of its own beside the times"
	if len(own) > 0 {
		allowed = "takes " + strings.Join(own, ", ")
	}
	good := true
	for _, k := range typeKeys() {
		if f[k.key].node != nil && !slices.Contains(k.types, of) {
			good = false
			d.fail(f[k.key].path, "is for checks of type %s, and this one is %s, which %s", alternatives(k.types), of, allowed)
		}
	}
	return good
}

// acceptOnlyType reports settings of a check that probes nothing.
func (d *document) acceptOnlyType(f fields) {
	for _, key := range slices.Sorted(maps.Keys(f)) {
		if key != "type" {
			d.fail(f[key].path, "is about probes, and a check of type %s makes none: remove it, or choose another type", PortCheck)
		}
	}
}

func alternatives(types []health.Type) string {
	words := make([]string, len(types))
	for i, t := range types {
		words[i] = string(t)
	}
	return enumerate(words, "or")
}

// option reads a text into a check, if package health takes it there.
func (d *document) option(e entry, set func(*health.Check, string), dst *Check) {
	s, ok := d.text(e)
	if !ok {
		return
	}
	trial := smallest(dst.Type)
	set(&trial, s)
	if err := trial.Validate(); err != nil {
		d.fail(e.path, "%v", err)
		return
	}
	set(&dst.Check, s)
}

// smallest is a check of the type that has what it cannot do without.
func smallest(t health.Type) health.Check {
	c := health.Check{Type: t}
	switch t {
	case health.UDP:
		c.Send = "x"
	case health.Exec:
		c.Command = "/x"
	}
	return c.WithDefaults()
}

// exchange reads what is sent and what must come back.
func (d *document) exchange(f fields, c *Check) {
	for _, x := range []struct {
		key string
		set func(*health.Check, string)
	}{
		{"send", func(h *health.Check, s string) { h.Send = s }},
		{"expect", func(h *health.Check, s string) { h.Expect = s }},
	} {
		plain, coded := f[x.key], f[x.key+"_hex"]
		if plain.node != nil && coded.node != nil {
			d.fail(coded.path, "says the same as %s in another way: give one of them", x.key)
			continue
		}
		d.option(plain, x.set, c)
		text, ok := d.text(coded)
		if !ok {
			continue
		}
		octets, err := hex.DecodeString(text)
		if err != nil || len(octets) == 0 || len(octets) > health.MaxSend {
			d.fail(coded.path, "%s: write 1 to %d octets as pairs of hex digits, without spaces", quote(text), health.MaxSend)
			continue
		}
		x.set(&c.Check, string(octets))
	}
}

// request reads what http and https checks ask and expect.
func (d *document) request(f fields, c *Check) {
	if c.Type != health.HTTP && c.Type != health.HTTPS {
		return
	}
	c.HTTP = c.Check.WithDefaults().HTTP
	d.requestTarget(f["path"], &c.HTTP.Path)
	choice(d, f["method"], &c.HTTP.Method, "GET", "HEAD", "OPTIONS")
	d.hostHeader(f["host"], &c.HTTP.Host)
	d.headers(f["headers"], c)
	var status []statusRange
	for _, s := range d.list(f["status"]) {
		status = append(status, d.statusRange(s))
	}
	if len(status) > 0 {
		c.HTTP.Status = statusText(status)
	}
	d.option(f["contains"], func(h *health.Check, s string) { h.HTTP.Contains = s }, c)
	d.option(f["match"], func(h *health.Check, s string) { h.HTTP.Match = s }, c)
	d.option(f["agent_header"], func(h *health.Check, s string) { h.HTTP.AgentHeader = s }, c)
	for _, key := range []string{"contains", "match"} {
		if c.HTTP.Method == "HEAD" && f[key].node != nil {
			d.fail(f[key].path, "looks into the body, and the answer to HEAD has none: use `method: GET`")
		}
	}
}

// maxHeaders is how many headers a request may be given.
const maxHeaders = 32

// headers reads further headers of a request: `Name: value` lines.
func (d *document) headers(e entry, c *Check) {
	if !d.isMapping(e) {
		return
	}
	children := d.entries(e)
	if len(children) > maxHeaders {
		d.fail(e.path, "has %d headers; at most %d are supported", len(children), maxHeaders)
		return
	}
	var lines []string
	for _, child := range children {
		value, ok := d.text(child)
		if !ok {
			continue
		}
		line := child.name() + ": " + value
		trial := smallest(health.HTTP)
		trial.HTTP.Headers = line
		err := trial.Validate()
		switch {
		case strings.Contains(line, "\n"):
			d.fail(child.path, "a header has one line")
		case err != nil:
			d.fail(child.path, "%v", err)
		default:
			lines = append(lines, line)
		}
	}
	slices.Sort(lines)
	c.HTTP.Headers = strings.Join(lines, "\n")
}

// tls reads how https and grpcs checks know the server and name themselves.
func (d *document) tls(f fields, c *Check) {
	d.option(f["sni"], func(h *health.Check, s string) { h.TLS.ServerName = s }, c)
	d.path(f["ca"], &c.TLS.CAFile)
	d.path(f["cert"], &c.TLS.CertFile)
	d.path(f["key"], &c.TLS.KeyFile)
	d.boolean(f["skip_verify"], &c.TLS.SkipVerify)
	for _, pair := range [][2]string{{"cert", "key"}, {"key", "cert"}} {
		if f[pair[0]].node != nil && f[pair[1]].node == nil {
			d.fail(f[pair[0]].path, "needs %s beside it: a client certificate and its key belong together", pair[1])
		}
	}
	if c.TLS.SkipVerify && f["ca"].node != nil {
		d.fail(f["skip_verify"].path, "makes ca useless: remove one of them")
	}
}

// path reads the absolute path of a file into dst.
func (d *document) path(e entry, dst *string) {
	s, ok := d.text(e)
	if !ok {
		return
	}
	if !isCleanPath(s) {
		d.fail(e.path, "%s: a file has an absolute path without `..`, spaces or control characters", quote(s))
		return
	}
	*dst = s
}

// checkNeeds reports what a check of the type cannot do without.
func (d *document) checkNeeds(e entry, f fields, c Check) {
	if c.Type == health.UDP && f["send"].node == nil && f["send_hex"].node == nil {
		d.fail(e.path, "has nothing to send: a udp check needs send or send_hex, a datagram that the member reacts to")
	}
	if c.Type == health.Exec && f["command"].node == nil {
		d.fail(e.path, "has no command: an exec check needs the absolute path of a program")
	}
}

// statusRange is a range of HTTP status codes; both ends belong to it.
type statusRange struct{ Min, Max int }

// statusRange reads 200 or 200-399. The result is zero if wrong.
func (d *document) statusRange(e entry) statusRange {
	s, ok := d.text(e)
	if !ok {
		return statusRange{}
	}
	first, last, found := strings.Cut(s, "-")
	if !found {
		last = first
	}
	low, err1 := strconv.Atoi(first)
	high, err2 := strconv.Atoi(last)
	if err1 != nil || err2 != nil || low < 100 || high > 599 || low > high {
		d.fail(e.path, "%s is not a status: write one, such as 200, or a range, such as 200-399, within 100 to 599", quote(s))
		return statusRange{}
	}
	return statusRange{low, high}
}

// statusText is the form of package health, in an order of its own.
func statusText(ranges []statusRange) string {
	slices.SortFunc(ranges, func(a, b statusRange) int { return a.Min - b.Min })
	words := make([]string, len(ranges))
	for i, r := range ranges {
		words[i] = strconv.Itoa(r.Min)
		if r.Max != r.Min {
			words[i] += "-" + strconv.Itoa(r.Max)
		}
	}
	return strings.Join(words, ",")
}

// prefix reads ADDRESS/LENGTH, a network. The result is the zero Prefix if wrong.
func (d *document) prefix(e entry) netip.Prefix {
	s, ok := d.text(e)
	if !ok {
		return netip.Prefix{}
	}
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		d.fail(e.path, "%s is not a network, such as 10.30.0.0/24", quote(s))
	case p != p.Masked():
		d.fail(e.path, "%s has bits beyond its length: write %s", clip(s), p.Masked())
	default:
		return p
	}
	return netip.Prefix{}
}

// device reads the name of a network interface into dst.
func (d *document) device(e entry, dst *string) {
	s, ok := d.text(e)
	if !ok {
		return
	}
	if len(s) == 0 || len(s) > maxBridge || !isPrintable(s) || strings.ContainsAny(s, "/:") || s == "." || s == ".." {
		d.fail(e.path, "%s: the name of a network interface is 1 to %d visible characters, without / and :", quote(s), maxBridge)
		return
	}
	*dst = s
}

// netnsDir is where `ip netns` keeps the namespaces that have names.
const netnsDir = "/var/run/netns"

// netns reads the name or the path of a network namespace into dst, as a path.
// It need not exist yet: probes say so while it does not.
func (d *document) netns(e entry, dst *string) {
	s, ok := d.text(e)
	if !ok {
		return
	}
	switch {
	case isCleanPath(s):
		*dst = s
	case isName(s):
		*dst = filepath.Join(netnsDir, s)
	default:
		d.fail(e.path, "%s: a network namespace has a name, as `ip netns` shows it, or an absolute path", quote(s))
	}
}

// probeSource reads an address that probes come from.
func (d *document) probeSource(e entry, c *Config) {
	var a netip.Addr
	d.addr(e, &a)
	dst := &c.ProbeSource4
	if a.Is6() {
		dst = &c.ProbeSource6
	}
	if dst.IsValid() && a.IsValid() {
		d.fail(e.path, "%s is the second address of its kind: give one of IPv4, one of IPv6, or both", a)
		return
	}
	*dst = a
}
