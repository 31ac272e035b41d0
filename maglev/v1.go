package maglev

// v1 is the reference algorithm, Maglev with odd skips:
//
//  1. hash(key, salt) is FNV-32a over the pool id and the salt, both as
//     big-endian uint32, and the key's bytes. A member visits the slots in the
//     order (offset + j*skip) mod M, where offset = hash(key,1) mod M and
//     skip = (hash(key,2) mod (M-1) + 1) | 1. An odd skip is coprime to the
//     power of two M, so the walk visits every slot.
//  2. A member's quota is M*weight/W rounded down, at least 1; while the sum
//     is below M, the members get one more each, in key order.
//  3. In rounds over the members in key order, each one with quota left takes
//     the next slot of its walk that is still free, until no slot is.
//
// When the quotas of 1 make the sum exceed M, the rounds end early and the
// heaviest members go without their last slots.
type v1 struct {
	sorter sorter
	walks  []walk
}

// walk is one member on its way through the slots.
type walk struct {
	next  uint32 // the slot to look at next
	skip  uint32
	quota uint32
	owner uint16
}

func (*v1) Name() string    { return "v1" }
func (*v1) Version() string { return "v1" }

func (l *v1) Build(in Input, t *Table) error {
	members, err := l.sorter.start(in, l.Version(), t)
	if err != nil {
		return err
	}
	l.walks = startWalks(l.walks[:0], in, members)
	fill(t.Owner, l.walks)
	return nil
}

// startWalks does steps 1 and 2 for the members with a weight.
func startWalks(walks []walk, in Input, members []Member) []walk {
	slots := uint32(in.Slots)
	offsetSeed := fnvUint32(fnvUint32(fnvOffset, uint32(in.Pool)), 1)
	skipSeed := fnvUint32(fnvUint32(fnvOffset, uint32(in.Pool)), 2)
	total := totalWeight(members)
	given := uint64(0)
	weight, quota := uint32(0), uint64(0)
	for i := range members {
		m := &members[i]
		if m.Weight == 0 {
			continue
		}
		if m.Weight != weight { // else the division would give the same
			weight = m.Weight
			quota = max(1, uint64(slots)*uint64(weight)/total)
		}
		given += quota
		offset, skip := fnvKey(offsetSeed, skipSeed, m.Key)
		walks = append(walks, walk{
			next:  offset & (slots - 1),
			skip:  (skip%(slots-1) + 1) | 1,
			quota: uint32(quota),
			owner: uint16(i),
		})
	}
	for i := 0; given < uint64(slots); given++ {
		walks[i].quota++
		if i++; i == len(walks) {
			i = 0
		}
	}
	return walks
}

// fill does step 3. The sum of the quotas must be at least the number of
// slots. It consumes the walks.
func fill(owner []uint16, walks []walk) {
	mask := uint32(len(owner) - 1)
	free := len(owner)
	for {
		live := 0 // members that still want slots
		for i := range walks {
			w := &walks[i]
			slot, skip := w.next, w.skip
			for owner[slot&mask] != NoOwner {
				slot += skip
			}
			owner[slot&mask] = w.owner
			if free--; free == 0 {
				return
			}
			w.next = slot + skip
			if w.quota--; w.quota > 0 {
				if live < i {
					walks[live] = *w
				}
				live++
			}
		}
		walks = walks[:live]
	}
}

func totalWeight(members []Member) uint64 {
	total := uint64(0)
	for i := range members {
		total += uint64(members[i].Weight)
	}
	return total
}

// FNV-1a, 32 bits: http://www.isthe.com/chongo/tech/comp/fnv/
const (
	fnvOffset uint32 = 2166136261
	fnvPrime  uint32 = 16777619
)

// fnvUint32 continues a hash with the four bytes of v, the highest first.
func fnvUint32(h, v uint32) uint32 {
	for shift := 24; shift >= 0; shift -= 8 {
		h = (h ^ v>>shift&0xff) * fnvPrime
	}
	return h
}

// fnvKey continues two hashes with the bytes of a key. Doing both at once
// hides the latency of the multiplications.
func fnvKey(a, b uint32, key string) (uint32, uint32) {
	for i := range len(key) {
		c := uint32(key[i])
		a = (a ^ c) * fnvPrime
		b = (b ^ c) * fnvPrime
	}
	return a, b
}
