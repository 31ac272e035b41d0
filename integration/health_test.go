package integration

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	grpchealth "google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"brlb/controller/api"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// patient is the bounds of the probes below: quick enough for a test, and not
// too quick for a machine that is busy.
const patient = "interval: 400ms, fast: 200ms, down: 200ms, timeout: 200ms, rise: 2, fall: 3"

// probed is a way in which members say how they are: how to ask, how a member
// answers, and how it goes wrong and right again.
type probed struct {
	name  string
	check string                                             // without its times
	serve func(t *testing.T, h *lab.Host, sick *atomic.Bool) // beside the web server of the member
	sick  func(t *testing.T, s *stand.Stand, really bool)    // be1, in place of the flag above; nil: the flag
	good  string                                             // code of a probe that passes
	bad   string                                             // and what a member says that is sick
}

// TestProbes: whatever the kind of the probe, a member that gets sick loses its
// slots, no connection is made to it after that, no request of others fails,
// and it comes back when it is well again.
func TestProbes(t *testing.T) {
	s := start(t, stand.Options{Config: func(text string) string { return "allow_exec: true\n" + text }})
	ca, stranger := newAuthority(t), newAuthority(t)
	clientCert, clientKey := ca.files(t, ca.issue(t, "brlb", "10.30.0.2", time.Now().Add(time.Hour)))
	script := filepath.Join(t.TempDir(), "check")
	must(t, os.WriteFile(script, []byte("#!/bin/sh\n[ ! -e \"$(dirname \"$0\")/sick-$1\" ]\n"), 0o755))
	for _, p := range []probed{
		{
			name:  "http 503",
			check: "type: http, path: /healthz",
			sick: func(t *testing.T, s *stand.Stand, really bool) {
				must(t, s.Servers[0].SetHealth(map[bool]int{true: 503, false: 200}[really]))
			},
			good: "L7OK", bad: "L7STS 503",
		},
		{
			name:  "https with a private authority and a client certificate",
			check: fmt.Sprintf("type: https, port: 9001, sni: shop.example.org, ca: %s, cert: %s, key: %s", ca.CA, clientCert, clientKey),
			serve: func(t *testing.T, h *lab.Host, sick *atomic.Bool) {
				good := ca.issue(t, "shop.example.org", h.Addr().String(), time.Now().Add(time.Hour))
				bad := stranger.issue(t, "shop.example.org", h.Addr().String(), time.Now().Add(time.Hour))
				config := &tls.Config{
					ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: ca.pool(),
					GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
						if sick.Load() {
							return &bad, nil
						}
						return &good, nil
					},
				}
				serveHTTP(t, tls.NewListener(listen(t, h, 9001), config), func(w http.ResponseWriter, _ *http.Request) {})
			},
			good: "L7OK", bad: "L6RSP certificate is signed by an unknown authority",
		},
		{
			name:  "grpc",
			check: "type: grpc, port: 9002, service: shop.v1.Cart",
			serve: func(t *testing.T, h *lab.Host, sick *atomic.Bool) {
				server := grpc.NewServer()
				healthpb.RegisterHealthServer(server, cart{sick: sick})
				l := listen(t, h, 9002)
				go server.Serve(l) // until Stop
				t.Cleanup(server.Stop)
			},
			good: "L7OK", bad: "L7STS NOT_SERVING",
		},
		{
			name:  "udp",
			check: `type: udp, port: 9003, send: ping, expect: pong`,
			serve: serveUDP,
			good:  "L7OK", bad: "L7TOUT no answer",
		},
		{
			name:  "a server that hangs",
			check: "type: http, port: 9004",
			serve: func(t *testing.T, h *lab.Host, sick *atomic.Bool) {
				serveHTTP(t, listen(t, h, 9004), func(_ http.ResponseWriter, r *http.Request) {
					if sick.Load() {
						<-r.Context().Done() // accepted, and not a word
					}
				})
			},
			good: "L7OK", bad: "L7TOUT",
		},
		{
			name:  "a server that answers slowly",
			check: "type: http, port: 9005, contains: ready",
			serve: func(t *testing.T, h *lab.Host, sick *atomic.Bool) {
				serveHTTP(t, listen(t, h, 9005), func(w http.ResponseWriter, r *http.Request) {
					for _, c := range "ready" {
						fmt.Fprintf(w, "%c", c)
						http.NewResponseController(w).Flush()
						if sick.Load() {
							time.Sleep(100 * time.Millisecond)
						}
					}
				})
			},
			good: "L7OK", bad: "L7TOUT",
		},
		{
			name:  "a server that resets",
			check: "type: tcp, port: 9006, send: hello, expect: welcome",
			serve: func(t *testing.T, h *lab.Host, sick *atomic.Bool) {
				l := listen(t, h, 9006)
				go func() {
					for {
						conn, err := l.Accept()
						if err != nil {
							return
						}
						io.ReadFull(conn, make([]byte, len("hello"))) // so that a reset comes after the connection
						if sick.Load() {
							conn.(*net.TCPConn).SetLinger(0)
						} else {
							io.WriteString(conn, "220 welcome\r\n")
						}
						conn.Close()
					}
				}()
			},
			good: "L7OK", bad: "L7RSP connection reset by peer",
		},
		{
			name:  "icmp",
			check: "type: icmp",
			sick: func(t *testing.T, s *stand.Stand, really bool) {
				must(t, s.Hosts[0].Sysctl("net/ipv4/icmp_echo_ignore_all", map[bool]string{true: "1", false: "0"}[really]))
			},
			good: "L4OK", bad: "L4TOUT no echo reply",
		},
		{
			name:  "exec",
			check: "type: exec, command: " + script,
			sick: func(t *testing.T, _ *stand.Stand, really bool) {
				mark := filepath.Join(filepath.Dir(script), "sick-10.30.0.11")
				if !really {
					must(t, os.Remove(mark))
					return
				}
				must(t, os.WriteFile(mark, nil, 0o644))
			},
			good: "PROCOK", bad: "PROCERR exit 1",
		},
	} {
		t.Run(p.name, func(t *testing.T) { p.try(t, s) })
	}
}

func (p *probed) try(t *testing.T, s *stand.Stand) {
	sick := make([]atomic.Bool, len(s.Hosts))
	if p.serve != nil {
		for i, h := range s.Hosts {
			p.serve(t, h, &sick[i])
		}
	}
	fall := func(really bool) {
		if p.sick != nil {
			p.sick(t, s, really)
		} else {
			sick[0].Store(really)
		}
	}
	load := s.Client.StartLoad(t.Context(), stand.VIP, lab.LoadOptions{Workers: 4, Pause: 5 * time.Millisecond, Timeout: 20 * time.Second})
	must(t, reprobe(t, s, p.check))
	await(t, s, "all up by the new check", func(st *api.Status) bool {
		for _, m := range st.Pools[0].Members {
			if !m.Active || m.Check.Code != p.good || m.Check.Consecutive < 1 {
				return false
			}
		}
		return st.InSync
	})

	began := time.Now()
	fall(true)
	status := await(t, s, "be1 down", func(st *api.Status) bool {
		m := st.Pools[0].Members[0]
		return st.InSync && m.State == "down" && m.Slots == 0
	})
	t.Logf("down and confirmed after %v: %s", time.Since(began).Round(time.Millisecond), status.Pools[0].Members[0].Reason)
	if reason := status.Pools[0].Members[0].Reason; !strings.HasPrefix(reason, "down: "+p.bad) {
		t.Errorf("be1 is %q, want %q", reason, "down: "+p.bad)
	}
	// What the datapath has cached follows the table within half a second.
	_, err := s.Lab.Appctl("revalidator/wait")
	must(t, err)
	for _, c := range s.Client.ConnectEach(t.Context(), stand.VIP, portsFrom(32000, 400), 8) {
		if c.Err != nil || c.Server == "be1" {
			t.Errorf("from port %d to %q: %v", c.SourcePort, c.Server, c.Err)
			break
		}
	}
	explained(t, s, p)
	told(t, s, p)

	fall(false)
	await(t, s, "be1 back", stand.Steady(4))
	if r := load.Stop(); r.Failed > 0 || r.Requests == 0 {
		t.Errorf("%d of %d requests failed: %v", r.Failed, r.Requests+r.Failed, r.Failures)
	}
}

// explained checks that history and explain say why be1 is down.
func explained(t *testing.T, s *stand.Stand, p *probed) {
	t.Helper()
	history, err := s.API.History(t.Context(), "be1")
	must(t, err)
	failed := 0
	for _, r := range history.Results {
		if r.Outcome == "fail" {
			failed++
		}
	}
	if failed < 3 || history.Health != "down" {
		t.Errorf("history of a member that is down: %+v", history)
	}
	e, err := s.API.Explain(t.Context(), "web/be1")
	must(t, err)
	if len(e.Remedies) != 1 || !strings.Contains(e.Remedies[0], "2 passes in a row") || !e.Slots.Known || e.Slots.Installed != 0 || e.Slots.Wanted != 0 {
		t.Errorf("explain: %+v, remedies %q", e.Slots, e.Remedies)
	}
}

// told checks that events and metrics say that be1 is down, and why.
func told(t *testing.T, s *stand.Stand, p *probed) {
	t.Helper()
	events, err := s.API.Events(t.Context(), 0)
	must(t, err)
	last := ""
	for _, e := range events.Events {
		if e.Member == "be1" {
			last = e.Text
		}
	}
	if !strings.HasPrefix(last, "down: "+p.bad) {
		t.Errorf("the newest event about be1 is %q", last)
	}
	code, _, _ := strings.Cut(p.bad, " ")
	values := metrics(t, s)
	for metric, want := range map[string]float64{
		`brlb_member_healthy{address="10.30.0.11:8080",member="be1",pool="web"}`: 0,
		`brlb_member_healthy{address="10.30.0.12:8080",member="be2",pool="web"}`: 1,
		`brlb_member_active{address="10.30.0.11:8080",member="be1",pool="web"}`:  0,
		`brlb_member_slots{address="10.30.0.11:8080",member="be1",pool="web"}`:   0,
		`brlb_pool_active_members{pool="web"}`:                                   3,
	} {
		if got, known := values[metric]; !known || got != want {
			t.Errorf("%s is %v (known: %v), want %v", metric, got, known, want)
		}
	}
	if failed := `brlb_probes_total{check="web",member="be1",pool="web",result="` + code + `"}`; values[failed] < 3 {
		t.Errorf("%s is %v, and 3 such results make a verdict", failed, values[failed])
	}
}

// reprobe reloads a configuration in which members are probed in another way.
func reprobe(t *testing.T, s *stand.Stand, check string) error {
	t.Helper()
	var text strings.Builder
	for line := range strings.Lines(s.DefaultConfig()) {
		if strings.HasPrefix(line, "  web: {type: http") {
			line = fmt.Sprintf("  web: {%s, %s}\n", check, patient)
		}
		text.WriteString(line)
	}
	if err := s.WriteConfig(text.String()); err != nil {
		return err
	}
	_, err := s.API.Reload(t.Context(), api.ReloadRequest{})
	return err
}

func portsFrom(first, n int) []int {
	ports := make([]int, n)
	for i := range ports {
		ports[i] = first + i
	}
	return ports
}

func listen(t *testing.T, h *lab.Host, port int) net.Listener {
	t.Helper()
	l, err := h.Listen("tcp", fmt.Sprintf("%s:%d", h.Addr(), port))
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return l
}

func serveHTTP(t *testing.T, l net.Listener, handle http.HandlerFunc) {
	server := &http.Server{Handler: handle, ErrorLog: log.New(io.Discard, "", 0)}
	done := make(chan struct{})
	go func() { defer close(done); server.Serve(l) }()
	t.Cleanup(func() { server.Close(); <-done })
}

func serveUDP(t *testing.T, h *lab.Host, sick *atomic.Bool) {
	t.Helper()
	var conn net.PacketConn
	must(t, h.Do(func() (err error) {
		conn, err = net.ListenPacket("udp", h.Addr().String()+":9003")
		return err
	}))
	t.Cleanup(func() { conn.Close() })
	go func() {
		question := make([]byte, 64)
		for {
			n, from, err := conn.ReadFrom(question)
			if err != nil {
				return
			}
			if string(question[:n]) == "ping" && !sick.Load() {
				conn.WriteTo([]byte("a pong"), from)
			}
		}
	}()
}

// cart is a gRPC health service of one service.
type cart struct {
	healthpb.UnimplementedHealthServer
	sick *atomic.Bool
}

func (c cart) Check(_ context.Context, req *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	status := grpchealth.NewServer()
	status.SetServingStatus("shop.v1.Cart", healthpb.HealthCheckResponse_SERVING)
	if c.sick.Load() {
		status.SetServingStatus("shop.v1.Cart", healthpb.HealthCheckResponse_NOT_SERVING)
	}
	return status.Check(context.Background(), req)
}

// TestAgent: what members say of themselves decides about their slots.
func TestAgent(t *testing.T) {
	onUserspace(t, func(t *testing.T, s *stand.Stand) {
		var line atomic.Value
		line.Store("up")
		for i, h := range s.Hosts {
			l := listen(t, h, 9010)
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					say := "up"
					if i == 0 {
						say = line.Load().(string)
					}
					io.WriteString(conn, say+"\n")
					conn.Close()
				}
			}()
		}
		must(t, reprobe(t, s, "type: agent, port: 9010"))
		for _, c := range []struct {
			says   string
			state  string
			slots  func(int) bool
			reason string
		}{
			{"50%", "up", func(n int) bool { return n > 130 && n < 160 }, ""},
			{"up 100%", "up", func(n int) bool { return n > 250 && n < 262 }, ""},
			{"drain", "up", func(n int) bool { return n == 0 }, "its agent says drain"},
			{"ready", "up", func(n int) bool { return n > 250 && n < 262 }, ""},
			{"maint", "up", func(n int) bool { return n == 0 }, "its agent says maint"},
			{"down # no disk", "down", func(n int) bool { return n == 0 }, "down: L7STS"},
			{"up", "up", func(n int) bool { return n > 250 && n < 262 }, ""},
		} {
			line.Store(c.says)
			await(t, s, "be1 as it says: "+c.says, func(st *api.Status) bool {
				m := st.Pools[0].Members[0]
				return st.InSync && m.State == c.state && c.slots(m.Slots) && strings.HasPrefix(m.Reason, c.reason)
			})
		}
	})
}
