package crush

// Replacement is one pair of pg_upmap_items: device To in place of From.
type Replacement struct {
	From, To int32
}

// Upmaps override single placements after the rule: Ceph's pg_upmap,
// pg_upmap_items and pg_upmap_primaries. The keys are whatever number the
// caller knows its placements by.
type Upmaps struct {
	Full    map[uint32][]int32
	Items   map[uint32][]Replacement
	Primary map[uint32]int32
}

// Apply returns the placement after its overrides; it may change devices. An
// override that leads to a device of weight 0 in reweight has no effect; nor
// has a replacement by a device that the placement has already.
func (u *Upmaps) Apply(placement uint32, devices []int32, reweight []uint32) []int32 {
	gone := func(device int32) bool {
		return device >= 0 && int(device) < len(reweight) && reweight[device] == 0
	}
	if full, ok := u.Full[placement]; ok {
		for _, device := range full {
			if gone(device) {
				return devices
			}
		}
		devices = append(devices[:0], full...)
	}
	for _, r := range u.Items[placement] {
		if at := replaceable(devices, r); at >= 0 && !gone(r.To) {
			devices[at] = r.To
		}
	}
	if primary, ok := u.Primary[placement]; ok && !gone(primary) {
		for i, device := range devices {
			if device == primary {
				devices[0], devices[i] = devices[i], devices[0]
				break
			}
		}
	}
	return devices
}

// replaceable returns where a replacement applies, -1 if nowhere.
func replaceable(devices []int32, r Replacement) int {
	at := -1
	for i, device := range devices {
		if device == r.To {
			return -1
		}
		if device == r.From && at < 0 {
			at = i
		}
	}
	return at
}
