package config

import "time"

// conntrackStates are the keys of CT_Timeout_Policy.timeouts
// (ovs-vswitchd.conf.db(5)).
var conntrackStates = []string{
	"tcp_syn_sent", "tcp_syn_recv", "tcp_established", "tcp_fin_wait", "tcp_close_wait", "tcp_last_ack", "tcp_time_wait", "tcp_close",
	"tcp_syn_sent2", "tcp_retransmit", "tcp_unack",
	"udp_first", "udp_single", "udp_multiple",
	"icmp_first", "icmp_reply",
}

// The kernel counts the time of a connection in 32 bits, with a sign, of up to
// 1,000 ticks a second: that is 24 days.
const minConntrackTimeout, maxConntrackTimeout = time.Second, 480 * time.Hour

// conntrack reads what brlb's conntrack zone is to hold, and for how long.
func (d *document) conntrack(e entry, c *Config) {
	f := d.mapping(e, "limit", "timeouts")
	integer(d, f["limit"], &c.ConntrackLimit, 0, MaxConntrackLimit)
	states := d.mapping(f["timeouts"], conntrackStates...)
	for _, state := range conntrackStates {
		var timeout time.Duration
		d.duration(states[state], &timeout, minConntrackTimeout, maxConntrackTimeout)
		switch {
		case timeout == 0: // left out, or wrong
			continue
		case timeout%time.Second != 0:
			d.fail(states[state].path, "%v is not a whole number of seconds, in which Open vSwitch counts: write %v or %v",
				timeout, timeout.Truncate(time.Second), timeout.Truncate(time.Second)+time.Second)
			continue
		case c.ConntrackTimeouts == nil:
			c.ConntrackTimeouts = map[string]time.Duration{}
		}
		c.ConntrackTimeouts[state] = timeout
	}
}
