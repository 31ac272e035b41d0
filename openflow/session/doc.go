// Package session is one OpenFlow 1.4 connection between a controller and a
// switch: handshake, requests and their replies, bundles, asynchronous messages,
// liveness. It takes a net.Conn, whoever dialled it, and owns it from then on.
//
// # What it promises
//
//   - A reply goes to the request with its transaction id or to nobody. An error
//     belongs to the message it names.
//   - The reader never waits: not for the writer, not for a caller, not for the
//     consumer of events. A switch that stops reading until its replies are read
//     (Open vSwitch does, at 100) cannot deadlock with it.
//   - Messages of one call go out together, in order, in few writes.
//   - Events keep their order. A consumer too slow for them is told where some
//     are missing.
//   - A peer that falls silent, stops reading, or sends what is not OpenFlow ends
//     the session with a reason. Then every waiter wakes with a [*ClosedError].
//   - What a peer sends is bounded in memory, and never panics.
//
// # Goroutines
//
// A Session has two: one reads and distributes, one writes. All else runs in the
// goroutine of the caller. [Session.Close] returns when both have ended.
package session
