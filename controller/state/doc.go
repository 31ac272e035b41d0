// Package state decides which member owns which slot, and says why.
//
// It owns the facts about services, pools and members: the configuration,
// what OVSDB declares, operators' admin states, health verdicts, ports and
// next hops. Events change those facts; Snapshot turns them into one immutable
// picture with a slot table per pool. The package is pure: it does no I/O,
// starts no goroutine and reads no clock (every event brings its time), so the
// same events always give the same picture.
//
// Invariant: only an active member owns slots, and a member is active when it
// is enabled, up (or still unknown but serving when brlb connected or when its
// pool got another check), its next hop is known, and the port towards it is
// live.
package state
