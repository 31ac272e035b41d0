package resolve

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// serve runs a DNS server on a port of its own, over UDP and TCP.
func serve(t *testing.T, answer func(w dns.ResponseWriter, query *dns.Msg)) netip.AddrPort {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := netip.MustParseAddrPort(listener.Addr().String())
	packets, err := net.ListenPacket("udp", address.String())
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	t.Cleanup(running.Wait)
	for _, server := range []*dns.Server{{Listener: listener}, {PacketConn: packets}} {
		started := make(chan struct{})
		server.Handler, server.NotifyStartedFunc = dns.HandlerFunc(answer), func() { close(started) }
		running.Go(func() { server.ActivateAndServe() })
		<-started
		t.Cleanup(func() { server.Shutdown() })
	}
	return address
}

// zone answers with these records, in the form of a zone file.
func zone(rcode int, records ...string) func(dns.ResponseWriter, *dns.Msg) {
	return func(w dns.ResponseWriter, query *dns.Msg) {
		reply := new(dns.Msg).SetRcode(query, rcode)
		for _, text := range records {
			record, err := dns.NewRR(text)
			if err != nil {
				panic(err)
			}
			reply.Answer = append(reply.Answer, record)
		}
		if w.RemoteAddr().Network() == "udp" {
			reply.Truncate(udpSize)
		}
		w.WriteMsg(reply)
	}
}

func many(n int) []string {
	var records []string
	for i := range n {
		records = append(records, fmt.Sprintf("be.example.org. 60 IN A 10.31.%d.%d", i/250, 1+i%250))
	}
	return records
}

func TestAsk(t *testing.T) {
	for _, c := range []struct {
		name   string
		rcode  int
		zone   []string
		v6     bool
		want   string // addresses and TTL
		reason string // part of Problem
	}{
		{name: "two addresses, sorted",
			zone: []string{"be.example.org. 60 IN A 10.30.0.12", "BE.example.org. 30 IN A 10.30.0.11"}, want: "[10.30.0.11 10.30.0.12] 30s"},
		{name: "twice the same", zone: []string{"be.example.org. 60 IN A 10.30.0.12", "be.example.org. 60 IN A 10.30.0.12"}, want: "[10.30.0.12] 1m0s"},
		{name: "an alias of an alias", zone: []string{
			"z.example.org. 60 IN A 10.30.0.11", "y.example.org. 20 IN CNAME z.example.org.", "be.example.org. 300 IN CNAME y.example.org.",
		}, want: "[10.30.0.11] 20s"},
		{name: "an alias of itself", zone: []string{"be.example.org. 300 IN CNAME be.example.org."}, reason: "has no A record of it"},
		{name: "addresses of somebody else", zone: []string{"mx.example.org. 60 IN A 10.30.0.12"}, reason: "has no A record of it"},
		{name: "nothing", reason: "has no A record of it"},
		{name: "IPv6 is not asked for", zone: []string{"be.example.org. 60 IN AAAA 2001:db8::1"}, reason: "has no A record of it"},
		{name: "IPv6", v6: true, zone: []string{"be.example.org. 60 IN AAAA 2001:db8::1", "be.example.org. 60 IN A 10.30.0.1"}, want: "[2001:db8::1] 1m0s"},
		{name: "a hole", zone: []string{"be.example.org. 60 IN A 0.0.0.0"}, reason: "has only 0.0.0.0, which no host can have"},
		{name: "a hole beside an address", zone: []string{"be.example.org. 60 IN A 127.0.0.1", "be.example.org. 60 IN A 10.30.0.11"}, want: "[10.30.0.11] 1m0s"},
		{name: "no such name", rcode: dns.RcodeNameError, reason: "NXDOMAIN: 127.0.0.1:"},
		{name: "the server fails", rcode: dns.RcodeServerFailure, reason: "it says SERVFAIL"},
		{name: "the server will not", rcode: dns.RcodeRefused, reason: "it says REFUSED"},
		{name: "over TCP, since they do not fit a datagram", zone: many(MaxAddrs), want: "64 addresses, 10.31.0.1 to 10.31.0.64"},
		{name: "too many", zone: many(1000), want: "64 addresses, 10.31.0.1 to 10.31.0.64", reason: "has 1000 addresses: the first 64 are members"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := serve(t, zone(c.rcode, c.zone...))
			answer := ask(t.Context(), []netip.AddrPort{server}, Name{Host: "be.example.org", V6: c.v6})
			got := ""
			switch n := len(answer.Addrs); {
			case n > 8:
				got = fmt.Sprintf("%d addresses, %s to %s", n, answer.Addrs[0], answer.Addrs[n-1])
			case n > 0:
				got = fmt.Sprint(answer.Addrs, " ", answer.TTL)
			}
			if got != c.want || !strings.Contains(answer.Problem, c.reason) || c.reason == "" && answer.Problem != "" {
				t.Errorf("got %s, problem %q; want %s, problem %q", got, answer.Problem, c.want, c.reason)
			}
		})
	}
}

// A server that is dead, silent, broken or answers something else costs its
// timeout at most: the next one is asked.
func TestAskTheNextServer(t *testing.T) {
	works := serve(t, zone(dns.RcodeSuccess, "be.example.org. 60 IN A 10.30.0.11"))
	for name, bad := range map[string]func(dns.ResponseWriter, *dns.Msg){
		"silent": func(dns.ResponseWriter, *dns.Msg) {},
		"fails":  zone(dns.RcodeServerFailure),
		"noise":  func(w dns.ResponseWriter, _ *dns.Msg) { w.Write([]byte(strings.Repeat("\xc0", 600))) },
		"another question": func(w dns.ResponseWriter, query *dns.Msg) {
			query.Question[0].Name = "other.example.org."
			zone(dns.RcodeSuccess, "other.example.org. 60 IN A 10.66.6.6")(w, query)
		},
		"a query as the answer": func(w dns.ResponseWriter, query *dns.Msg) { w.WriteMsg(query) },
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			server := serve(t, func(w dns.ResponseWriter, query *dns.Msg) { asked.Add(1); bad(w, query) })
			answer := ask(t.Context(), []netip.AddrPort{server, works}, host("be.example.org"))
			if len(answer.Addrs) != 1 || answer.Problem != "" || asked.Load() != 1 {
				t.Errorf("got %+v, asked %d times", answer, asked.Load())
			}
			answer = ask(t.Context(), []netip.AddrPort{server}, host("be.example.org"))
			if len(answer.Addrs) != 0 || !strings.HasPrefix(answer.Problem, server.String()+": ") || asked.Load() != 1+rounds {
				t.Errorf("alone: %+v, asked %d times", answer, asked.Load())
			}
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		dead := netip.MustParseAddrPort("127.0.0.1:1")
		if answer := ask(t.Context(), []netip.AddrPort{dead}, host("x")); answer.Problem != "127.0.0.1:1: connection refused" {
			t.Errorf("got %+v", answer)
		}
	})
	t.Run("who stops is not kept waiting", func(t *testing.T) {
		arrived := make(chan struct{})
		var once sync.Once
		server := serve(t, func(dns.ResponseWriter, *dns.Msg) { once.Do(func() { close(arrived) }) })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan time.Duration)
		go func() {
			<-arrived
			begin := time.Now()
			cancel()
			done <- time.Since(begin)
		}()
		ask(ctx, []netip.AddrPort{server}, host("x"))
		<-done
		if ctx.Err() == nil {
			t.Error("it gave up before it was told to")
		}
	})
}

func TestSystemServers(t *testing.T) {
	for text, want := range map[string]string{
		"nameserver 10.0.0.1\nnameserver 2001:db8::1\nsearch example.org\n":                    "[10.0.0.1:53 [2001:db8::1]:53]",
		"nameserver 10.0.0.1\nnameserver 10.0.0.2\nnameserver 10.0.0.3\nnameserver 10.0.0.4\n": "[10.0.0.1:53 10.0.0.2:53 10.0.0.3:53]",
		"nameserver ns.example.org\n": "names none",
		"":                            "names none",
	} {
		path := filepath.Join(t.TempDir(), "resolv.conf")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		servers, err := systemServers(path)
		if got := fmt.Sprint(servers, err); !strings.Contains(got, want) {
			t.Errorf("%q: got %s, want %s", text, got, want)
		}
	}
	if _, err := systemServers(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no file, and no error")
	}
}
