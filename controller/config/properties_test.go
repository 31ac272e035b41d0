package config

import (
	"fmt"
	"maps"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"brlb/health"
)

// write is the plainest file that means c: every setting, nothing derived.
func write(c *Config) []string {
	lines := []string{
		"bridge: " + c.Bridge,
		"run_dir: " + c.RunDir,
		"zone: " + fmt.Sprint(c.Zone),
		"miss: " + string(c.Miss),
		"start_deadline: " + c.StartDeadline.String(),
		"neighbour_refresh: " + c.NeighbourRefresh.String(),
		fmt.Sprintf("conntrack: {limit: %d%s}", c.Conntrack.Limit, writeTimeouts(c.Conntrack.Timeouts)),
		"dns: {min_ttl: " + c.DNS.MinTTL.String() + "}",
	}
	if c.MAC.IsSet() {
		lines = append(lines, "mac: "+c.MAC.String())
	}
	checks, pools, services := "checks:", "pools:", "services:"
	for _, k := range c.Checks {
		var own []string
		say := func(key, value string) {
			if value != "" {
				own = append(own, key+": "+strconv.Quote(value))
			}
		}
		if k.Port != 0 {
			own = append(own, fmt.Sprintf("port: %d", k.Port))
		}
		say("path", k.HTTP.Path)
		say("method", k.HTTP.Method)
		say("contains", k.HTTP.Contains)
		say("send", k.Send)
		say("expect", k.Expect)
		say("service", k.Service)
		say("sni", k.TLS.ServerName)
		if k.HTTP.Status != "" {
			own = append(own, "status: ["+k.HTTP.Status+"]")
		}
		checks += fmt.Sprintf("\n  %s: {type: %s, interval: %v, fast: %v, down: %v, timeout: %v, rise: %d, fall: %d, %s}",
			k.Name, k.Type, k.Interval, k.Fast, k.Down, k.Timeout, k.Rise, k.Fall, strings.Join(own, ", "))
	}
	for _, p := range c.Pools {
		pools += fmt.Sprintf("\n  %s:\n    id: %d\n    slots: %d\n    check: %s\n    from_ovsdb: %t\n    layout: %s", p.Name, p.ID, p.Slots, p.Check, p.FromOVSDB, p.Layout)
		pools += fmt.Sprintf("\n    on_down: %s\n    on_all_down: %s\n    panic_below: %d%%", p.OnDown, p.OnAllDown, p.PanicBelow)
		if p.BFD != (BFD{}) {
			pools += fmt.Sprintf("\n    bfd: {min_tx: %v, min_rx: %v, mult: %d}", p.BFD.MinTx, p.BFD.MinRx, p.BFD.Mult)
		}
		if p.HoldDown.After > 0 {
			pools += fmt.Sprintf("\n    hold_down: {after: %d, within: %v}", p.HoldDown.After, p.HoldDown.Within)
		}
		if p.Layout == LayoutV2 {
			pools += fmt.Sprintf("\n    balance_slack: %d", p.BalanceSlack)
		}
		for i, m := range p.Anchor {
			if i == 0 {
				pools += "\n    anchor:"
			}
			pools += fmt.Sprintf("\n      %s: {address: %s, weight: %d}", m.Name, m.Address, m.Weight)
		}
		for i, pin := range p.Pins {
			if i == 0 {
				pools += "\n    pins:"
			}
			m, _ := find(p.Members, func(m Member) bool { return m.Key() == pin.Key })
			pools += fmt.Sprintf("\n      %d: %s", pin.Slot, m.Name)
		}
		if p.Zone != 0 {
			pools += fmt.Sprintf("\n    conntrack: {zone: %d, limit: %d%s}", p.Zone, p.Conntrack.Limit, writeTimeouts(p.Conntrack.Timeouts))
		}
		pools += "\n    members:"
		for _, m := range p.Members {
			via := ""
			if m.Via.IsValid() {
				via = ", via: " + m.Via.String()
			}
			pools += fmt.Sprintf("\n      %s: {address: %s, weight: %d%s}", m.Name, m.Address, m.Weight, via)
		}
		for _, n := range p.Names {
			pools += fmt.Sprintf("\n      %s: {address: '%s:%d', weight: %d}", n.Name, n.Host, n.Port, n.Weight)
		}
	}
	for _, s := range c.Services {
		var addresses, ports []string
		for _, a := range s.Addresses {
			addresses = append(addresses, a.String())
		}
		for _, p := range s.Ports {
			ports = append(ports, p.String())
		}
		services += fmt.Sprintf("\n  %s: {address: [%s], ports: [%s], pool: %s}", s.Name, strings.Join(addresses, ", "), strings.Join(ports, ", "), s.Pool)
	}
	return append(lines, checks, pools, services)
}

func writeTimeouts(timeouts map[string]time.Duration) string {
	if timeouts == nil {
		return ""
	}
	var states []string
	for state, timeout := range timeouts {
		states = append(states, fmt.Sprintf("%s: %v", state, timeout))
	}
	return ", timeouts: {" + strings.Join(states, ", ") + "}"
}

func names(t *rapid.T, label string, least int) []string {
	name := rapid.StringMatching(`[a-zA-Z][a-zA-Z0-9._-]{0,5}`).Filter(func(s string) bool { return !strings.EqualFold(s, "null") })
	return rapid.SliceOfNDistinct(name, least, 5, rapid.ID[string]).Draw(t, label)
}

func generateCheck(t *rapid.T) health.Check {
	text := rapid.StringMatching(`[a-z: ]{0,8}`)
	ms := func(label string, low, high int) time.Duration {
		return time.Duration(rapid.IntRange(low, high).Draw(t, label)) * time.Millisecond
	}
	k := health.Check{Type: rapid.SampledFrom(checkTypes).Draw(t, "type")}
	k.Timeout = ms("timeout", 10, 1000)
	k.Interval = k.Timeout + ms("interval", 0, 3000)
	k.Fast = k.Timeout + (k.Interval-k.Timeout)/2
	k.Down = k.Timeout + ms("down", 0, 3000)
	k.Rise, k.Fall = rapid.IntRange(1, 100).Draw(t, "rise"), rapid.IntRange(1, 100).Draw(t, "fall")
	switch k.Type {
	case health.HTTP, health.HTTPS:
		k.HTTP = health.HTTPOptions{Path: "/x", Method: "GET", Status: "200-204,301", Contains: text.Draw(t, "contains")}
	case health.UDP:
		k.Send = "x" + text.Draw(t, "send")
		k.Expect = text.Draw(t, "expect")
	case health.TCP:
		k.Send, k.Expect = text.Draw(t, "send"), text.Draw(t, "expect")
	case health.GRPC, health.GRPCS:
		k.Service = text.Draw(t, "service")
	case health.Exec, PortCheck:
		k.Type = health.TCP // files, and a check without times, are the business of other tests
	}
	if k.Type == health.HTTPS || k.Type == health.GRPCS {
		k.TLS.ServerName = rapid.StringMatching(`[a-z.]{0,8}`).Draw(t, "sni")
	}
	return k
}

// generate draws a Config that is valid, with lists in any order.
func generate(t *rapid.T) *Config {
	seconds := rapid.Map(rapid.IntRange(1, 3600), func(n int) time.Duration { return time.Duration(n) * time.Second })
	c := Defaults()
	c.Zone = rapid.Uint16Range(1, 65535).Draw(t, "zone")
	c.Miss = rapid.SampledFrom([]Miss{MissNormal, MissDrop}).Draw(t, "miss")
	c.StartDeadline = seconds.Draw(t, "start deadline")
	c.Conntrack.Limit = rapid.IntRange(0, MaxConntrackLimit).Draw(t, "conntrack limit")
	if timeouts := rapid.MapOf(rapid.SampledFrom(conntrackStates), seconds).Draw(t, "conntrack timeouts"); len(timeouts) > 0 {
		c.Conntrack.Timeouts = timeouts
	}
	c.NeighbourRefresh = seconds.Draw(t, "refresh")
	c.DNS.MinTTL = seconds.Draw(t, "min ttl")
	c.MAC[0], c.MAC[5] = 2, rapid.Byte().Draw(t, "mac")
	for _, name := range names(t, "checks", 1) {
		k := Check{Name: name, Check: generateCheck(t)}
		if k.Type != health.ICMP {
			k.Port = rapid.Uint16().Draw(t, "port")
		}
		c.Checks = append(c.Checks, k)
	}
	for i, name := range names(t, "pools", 1) {
		p := Pool{Name: name, ID: uint16(i + 1), OnDown: OnDownReset, OnAllDown: OnAllDownDrop, Affinity: AffinityNone, MinActive: 1, Slots: 64 << rapid.IntRange(0, 10).Draw(t, "slots"), Layout: LayoutV2, Mode: ModeNAT}
		p.Check = rapid.SampledFrom(c.Checks).Draw(t, "check").Name
		if rapid.Bool().Draw(t, "rules") {
			p.OnDown = rapid.SampledFrom([]OnDown{OnDownReset, OnDownKeep}).Draw(t, "on down")
			p.OnAllDown, p.PanicBelow = OnAllDownKeep, rapid.IntRange(0, 100).Draw(t, "panic below")
			p.BFD = BFD{10 * time.Millisecond, seconds.Draw(t, "min_rx")%(10*time.Second) + time.Second/2, 7}
			p.HoldDown = HoldDown{rapid.IntRange(1, MaxFalls).Draw(t, "after"), seconds.Draw(t, "within")}
		}
		if own := c.Zone ^ p.ID; own != 0 && rapid.Bool().Draw(t, "own zone") {
			p.Zone = own
			p.Conntrack.Limit = rapid.IntRange(0, MaxConntrackLimit).Draw(t, "pool's limit")
			p.Conntrack.Timeouts = maps.Clone(c.Conntrack.Timeouts)
		}
		p.FromOVSDB = rapid.Bool().Draw(t, "from ovsdb")
		for j, name := range names(t, "members", 1) {
			m := Member{Name: name, Weight: rapid.Uint32Range(0, 65535).Draw(t, "weight")}
			m.Address = netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 30, byte(i), byte(j)}), rapid.Uint16Range(1, 65535).Draw(t, "port"))
			if j > 0 && rapid.Bool().Draw(t, "by name") {
				host := rapid.StringMatching(`[a-z][a-z0-9_]{0,5}(\.[a-z]{1,5}){0,2}`).Draw(t, "host")
				m.Address = netip.AddrPort{}
				p.Names = append(p.Names, Name{Member: m, Host: host, Port: uint16(j)})
				continue
			}
			if rapid.Bool().Draw(t, "routed") {
				m.Via = netip.AddrFrom4([4]byte{10, 40, 0, byte(j)})
			}
			p.Members = append(p.Members, m)
		}
		p.Layout = rapid.SampledFrom([]string{LayoutV2, LayoutSticky, "v1", "rendezvous"}).Draw(t, "layout")
		if p.Layout == LayoutV2 {
			p.BalanceSlack = rapid.Uint8Range(0, 1).Draw(t, "slack")
			for _, m := range p.Members {
				p.Anchor = append(p.Anchor, Member{Name: m.Name, Address: m.Address, Weight: max(1, m.Weight)})
			}
			p.Anchor = p.Anchor[:rapid.IntRange(0, len(p.Anchor)).Draw(t, "anchor")]
			if len(p.Anchor) == 0 {
				p.Anchor = nil
			}
		}
		for _, slot := range rapid.SliceOfNDistinct(rapid.IntRange(0, p.Slots-1), 0, 3, rapid.ID[int]).Draw(t, "pins") {
			p.Pins = append(p.Pins, Pin{Slot: slot, Key: rapid.SampledFrom(p.Members).Draw(t, "pinned").Key()})
		}
		c.Pools = append(c.Pools, p)
	}
	for i, name := range names(t, "services", 0) {
		s := Service{Name: name, OtherPorts: OtherPortsReject, Pool: rapid.SampledFrom(c.Pools).Draw(t, "pool").Name}
		for _, b := range rapid.SliceOfNDistinct(rapid.Byte(), 1, 3, rapid.ID[byte]).Draw(t, "vips") {
			s.Addresses = append(s.Addresses, netip.AddrFrom4([4]byte{10, 20, byte(i), b}))
		}
		for _, n := range rapid.SliceOfNDistinct(rapid.Uint16Range(1, 65535), 1, 3, rapid.ID[uint16]).Draw(t, "ports") {
			s.Ports = append(s.Ports, Port{n, n, rapid.SampledFrom([]Proto{ProtoTCP, ProtoUDP, ProtoSCTP}).Draw(t, "proto")})
		}
		c.Services = append(c.Services, s)
	}
	return c
}

// TestWriteAndRead: a Config that is written down is read back the same, and the
// order of the file does not matter.
func TestWriteAndRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := generate(t)
		lines := rapid.Permutation(write(want)).Draw(t, "order")
		text := strings.Join(lines, "\n") + "\n"
		got, err := Parse("f", []byte(text))
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		for _, k := range got.Checks {
			if err := k.Validate(); err != nil {
				t.Fatalf("check %s: %v", k.Name, err)
			}
		}
		want.addDefaultCheck()
		want.sort()
		if !got.Equal(want) {
			t.Fatalf("got %+v\nwant %+v\n%s", got, want, text)
		}
	})
}
