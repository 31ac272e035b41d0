// Package compare measures layouts against each other: it makes many random
// pools, lets something happen to each, and counts what every layout moves. It
// also draws slot maps and charts, as SVG.
//
// It is pure: random numbers come from a seed, so that anybody can repeat a
// comparison, time from a clock that the caller may pass in, and drawings are
// returned as bytes.
package compare
