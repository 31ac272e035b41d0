package crush

import "slices"

// Permits returns a function for [Balance] that permits what a rule could have
// given: the new device is below the same root as the one that it replaces, and
// for each type that the rule chooses by, it shares its bucket of that type with
// exactly the devices with which the old one shared its.
func (m *Mapper) Permits(rule Rule) func(before, after []int32) bool {
	var blocks []groups
	for _, step := range rule.Steps {
		last := len(blocks) - 1
		switch step.Op {
		case Take:
			blocks = append(blocks, groups{m.group(step.Arg1, m.typeOf(step.Arg1))})
		case ChooseFirstn, ChooseIndep, ChooseleafFirstn, ChooseleafIndep, ChooseMSR:
			if last >= 0 {
				blocks[last] = append(blocks[last], m.group(rootOf(rule, last), step.Arg2))
			}
		}
	}
	return func(before, after []int32) bool {
		for i := range before {
			permitted := before[i] == after[i] || slices.ContainsFunc(blocks, func(g groups) bool {
				return g.permit(before, i, after[i])
			})
			if !permitted {
				return false
			}
		}
		return true
	}
}

// rootOf returns what the n-th take of a rule takes.
func rootOf(rule Rule, n int) int32 {
	for _, step := range rule.Steps {
		if step.Op == Take {
			if n == 0 {
				return step.Arg1
			}
			n--
		}
	}
	return None
}

// groups holds, for the root and each type that a block of a rule chooses by,
// which bucket each device is in.
type groups []map[int32]int32

// permit reports whether a device may take the place of devices[at].
func (g groups) permit(devices []int32, at int, device int32) bool {
	for _, bucketOf := range g {
		old, known := bucketOf[devices[at]]
		fresh, possible := bucketOf[device]
		if !known || !possible {
			return false
		}
		for i, other := range devices {
			if i == at {
				continue
			}
			bucket, same := bucketOf[other]
			if same && (bucket == old) != (bucket == fresh) {
				return false
			}
		}
	}
	return true
}

// group returns, for each device from root down, the bucket of a type that it
// is in; for type 0, the device itself.
func (m *Mapper) group(root, kind int32) map[int32]int32 {
	in := make(map[int32]int32)
	var walk func(item, bucket int32)
	walk = func(item, bucket int32) {
		if m.typeOf(item) == kind {
			bucket = item
		}
		b := m.bucket(item)
		if b == nil {
			if bucket != None {
				in[item] = bucket
			}
			return
		}
		for _, child := range b.Items {
			walk(child, bucket)
		}
	}
	walk(root, None)
	return in
}
