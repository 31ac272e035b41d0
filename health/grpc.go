package health

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"unicode/utf8"
)

// The gRPC health protocol (grpc.health.v1, method Check) is one unary call:
// a POST over HTTP/2 whose body and answer are each one length-prefixed
// protobuf message of one field. net/http speaks the HTTP/2; the rest is here,
// so that watching a gRPC server does not take a gRPC implementation.
const (
	grpcMethod     = "/grpc.health.v1.Health/Check"
	maxServiceName = 1024
	// maxGRPCAnswer bounds the response message with its prefix, in bytes.
	maxGRPCAnswer = 1024
	grpcPrefix    = 5 // compressed flag and length
)

// servingStatus names HealthCheckResponse.ServingStatus.
var servingStatus = [...]string{"UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"}

const serving = 1

// grpcCodes names the status codes of gRPC that a health call may well end with.
var grpcCodes = map[string]string{
	"1": "CANCELLED", "2": "UNKNOWN", "4": "DEADLINE_EXCEEDED", "5": "NOT_FOUND: the service is not known",
	"7": "PERMISSION_DENIED", "8": "RESOURCE_EXHAUSTED", "12": "UNIMPLEMENTED: no health service there",
	"13": "INTERNAL", "14": "UNAVAILABLE", "16": "UNAUTHENTICATED",
}

func validateGRPC(c Check) error {
	if len(c.Service) > maxServiceName || !utf8.ValidString(c.Service) {
		return fmt.Errorf("grpc service %s is not valid; want at most %d bytes of UTF-8", quote(c.Service), maxServiceName)
	}
	return validateTLS(c.TLS)
}

// grpcProbe makes one health call on a connection of its own.
type grpcProbe struct {
	dial    DialFunc
	tls     *tlsClient // nil: plain HTTP/2
	request []byte
}

func compileGRPC(c Check, w way) (probe, error) {
	p := &grpcProbe{dial: w.dial, request: grpcRequest(c.Service)}
	if c.Type == GRPCS {
		var err error
		if p.tls, err = newTLSClient(c.TLS, "", "h2"); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// grpcRequest encodes a HealthCheckRequest: field 1, service, a string.
func grpcRequest(service string) []byte {
	var message []byte
	if service != "" {
		message = append(message, 1<<3|2)
		message = binary.AppendUvarint(message, uint64(len(service)))
		message = append(message, service...)
	}
	framed := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message)))
	return append(framed, message...)
}

func (p *grpcProbe) probe(ctx context.Context, address netip.AddrPort) report {
	conn, err := p.dial(ctx, "tcp", address.String())
	if err != nil {
		return dialFailed(err)
	}
	defer conn.Close()
	scheme := "http"
	if p.tls != nil {
		secured, err := p.tls.handshake(ctx, conn, address.Addr())
		if err != nil {
			return handshakeFailed(err)
		}
		if secured.ConnectionState().NegotiatedProtocol != "h2" {
			return report{code: L7RSP, detail: "the server does not offer HTTP/2"}
		}
		conn, scheme = secured, "https"
	}
	client, err := http2On(ctx, conn, scheme, address)
	if err != nil {
		return exchangeFailed(err, "answer")
	}
	defer client.Close()
	return p.call(ctx, client, scheme, address)
}

// http2On makes an HTTP/2 client of an open connection.
func http2On(ctx context.Context, conn net.Conn, scheme string, address netip.AddrPort) (*http.ClientConn, error) {
	use := func(context.Context, string, string) (net.Conn, error) { return conn, nil }
	transport := &http.Transport{
		DialContext:            use,
		DialTLSContext:         use,
		Protocols:              new(http.Protocols),
		MaxResponseHeaderBytes: MaxHeader,
		DisableCompression:     true,
	}
	transport.Protocols.SetHTTP2(true)
	transport.Protocols.SetUnencryptedHTTP2(true)
	return transport.NewClientConn(ctx, scheme, address.String())
}

func (p *grpcProbe) call(ctx context.Context, client *http.ClientConn, scheme string, address netip.AddrPort) report {
	req := &http.Request{
		Method: http.MethodPost,
		URL:    &url.URL{Scheme: scheme, Host: address.String(), Path: grpcMethod},
		Header: http.Header{
			"Content-Type": {"application/grpc"},
			"Te":           {"trailers"},
			"User-Agent":   {"brlb-health"},
		},
		Body:          io.NopCloser(bytes.NewReader(p.request)),
		ContentLength: int64(len(p.request)),
	}
	resp, err := client.RoundTrip(req.WithContext(ctx))
	if err != nil {
		return callFailed(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return report{code: L7STS, detail: "HTTP " + strconv.Itoa(resp.StatusCode)}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxGRPCAnswer+1))
	if err != nil {
		return callFailed(ctx, err)
	}
	if len(body) > maxGRPCAnswer {
		return report{code: L7RSP, detail: fmt.Sprintf("answer longer than %d bytes", maxGRPCAnswer)}
	}
	status := resp.Trailer.Get("Grpc-Status")
	if status == "" {
		status = resp.Header.Get("Grpc-Status") // an answer of trailers only
	}
	return judgeGRPC(status, body)
}

// callFailed reports a call without a whole answer. The HTTP/2 client may hide
// the end of ctx behind an error of its own.
func callFailed(ctx context.Context, err error) report {
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return exchangeFailed(err, "answer")
}

// judgeGRPC reports what the status and the body of an answer say.
func judgeGRPC(status string, body []byte) report {
	if status == "" {
		return report{code: L7RSP, detail: "answer without grpc-status"}
	}
	if status != "0" {
		if name := grpcCodes[status]; name != "" {
			return report{code: L7STS, detail: "grpc status " + status + " " + name}
		}
		return report{code: L7STS, detail: "grpc status " + quote(status)}
	}
	value, err := parseServing(body)
	if err != nil {
		return report{code: L7RSP, detail: err.Error()}
	}
	if value == serving {
		return report{code: L7OK, detail: servingStatus[serving]}
	}
	if value < uint64(len(servingStatus)) {
		return report{code: L7STS, detail: servingStatus[value]}
	}
	return report{code: L7STS, detail: "health status " + strconv.FormatUint(value, 10)}
}

var errBadMessage = errors.New("answer is not a grpc.health.v1 message")

// parseServing reads field 1, status, of a framed HealthCheckResponse. A field
// that is absent is 0; others are skipped.
func parseServing(body []byte) (status uint64, err error) {
	if len(body) < grpcPrefix || body[0] != 0 || uint64(binary.BigEndian.Uint32(body[1:])) != uint64(len(body)-grpcPrefix) {
		return 0, errBadMessage
	}
	for m := body[grpcPrefix:]; len(m) > 0; {
		tag, n := binary.Uvarint(m)
		if n <= 0 {
			return 0, errBadMessage
		}
		m = m[n:]
		skip := 0
		switch tag & 7 {
		case 0: // varint
			value, n := binary.Uvarint(m)
			if n <= 0 {
				return 0, errBadMessage
			}
			if tag>>3 == 1 {
				status = value
			}
			skip = n
		case 1:
			skip = 8
		case 2: // length and bytes
			length, n := binary.Uvarint(m)
			if n <= 0 || length > uint64(len(m)-n) {
				return 0, errBadMessage
			}
			skip = n + int(length)
		case 5:
			skip = 4
		default:
			return 0, errBadMessage
		}
		if skip > len(m) {
			return 0, errBadMessage
		}
		m = m[skip:]
	}
	return status, nil
}
