package maglev

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"
)

// The functions in this file are the slow twins of the package's clever parts,
// written from the definitions alone.

// naiveV1 is v1 with stored permutations.
func naiveV1(in Input) []string {
	members := slices.Clone(in.Members)
	members = slices.DeleteFunc(members, func(m Member) bool { return m.Weight == 0 })
	slices.SortFunc(members, func(a, b Member) int { return cmp.Compare(a.Key, b.Key) })
	perms := make([][]int, len(members))
	quotas := make([]int, len(members))
	total, sum := 0, 0
	for _, m := range members {
		total += int(m.Weight)
	}
	for i, m := range members {
		offset := naiveFNV(in.Pool, 1, m.Key) % in.Slots
		skip := (naiveFNV(in.Pool, 2, m.Key)%(in.Slots-1) + 1) | 1
		for j := range in.Slots {
			perms[i] = append(perms[i], (offset+j*skip)%in.Slots)
		}
		quotas[i] = max(1, in.Slots*int(m.Weight)/total)
		sum += quotas[i]
	}
	for i := 0; sum < in.Slots; i = (i + 1) % len(members) {
		quotas[i]++
		sum++
	}
	keys := make([]string, in.Slots)
	for slot, owner := range naiveFill(perms, quotas) {
		keys[slot] = members[owner].Key
	}
	return keys
}

func naiveFNV(pool uint16, salt uint32, key string) int {
	h := fnv.New32a()
	h.Write(binary.BigEndian.AppendUint32(nil, uint32(pool)))
	h.Write(binary.BigEndian.AppendUint32(nil, salt))
	h.Write([]byte(key))
	return int(h.Sum32())
}

// naiveFill is the population step of the Maglev paper with quotas: rounds in
// which each member takes the first free slot of its permutation.
func naiveFill(perms [][]int, quotas []int) []int {
	quotas = slices.Clone(quotas)
	table := slices.Repeat([]int{-1}, len(perms[0]))
	for slices.Contains(table, -1) {
		for i, perm := range perms {
			if quotas[i] == 0 {
				continue
			}
			for _, slot := range perm {
				if table[slot] == -1 {
					table[slot] = i
					quotas[i]--
					break
				}
			}
		}
	}
	return table
}

func ownerKeys(t *Table) []string {
	keys := make([]string, t.Slots())
	for slot := range keys {
		keys[slot] = t.Key(slot)
	}
	return keys
}
