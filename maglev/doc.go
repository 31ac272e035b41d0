// Package maglev decides which member of a pool owns which slot.
//
// A pool has M slots (a power of two) and N members with integer weights. The
// switch hashes a new connection to a slot; this package says whose slot it
// is. A layout is a pure function from an [Input] to a [Table]: the same input
// gives the same table on every machine, after every restart, in whatever
// order the members are listed. Nothing here does I/O, reads a clock, starts a
// goroutine or uses floating point whose result could differ between CPUs.
//
// The words used throughout:
//
//   - key: what names a member for good, its canonical "address:port"
//     ([CanonicalKey]). Layouts hash keys, so a member that is re-created with
//     the same key gets the same slots.
//   - weight: the member's part of the pool, relative to the sum of weights.
//     A member of weight 0 owns no slot.
//   - move: a slot whose owner differs between two tables. It is collateral
//     when neither its old nor its new owner is a member that changed, that
//     is, a survivor handed a slot to another survivor; else it is needed.
//   - lower bound: the least number of moves that any method needs to get from
//     the old counts to the new ones: the sum of all gains.
//
// [ByName] returns a layout; [Compare] compares two tables; [Digest] is what
// two nodes exchange to learn whether their tables are the same. The output of
// a released layout never changes: digests under testdata guard it.
package maglev
