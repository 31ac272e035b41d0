// Package conntrack reads the text in which Open vSwitch shows its connection
// table, and counts connections by ct_mark. It is pure: others ask the switch.
//
// The text is that of ovs-vswitchd's command dpctl/dump-conntrack with -m, a
// connection a line (lib/ct-dpif.c:ct_dpif_format_entry); without -m it says less
// of TCP's state.
package conntrack
