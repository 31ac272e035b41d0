// Package pipeline turns a state.Snapshot into the flows that the switch must
// hold, and compares flow sets.
//
// It owns the table numbers, registers, cookies and priorities: no other
// package writes one down. It is pure; the same snapshot gives the same flows,
// byte for byte, on any machine.
//
// Invariant: every flow carries the brlb tag in its cookie, and two flows of a
// set never share table, priority and match.
package pipeline
