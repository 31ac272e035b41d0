package controller

import (
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
	"brlb/controller/pipeline"
	"brlb/controller/state"
)

// Trace implements api.Backend: where a connection goes, computed here and,
// beside it, by the switch.
func (l *loop) Trace(ctx context.Context, req api.TraceRequest) (*api.Trace, error) {
	v := l.view.Load()
	trace, ends, err := traceOffline(v.snapshot, req)
	if err != nil {
		return nil, err
	}
	trace.Switch, err = l.traceSwitch(ctx, v, trace, ends, req.InPort)
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

// tupleEnds are the two ends of a connection to a VIP.
type tupleEnds struct{ src, dst netip.AddrPort }

func traceOffline(s *state.Snapshot, req api.TraceRequest) (*api.Trace, tupleEnds, error) {
	service, dst, err := serviceOf(s, req)
	if err != nil {
		return nil, tupleEnds{}, err
	}
	src, err := netip.ParseAddr(req.Src)
	if err != nil || !src.Is4() {
		return nil, tupleEnds{}, badRequest(http.StatusBadRequest, "source %.60q is not an IPv4 address", req.Src)
	}
	pool := s.Pool(service.Pool)
	ends := tupleEnds{src: netip.AddrPortFrom(src, req.SrcPort), dst: dst}
	hash, slot := pipeline.Slot(pool, ends.src, ends.dst)
	trace := &api.Trace{
		Flow: fmt.Sprintf("tcp %s -> %s", ends.src, ends.dst), Service: service.Name,
		Pool: pool.Name, PoolID: pool.ID, Hash: fmt.Sprintf("0x%08x", hash), Slot: slot,
	}
	if owner := pool.Owner(slot); owner != nil {
		trace.Member, trace.Address = owner.Name, owner.ID.Key
	}
	return trace, ends, nil
}

// serviceOf finds the service that a request means.
func serviceOf(s *state.Snapshot, req api.TraceRequest) (*state.Service, netip.AddrPort, error) {
	type match struct {
		service *state.Service
		dst     netip.AddrPort
	}
	var found []match
	for i := range s.Services {
		for _, addr := range s.Services[i].Addresses {
			for _, port := range s.Services[i].Ports {
				if (req.Dst == "" || req.Dst == addr.String()) && (req.DstPort == 0 || req.DstPort == port.Number) {
					found = append(found, match{&s.Services[i], netip.AddrPortFrom(addr, port.Number)})
				}
			}
		}
	}
	switch len(found) {
	case 0:
		return nil, netip.AddrPort{}, badRequest(http.StatusNotFound, "no service is at %s port %d", orAny(req.Dst), req.DstPort)
	case 1:
		return found[0].service, found[0].dst, nil
	}
	return nil, netip.AddrPort{}, badRequest(http.StatusBadRequest, "several services or ports fit: name the VIP (--dst) and its port (--dport)")
}

func orAny(text string) string {
	if text == "" {
		return "any address"
	}
	return text
}

// The registers in the last lines of ofproto/trace.
var (
	finalFlow     = regexp.MustCompile(`(?m)^Final flow: .*$`)
	slotRegister  = regexp.MustCompile(`\breg1=(0x[0-9a-f]+|[0-9]+)`)
	ownerRegister = regexp.MustCompile(`\breg2=(0x[0-9a-f]+|[0-9]+)`)
	actionsLine   = regexp.MustCompile(`(?m)^Datapath actions: (.*)$`)
)

// traceSwitch asks the switch where the first packet of a connection goes.
func (l *loop) traceSwitch(ctx context.Context, v *view, offline *api.Trace, ends tupleEnds, inPort string) (*api.SwitchTrace, error) {
	if v.sw.session == 0 {
		return nil, errors.New("the switch is not connected")
	}
	port, err := ingress(v.snapshot, inPort)
	if err != nil {
		return nil, err
	}
	flow := fmt.Sprintf("in_port=%d,tcp,dl_src=02:00:00:00:00:fe,dl_dst=%s,nw_src=%s,nw_dst=%s,nw_ttl=64,tp_src=%d,tp_dst=%d,tcp_flags=syn",
		port, v.snapshot.MAC, ends.src.Addr(), ends.dst.Addr(), ends.src.Port(), ends.dst.Port())
	text, err := ask(ctx, v.config.RunDir, "ofproto/trace", v.snapshot.Bridge, flow, "--ct-next", "trk,new")
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
	answer.Entry = l.conntrackEntry(ctx, v, ends)
	return answer, nil
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
func (l *loop) conntrackEntry(ctx context.Context, v *view, ends tupleEnds) string {
	text, err := ask(ctx, v.config.RunDir, "dpctl/dump-conntrack", fmt.Sprintf("zone=%d", v.snapshot.Zone))
	if err != nil {
		return ""
	}
	orig := fmt.Sprintf("orig=(src=%s,dst=%s,sport=%d,dport=%d)", ends.src.Addr(), ends.dst.Addr(), ends.src.Port(), ends.dst.Port())
	for line := range strings.Lines(text) {
		if strings.Contains(line, orig) {
			return strings.TrimSpace(line)
		}
	}
	return ""
}
