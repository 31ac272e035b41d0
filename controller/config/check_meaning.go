package config

import (
	"net/netip"
	"slices"
	"time"

	"brlb/health"
)

// The meaning stage for checks.

func (d *document) checkChecks(c *Config) {
	for _, check := range c.Checks {
		at := keyPath{"checks", check.Name}
		if check.Type == health.Exec && !c.AllowExec {
			d.fail(at.child("type"), "an exec check starts a program, which is off: set `allow_exec: true` at the top level if that is meant")
		}
		d.checkTimes(check)
	}
}

func (d *document) checkTimes(c Check) {
	at := keyPath{"checks", c.Name}
	for _, gap := range []struct {
		key  string
		time time.Duration
	}{{"interval", c.Interval}, {"fast", c.Fast}, {"down", c.Down}} {
		if c.Timeout <= gap.time {
			continue
		}
		d.fail(at.child("timeout"), "timeout %v is longer than %s, %v: a probe must end before the next one begins", c.Timeout, gap.key, gap.time)
		return
	}
	if c.Fast > c.Interval {
		d.fail(at.child("fast"), "fast %v is longer than interval, %v: it is the shorter gap while a verdict is forming", c.Fast, c.Interval)
	}
}

// checkProbeAllow reports members that must not be probed.
func (d *document) checkProbeAllow(c *Config) {
	if slices.Contains(c.ProbeAllow, netip.Prefix{}) {
		return // one of them is wrong, which has been reported
	}
	for _, p := range c.Pools {
		if check, _ := c.Check(p.Check); check.ByPort() {
			continue
		}
		for _, m := range p.Members {
			if m.Address.IsValid() && !c.MayProbe(m.Address.Addr()) {
				d.fail(keyPath{"pools", p.Name, "members", m.Name}.child("address"),
					"%s is in none of the networks of probe_allow (line %d), so it could never be probed", m.Address.Addr(), d.line(keyPath{"probe_allow"}))
			}
		}
	}
}

// checkFiles reports files that checks name and that cannot be used. It reads
// them.
func (d *document) checkFiles(c *Config) {
	for _, check := range c.Checks {
		at := keyPath{"checks", check.Name}
		for _, x := range []struct {
			key  string
			part health.Check
		}{
			{"ca", health.Check{Type: check.Type, TLS: health.TLSOptions{CAFile: check.TLS.CAFile}}},
			{"cert", health.Check{Type: check.Type, TLS: health.TLSOptions{CertFile: check.TLS.CertFile, KeyFile: check.TLS.KeyFile}}},
			{"command", health.Check{Type: check.Type, Command: check.Command}},
		} {
			if err := x.part.CheckFiles(); err != nil {
				d.fail(at.child(x.key), "%v", err)
			}
		}
	}
}
