package inventory

import (
	"maps"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"brlb/controller/state"
	"brlb/openflow"
	"brlb/ovsdb/vswitch"
)

func row(name string, ids ...string) vswitch.Interface {
	r := vswitch.Interface{Name: name, ExternalIDs: map[string]string{}}
	for i := 0; i+1 < len(ids); i += 2 {
		r.ExternalIDs[ids[i]] = ids[i+1]
	}
	return r
}

func TestDeclarations(t *testing.T) {
	const pool, address = keyPool, keyAddress
	good := state.Declared{Interface: "vnet1", Pool: "web", Address: netip.MustParseAddrPort("10.30.0.11:80"), Weight: 1}
	with := func(change func(*state.Declared)) *state.Declared {
		d := good
		change(&d)
		return &d
	}
	cases := []struct {
		name    string
		row     vswitch.Interface
		want    *state.Declared
		problem string
	}{
		{"not ours", row("vnet1", "iface-id", "x"), nil, ""},
		{"the least", row("vnet1", pool, "web", address, "10.30.0.11:80"), &good, ""},
		{"all", row("vnet1", pool, "web", address, "10.30.0.11:80", keyName, "be1", keyWeight, "7", keyMAC, "02:00:00:00:00:0B"),
			with(func(d *state.Declared) { d.Name, d.Weight, d.MAC = "be1", 7, openflow.MAC{2, 0, 0, 0, 0, 11} }), ""},
		{"weight 0", row("vnet1", pool, "web", address, "10.30.0.11:80", keyWeight, "0"), with(func(d *state.Declared) { d.Weight = 0 }), ""},
		{"the greatest weight", row("vnet1", pool, "web", address, "10.30.0.11:80", keyWeight, "65535"), with(func(d *state.Declared) { d.Weight = 65535 }), ""},

		{"no pool", row("vnet1", address, "10.30.0.11:80"), nil, "brlb-pool is missing"},
		{"no address", row("vnet1", pool, "web"), nil, `brlb-address="" is not ADDRESS:PORT`},
		{"no port", row("vnet1", pool, "web", address, "10.30.0.11"), nil, "is not ADDRESS:PORT"},
		{"port 0", row("vnet1", pool, "web", address, "10.30.0.11:0"), nil, "a port from 1 to 65535"},
		{"a host name", row("vnet1", pool, "web", address, "be1.example:80"), nil, "is not ADDRESS:PORT"},
		{"IPv4 as IPv6", row("vnet1", pool, "web", address, "[::ffff:10.30.0.11]:80"), nil, "the address of a host"},
		{"loopback", row("vnet1", pool, "web", address, "127.0.0.1:80"), nil, "of a host"},
		{"multicast", row("vnet1", pool, "web", address, "224.0.0.1:80"), nil, "of a host"},
		{"broadcast", row("vnet1", pool, "web", address, "255.255.255.255:80"), nil, "of a host"},
		{"unspecified", row("vnet1", pool, "web", address, "0.0.0.0:80"), nil, "of a host"},
		{"weight -1", row("vnet1", pool, "web", address, "10.30.0.11:80", keyWeight, "-1"), nil, `brlb-weight="-1" is not a number from 0 to 65535`},
		{"weight 65536", row("vnet1", pool, "web", address, "10.30.0.11:80", keyWeight, "65536"), nil, "brlb-weight"},
		{"no weight at all", row("vnet1", pool, "web", address, "10.30.0.11:80", keyWeight, ""), nil, "brlb-weight"},
		{"a MAC of 8 octets", row("vnet1", pool, "web", address, "10.30.0.11:80", keyMAC, "02:00:00:00:00:0b:00:01"), nil, "attached-mac"},
		{"a group MAC", row("vnet1", pool, "web", address, "10.30.0.11:80", keyMAC, "01:00:5e:00:00:01"), nil, "attached-mac"},
		{"a name with a slash", row("vnet1", pool, "web", address, "10.30.0.11:80", keyName, "tls/be1"), nil, "no slash"},
		{"a name for terminals", row("vnet1", pool, "web", address, "10.30.0.11:80", keyName, "be1\x1b[31m"), nil, `"be1\x1b[31m"`},
		{"a long name", row("vnet1", pool, "web", address, "10.30.0.11:80", keyName, strings.Repeat("x", 64)), nil, "at most 63"},
		{"an interface's name that will not do", row("vnet 1", pool, "web", address, "10.30.0.11:80"), nil, "brlb-name is missing"},
		{"a long text", row("vnet1", pool, "web", address, strings.Repeat("9", 10000)), nil, "is not ADDRESS:PORT"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			members, problems := declared([]vswitch.Interface{c.row})
			if c.want != nil && (len(members) != 1 || members[0] != *c.want) || c.want == nil && len(members) != 0 {
				t.Errorf("%+v", members)
			}
			if text := strings.Join(problems, "\n"); (text != "") != (c.problem != "") || !strings.Contains(text, c.problem) || len(text) > 300 || strings.ContainsRune(text, '\x1b') {
				t.Errorf("problems %q, want %q", text, c.problem)
			}
		})
	}
}

func TestDeclarationsInOrderAndOnce(t *testing.T) {
	members, problems := declared([]vswitch.Interface{
		row("c", keyPool, "web", keyAddress, "10.0.0.2:80"),
		row("b", keyPool, "tls", keyAddress, "10.0.0.2:80"),
		row("bad2", keyPool, "web", keyAddress, "x"),
		row("a", keyPool, "web", keyAddress, "10.0.0.2:080"),
		row("bad1", keyPool, "web", keyAddress, "y"),
	})
	var names []string
	for _, m := range members {
		names = append(names, m.Interface)
	}
	if got := strings.Join(names, " "); got != "a b" {
		t.Errorf("members of %s", got)
	}
	if len(problems) != 3 || !strings.Contains(problems[0], "bad1") || !strings.Contains(problems[2], `10.0.0.2:80 in pool web is declared by Interface "a" already`) {
		t.Errorf("%q", problems)
	}
}

func TestOverrides(t *testing.T) {
	when := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	be1 := state.MemberID{Pool: "web", Key: "10.30.0.11:80"}
	cases := []struct {
		name, key, value string
		want             *state.Override
		problem          bool
	}{
		{"not ours", "other", "x", nil, false},
		{"draining", overrideKey(be1), `{"state":"draining","who":"ann","why":"disk","at":"2024-05-01T12:00:00Z"}`,
			&state.Override{State: state.Draining, Who: "ann", Why: "disk", At: when}, false},
		{"another time zone", overrideKey(be1), `{"state":"disabled","at":"2024-05-01T14:00:00+02:00"}`, &state.Override{State: state.Disabled, At: when}, false},
		{"no time", overrideKey(be1), `{"state":"disabled"}`, &state.Override{State: state.Disabled}, false},
		{"for terminals", overrideKey(be1), `{"state":"draining","who":"a\u001b[31m\nb\u0000"}`, &state.Override{State: state.Draining, Who: "a [31m b "}, false},
		{"a long reason", overrideKey(be1), `{"state":"draining","why":"` + strings.Repeat("é", 1000) + `"}`,
			&state.Override{State: state.Draining, Why: strings.Repeat("é", 100)}, false},
		{"until", overrideKey(be1), `{"state":"draining","until":"2024-05-01T14:00:00+02:00"}`, &state.Override{State: state.Draining, Until: when}, false},
		{"a weight alone", overrideKey(be1), `{"weighting":{"to":"050%","who":"a\u001b","at":"2024-05-01T12:00:00Z"}}`,
			&state.Override{State: state.Enabled, Weighting: state.Weighting{To: "50%", Who: "a ", At: when}}, false},
		{"a weight, and drained", overrideKey(be1), `{"state":"draining","weighting":{"to":"0"}}`,
			&state.Override{State: state.Draining, Weighting: state.Weighting{To: "0"}}, false},
		{"a weight too great", overrideKey(be1), `{"state":"draining","weighting":{"to":"65536"}}`, nil, true},
		{"enabled is not stored", overrideKey(be1), `{"state":"enabled"}`, nil, true},
		{"unknown", overrideKey(be1), `{"state":"asleep"}`, nil, true},
		{"no JSON", overrideKey(be1), `draining`, nil, true},
		{"null", overrideKey(be1), `null`, nil, true},
		{"no member", adminPrefix + "web", `{"state":"draining"}`, nil, true},
		{"nothing", adminPrefix, ``, nil, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			found, problems := overrides(map[string]string{c.key: c.value, keyNumbers: "next=1"})
			if (len(problems) > 0) != c.problem || len(problems) > 0 && len(problems[0]) > 300 {
				t.Errorf("problems %q", problems)
			}
			want := map[state.MemberID]state.Override{}
			if c.want != nil {
				want[be1] = *c.want
			}
			if !maps.Equal(found, want) {
				t.Errorf("%+v, want %+v", found, want)
			}
			again, _ := overrides(map[string]string{c.key: c.value})
			if !reflect.DeepEqual(found, again) || !maps.Equal(found, again) {
				t.Error("read twice, not the same")
			}
		})
	}
}

// A name with a slash or an IPv6 address must not confuse the key.
func TestOverrideKeysAreReadAsWritten(t *testing.T) {
	for _, id := range []state.MemberID{{Pool: "web", Key: "10.0.0.1:80"}, {Pool: "a-b.c_d", Key: "[2001:db8::1]:80"}} {
		found, problems := overrides(map[string]string{overrideKey(id): `{"state":"draining"}`})
		if _, ok := found[id]; !ok || len(problems) > 0 {
			t.Errorf("%v: %v %v", id, found, problems)
		}
	}
}
