package openflow

import "hash/maphash"

// flowSlabs hold the lists of many flows in few allocations: each flow's list
// is a full slice of the slab, so that appending to it cannot touch the next.
type flowSlabs struct {
	matches      Match
	instructions Instructions
	actions      []Action
	memo         *instructionMemo // nil: do not share instructions
}

// instructionMemo has the instructions of flows that were read before. The
// flows of a table do one of few things, so most of them share what an earlier
// one has.
type instructionMemo struct {
	seed  maphash.Seed
	lists [256]knownInstructions
}

// knownInstructions are instructions with their octets.
type knownInstructions struct {
	octets []byte
	list   Instructions
}

// extend makes s one longer. The new element has what it had, if it was used
// before, and is to be overwritten.
func extend[S ~[]E, E any](s S) S {
	if len(s) < cap(s) {
		return s[:len(s)+1]
	}
	var zero E
	return append(s, zero)
}

// slabFields is how many fields a slab of matches has room for: 14,320 octets,
// which fill a size class of the runtime that has four objects to a span. A
// large object (over 32 KiB) costs more, and so do the classes with one object
// to a span.
const slabFields = 358

// parseMatch reads a match into the slab.
func (s *flowSlabs) parseMatch(d *decoder) Match {
	if cap(s.matches)-len(s.matches) < 8 {
		s.matches = make(Match, 0, min(slabFields, (len(d.b)-d.pos)/8+1))
	}
	first := len(s.matches)
	s.matches = parseMatch(d, s.matches)
	return fullSlice(s.matches, first)
}

// known returns the place for instructions with the octets in d's window: they
// may be there, or others. Nil if there is no memo.
func (s *flowSlabs) known(d *decoder) *knownInstructions {
	if s.memo == nil {
		return nil
	}
	h := maphash.Bytes(s.memo.seed, d.b[d.pos:d.end])
	return &s.memo.lists[h%uint64(len(s.memo.lists))]
}

// fullSlice is what was appended to s since first; nil if that is nothing.
func fullSlice[S ~[]E, E any](s S, first int) S {
	if len(s) == first {
		return nil
	}
	return s[first:len(s):len(s)]
}
