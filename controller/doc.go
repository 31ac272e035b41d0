// Package controller is the running load balancer: it connects OVSDB, probes,
// operators and the switch to the pure packages that decide. A process may run
// one for each of several bridges; they share nothing.
//
// One goroutine, the loop, owns all state. Everything else sends it events and
// reads the last published view. The loop never waits for anything but events:
// bundles, reads and stores run beside it and report back.
//
// Invariant: what the loop believes the switch to hold ("installed") is what
// the switch has confirmed or was read from it. When that is in doubt, nothing
// is sent until it has been read again.
package controller
