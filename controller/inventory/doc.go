// Package inventory is the OVSDB side of one bridge: what Open vSwitch's
// database says of ports and declared members, the state that brlb keeps
// there (operators' overrides, member numbers), the lock that makes one brlb
// the writer, the Controller row that makes the switch dial brlb, BFD at the ports
// that lead to members, and ports for tunnels to members.
//
// It never decides anything about members: it hands out an Update, and writes
// what it is told to write. Writes happen only while the lock is held, in one
// transaction each, guarded by the lock.
package inventory
