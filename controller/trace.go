package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
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

// Trace implements api.Backend: where a connection goes, computed here and,
// beside it, by the switch.
func (l *loop) Trace(ctx context.Context, req api.TraceRequest) (*api.Trace, error) {
	v := l.view.Load()
	trace, t, err := traceOffline(v.snapshot, req)
	if err != nil {
		return nil, err
	}
	trace.Switch, err = l.traceSwitch(ctx, v, trace, t, req.InPort, req.VLAN)
	if err != nil {
		trace.SwitchError = err.Error()
	}
	return trace, nil
}

// TraceFile answers a trace from a configuration alone, as if all its members
// were active.
func TraceFile(cfg *config.Config, req api.TraceRequest) (*api.Trace, error) {
	trace, _, err := traceOffline(state.AllActive(cfg), req)
	return trace, err
}

func traceOffline(s *state.Snapshot, req api.TraceRequest) (*api.Trace, pipeline.Tuple, error) {
	var none pipeline.Tuple
	src, err := netip.ParseAddr(req.Src)
	if err != nil {
		return nil, none, badRequest(http.StatusBadRequest, "source %.60q is not an address", req.Src)
	}
	proto := config.Proto(cmp.Or(req.Proto, string(config.ProtoTCP)))
	number, known := protoNumbers[proto]
	if !known {
		return nil, none, badRequest(http.StatusBadRequest, "protocol %.60q is not known: tcp, udp and sctp are", req.Proto)
	}
	service, dst, err := serviceOf(s, src, proto, req)
	if err != nil {
		return nil, none, err
	}
	pool := s.Pool(service.Pool)
	t := pipeline.Tuple{Proto: number, Src: netip.AddrPortFrom(src, req.SrcPort), Dst: dst}
	hash, slot := pipeline.Slot(pool, t)
	trace := &api.Trace{
		Flow: fmt.Sprintf("%s %s -> %s", proto, t.Src, t.Dst), Service: service.Name,
		Pool: pool.Name, PoolID: pool.ID, Affinity: string(pool.Affinity), Hash: fmt.Sprintf("0x%08x", hash), Slot: slot,
	}
	if owner := pool.Owner(slot); owner != nil {
		trace.Member, trace.Address = owner.Name, owner.ID.Key
	}
	if pool.Moving != nil {
		leaving := pool.Moving.From[slot]
		if before := pool.Member(leaving.Key); before != nil {
			trace.MovingFrom = before.Name
			if !leaving.Open {
				trace.Member, trace.Address = before.Name, before.ID.Key
			}
		}
	}
	return trace, t, nil
}

// protoNumbers are the protocols that a trace may ask for.
var protoNumbers = map[config.Proto]uint8{config.ProtoTCP: 6, config.ProtoUDP: 17, config.ProtoSCTP: 132}

// serviceOf finds the service that a request means, and the address and port of
// it. A service of one port goes before one of all protocols.
func serviceOf(s *state.Snapshot, src netip.Addr, proto config.Proto, req api.TraceRequest) (*state.Service, netip.AddrPort, error) {
	type match struct {
		service *state.Service
		dst     netip.AddrPort
	}
	var exact, any []match
	for i := range s.Services {
		for _, addr := range s.Services[i].Addresses {
			if addr.Is6() != src.Is6() || req.Dst != "" && req.Dst != addr.String() {
				continue
			}
			for _, port := range s.Services[i].Ports {
				number := cmp.Or(req.DstPort, port.First)
				found := match{&s.Services[i], netip.AddrPortFrom(addr, number)}
				switch {
				case port.Proto == config.ProtoAny && number != 0:
					any = append(any, found)
				case port.Proto == proto && port.Contains(proto, number):
					exact = append(exact, found)
				}
			}
		}
	}
	found := exact
	if len(found) == 0 {
		found = any
	}
	switch len(found) {
	case 0:
		return nil, netip.AddrPort{}, badRequest(http.StatusNotFound, "no service has %s", wanted(src, proto, req))
	case 1:
		return found[0].service, found[0].dst, nil
	}
	return nil, netip.AddrPort{}, badRequest(http.StatusBadRequest, "several services or ports fit: name the VIP (--dst) and its port (--dport)")
}

// wanted is what a service would have to have.
func wanted(src netip.Addr, proto config.Proto, req api.TraceRequest) string {
	port := "a port of " + string(proto)
	if req.DstPort != 0 {
		port = fmt.Sprintf("port %d/%s", req.DstPort, proto)
	}
	family := "an IPv4 address"
	if src.Is6() {
		family = "an IPv6 address"
	}
	if req.Dst != "" {
		return fmt.Sprintf("%s, %s, with %s", family, req.Dst, port)
	}
	return fmt.Sprintf("%s with %s", family, port)
}

// The registers in the last lines of ofproto/trace.
var (
	finalFlow     = regexp.MustCompile(`(?m)^Final flow: .*$`)
	slotRegister  = regexp.MustCompile(`\breg1=(0x[0-9a-f]+|[0-9]+)`)
	ownerRegister = regexp.MustCompile(`\breg2=(0x[0-9a-f]+|[0-9]+)`)
	actionsLine   = regexp.MustCompile(`(?m)^Datapath actions: (.*)$`)
)

// traceSwitch asks the switch where the first packet of a connection goes.
func (l *loop) traceSwitch(ctx context.Context, v *view, offline *api.Trace, t pipeline.Tuple, inPort string, vlan uint16) (*api.SwitchTrace, error) {
	if v.sw.session == 0 {
		return nil, errors.New("the switch is not connected")
	}
	port, err := ingress(v.snapshot, inPort)
	if err != nil {
		return nil, err
	}
	text, err := ask(ctx, v.config.RunDir, "ofproto/trace", v.snapshot.Bridge, traceFlow(v.snapshot, t, port, vlan), "--ct-next", "trk,new")
	if err != nil {
		return nil, err
	}
	answer := &api.SwitchTrace{Slot: -1, Number: -1, Text: text}
	if final := finalFlow.FindAllString(text, -1); len(final) > 0 {
		last := final[len(final)-1]
		answer.Slot, answer.Number = register(slotRegister, last), register(ownerRegister, last)
	}
	if lines := actionsLine.FindAllStringSubmatch(text, -1); len(lines) > 0 {
		answer.Actions = lines[len(lines)-1][1]
	}
	pool := v.snapshot.Pool(offline.Pool)
	for i := range pool.Members {
		if m := &pool.Members[i]; int(m.Number) == answer.Number && answer.Number > 0 {
			answer.Member = m.Name
		}
	}
	// A register that is 0 is not printed.
	if answer.Slot < 0 && strings.Contains(text, "multipath") {
		answer.Slot = 0
	}
	answer.Agrees = answer.Slot == offline.Slot && answer.Member == offline.Member
	answer.Entry = l.conntrackEntry(ctx, v, t)
	return answer, nil
}

// traceFlow is the first packet of a connection, as ofproto/trace reads it.
func traceFlow(s *state.Snapshot, t pipeline.Tuple, port uint32, vlan uint16) string {
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
		fmt.Sprintf(addresses, t.Src.Addr(), t.Dst.Addr()) + fmt.Sprintf(ports, t.Src.Port(), t.Dst.Port())
	if vlan != 0 {
		flow += fmt.Sprintf(",dl_vlan=%d", vlan)
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

// ingress finds the port by name; without one, the first that leads to no
// member.
func ingress(s *state.Snapshot, name string) (uint32, error) {
	taken := map[uint32]bool{}
	for i := range s.Pools {
		for j := range s.Pools[i].Members {
			taken[s.Pools[i].Members[j].Next.Port] = true
		}
	}
	var names []string
	for _, p := range s.Ports {
		if p.Name == name || name == "" && !taken[p.Number] && p.Name != s.Bridge {
			return p.Number, nil
		}
		names = append(names, p.Name)
	}
	if name == "" {
		return 0, fmt.Errorf("which port the packet enters by is not clear: name one of %s", strings.Join(names, ", "))
	}
	return 0, fmt.Errorf("bridge %s has no port %.60q; it has %s", s.Bridge, name, strings.Join(names, ", "))
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
	}, "dpctl/dump-conntrack", fmt.Sprintf("zone=%d", v.snapshot.Zone))
	if err != nil {
		l.opts.Logger.Debug("the connection table cannot be read", "err", err)
	}
	return entry
}
