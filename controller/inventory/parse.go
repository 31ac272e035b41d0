package inventory

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

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
	keyMAC     = "attached-mac"
)

// Keys of external_ids that brlb writes on the Bridge row.
const (
	keyNumbers  = "brlb-member-numbers"
	adminPrefix = "brlb-admin/" // then POOL/ADDRESS:PORT
)

// declared reads the members that Interface rows declare. A row that says
// something else than it should is left out and reported.
func declared(interfaces []vswitch.Interface) (members []state.Declared, problems []string) {
	for _, row := range interfaces {
		ids := row.ExternalIDs
		if ids[keyAddress] == "" && ids[keyPool] == "" {
			continue
		}
		d, err := declaration(row.Name, ids)
		if err != nil {
			problems = append(problems, fmt.Sprintf("Interface %s: %v", row.Name, err))
			continue
		}
		if number, ok := row.OFPort.Number(); ok {
			d.OFPort = number
		}
		members = append(members, d)
	}
	slices.SortFunc(members, func(a, b state.Declared) int { return strings.Compare(a.Interface, b.Interface) })
	slices.Sort(problems)
	return members, problems
}

func declaration(name string, ids map[string]string) (state.Declared, error) {
	d := state.Declared{Interface: name, Pool: ids[keyPool], Name: ids[keyName], Weight: 1}
	address, err := netip.ParseAddrPort(ids[keyAddress])
	if err != nil {
		return d, fmt.Errorf("external_ids:%s=%.60q is not ADDRESS:PORT", keyAddress, ids[keyAddress])
	}
	if !address.Addr().Is4() || address.Port() == 0 {
		return d, fmt.Errorf("external_ids:%s=%.60q: an IPv4 address and a port from 1 to 65535 are needed", keyAddress, ids[keyAddress])
	}
	d.Address = address
	if text, ok := ids[keyWeight]; ok {
		weight, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return d, fmt.Errorf("external_ids:%s=%.60q is not a number from 0 to 65535", keyWeight, text)
		}
		d.Weight = uint32(weight)
	}
	if text, ok := ids[keyMAC]; ok {
		mac, err := net.ParseMAC(text)
		if err != nil || len(mac) != 6 {
			return d, fmt.Errorf("external_ids:%s=%.60q is not an Ethernet address", keyMAC, text)
		}
		d.MAC = openflow.MAC(mac)
	}
	return d, nil
}

// overrides reads operators' admin states from a bridge's external_ids.
func overrides(ids map[string]string) (found map[state.MemberID]state.Override, problems []string) {
	found = map[state.MemberID]state.Override{}
	for key, value := range ids {
		rest, ok := strings.CutPrefix(key, adminPrefix)
		if !ok {
			continue
		}
		pool, member, ok := strings.Cut(rest, "/")
		var o state.Override
		err := json.Unmarshal([]byte(value), &o)
		if !ok || err != nil || (o.State != state.Draining && o.State != state.Disabled) {
			problems = append(problems, fmt.Sprintf("external_ids:%.80q=%.80q is no admin state of brlb; ignored", key, value))
			continue
		}
		found[state.MemberID{Pool: pool, Key: member}] = o
	}
	slices.Sort(problems)
	return found, problems
}

func overrideKey(id state.MemberID) string { return adminPrefix + id.Pool + "/" + id.Key }
