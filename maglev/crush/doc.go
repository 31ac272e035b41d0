// Package crush computes placements with Ceph's CRUSH algorithm, bit by bit as
// Ceph's C code does: the rjenkins hashes, the fixed-point logarithm, the
// bucket algorithms, rules of both families (choose/chooseleaf and MSR),
// tunables, reweights, choose_args, device classes, upmaps and the upmap
// balancer.
//
// A [Map] describes a hierarchy: devices, numbered from 0, in buckets, with ids
// below 0, that stand for hosts, racks and so on. A [Rule] says how to walk it.
// [New] checks a map and returns a [Mapper], whose Do turns an input number x
// into a list of devices in different failure domains.
//
// The algorithm is described in Weil et al., CRUSH: Controlled, Scalable,
// Decentralized Placement of Replicated Data (SC 2006); straw2 and MSR rules
// came later. Weights are 16.16 fixed point: 0x10000 is 1.
package crush
