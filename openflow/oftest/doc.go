// Package oftest has the peers that tests of OpenFlow code need:
//
//   - [Script], a peer that does and expects exactly what a test says, octet by
//     octet, misbehaviour included;
//   - [Switch], an in-memory switch that keeps flows, answers for them and says
//     where a packet would go;
//   - [OVS], a real, private Open vSwitch, for what only the real one can tell.
//
// It is for tests: its memory is bounded by what the test does, not by limits
// of its own.
package oftest
