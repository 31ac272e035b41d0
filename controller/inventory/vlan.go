package inventory

import (
	"fmt"
	"slices"

	"brlb/ovsdb/vswitch"
)

// maxVLANs bounds in how many VLANs brlb looks for next hops.
const maxVLANs = 64

// vlans lists the VLANs that ports of a bridge name, as their own or on trunks,
// in order. Those of a trunk that carries all are not known.
func vlans(ports []vswitch.Port) (ids []uint16, problems []string) {
	for i := range ports {
		if ports[i].Tag.Set {
			ids = append(ids, ports[i].Tag.ID)
		}
		for _, id := range ports[i].Trunks {
			ids = append(ids, uint16(id))
		}
	}
	ids = slices.DeleteFunc(ids, func(id uint16) bool { return id < 1 || id > 4094 }) // 0: untagged
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if n := len(ids); n > maxVLANs {
		ids = ids[:maxVLANs]
		problems = append(problems, fmt.Sprintf("the bridge's ports name %d VLANs: next hops are looked for, and VIPs announced, in the first %d, up to VLAN %d", n, maxVLANs, ids[maxVLANs-1]))
	}
	return ids, problems
}
