package vswitch

import (
	"fmt"
	"strconv"
	"time"

	"brlb/ovsdb"
)

// BFD says how the two ends of a link watch each other (RFC 5880).
type BFD struct {
	// MinTx and MinRx are the shortest gaps at which this end sends, and wants
	// to be sent, control packets; whole milliseconds, at least one.
	MinTx, MinRx time.Duration
	// Mult is how many packets in a row may be missed, 1 to 255.
	Mult uint8
}

// keys are the keys of Interface.bfd that say so.
func (b BFD) keys() map[string]string {
	return map[string]string{
		"enable": "true",
		"min_tx": strconv.FormatInt(b.MinTx.Milliseconds(), 10),
		"min_rx": strconv.FormatInt(b.MinRx.Milliseconds(), 10),
		"mult":   strconv.Itoa(int(b.Mult)),
	}
}

var bfdKeys = []string{"enable", "min_rx", "min_tx", "mult"}

// SetBFD plans to turn BFD on at an interface, or off if want is nil. A key in
// the interface's external_ids, mark, says that the caller has turned it on:
// BFD that somebody else has turned on is left alone. Other keys of bfd stay.
func SetBFD(i Interface, mark string, want *BFD) Plan {
	_, ours := i.ExternalIDs[mark]
	var p Plan
	p.guard(TableInterface, i.UUID, ovsdb.Columns{"name": ovsdb.String(i.Name), "bfd": ovsdb.StringMap(i.BFD)})
	switch {
	case want != nil && (ours || i.BFD["enable"] != "true"):
		p.mergeInterface(i, "bfd", i.BFD, want.keys(), nil)
		p.mergeInterface(i, "external_ids", i.ExternalIDs, map[string]string{mark: "true"}, nil)
	case want == nil && ours:
		p.mergeInterface(i, "bfd", i.BFD, nil, bfdKeys)
		p.mergeInterface(i, "external_ids", i.ExternalIDs, nil, []string{mark})
	}
	return p
}

func (p *Plan) mergeInterface(i Interface, column string, have, set map[string]string, remove []string) {
	if what, mutations := mergeMap(column, have, set, remove); what != "" {
		p.do(fmt.Sprintf("%s of interface %s: %s", column, i.Name, what),
			ovsdb.Mutate{Table: TableInterface, Where: []ovsdb.Condition{ovsdb.IsRow(i.UUID)}, Mutations: mutations})
	}
}
