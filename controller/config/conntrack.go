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

// Conntrack says how many connections a conntrack zone is to hold, and for how
// long.
type Conntrack struct {
	// Limit is how many entries the zone may have, 1..MaxConntrackLimit; 0 leaves
	// the switch's limit as it is.
	Limit int
	// Timeouts are how long the zone keeps idle connections, 1 s to 480 h in whole
	// seconds, by the keys of CT_Timeout_Policy.timeouts (ovs-vswitchd.conf.db(5));
	// those left out are the switch's.
	Timeouts map[string]time.Duration
}

// MaxConntrackLimit is the greatest Conntrack.Limit.
const MaxConntrackLimit = 100_000_000

// conntrack reads the settings of a zone, which a mapping has beside others.
func (d *document) conntrack(f fields, c *Conntrack) {
	integer(d, f["limit"], &c.Limit, 0, MaxConntrackLimit)
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
		case c.Timeouts == nil:
			c.Timeouts = map[string]time.Duration{}
		}
		c.Timeouts[state] = timeout
	}
}
