package api

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
)

// maxAnswer bounds what the client reads of one answer, in bytes.
const maxAnswer = 256 << 20

// Client asks a running brlb.
type Client struct {
	base string // URL without a path
	unix bool
	http *http.Client
}

// NewClient returns a client of the brlb at endpoint: the path of its unix
// socket (with or without "unix:" before it), or an http or https URL for
// reading alone. It doesn't connect yet.
func NewClient(endpoint string) (*Client, error) {
	transport := &http.Transport{MaxIdleConns: 1}
	if strings.Contains(endpoint, "://") {
		u, err := url.Parse(endpoint)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("%s is neither the path of a unix socket nor an http URL", quote(endpoint))
		}
		return &Client{base: u.Scheme + "://" + u.Host, http: &http.Client{Transport: transport}}, nil
	}
	path := strings.TrimPrefix(endpoint, "unix:")
	if path == "" {
		return nil, errors.New("the path of brlb's unix socket is empty")
	}
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}
	return &Client{base: "http://brlb", unix: true, http: &http.Client{Transport: transport}}, nil
}

// Close ends idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// NotRunningError says that nobody listens at the client's endpoint.
type NotRunningError struct {
	Unix bool  // the endpoint is a unix socket
	Err  error // of the dial
}

func (e *NotRunningError) Error() string {
	switch {
	case !e.Unix:
		return fmt.Sprintf("brlb does not answer: %v", e.Err)
	case errors.Is(e.Err, fs.ErrPermission):
		return fmt.Sprintf("brlb may not be asked: %v (use sudo, or join the group that owns the socket)", e.Err)
	}
	return fmt.Sprintf(`brlb is not running: %v (start it with "brlb run FILE", or name its --bridge or --socket)`, e.Err)
}

func (e *NotRunningError) Unwrap() error { return e.Err }

// Status asks for the whole state of the bridge.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	return get[Status](ctx, c, "/v1/status", nil)
}

// Slots asks who owns which slot of a pool; "" means the only pool.
func (c *Client) Slots(ctx context.Context, pool string) (*Slots, error) {
	return get[Slots](ctx, c, "/v1/slots", url.Values{"pool": {pool}})
}

// Events asks for the remembered events with a number above after.
func (c *Client) Events(ctx context.Context, after uint64) (*Events, error) {
	return get[Events](ctx, c, "/v1/events", url.Values{"after": {strconv.FormatUint(after, 10)}})
}

// Plan asks what a change would move.
func (c *Client) Plan(ctx context.Context, req PlanRequest) (*Change, error) {
	q := url.Values{"op": {req.Operation}}
	for name, value := range map[string]string{"pool": req.Pool, "member": req.Member, "address": req.Address, "layout": req.Layout} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if req.Operation == "weight" || req.Operation == "add" {
		q.Set("weight", strconv.FormatUint(uint64(req.Weight), 10))
	}
	if req.Compare {
		q.Set("compare", "1")
	}
	return get[Change](ctx, c, "/v1/plan", q)
}

// History asks for a member's last probes.
func (c *Client) History(ctx context.Context, member string) (*History, error) {
	return get[History](ctx, c, "/v1/history", url.Values{"member": {member}})
}

// Explain asks why a member has the slots that it has.
func (c *Client) Explain(ctx context.Context, member string) (*Explanation, error) {
	return get[Explanation](ctx, c, "/v1/explain", url.Values{"member": {member}})
}

// Flows asks for the set desired, actual or diff.
func (c *Client) Flows(ctx context.Context, set string) (*Flows, error) {
	return get[Flows](ctx, c, "/v1/flows", url.Values{"set": {set}})
}

// Trace asks where packets of a connection go.
func (c *Client) Trace(ctx context.Context, req TraceRequest) (*Trace, error) {
	q := url.Values{"src": {req.Src}, "sport": {strconv.Itoa(int(req.SrcPort))}}
	if req.Dst != "" {
		q.Set("dst", req.Dst)
	}
	if req.DstPort != 0 {
		q.Set("dport", strconv.Itoa(int(req.DstPort)))
	}
	if req.Proto != "" {
		q.Set("proto", req.Proto)
	}
	if req.InPort != "" {
		q.Set("in_port", req.InPort)
	}
	if req.VLAN != 0 {
		q.Set("vlan", strconv.Itoa(int(req.VLAN)))
	}
	if req.Fragment {
		q.Set("fragment", "1")
	}
	return get[Trace](ctx, c, "/v1/trace", q)
}

// Verify asks for a check of what the switch holds.
func (c *Client) Verify(ctx context.Context) (*Verify, error) {
	return get[Verify](ctx, c, "/v1/verify", nil)
}

// Overrides lists what operators have decided beside the configuration.
func (c *Client) Overrides(ctx context.Context) (*Overrides, error) {
	return get[Overrides](ctx, c, "/v1/overrides", nil)
}

// Clear takes back what operators have decided about a member.
func (c *Client) Clear(ctx context.Context, req ChangeRequest) (*Change, error) {
	return post[Change](ctx, c, "/v1/overrides/clear", req)
}

// Change carries out the operation drain, enable, disable or weight.
func (c *Client) Change(ctx context.Context, operation string, req ChangeRequest) (*Change, error) {
	return post[Change](ctx, c, "/v1/members/"+operation, req)
}

// Rebase makes a pool's members its anchor.
func (c *Client) Rebase(ctx context.Context, req RebaseRequest) (*Change, error) {
	return post[Change](ctx, c, "/v1/pools/rebase", req)
}

// Reapply asks brlb to read the switch back and correct what differs.
func (c *Client) Reapply(ctx context.Context) (*ReapplyResult, error) {
	return post[ReapplyResult](ctx, c, "/v1/reapply", nil)
}

// Reload asks brlb to read its configuration file again.
func (c *Client) Reload(ctx context.Context, req ReloadRequest) (*ReloadResult, error) {
	return post[ReloadResult](ctx, c, "/v1/reload", req)
}

// Follow calls each for the remembered events with a number above after, and
// then for every new one, until ctx is done, each fails or brlb goes away. It
// never returns nil.
func (c *Client) Follow(ctx context.Context, after uint64, each func(Event) error) error {
	q := url.Values{"follow": {"1"}, "after": {strconv.FormatUint(after, 10)}}
	resp, err := c.do(ctx, http.MethodGet, "/v1/events?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue // the id, a heartbeat or an empty line
		}
		var event Event
		if err := json.Unmarshal(data, &event); err != nil {
			return fmt.Errorf("brlb sent an event that could not be read: %w", err)
		}
		if err := each(event); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("the event stream broke off: %w", err)
	}
	return errors.New("brlb has ended the event stream: it was stopped or restarted")
}

func get[T any](ctx context.Context, c *Client, path string, q url.Values) (*T, error) {
	if len(q) > 0 {
		path += "?" + q.Encode()
	}
	return exchange[T](ctx, c, http.MethodGet, path, nil)
}

func post[T any](ctx context.Context, c *Client, path string, doc any) (*T, error) {
	var body []byte
	if doc != nil {
		var err error
		if body, err = json.Marshal(doc); err != nil {
			return nil, err
		}
	}
	return exchange[T](ctx, c, http.MethodPost, path, body)
}

// exchange asks for a document. Members that a newer brlb has added are ignored.
func exchange[T any](ctx context.Context, c *Client, method, path string, body []byte) (*T, error) {
	resp, err := c.do(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	doc := new(T)
	if err := json.UnmarshalRead(io.LimitReader(resp.Body, maxAnswer), doc); err != nil {
		return nil, fmt.Errorf("the answer of brlb to %s could not be read: %w", path, err)
	}
	return doc, nil
}

// do returns an answer of status 200, or else the error that the answer holds.
func (c *Client) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	var doc Error
	if json.UnmarshalRead(io.LimitReader(resp.Body, maxBody), &doc) != nil || doc.Message == "" {
		doc.Message = fmt.Sprintf("the answer to %s is %s, and not from brlb", path, resp.Status)
	}
	if resp.StatusCode >= 400 && resp.StatusCode <= 499 {
		return nil, &RequestError{resp.StatusCode, doc.Message}
	}
	return nil, errors.New(doc.Message)
}

// explain says what a failed exchange means.
func (c *Client) explain(ctx context.Context, err error) error {
	var dial *net.OpError
	switch {
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("brlb did not answer in time: %w", ctx.Err())
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &dial) && dial.Op == "dial":
		return &NotRunningError{Unix: c.unix, Err: dial}
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the made-up URL
	}
	return fmt.Errorf("brlb broke off: %w", err)
}
