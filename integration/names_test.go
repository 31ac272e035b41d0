package integration

import (
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/miekg/dns"

	"brlb/controller/api"
	"brlb/integration/lab"
	"brlb/integration/stand"
)

// zone is a DNS server that knows the addresses of be.example.org, and no other
// name.
type zone struct {
	addrs  atomic.Pointer[[]string]
	server *dns.Server
}

func (z *zone) set(addrs ...string) { z.addrs.Store(&addrs) }

func (z *zone) ServeDNS(w dns.ResponseWriter, query *dns.Msg) {
	reply := new(dns.Msg).SetRcode(query, dns.RcodeNameError)
	if q := query.Question[0]; strings.EqualFold(q.Name, "be.example.org.") {
		reply.Rcode = dns.RcodeSuccess
		for _, addr := range *z.addrs.Load() {
			header := dns.RR_Header{Name: q.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 1}
			reply.Answer = append(reply.Answer, &dns.A{Hdr: header, A: net.ParseIP(addr)})
		}
	}
	w.WriteMsg(reply)
}

// start serves on a host, until stop.
func (z *zone) start(t *testing.T, h *lab.Host) {
	t.Helper()
	var conn net.PacketConn
	must(t, h.Do(func() (err error) {
		conn, err = net.ListenPacket("udp", h.Addr().String()+":53")
		return err
	}))
	started := make(chan struct{})
	z.server = &dns.Server{PacketConn: conn, Handler: z, NotifyStartedFunc: func() { close(started) }}
	go z.server.ActivateAndServe()
	<-started
	t.Cleanup(func() { conn.Close() })
}

func (z *zone) stop() { z.server.Shutdown() }

// TestMembersByName: every address of a name serves, a changed record moves the
// connections, and neither a dead DNS server nor a name that does not exist
// takes anything from those who serve.
func TestMembersByName(t *testing.T) {
	s := build(t, stand.Options{})
	z := &zone{}
	z.set("10.30.0.12", "10.30.0.13")
	z.start(t, s.Hosts[3])
	byName := func(host string) string {
		text := s.DefaultConfig()
		for _, name := range []string{"be2", "be3", "be4"} {
			text = removeMember(text, name)
		}
		return "dns: {servers: [10.30.0.14], min_ttl: 1s}\n" +
			strings.Replace(text, "be1: 10.30.0.11:8080\n", "be1: 10.30.0.11:8080\n      dyn: "+host+":8080\n", 1)
	}
	must(t, s.WriteConfig(byName("be.example.org")))
	must(t, s.Start())
	serving := func(want ...string) func(*api.Status) bool {
		return func(st *api.Status) bool {
			var got []string
			for _, p := range st.Pools {
				for _, m := range p.Members {
					if m.Slots > 0 {
						got = append(got, m.Name)
					}
				}
			}
			return st.Phase == "steady" && st.InSync && slices.Equal(got, want)
		}
	}
	name := func(state string) func(*api.Status) bool {
		return func(st *api.Status) bool { return len(st.Pools[0].Names) == 1 && st.Pools[0].Names[0].State == state }
	}
	// answered asks the VIP until all of some servers have answered, and says
	// which did.
	answered := func(all ...string) []string {
		t.Helper()
		load := s.Client.StartLoad(t.Context(), stand.VIP, lab.LoadOptions{Workers: 4, Pause: 2 * time.Millisecond, Timeout: 20 * time.Second})
		eventually(t, strings.Join(all, ", ")+" answer", func() bool {
			report := load.Report()
			return !slices.ContainsFunc(all, func(name string) bool { return report.PerServer[name] == 0 })
		})
		report := load.Stop()
		if len(report.Failures) > 0 {
			t.Errorf("%d requests failed, first %+v", len(report.Failures), report.Failures[0])
		}
		var who []string
		for server := range report.PerServer {
			who = append(who, server)
		}
		slices.Sort(who)
		return who
	}
	check := func(want ...string) {
		t.Helper()
		if got := answered(want...); !slices.Equal(got, want) {
			t.Errorf("%v answered, want %v", got, want)
		}
	}

	await(t, s, "both addresses serve", serving("be1", "dyn/10.30.0.12", "dyn/10.30.0.13"))
	check("be1", "be2", "be3")

	// An operator's word about an address outlives its absence from DNS.
	_, err := s.API.Change(t.Context(), "drain", api.ChangeRequest{Member: "dyn/10.30.0.12", Who: "ann", WaitSeconds: patience.Seconds()})
	must(t, err)
	z.set("10.30.0.13", "10.30.0.14")
	await(t, s, "the new address serves", serving("be1", "dyn/10.30.0.13", "dyn/10.30.0.14"))
	check("be1", "be3", "be4")
	z.set("10.30.0.12", "10.30.0.14")
	await(t, s, "be2 is back, draining", func(st *api.Status) bool {
		return serving("be1", "dyn/10.30.0.14")(st) && st.Pools[0].Members[1].State == "draining"
	})
	z.set("10.30.0.13", "10.30.0.14")
	await(t, s, "be3 is back", serving("be1", "dyn/10.30.0.13", "dyn/10.30.0.14"))

	// The server dies, and brlb is restarted: the last answer holds.
	z.stop()
	s.Relay.ResetCounts()
	await(t, s, "the name is stale", name("stale"))
	check("be1", "be3", "be4")
	must(t, s.Kill())
	must(t, s.Start())
	await(t, s, "as before the restart", func(st *api.Status) bool {
		return serving("be1", "dyn/10.30.0.13", "dyn/10.30.0.14")(st) && name("stale")(st)
	})
	if n := s.Relay.FlowMods(); n != 0 {
		t.Errorf("%d flow-mods while no server answered", n)
	}
	check("be1", "be3", "be4")

	// A name that was never resolved leaves the rest serving.
	z.start(t, s.Hosts[3])
	must(t, s.WriteConfig(byName("nobody.example.org")))
	_, err = s.API.Reload(t.Context(), api.ReloadRequest{AllowShrink: true})
	must(t, err)
	st := await(t, s, "be1 alone", func(st *api.Status) bool { return serving("be1")(st) && name("unresolved")(st) })
	if n := st.Pools[0].Names[0]; !strings.HasPrefix(n.Problem, "NXDOMAIN") || !slices.ContainsFunc(st.Degraded, func(text string) bool {
		return strings.HasPrefix(text, "pool web: nobody.example.org is unresolved: NXDOMAIN")
	}) {
		t.Errorf("name %+v, degraded %q", n, st.Degraded)
	}
	check("be1")
}
