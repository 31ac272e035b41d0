// Package bridge is the OpenFlow side of one bridge: it waits for the switch
// (or dials it), reads what it holds, applies plans in bundles, notices when
// somebody else changes brlb's flows, asks for next hops, and puts packets of
// stale connections back on their way.
//
// It decides nothing about services and members: it tells its owner what
// happened (Event), and does what it is told. It never writes a flow outside
// Apply.
package bridge
