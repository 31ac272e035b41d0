package config

import (
	"strings"
	"testing"
)

// TestValues: one value at a time, and a word of the message that refuses it;
// an empty word means that the value is good.
func TestValues(t *testing.T) {
	const pool = "pools: {p: {id: 1, members: {m: 10.30.0.11:80}}}\n"
	for _, x := range []struct{ text, refusal string }{
		{"bridge: br_0.x-1", ""},
		{"bridge: 100", ""},
		{"bridge: ../x", "a bridge's name"},
		{"run_dir: /", "absolute path"},
		{"run_dir: /run/ovs///", ""},
		{"ovsdb: unix:/run/db.sock", ""},
		{"ovsdb: unix:/" + strings.Repeat("a", maxSocket), "at most 107 bytes"},
		{"ovsdb: unix:run/db.sock", "absolute path"},
		{"ovsdb: unix:/run//db.sock", "absolute path"},
		{"ovsdb: tcp:[::1]:6640", ""},
		{"ovsdb: tcp::6640", "write tcp:HOST:PORT"},
		{"ovsdb: tcp:10.0.0.300:6640", "an address or a host name"},
		{"ovsdb: tcp:a b:6640", "an address or a host name"},
		{"ovsdb: tcp:127.0.0.1:06640", "a port is a number"},
		{"ovsdb: tcp:" + strings.Repeat("a", 300) + ":1", "an address or a host name"},
		{"ovsdb: ssl:127.0.0.1:6640", "write unix:PATH or tcp:HOST:PORT"},
		{"openflow: {listen: 'tcp:127.0.0.1:6653'}", ""},
		{"openflow: {listen: 'tcp:[::1]:6653'}", ""},
		{"openflow: {listen: 'tcp:localhost:6653'}", "not a name"},
		{"openflow: {listen: 'tcp:10.0.0.1:6653', insecure: true}", ""},
		{"openflow: {listen: 'unix:/var/run/openvswitch/x.sock'}", ""},
		{"openflow: {listen: 'unix:/var/run/openvswitch2/x.sock'}", "only dials sockets in its run directory"},
		{"openflow: {mode: service, target: 'tcp:localhost:6653'}", ""},
		{"openflow: {mode: servcie}", "not supported"},
		{"api: {http: ':9290'}", ""},
		{"api: {http: 'localhost:9290'}", ""},
		{"api: {http: 'localhost:0'}", "a port is a number"},
		{"mac: 02:00:5e:00:01:02", ""},
		{"mac: 02:00:5e:00:01:02:03:04", "not a MAC address"},
		{"zone: 65535", ""},
		{"zone: 65536", "out of range"},
		{"zone: 0x10", "not a whole number"},
		{"zone: +5", "plainly"},
		{"zone: {}", "is a mapping"},
		{"conntrack: {limit: 1}", ""},
		{"conntrack: {limit: 0}", ""},
		{"conntrack: {}", ""},
		{"conntrack:", ""},
		{"conntrack: 5", "where `key: value` lines are expected"},
		{"conntrack: {limit: -1}", "out of range: 0 to 100000000"},
		{"conntrack: {limits: 5}", "did you mean limit"},
		{"conntrack: {timeouts: {}}", ""},
		{"conntrack: {timeouts: }", ""},
		{"conntrack: {timeouts: {tcp_established: 480h, udp_first: 1s}}", ""},
		{"conntrack: {timeouts: {tcp_established: 481h}}", "out of range: 1s to 480h0m0s"},
		{"conntrack: {timeouts: {udp_first: 0s}}", "out of range"},
		{"conntrack: {timeouts: {udp_first: 30}}", "not a duration"},
		{"conntrack: {timeouts: {udp_first: 2500ms}}", "1:35: conntrack.timeouts.udp_first: 2.5s is not a whole number of seconds, in which Open vSwitch counts: write 2s or 3s"},
		{"conntrack: {timeouts: {udp_multipel: 3s}}", "did you mean udp_multiple"},
		{"conntrack: {timeouts: {sctp: 3s}}", "known: tcp_syn_sent, tcp_syn_recv, tcp_established"},
		{"conntrack: {timeouts: 5s}", "where `key: value` lines are expected"},
		{"gateways: 10.30.0.10/31", ""},
		{"gateways: 10.30.0.1/32", "1 to 31"},
		{"gateways: 10.30.0.1/0", "1 to 31"},
		{"gateways: 'fe80::1/64'", "link-local"},
		{"gateways: 127.0.0.1/8", "loopback"},
		{"gateways: null", ""},
		{"gateways: [~]", "has no value"},
		{"gateways: [a: b]", "is a mapping"},
		{"gateways:\n- a: b\n", "2:3: gateways[0]: is a mapping"},
		{"start_deadline: 0s", ""},
		{"start_deadline: -1s", "out of range"},
		{"neighbour_refresh: 500ms", "out of range"},
		{"dns: {min_ttl: 999ms}", "out of range"},
		{"dns: {min_ttl: 1h1s}", "out of range"},
		{"dns: {servers: 127.0.0.53}", ""},
		{"dns: {servers: '10.30.0.53:0'}", "is not the address of a server"},
		{"dns: {servers: [1.1.1.1, 1.1.1.2, 1.1.1.3, 1.1.1.4, 1.1.1.5, 1.1.1.6, 1.1.1.7, 1.1.1.8, 1.1.1.9]}", "at most 8"},
		{"checks: {c: {type: http, status: 204}}", ""},
		{"checks: {c: {type: http, status: 99}}", "is not a status"},
		{"checks: {c: {type: http, status: [[]]}}", "is a list"},
		{"checks: {c: {type: http, host: '[2001:db8::1]:80'}}", ""},
		{"checks: {c: {type: http, host: '::1'}}", ""},
		{"checks: {c: {type: http, host: ':80'}}", "is not a host name"},
		{"checks: {c: {type: http, method: POST}}", "not supported"},
		{"checks: {c: {interval: 5ms}}", "out of range"},
		{"checks: {c: {interval: 1s, down: 100ms}}", "timeout 500ms is longer than down, 100ms"},
		{"checks: {c: {interval: 10ms}}", ""},
		{"checks: {c: {interval: 1s, fast: 2s}}", "fast 2s is longer than interval, 1s"},
		{"checks: {c: {timeout: 5ms}}", "out of range"},
		{"checks: {c: {port: 0}}", "out of range"},
		{"checks: {c: {send: 'a', expect: 'b'}}", ""},
		{"checks: {c: {send: 'a', send_hex: '61'}}", "the same as send"},
		{"checks: {c: {expect_hex: '6'}}", "pairs of hex digits"},
		{"checks: {c: {expect_hex: ''}}", "pairs of hex digits"},
		{"checks: {c: {type: udp, send_hex: 'zz'}}", "pairs of hex digits"},
		{"checks: {c: {type: http, headers: {Host: a}}}", "is set by the option host"},
		{"checks: {c: {type: http, headers: {Content-Length: 1}}}", "cannot be set"},
		{"checks: {c: {type: http, headers: {'a b': 1}}}", "is not valid"},
		{`checks: {c: {type: http, headers: {A: "x\ny"}}}`, "one line"},
		{"checks: {c: {type: http, match: '('}}", "RE2"},
		{"checks: {c: {type: http, agent_header: 'a b'}}", "not a header name"},
		{"checks: {c: {type: https, sni: 'a b'}}", "server name"},
		{"checks: {c: {type: https, ca: ca.pem}}", "absolute path"},
		{"checks: {c: {type: grpcs, cert: /c.pem, key: /c.key, sni: x}}", ""},
		{"allow_exec: true\nchecks: {c: {type: exec, command: bin/x}}", "clean absolute path"},
		{"allow_exec: true\nchecks: {c: {type: exec, command: /bin/x}}", ""},
		{"checks: {c: {type: port}}", ""},
		{"checks: {c: {type: port, interval: 1s}}", "a check of type port makes none"},
		{"checks: {c: {type: port, port: 80}}", "a check of type port makes none"},
		{"probe_allow: [10.31.0.0/24]\nchecks: {tcp: {type: port}}", ""}, // nobody is probed
		{"allow_exec: on", "true or false"},
		{"probe_allow: [10.30.0.0/24]", ""},
		{"probe_allow: 10.30.0.0", "not a network"},
		{"probe_allow: 10.30.0.1/24", "write 10.30.0.0/24"},
		{"probe_source: 10.30.0.2", ""},
		{"probe_source: ['2001:db8::2', 10.30.0.2]", ""},
		{"probe_source: [10.30.0.2, 10.30.0.3]", "10.30.0.3 is the second address of its kind"},
		{"probe_source: 127.0.0.1", "loopback"},
		{"probe_device: br-lb", ""},
		{"probe_device: eth0/1", "network interface"},
		{"probe_netns: probes", ""},
		{"probe_netns: /proc/1/ns/net", ""},
		{"probe_netns: run/netns/probes", "a name, as `ip netns` shows it, or an absolute path"},
		{"probe_netns: ..", "or an absolute path"},
		{rule("on_down: keep"), ""},
		{rule("on_down: rst"), "knows reset and keep"},
		{rule("on_all_down: keep"), ""},
		{rule("on_all_down: refuse"), "knows drop, keep and reject"},
		{rule("min_active: 0"), "out of range"},
		{rule("min_active: 2"), "the pool has 1"},
		{rule("panic_below: 50%"), ""},
		{rule("panic_below: 50"), "not a percentage"},
		{rule("panic_below: 101%"), "not a percentage"},
		{rule("slow_start: 30s"), ""},
		{rule("slow_start: 500ms"), "0s, or 1s to 1h"},
		{rule("slow_start: 30s, layout: chash"), "slow_start needs layout v2, v1, sticky or rendezvous"},
		{rule("hold_down: {after: 3, within: 5m}"), ""},
		{rule("hold_down: {after: 3}"), "has no within"},
		{rule("hold_down: {after: 0, within: 5m}"), "out of range"},
		{rule("hold_down: 3"), "is a single value"},
		{rule("bfd: true"), ""},
		{rule("bfd: false"), ""},
		{rule("bfd: {min_tx: 100ms, mult: 255}"), ""},
		{rule("bfd: 100ms"), "true or false"},
		{rule("bfd: [true]"), "is a list"},
		{rule("bfd: {min_rx: 5ms}"), "10ms to 10s"},
		{rule("bfd: {min_rx: 10.5ms}"), "no whole number of milliseconds"},
		{rule("bfd: {mult: 0}"), "out of range"},
		{"services: {s: {pool: p, backup: p, address: 10.1.0.1, ports: 80}}", "pool p serves already"},
		{"services: {s: {pool: p, backup: [q], address: 10.1.0.1, ports: 80}}", "there is no pool \"q\""},
		{"services: {s: {pool: p, return_after: 5s, address: 10.1.0.1, ports: 80}}", "means nothing without backup"},
		{`pools: {p: {id: 1, members: {m: 10.30.0.11:80}}, p6: {id: 2, members: {m: "[2001:db8::1]:80"}}, q6: {id: 3, members: {m: "[2001:db8::2]:80"}}}
services: {s: {pool: p, pool6: p6, backup6: q6, return_after: 5s, address: [10.1.0.1, "2001:db8:1::1"], ports: 80}}`, ""},
		{"services: {s: {pool: p, address: 10.1.0.1, ports: 080}}", "leading zeros"},
		{"services: {s: {pool: p, address: 10.1.0.1, ports: -80}}", "not a port"},
		{"services: {s: {pool: p, address: 10.1.0.1, ports: [[80]]}}", "is a list"},
		{"services: {s: {pool: p, address: '10.1.0.1:80', ports: 80}}", "without port"},
		{"services: {s: {pool: p, address: [2001:db8::1], ports: 80}}", "a single value is expected: quote it if its colon is part of it"},
		{"pools: {p: {id: 1, members: {m: '2001:db8::1:80'}}}", "as in \"[2001:db8::11]:8080\""},
		{"services: {s: {pool: p, address: '::ffff:10.1.0.1', ports: 80}}", "write it as 10.1.0.1"},
		{"services: {s: {pool: p, address: 010.1.0.1, ports: 80}}", "is not an address"},
		{"services: {s: {pool: P, address: 10.1.0.1, ports: 80}}", "did you mean p?"},
	} {
		text := x.text + "\n" + pool
		if strings.HasPrefix(x.text, "pools:") {
			text = x.text + "\n"
		}
		_, err := Parse("f", []byte(text))
		switch {
		case x.refusal == "" && err != nil:
			t.Errorf("%s\n\tis good, but: %v", x.text, err)
		case x.refusal != "" && (err == nil || !strings.Contains(err.Error(), x.refusal)):
			t.Errorf("%s\n\tgot %v, want ...%s...", x.text, err, x.refusal)
		case x.refusal != "" && strings.Contains(err.Error(), "\n"):
			t.Errorf("%s\n\tone mistake, more errors: %v", x.text, err)
		}
	}
}

// rule is a pool of one member with a rule.
func rule(text string) string {
	return "pools: {p: {id: 1, members: {m: 10.30.0.11:80}, " + text + "}}"
}

func TestManyNamesInASuggestion(t *testing.T) {
	var names []string
	for _, r := range "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ" {
		names = append(names, strings.Repeat(string(r), 9))
	}
	if got := didYouMean("0", names); !strings.HasSuffix(got, "EEEEEEEEE, FFFFFFFFF, ...") {
		t.Error(got)
	}
}
