package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"brlb/controller/api"
	"brlb/controller/config"
	"brlb/controller/conntrack"
	"brlb/controller/pipeline"
	"brlb/controller/state"
	"brlb/ovsdb/unixctl"
)

// What is read of ofproto/trace: registers in its last lines, and actions.
var (
	finalFlow     = regexp.MustCompile(`(?m)^Final flow: .*$`)
	slotRegister  = regexp.MustCompile(`\breg1=(0x[0-9a-f]+|[0-9]+)`)
	ownerRegister = regexp.MustCompile(`\breg2=(0x[0-9a-f]+|[0-9]+)`)
	placeRegister = regexp.MustCompile(`\breg4=(0x[0-9a-f]+|[0-9]+)`)
	// The switch learns nothing in a trace: this would be the connection's member.
	heirRegister = regexp.MustCompile(`load:(0x[0-9a-f]+)->NXM_NX_REG7\[\]\s+learn\(.*\s+.*learn action ignored`)
	actionsLine  = regexp.MustCompile(`(?m)^Datapath actions: (.*)$`)
	newSource    = regexp.MustCompile(`\bnat\(src=([0-9a-f.:]+)\)`)
)

// toSlots is in the trace of a packet whose slot has been computed.
var toSlots = fmt.Sprintf("goto_table:%d\n", pipeline.TableSlots)

// traceSwitch asks the switch where the first packet of a connection goes.
func (l *loop) traceSwitch(ctx context.Context, v *view, offline *api.Trace, t pipeline.Tuple, port uint32) (*api.SwitchTrace, error) {
	if v.sw.session == 0 {
		return nil, errors.New("the switch is not connected")
	}
	args := append([]string{v.snapshot.Bridge, traceFlow(v.snapshot, offline, t, port)}, pipeline.TraceStates(v.snapshot, v.snapshot.Pool(offline.Pool), t.Proto)...)
	text, err := ask(ctx, v.config.RunDir, "ofproto/trace", args...)
	if err != nil {
		return nil, err
	}
	answer := &api.SwitchTrace{Slot: -1, Number: -1, Text: text}
	if final := finalFlow.FindAllString(text, -1); len(final) > 0 {
		last := final[len(final)-1]
		answer.Slot, answer.Number = register(slotRegister, last), register(ownerRegister, last)
		if heir := register(heirRegister, text); heir > 0 {
			answer.Number = heir
		}
		answer.Learned = register(placeRegister, last) == pipeline.Placed
	}
	if lines := actionsLine.FindAllStringSubmatch(text, -1); len(lines) > 0 {
		answer.Actions = lines[len(lines)-1][1]
		if asked := lines[0][1]; offline.Fragment != "" && answer.Number <= 0 && strings.HasPrefix(asked, "ct(") {
			answer.Tracked, answer.Actions = true, asked // what comes after, a trace cannot know
		}
	}
	pool := v.snapshot.Pool(offline.Pool)
	for i := range pool.Members {
		if m := &pool.Members[i]; int(m.Number) == answer.Number && answer.Number > 0 {
			answer.Member = m.Name
		}
	}
	// A register that is 0 is not printed.
	if answer.Slot < 0 && strings.Contains(text, toSlots) {
		answer.Slot = 0
	}
	if source := newSource.FindStringSubmatch(text); source != nil {
		answer.Hairpin = source[1]
	}
	answer.Agrees = agrees(offline, answer)
	answer.Entry = l.conntrackEntry(ctx, v, t)
	return answer, nil
}

// agrees says whether the switch does what was computed.
func agrees(computed *api.Trace, t *api.SwitchTrace) bool {
	if computed.Fragment == api.FragmentFollows || computed.Fragment == api.FragmentDropped {
		return t.Tracked
	}
	return (t.Learned || t.Slot == computed.Slot) && t.Member == computed.Member && t.Hairpin == computed.Hairpin
}

// traceFlow is the packet that was asked about, as ofproto/trace reads it.
func traceFlow(s *state.Snapshot, offline *api.Trace, t pipeline.Tuple, port uint32) string {
	word, addresses, ports := "", "nw_src=%s,nw_dst=%s", ""
	switch protoWord(t.Proto) {
	case config.ProtoTCP:
		word, ports = "tcp", ",tcp_src=%d,tcp_dst=%d,tcp_flags=syn"
	case config.ProtoUDP:
		word, ports = "udp", ",udp_src=%d,udp_dst=%d"
	case config.ProtoSCTP:
		word, ports = "sctp", ",sctp_src=%d,sctp_dst=%d"
	}
	if t.Dst.Addr().Is6() {
		word, addresses = word+"6", "ipv6_src=%s,ipv6_dst=%s"
	}
	flow := fmt.Sprintf("in_port=%d,%s,dl_src=02:00:00:00:00:fe,dl_dst=%s,nw_ttl=64,", port, word, s.MAC) +
		fmt.Sprintf(addresses, t.Src.Addr(), t.Dst.Addr())
	if offline.Fragment != "" {
		flow += ",nw_frag=later"
	} else {
		flow += fmt.Sprintf(ports, t.Src.Port(), t.Dst.Port())
	}
	if offline.VLAN != 0 {
		flow += fmt.Sprintf(",dl_vlan=%d", offline.VLAN)
	}
	return flow
}

func protoWord(number uint8) config.Proto {
	for proto, n := range protoNumbers {
		if n == number {
			return proto
		}
	}
	return ""
}

func register(r *regexp.Regexp, text string) int {
	found := r.FindStringSubmatch(text)
	if found == nil {
		return -1
	}
	value, err := strconv.ParseUint(found[1], 0, 32)
	if err != nil {
		return -1
	}
	return int(value)
}

// ingress finds the port by name; without one, that of the client if it is a
// member or in a network of members, else the first that leads to no member.
func ingress(s *state.Snapshot, client netip.Addr, name string) (state.Port, error) {
	if name == "" {
		return likelyIngress(s, client)
	}
	for _, p := range s.Ports {
		if p.Name == name {
			return p, nil
		}
	}
	return state.Port{}, fmt.Errorf("bridge %s has no port %.60q; it has %s", s.Bridge, name, portNames(s))
}

func likelyIngress(s *state.Snapshot, client netip.Addr) (state.Port, error) {
	gateway, beside := pipeline.Gateway(s.Gateways, client)
	toMembers, own, near := map[uint32]bool{}, uint32(0), uint32(0)
	for i := range s.Pools {
		for j := range s.Pools[i].Members {
			m := &s.Pools[i].Members[j]
			toMembers[m.Next.Port] = true
			if m.Address.Addr() == client {
				own = m.Next.Port
			}
			if g, _ := pipeline.Gateway(s.Gateways, m.Address.Addr()); beside && g == gateway {
				near = m.Next.Port
			}
		}
	}
	likely := cmp.Or(own, near)
	for _, p := range s.Ports {
		if p.Number == likely || likely == 0 && !toMembers[p.Number] && p.Name != s.Bridge {
			return p, nil
		}
	}
	return state.Port{}, fmt.Errorf("which port the packet enters by is not clear: name one of %s", portNames(s))
}

func portNames(s *state.Snapshot) string {
	names := make([]string, len(s.Ports))
	for i := range s.Ports {
		names[i] = s.Ports[i].Name
	}
	return strings.Join(names, ", ")
}

// conntrackEntry returns the line of the connection in the switch's conntrack
// table, "" if there is none.
func (l *loop) conntrackEntry(ctx context.Context, v *view, t pipeline.Tuple) string {
	ctx, cancel := context.WithTimeout(ctx, unixctlTimeout)
	defer cancel()
	switchd := unixctl.Daemon(v.config.RunDir, "ovs-vswitchd")
	defer switchd.Close()
	wanted := conntrack.Tuple{Src: t.Src.Addr(), Dst: t.Dst.Addr(), SrcPort: t.Src.Port(), DstPort: t.Dst.Port()}
	entry := ""
	err := switchd.Lines(ctx, func(line []byte) error {
		if e, err := conntrack.Parse(line); err == nil && e.Proto == t.Proto && e.Orig == wanted {
			entry = string(line)
		}
		return nil
	}, "dpctl/dump-conntrack", fmt.Sprintf("zone=%d", cmp.Or(v.snapshot.VIPZones()[t.Dst.Addr()], v.snapshot.Zone)))
	if err != nil {
		l.opts.Logger.Debug("the connection table cannot be read", "err", err)
	}
	return entry
}
