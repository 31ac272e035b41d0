// Package packet reads and writes the frames that brlb itself has a say in:
// questions about and announcements of neighbours (ARP, IPv6 neighbour
// discovery), answers to packets that nobody serves (TCP resets, SCTP aborts, ICMP errors),
// and packets that go back on their way with another destination.
//
// Everything is a function of its arguments. A frame begins with its Ethernet
// header and may carry up to two VLAN tags; answers carry the tags of what they
// answer. Frames come from strangers: what is cut or contradicts itself is an
// error, and nothing is changed.
package packet
