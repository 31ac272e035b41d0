package controller

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/netip"

	"brlb/controller/api"
	"brlb/controller/config"
	"brlb/controller/pipeline"
	"brlb/controller/state"
)

// Trace implements api.Backend: where a connection goes, computed here and,
// beside it, by the switch.
func (l *loop) Trace(ctx context.Context, req api.TraceRequest) (*api.Trace, error) {
	v := l.view.Load()
	trace, t, err := traceOffline(v.snapshot, req)
	if err != nil {
		return nil, err
	}
	port, err := ingress(v.snapshot, t.Src.Addr(), req.InPort)
	if err == nil {
		trace.Segment = port.Name
		if m := v.snapshot.Pool(trace.Pool).Member(trace.Address); m != nil && m.Next.Port != port.Number {
			trace.Hairpin = ""
		}
		trace.Switch, err = l.traceSwitch(ctx, v, trace, t, port.Number)
	}
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
		Pool: pool.Name, PoolID: pool.ID, Mode: pool.Mode, VLAN: req.VLAN, Affinity: string(pool.Affinity), Hash: fmt.Sprintf("0x%08x", hash), Slot: slot,
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
	if gateway, found := pipeline.Gateway(s.Gateways, src); found && trace.Member != "" && !pool.Stateless() {
		trace.Hairpin = gateway.String()
	}
	if req.Fragment {
		trace.Fragment = fragment(s, service, dst.Addr())
	}
	return trace, t, nil
}

// fragment says what becomes of a later fragment to a service's address.
func fragment(s *state.Snapshot, service *state.Service, vip netip.Addr) string {
	switch {
	case !service.Stateless:
		return api.FragmentFollows
	case pipeline.HashesFragments(s, service, vip):
		return api.FragmentHashed
	}
	return api.FragmentDropped
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
