// Package lab builds a private network around a real Open vSwitch: hosts in
// network namespaces of their own, a bridge that forwards between them, HTTP
// servers and clients on the hosts, and faults on demand. The integration
// tests and `brlb demo` run in it.
//
//	host c1 ── p1 ┐                      ┌ p2 ── segment ─┬─ host be1
//	              ├─ br-lb (netdev) ─────┤                ├─ host be2
//	              │    │ LOCAL           │                └─ host be3
//	              └────┴── switch namespace: ovsdb-server, ovs-vswitchd, controller
//
// Everything a lab owns carries its name, brlb-PID-N: the namespaces
// (brlb-PID-N-HOST, visible to `ip netns`) and the directory that holds the
// database, sockets, pid files and logs of its Open vSwitch. The host's own
// Open vSwitch, interfaces and routes are never touched. [Lab.Close] removes
// all of it; [CleanStale] removes what a killed process left.
//
// The switch is Open vSwitch's userspace datapath on veth ports, so no kernel
// module is needed and real sockets work through it; with
// BRLB_LAB_DATAPATH=system in the environment it is the kernel's, as in the
// machines of package guest. Where the daemons run is a [Machine]: by default
// this machine, in the switch namespace; package image provides a container.
//
// The package is a test bench: it runs ovs-vsctl, ovs-ofctl and ovs-appctl,
// which the product never does.
package lab
