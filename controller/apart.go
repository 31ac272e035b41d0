package controller

import (
	"fmt"
	"slices"
	"strings"

	"brlb/controller/config"
)

// keptApart refuses configurations, called by their paths, that cannot run in
// one process.
func keptApart(paths []string, cfgs []*config.Config) error {
	for i := range cfgs {
		for j := range i {
			if clash := clashOf(cfgs[j], cfgs[i]); clash != "" {
				return fmt.Errorf("%s and %s cannot run together: both have %s", paths[j], paths[i], clash)
			}
		}
	}
	return nil
}

// clashOf says what two configurations both want for themselves, and what to do
// about it; "" if there is nothing.
func clashOf(a, b *config.Config) string {
	oneSwitch := a.OVSDB == b.OVSDB
	switch {
	case oneSwitch && a.Bridge == b.Bridge:
		return fmt.Sprintf("bridge %s; set `bridge` in one of them", a.Bridge)
	case a.API.Socket == b.API.Socket:
		return fmt.Sprintf("the API socket %s; set `api: {socket: PATH}` in one of them", a.API.Socket)
	case a.API.HTTP != "" && a.API.HTTP == b.API.HTTP:
		return fmt.Sprintf("the HTTP address %s; set `api: {http: HOST:PORT}` in one of them, or \"\" to turn it off there", a.API.HTTP)
	case a.OpenFlow.Listen != "" && a.OpenFlow.Listen == b.OpenFlow.Listen:
		return fmt.Sprintf("the OpenFlow socket %s; set `openflow: {listen: ...}` in one of them", a.OpenFlow.Listen)
	case oneSwitch:
		// Bridges share conntrack, in which a member is known by its number.
		for _, zone := range a.AllZones() {
			if slices.Contains(b.AllZones(), zone) {
				return fmt.Sprintf("the conntrack zone %d, which on one Open vSwitch would mix up their connections; set `zone` in one of them, to a number that differs in its lower 14 bits, or that of the pool whose zone this is", zone)
			}
		}
	}
	return ""
}

// wantZones tells OVSDB's side which conntrack zones are used, if that may have
// changed.
func (l *loop) wantZones() {
	cfg := l.state.Config()
	if !l.writer || l.zonesFrom == cfg {
		return
	}
	l.zonesFrom = cfg
	l.inv.WantZones(cfg.AllZones())
}

// zones checks that no other bridge uses this one's.
func (c *checker) zones() {
	u := &c.view.inventory
	switch {
	case u.ZoneClash != "":
		c.say("conntrack zones", false, "%s", u.ZoneClash)
	case !u.ZonesHeld:
		c.say("conntrack zones", false, "OVSDB does not know which this bridge uses, so that others may take them: see what the log says of writing to it")
	default:
		c.say("conntrack zones", true, "OVSDB knows that this bridge uses %s", strings.Trim(fmt.Sprint(c.view.config.AllZones()), "[]"))
	}
}
