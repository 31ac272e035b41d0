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

// Bounds of what an HTTP attempt reads.
const (
	MaxHeader = 64 << 10 // status line and headers together
	MaxBody   = 64 << 10 // body, read only if the check looks into it
)

// httpProbe makes one HTTP/1.1 request on a connection of its own: no
// keep-alive, no proxy, no redirects. It speaks the protocol directly, in the
// goroutine of the attempt, because a transport would start three more and
// spread one deadline over all of them.
type httpProbe struct {
	dial       DialFunc
	tls        *tlsClient // nil: plain HTTP
	opts       HTTPOptions
	start      string // request line
	rest       string // headers after Host
	status     []statusRange
	match      *regexp.Regexp // nil: no expression
	asResponse *http.Request  // tells ReadResponse whether a body follows
}

func compileHTTP(c Check, w way) (probe, error) {
	status, err := parseStatus(c.HTTP.Status)
	if err != nil {
		return nil, err
	}
	p := &httpProbe{
		dial:       w.dial,
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
	if c.Type == HTTPS {
		host, _, err := net.SplitHostPort(c.HTTP.Host)
		if err != nil {
			host = c.HTTP.Host
		}
		if p.tls, err = newTLSClient(c.TLS, host, "http/1.1"); err != nil {
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
	if p.tls != nil {
		secured, err := p.tls.handshake(ctx, conn, address.Addr())
		if err != nil {
			return handshakeFailed(err)
		}
		conn = secured
	}
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
	if err != nil && in.left == MaxHeader {
		return silenceFailed(in.cause(err), "header", conn)
	}
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

// judge compares a response with what the check expects.
func (p *httpProbe) judge(resp *http.Response, in *boundedReader) report {
	rep := p.judgeContent(resp, in)
	if p.opts.AgentHeader != "" {
		rep = rep.withAgent(resp.Header.Get(p.opts.AgentHeader))
	}
	return rep
}

// judgeContent reads the body only as far as the check looks into it.
func (p *httpProbe) judgeContent(resp *http.Response, in *boundedReader) report {
	status := strconv.Itoa(resp.StatusCode)
	if !p.accepts(resp.StatusCode) {
		return report{code: L7STS, detail: status + ", want " + p.opts.Status}
	}
	if !p.opts.looksIntoBody() {
		return report{code: L7OK, detail: status}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, MaxBody))
	switch {
	case p.bodyMatches(body):
		return report{code: L7OK, detail: status + " with the expected body"}
	case err != nil:
		return exchangeFailed(in.cause(err), "body")
	case len(body) == MaxBody:
		return report{code: L7RSP, detail: fmt.Sprintf("%s, expected text not in the first %d bytes", status, MaxBody)}
	default:
		return report{code: L7RSP, detail: status + ", expected text not in the body"}
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
