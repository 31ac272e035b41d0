package pipeline

import (
	"fmt"
	"slices"

	"brlb/openflow"
)

// The switch's meters bound how many packets go to the controller per second,
// and at once: those that are refused, and those that it must deal with so that
// others can be served. A flood of the first does not crowd out the second.
const (
	meterRefused = cookieTag
	meterServed  = cookieTag + 1
	meterRate    = 1000
	meterBurst   = 200
)

// Meters returns the meters that rows name. They are no flows, so no bundle can
// bring them: a switch must have them before it gets the rows.
func Meters() []*openflow.MeterMod {
	var meters []*openflow.MeterMod
	for _, id := range []uint32{meterRefused, meterServed} {
		meters = append(meters, &openflow.MeterMod{
			Command: openflow.MeterAdd, Flags: openflow.MeterPktps | openflow.MeterBurst, ID: id,
			Bands: []openflow.MeterBand{{Kind: openflow.BandDrop, Rate: meterRate, Burst: meterBurst}},
		})
	}
	return meters
}

// fitMeters makes rows such as a switch without meters can hold. Nothing bounds there
// what comes up to the controller: what would be refused is dropped, and what must be
// dealt with so that clients are served comes up without a bound.
func (fr frame) fitMeters(rows []*openflow.FlowMod) {
	if !fr.noMeters {
		return
	}
	for _, f := range rows {
		if slices.Contains(f.Instructions, openflow.Instruction(openflow.Meter(meterRefused))) {
			f.Instructions = nil
		}
		f.Instructions = slices.DeleteFunc(f.Instructions, func(i openflow.Instruction) bool { _, meter := i.(openflow.Meter); return meter })
	}
}

// WrongMeters says, in sentences, which of Meters a switch that has these does not
// have as they should be.
func WrongMeters(has []openflow.MeterConfig) []string {
	var wrong []string
	for _, want := range Meters() {
		i := slices.IndexFunc(has, func(m openflow.MeterConfig) bool { return m.ID == want.ID })
		switch {
		case i < 0:
			wrong = append(wrong, fmt.Sprintf("meter %d is missing", want.ID))
		case has[i].Flags != want.Flags || !slices.EqualFunc(has[i].Bands, want.Bands, sameBand):
			wrong = append(wrong, fmt.Sprintf("meter %d is not one of %d packets a second, %d at once", want.ID, meterRate, meterBurst))
		}
	}
	return wrong
}

func sameBand(a, b openflow.MeterBand) bool {
	return a.Kind == b.Kind && a.Rate == b.Rate && a.Burst == b.Burst
}
