// Package health probes endpoints and says whether they are up.
//
// It owns four things: what a check is ([Check]), how one attempt is made and
// what its answer means ([Result], one file per kind of probe), when many
// results make a verdict ([Verdict], a pure state machine), and when the next
// attempt is due ([Prober], which holds the goroutines and reads the clock).
//
// It knows nothing of who asks. Whoever wants an endpoint watched puts a
// [Target] into [Prober.Set], reads [Prober.Transitions] and may look at
// [Prober.Snapshot] at any time. Equal targets share one probe.
//
// What always holds:
//
//   - An attempt has three outcomes. Only a pass or a failure moves a verdict;
//     an attempt that failed on our own side (no descriptor, no port, no
//     route, a process that was not running) is inconclusive and moves nothing.
//   - At most one attempt per target is under way, and none outlives its
//     timeout.
//   - Whatever an endpoint sends, an attempt reads a bounded number of bytes.
//   - A dead endpoint is called down within [Check.DetectionBound] of its death.
package health
