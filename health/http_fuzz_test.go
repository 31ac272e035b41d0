package health

import (
	"io"
	"net"
	"net/netip"
	"testing"
	"time"
)

// FuzzHTTPAnswer feeds arbitrary bytes as the answer of a server, which then
// closes: every answer gets a code and a printable sentence.
func FuzzHTTPAnswer(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 503 No\r\n\r\n",
		"HTTP/1.1 -1 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "\r\n\r\n", "",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
	} {
		f.Add([]byte(seed))
	}
	c := Check{Type: HTTP, HTTP: HTTPOptions{Contains: "ok"}}.WithDefaults()
	compiled, err := compileHTTP(c, way{})
	if err != nil {
		f.Fatal(err)
	}
	p := compiled.(*httpProbe)
	f.Fuzz(func(t *testing.T, answer []byte) {
		client, server := net.Pipe()
		deadline := time.Now().Add(5 * time.Second)
		client.SetDeadline(deadline)
		server.SetDeadline(deadline)
		done := make(chan struct{})
		go func() {
			defer close(done)
			server.Read(make([]byte, 1024))
			server.Write(answer)
			server.Close()
		}()
		got := p.exchange(client, netip.MustParseAddrPort("192.0.2.1:80"))
		client.Close()
		io.Copy(io.Discard, server)
		<-done
		switch got.code {
		case L7OK, L7RSP, L7STS:
		default:
			t.Errorf("code %v", got.code)
		}
		for _, r := range got.detail {
			if r < ' ' || r > '~' {
				t.Errorf("detail %q is not printable", got.detail)
			}
		}
	})
}
