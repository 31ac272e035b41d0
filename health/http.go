package health

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// HTTPOptions say what an HTTP check asks and what it expects.
type HTTPOptions struct {
	Method string // default GET
	Path   string // with a query if there is one; default "/"
	Host   string // the Host header; default the target's address and port
	// Headers are further request headers, one "Name: value" a line.
	Headers string
	// Status lists the codes that pass: "200-399", "200,204,301-302". Default
	// 200-399. A redirect is an answer and is not followed.
	Status string
	// Contains is a text that the body must hold, and Match an RE2 expression
	// that it must match. Both look at the first MaxBody bytes.
	Contains, Match string
}

// Bounds of what an HTTP attempt reads.
const (
	MaxHeader = 64 << 10 // status line and headers together
	MaxBody   = 64 << 10 // body, read only if the check looks into it
)

func (o HTTPOptions) withDefaults() HTTPOptions {
	setDefault(&o.Method, http.MethodGet)
	setDefault(&o.Path, "/")
	setDefault(&o.Status, "200-399")
	return o
}

func validateHTTP(c Check) error {
	o := c.HTTP
	if !isToken(o.Method) {
		return fmt.Errorf("http method %s is not a method name such as GET or HEAD", quote(o.Method))
	}
	if !strings.HasPrefix(o.Path, "/") || !isVisible(o.Path) {
		return fmt.Errorf("http path %s is not valid; want / and then visible ASCII characters, others as %%XX", quote(o.Path))
	}
	if !isVisible(o.Host) {
		return fmt.Errorf("http host %s is not valid; want a name or an address, with a port if needed", quote(o.Host))
	}
	if err := validateHeaders(o.Headers); err != nil {
		return err
	}
	if _, err := parseStatus(o.Status); err != nil {
		return err
	}
	if _, err := regexp.Compile(o.Match); err != nil {
		return fmt.Errorf("http match is not an RE2 expression: %w", err)
	}
	if o.Method == http.MethodHead && o.looksIntoBody() {
		return errors.New("http method HEAD has no body for contains or match to look into; use GET")
	}
	return nil
}

func (o HTTPOptions) looksIntoBody() bool { return o.Contains != "" || o.Match != "" }

func validateHeaders(headers string) error {
	if headers == "" {
		return nil
	}
	for line := range strings.SplitSeq(headers, "\n") {
		name, value, ok := strings.Cut(line, ":")
		if !ok || !isToken(name) || strings.ContainsFunc(value, isControl) {
			return fmt.Errorf("http header %s is not valid; want \"Name: value\" on one line", quote(line))
		}
		switch http.CanonicalHeaderKey(name) {
		case "Host":
			return errors.New("http header Host is set by the option host")
		case "Connection", "Content-Length", "Transfer-Encoding":
			return fmt.Errorf("http header %s belongs to the probe and cannot be set", name)
		}
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// isVisible reports whether s holds only visible ASCII characters.
func isVisible(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f })
}

// isToken reports whether s is a token of RFC 9110 section 5.6.2.
func isToken(s string) bool {
	return s != "" && isVisible(s) && !strings.ContainsAny(s, "\"(),/:;<=>?@[\\]{}")
}

// statusRange is an inclusive range of status codes.
type statusRange struct{ first, last int }

// parseStatus reads a list of codes and ranges, such as "200,204,300-399".
func parseStatus(s string) ([]statusRange, error) {
	var set []statusRange
	for part := range strings.SplitSeq(s, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		lo, err1 := strconv.Atoi(first)
		hi, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || lo < 100 || hi > 599 || lo > hi {
			return nil, fmt.Errorf("http status %s is not valid; want codes and ranges from 100 to 599, such as 200-299,304", quote(part))
		}
		set = append(set, statusRange{lo, hi})
	}
	return set, nil
}

// httpProbe makes one HTTP/1.1 request on a connection of its own: no
// keep-alive, no proxy, no redirects. It speaks the protocol directly, in the
// goroutine of the attempt, because a transport would start three more and
// spread one deadline over all of them.
type httpProbe struct {
	dial       DialFunc
	opts       HTTPOptions
	start      string // request line
	rest       string // headers after Host
	status     []statusRange
	match      *regexp.Regexp // nil: no expression
	asResponse *http.Request  // tells ReadResponse whether a body follows
}

func compileHTTP(c Check, dial DialFunc) (probe, error) {
	status, err := parseStatus(c.HTTP.Status)
	if err != nil {
		return nil, err
	}
	p := &httpProbe{
		dial:       dial,
		opts:       c.HTTP,
		start:      c.HTTP.Method + " " + c.HTTP.Path + " HTTP/1.1\r\n",
		rest:       requestHeaders(c.HTTP.Headers),
		status:     status,
		asResponse: &http.Request{Method: c.HTTP.Method},
	}
	if c.HTTP.Match != "" {
		if p.match, err = regexp.Compile(c.HTTP.Match); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// requestHeaders renders all headers but Host, with the blank line after them.
func requestHeaders(headers string) string {
	lines := []string{"Connection: close"}
	own := http.Header{}
	if headers != "" {
		for line := range strings.SplitSeq(headers, "\n") {
			name, value, _ := strings.Cut(line, ":")
			own.Set(name, value)
			lines = append(lines, name+": "+strings.TrimSpace(value))
		}
	}
	for _, d := range []struct{ name, value string }{{"User-Agent", "brlb-health"}, {"Accept", "*/*"}} {
		if _, set := own[d.name]; !set {
			lines = append(lines, d.name+": "+d.value)
		}
	}
	return strings.Join(lines, "\r\n") + "\r\n\r\n"
}

func (p *httpProbe) probe(ctx context.Context, address netip.AddrPort) report {
	conn, err := p.dial(ctx, "tcp", address.String())
	if err != nil {
		return dialFailed(err)
	}
	defer conn.Close()
	defer bindContext(ctx, conn)()
	return p.exchange(conn, address)
}

// exchange sends the request on an open connection and judges the answer.
func (p *httpProbe) exchange(conn net.Conn, address netip.AddrPort) report {
	host := p.opts.Host
	if host == "" {
		host = netip.AddrPortFrom(address.Addr().WithZone(""), address.Port()).String()
	}
	if _, err := io.WriteString(conn, p.start+"Host: "+host+"\r\n"+p.rest); err != nil {
		return exchangeFailed(err, "answer")
	}
	in := &boundedReader{r: conn, left: MaxHeader}
	r := readers.Get().(*bufio.Reader)
	r.Reset(in)
	defer func() { r.Reset(nil); readers.Put(r) }()

	resp, err := p.readHeader(r)
	if err != nil {
		return exchangeFailed(in.cause(err), "header")
	}
	in.left = MaxBody + maxFraming
	return p.judge(resp, in)
}

// maxFraming is room for the chunk headers around a body.
const maxFraming = 16 << 10

// boundedReader reads at most left bytes and remembers why it stopped, because
// a parser may report a line that was cut short as malformed.
type boundedReader struct {
	r    io.Reader
	left int
	err  error
}

var errTooLong = errors.New("longer than this probe reads")

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		b.err = errTooLong
		return 0, b.err
	}
	n, err := b.r.Read(p[:min(len(p), b.left)])
	b.left -= n
	if err != nil {
		b.err = err
	}
	return n, err
}

// cause returns what made a parser that reads from b fail with err.
func (b *boundedReader) cause(err error) error {
	if b.err != nil && b.err != io.EOF {
		return b.err
	}
	return err
}

// readers recycles the buffers of attempts.
var readers = sync.Pool{New: func() any { return bufio.NewReader(nil) }}

// readHeader reads the header of the final response, skipping interim ones.
func (p *httpProbe) readHeader(r *bufio.Reader) (*http.Response, error) {
	for {
		resp, err := http.ReadResponse(r, p.asResponse)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode >= 200 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, nil
		}
	}
}

// judge compares a response with what the check expects. The body is read only
// as far as the check looks into it.
func (p *httpProbe) judge(resp *http.Response, in *boundedReader) report {
	status := strconv.Itoa(resp.StatusCode)
	if !p.accepts(resp.StatusCode) {
		return report{L7STS, status + ", want " + p.opts.Status}
	}
	if !p.opts.looksIntoBody() {
		return report{L7OK, status}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxBody))
	switch {
	case p.bodyMatches(body):
		return report{L7OK, status + " with the expected body"}
	case err != nil:
		return exchangeFailed(in.cause(err), "body")
	case len(body) == MaxBody:
		return report{L7RSP, fmt.Sprintf("%s, expected text not in the first %d bytes", status, MaxBody)}
	default:
		return report{L7RSP, status + ", expected text not in the body"}
	}
}

func (p *httpProbe) accepts(code int) bool {
	for _, r := range p.status {
		if r.first <= code && code <= r.last {
			return true
		}
	}
	return false
}

func (p *httpProbe) bodyMatches(body []byte) bool {
	return strings.Contains(string(body), p.opts.Contains) && (p.match == nil || p.match.Match(body))
}
