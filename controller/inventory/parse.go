package inventory

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"brlb/controller/config"
	"brlb/controller/state"
	"brlb/openflow"
	"brlb/ovsdb/vswitch"
)

// Keys of external_ids that brlb reads on Interface rows.
const (
	keyPool    = "brlb-pool"
	keyAddress = "brlb-address"
	keyName    = "brlb-name"
	keyWeight  = "brlb-weight"
	keyDomain  = "brlb-domain"
	keyMAC     = "attached-mac"
)

// Keys of external_ids that brlb writes on the Bridge row.
const (
	keyNumbers   = "brlb-member-numbers"
	keyClocks    = "brlb-clocks"
	adminPrefix  = "brlb-admin/"  // then POOL/ADDRESS:PORT
	anchorPrefix = "brlb-anchor/" // then POOL
)

// declared reads the members that Interface rows declare. A row that says
// something else than it should is left out and reported.
func declared(interfaces []vswitch.Interface) (members []state.Declared, problems []string) {
	type place struct {
		pool    string
		address netip.AddrPort
	}
	taken := map[place]string{}
	interfaces = slices.SortedFunc(slices.Values(interfaces), func(a, b vswitch.Interface) int { return strings.Compare(a.Name, b.Name) })
	for _, row := range interfaces {
		ids := row.ExternalIDs
		if ids[keyAddress] == "" && ids[keyPool] == "" {
			continue
		}
		d, err := declaration(row.Name, ids)
		at := place{d.Pool, d.Address}
		if first, again := taken[at]; err == nil && again {
			err = fmt.Errorf("external_ids:%s=%s in pool %s is declared by Interface %.60q already", keyAddress, d.Address, d.Pool, first)
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("Interface %.60q: %v", row.Name, err))
			continue
		}
		taken[at] = row.Name
		if number, ok := row.OFPort.Number(); ok {
			d.OFPort = number
		}
		members = append(members, d)
	}
	return members, problems
}

func declaration(name string, ids map[string]string) (state.Declared, error) {
	d := state.Declared{Interface: name, Pool: ids[keyPool], Name: ids[keyName], Weight: 1}
	if d.Pool == "" {
		return d, fmt.Errorf("external_ids:%s is missing: name the pool", keyPool)
	}
	if d.Name == "" && !isName(name) {
		return d, fmt.Errorf("external_ids:%s is missing: the Interface's own name will not do for a member", keyName)
	}
	if d.Name != "" && !isName(d.Name) {
		return d, fmt.Errorf("external_ids:%s=%.60q: a name has at most %d printable characters, no space and no slash", keyName, d.Name, maxName)
	}
	address, err := netip.ParseAddrPort(ids[keyAddress])
	if err != nil {
		return d, fmt.Errorf("external_ids:%s=%.60q is not ADDRESS:PORT", keyAddress, ids[keyAddress])
	}
	if config.HostProblem(address.Addr()) != "" || address.Port() == 0 {
		return d, fmt.Errorf("external_ids:%s=%.60q: the address of a host and a port from 1 to 65535 are needed", keyAddress, ids[keyAddress])
	}
	d.Address = address
	d.Domain = ids[keyDomain]
	if len(d.Domain) > maxDomain || strings.ContainsFunc(d.Domain, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return d, fmt.Errorf("external_ids:%s=%.60q: a domain is names with slashes between, at most %d printable characters", keyDomain, d.Domain, maxDomain)
	}
	if text, ok := ids[keyWeight]; ok {
		weight, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return d, fmt.Errorf("external_ids:%s=%.60q is not a number from 0 to 65535", keyWeight, text)
		}
		d.Weight = uint32(weight)
	}
	if text, ok := ids[keyMAC]; ok {
		mac, err := net.ParseMAC(text)
		if err != nil || len(mac) != 6 || mac[0]&1 != 0 {
			return d, fmt.Errorf("external_ids:%s=%.60q is not the Ethernet address of a host", keyMAC, text)
		}
		d.MAC = openflow.MAC(mac)
	}
	return d, nil
}

// maxDomain is how long a failure domain may be, in octets.
const maxDomain = 600

// maxName is how long a member's name may be, in octets.
const maxName = 63

// isName says whether people can be shown a name and type it.
func isName(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' })
}

// overrides reads what operators have decided about members from a bridge's external_ids.
func overrides(ids map[string]string) (found map[state.MemberID]state.Override, problems []string) {
	found = map[state.MemberID]state.Override{}
	for key, value := range ids {
		rest, ok := strings.CutPrefix(key, adminPrefix)
		if !ok {
			continue
		}
		pool, member, ok := strings.Cut(rest, "/")
		o, err := parseOverride(value)
		if !ok || err != nil {
			problems = append(problems, fmt.Sprintf("external_ids:%.80q=%.80q is no override of brlb; ignored", key, value))
			continue
		}
		found[state.MemberID{Pool: pool, Key: member}] = o
	}
	slices.Sort(problems)
	return found, problems
}

// maxRemark is how much is kept of who set an admin state and why, in octets.
const maxRemark = 200

// parseOverride reads a stored override. What it returns can be shown to
// people, and compared with what the same text gave before.
func parseOverride(text string) (state.Override, error) {
	var o state.Override
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return o, err
	}
	switch o.State {
	case "":
		o.State = state.Enabled
	case state.Enabled, state.Draining, state.Disabled:
	default:
		return o, fmt.Errorf("%.20q is not an admin state", o.State)
	}
	w := &o.Weighting
	if w.To != "" {
		to, err := state.ParseWeight(string(w.To))
		if err != nil {
			return o, err
		}
		w.To = to
	}
	if o.IsNothing() {
		return o, errors.New("it changes nothing")
	}
	o.Who, o.Why, o.At, o.Until = remark(o.Who), remark(o.Why), o.At.UTC(), o.Until.UTC()
	w.Who, w.Why, w.At = remark(w.Who), remark(w.Why), w.At.UTC()
	return o, nil
}

// remark cuts a text and puts spaces for what a terminal would not print.
func remark(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s[:min(len(s), maxRemark)])
}

func overrideKey(id state.MemberID) string { return adminPrefix + id.Pool + "/" + id.Key }
