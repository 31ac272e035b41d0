package config

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"brlb/health"
)

// compare shows how two configurations differ.
func compare(t *testing.T, got, want *Config) {
	t.Helper()
	comparers := cmp.Options{
		cmp.Comparer(func(a, b netip.Addr) bool { return a == b }),
		cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }),
		cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
	}
	if diff := cmp.Diff(want, got, comparers); diff != "" {
		t.Errorf("configuration differs (-want +got):\n%s", diff)
	}
	if !got.Equal(want) {
		t.Errorf("Equal is false")
	}
}

func parse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatalf("Parse: %v\n%s", err, text)
	}
	return c
}

func files(t testing.TB, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("no files %s (%v)", pattern, err)
	}
	return names
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestGoodFiles(t *testing.T) {
	for _, name := range files(t, "testdata/good/*.yaml") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			c, err := Load(name)
			if err != nil {
				t.Fatal(err)
			}
			again, err := Parse(name, read(t, name))
			if err != nil {
				t.Fatal(err)
			}
			compare(t, again, c)
		})
	}
}

// TestBadFiles: a bad file says what it is bad for, line by line, at its top.
func TestBadFiles(t *testing.T) {
	for _, name := range files(t, "testdata/bad/*.yaml") {
		t.Run(filepath.Base(name), func(t *testing.T) {
			var want []string
			for line := range strings.Lines(string(read(t, name))) {
				message, ok := strings.CutPrefix(line, "# want: ")
				if !ok {
					break
				}
				want = append(want, name+":"+strings.TrimSpace(message))
			}
			c, err := Load(name)
			if err == nil {
				t.Fatal("no error")
			}
			if c != nil {
				t.Error("a Config beside an error")
			}
			if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("errors differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEverySetting(t *testing.T) {
	spare := Pool{
		Name: "spare", ID: 1, Slots: DefaultSlots, Layout: LayoutV2, Mode: ModeNAT, Check: "tcp", OnDown: OnDownReset, OnAllDown: OnAllDownDrop, MinActive: 1, Affinity: AffinityNone,
		Members: []Member{{Name: "s", Address: netip.MustParseAddrPort("10.30.0.19:80"), Weight: 1}},
	}
	c, err := Load("testdata/good/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	compare(t, c, &Config{
		Bridge: "br1",
		RunDir: "/run/ovs",
		OVSDB:  "tcp:ovs.example.org:6640",
		OpenFlow: OpenFlow{
			Mode:     ModeController,
			Listen:   "tcp:0.0.0.0:6653",
			Target:   "tcp:192.0.2.1:6653",
			Insecure: true,
		},
		API:              API{Socket: "/run/x.sock"},
		MAC:              MAC{2, 0, 0x5e, 0, 1, 2},
		Zone:             7,
		Gateways:         []netip.Prefix{netip.MustParsePrefix("10.30.0.1/24"), netip.MustParsePrefix("10.40.0.1/16")},
		Miss:             MissDrop,
		StartDeadline:    0,
		NeighbourRefresh: time.Minute,
		Conntrack: Conntrack{
			Limit:    200000,
			Timeouts: map[string]time.Duration{"tcp_established": 2 * time.Hour, "udp_multiple": 3 * time.Minute},
		},
		DNS: DNS{
			Servers: []netip.AddrPort{netip.MustParseAddrPort("10.30.0.53:53"), netip.MustParseAddrPort("[::1]:5353")},
			MinTTL:  time.Minute,
		},
		ProbeAllow:   []netip.Prefix{netip.MustParsePrefix("10.30.0.0/16"), netip.MustParsePrefix("10.50.0.0/24")},
		ProbeSource4: netip.MustParseAddr("10.30.0.2"),
		ProbeSource6: netip.MustParseAddr("2001:db8::2"),
		ProbeDevice:  "br1",
		ProbeNetns:   "/var/run/netns/probes",
		AllowExec:    true,
		Checks: []Check{
			{Name: "agent", Port: 9000, Check: times(health.Check{Type: health.AgentLine, Send: "hello\n"})},
			{Name: "banner", Check: times(health.Check{Type: health.TCP, Send: "\x00\xff", Expect: "220 "})},
			{Name: "calls", Check: times(health.Check{Type: health.GRPC, Service: "shop.v1.Cart"})},
			{Name: "dns", Check: times(health.Check{Type: health.UDP, Send: "q", Expect: "\x81\x80"})},
			{Name: "ping", Check: times(health.Check{Type: health.ICMP})},
			{Name: "script", Check: times(health.Check{Type: health.Exec, Command: "/bin/true"})},
			{Name: "secret", Check: times(health.Check{Type: health.GRPCS, TLS: health.TLSOptions{ServerName: "a.example.org", SkipVerify: true}})},
			{Name: "shop", Check: times(health.Check{
				Type: health.HTTPS,
				HTTP: health.HTTPOptions{
					Method: "GET", Path: "/", Status: "200-399", Headers: "A: 1\nB: x: y", Contains: "ready", Match: "^o?k", AgentHeader: "X-Agent",
				},
				TLS: health.TLSOptions{ServerName: "shop.example.org"},
			})},
			{Name: "tcp", Check: times(health.Check{Type: health.TCP})},
			{Name: "web", Check: health.Check{
				Type:     health.HTTP,
				HTTP:     health.HTTPOptions{Path: "/a?b=c", Method: "HEAD", Host: "www.example.org:8080", Status: "200,301-302"},
				Interval: 2 * time.Second,
				Fast:     500 * time.Millisecond,
				Down:     10 * time.Second,
				Timeout:  300 * time.Millisecond,
				Rise:     1,
				Fall:     5,
			}},
		},
		Pools: []Pool{spare, {
			Name:       "web",
			ID:         65535,
			Slots:      65536,
			Layout:     "v1",
			Mode:       ModeNAT,
			Check:      "web",
			OnDown:     OnDownKeep,
			OnAllDown:  OnAllDownKeep,
			Affinity:   AffinitySource,
			MinActive:  2,
			PanicBelow: 50,
			SlowStart:  30 * time.Second,
			HoldDown:   HoldDown{After: 3, Within: 5 * time.Minute},
			Members: []Member{
				{Name: "BE.1_x-y", Address: netip.MustParseAddrPort("10.30.0.11:8080"), Weight: 1},
				{Name: "be2", Address: netip.MustParseAddrPort("10.30.0.12:8080"), Weight: 0, Via: netip.MustParseAddr("10.40.0.2")},
			},
			Names: []Name{
				{Member: Member{Name: "a", Weight: 1}, Host: "backend", Port: 81},
				{Member: Member{Name: "dyn", Weight: 3, Via: netip.MustParseAddr("10.40.0.2")}, Host: "web_1.example.org", Port: 8080},
			},
			Pins: []Pin{{Slot: 4, Key: "10.30.0.77:81"}},
		}},
		Services: []Service{
			{
				Name:       "api",
				Addresses:  []netip.Addr{netip.MustParseAddr("10.20.0.100")},
				Ports:      []Port{{8080, 8080, ProtoTCP}},
				Pool:       "web",
				OtherPorts: OtherPortsDrop,
			},
			{
				Name:        "web",
				Addresses:   []netip.Addr{netip.MustParseAddr("10.20.0.100"), netip.MustParseAddr("10.20.0.101")},
				Ports:       []Port{{80, 80, ProtoTCP}, {443, 443, ProtoTCP}},
				Pool:        "web",
				Backup:      []string{"spare"},
				ReturnAfter: 30 * time.Second,
				OtherPorts:  OtherPortsDrop,
			},
		},
	})
}

// times are those of a check that names none.
func times(c health.Check) health.Check {
	c.Interval, c.Fast, c.Down, c.Timeout = time.Second, 500*time.Millisecond, time.Second, 500*time.Millisecond
	c.Rise, c.Fall = 2, 3
	return c
}

func TestDefaults(t *testing.T) {
	compare(t, parse(t, "{}"), Defaults())
	compare(t, parse(t, "bridge: br-lb\nchecks:\npools:\nservices:\nopenflow:\napi: {}\n"), Defaults())
	d := Defaults()
	for got, want := range map[string]string{
		d.OVSDB:           "unix:/var/run/openvswitch/db.sock",
		d.OpenFlow.Listen: "unix:/var/run/openvswitch/brlb-br-lb.sock",
		d.OpenFlow.Target: d.OpenFlow.Listen,
		d.API.Socket:      "/run/brlb/br-lb.sock",
		d.API.HTTP:        "127.0.0.1:9290",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestDerivedSettings(t *testing.T) {
	c, err := Load("testdata/good/service-mode.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := OpenFlow{Mode: ModeService, Target: "unix:/run/ovs/br7.mgmt"}
	if c.OpenFlow != want || c.OVSDB != "unix:/run/ovs/db.sock" || c.API.Socket != "/run/brlb/br7.sock" {
		t.Errorf("got %+v, %s, %s", c.OpenFlow, c.OVSDB, c.API.Socket)
	}

	c, err = Load("testdata/good/short-interval.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const ms = time.Millisecond
	for name, want := range map[string][4]time.Duration{
		"quick": {200 * ms, 100 * ms, 200 * ms, 100 * ms},
		"slow":  {1000 * ms, 800 * ms, 1000 * ms, 800 * ms},
	} {
		k, _ := c.Check(name)
		if got := [4]time.Duration{k.Interval, k.Fast, k.Down, k.Timeout}; got != want {
			t.Errorf("%s: interval, fast, down, timeout are %v, want %v", name, got, want)
		}
	}
}

// TestDefaultCheck: the check named tcp exists as soon as a pool means it.
func TestDefaultCheck(t *testing.T) {
	pool := "pools: {web: {id: 1, members: {a: 10.0.0.1:80}}}\n"
	if k, ok := parse(t, pool).Check("tcp"); !ok || k.Type != health.TCP || k.Interval != DefaultInterval {
		t.Errorf("implicit check: %+v, %v", k, ok)
	}
	if k, _ := parse(t, pool+"checks: {tcp: {rise: 7}}").Check("tcp"); k.Rise != 7 {
		t.Errorf("the file's own check is ignored: %+v", k)
	}
	if c := Defaults(); len(c.Checks) != 0 {
		t.Errorf("checks without pools: %+v", c.Checks)
	}
}

func TestLookup(t *testing.T) {
	c := parse(t, Example())
	p, ok := c.Pool("web")
	if !ok || p.ID != 1 {
		t.Errorf("pool web: %+v, %v", p, ok)
	}
	m, ok := p.Member("be3")
	if !ok || m.Weight != 2 || m.Key() != "10.40.0.13:8080" {
		t.Errorf("member be3: %+v, %v", m, ok)
	}
	if s, ok := c.Service("tls"); !ok || s.Ports[0].String() != "443/tcp" {
		t.Errorf("service tls: %+v, %v", s, ok)
	}
	for what, found := range map[string]bool{
		"pool":    second(c.Pool("none")),
		"check":   second(c.Check("none")),
		"service": second(c.Service("none")),
		"member":  second(p.Member("none")),
	} {
		if found {
			t.Errorf("found a %s that is not there", what)
		}
	}
}

func second[T any](_ T, ok bool) bool { return ok }

func TestEqual(t *testing.T) {
	a, b := parse(t, Example()), parse(t, Example())
	if !a.Equal(b) {
		t.Error("the same text, and not equal")
	}
	b.Pools[1].Members[0].Weight++
	if a.Equal(b) {
		t.Error("another weight, and equal")
	}
}

// TestExampleShowsDefaults: switching on every commented setting changes nothing.
func TestExampleShowsDefaults(t *testing.T) {
	commented := regexp.MustCompile(`(?m)^( *)#([^ #\n])`)
	if n := len(commented.FindAllString(Example(), -1)); n < 20 {
		t.Errorf("only %d commented settings", n)
	}
	compare(t, parse(t, commented.ReplaceAllString(Example(), "$1$2")), parse(t, Example()))
}

// TestExampleIsComplete: every key that brlb knows is in the example. The keys
// are those that an unknown one is answered with.
func TestExampleIsComplete(t *testing.T) {
	for _, text := range []string{
		"%s: 1",
		"openflow: {%s: 1}",
		"api: {%s: 1}",
		"checks: {a: {%s: 1}}",
		"pools: {a: {%s: 1, id: 1, members: {a: 10.0.0.1:1}}}",
		"pools: {a: {id: 1, members: {a: {address: 10.0.0.1:1, %s: 1}}}}",
		"services: {a: {%s: 1}}",
	} {
		_, err := Parse("test.yaml", fmt.Appendf(nil, text, "nothing-like-it"))
		if err == nil {
			t.Fatalf("%s: no error", text)
		}
		list := regexp.MustCompile(`unknown key; known: (.*)`).FindStringSubmatch(err.Error())
		if list == nil {
			t.Fatalf("%s: %v", text, err)
		}
		for key := range strings.SplitSeq(list[1], ", ") {
			if !regexp.MustCompile(`(?m)^ *#? ?` + key + `:`).MatchString(Example()) {
				t.Errorf("the example has no %s", key)
			}
		}
	}
}

func TestErrors(t *testing.T) {
	_, err := Parse("brlb.yaml", []byte("zone: 0\nmiss: x\n"))
	var all Errors
	if !errors.As(err, &all) || len(all) != 2 {
		t.Fatalf("got %T %v", err, err)
	}
	var first *Error
	if !errors.As(err, &first) || *first != (Error{"brlb.yaml", 1, 7, "zone", "0 is out of range: 1 to 65535"}) {
		t.Errorf("got %+v", first)
	}
	if got := all[1].Error(); got != `brlb.yaml:2:7: miss: "x" is not supported: this version knows normal and drop` {
		t.Errorf("got %s", got)
	}
}

func TestErrorsAreBounded(t *testing.T) {
	var text strings.Builder
	for i := range 50 {
		fmt.Fprintf(&text, "k%d: 1\n", i)
	}
	_, err := Parse("brlb.yaml", []byte(text.String()))
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != maxErrors+1 || lines[maxErrors] != "brlb.yaml: 30 more errors; mend these first" {
		t.Errorf("%d lines, the last is %s", len(lines), lines[len(lines)-1])
	}

	long := strings.Repeat("x", 5000)
	_, err = Parse("brlb.yaml", []byte(long+": 1\nmiss: "+long+"\n"))
	for line := range strings.Lines(err.Error()) {
		if len(line) > 400 {
			t.Errorf("an error of %d bytes", len(line))
		}
	}
}

func TestSplitEndpoint(t *testing.T) {
	for endpoint, want := range map[string][2]string{
		"unix:/run/x.sock":   {"unix", "/run/x.sock"},
		"tcp:127.0.0.1:6653": {"tcp", "127.0.0.1:6653"},
		"tcp:[::1]:6653":     {"tcp", "[::1]:6653"},
		"ssl:127.0.0.1:6653": {},
		"":                   {},
	} {
		if network, address := SplitEndpoint(endpoint); network != want[0] || address != want[1] {
			t.Errorf("%s: got %q, %q", endpoint, network, address)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	known := []string{"id", "slots", "layout", "members", "check"}
	for word, want := range map[string]string{
		"slot":    "did you mean slots?",
		"mebmers": "did you mean members?",
		"CHECK":   "did you mean check?",
		"ip":      "did you mean id?",
		"xy":      "known: id, slots, layout, members, check",
		"weight":  "known: id, slots, layout, members, check",
	} {
		if got := didYouMean(word, known); got != want {
			t.Errorf("%s: %s", word, got)
		}
	}
	if got := didYouMean("x", nil); got != "there is none" {
		t.Error(got)
	}
	if n := edits("abcdef", "abdcef"); n != 1 {
		t.Errorf("a swap costs %d", n)
	}
}
