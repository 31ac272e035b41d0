// Package metrics shows a running brlb to Prometheus.
//
// It owns the names, labels and help texts of brlb's metrics and holds no
// values: every scrape asks the controller for its counts. So the series of a
// member that was removed vanish by themselves, and a counter is as monotonic
// as the controller's own. No label names a slot or a client: the number of
// series grows with members, never with traffic.
package metrics
