package oftest

import (
	"maps"
	"slices"

	"brlb/openflow"
)

// changeMeter does a meter-mod. Deleting a meter deletes the flows that use it.
// How many packets a meter passes is not simulated: all of them.
func (t *tables) changeMeter(m *openflow.MeterMod) ([]change, openflow.ErrorCode) {
	_, exists := t.meters[m.ID]
	switch m.Command {
	case openflow.MeterAdd:
		if exists {
			return nil, openflow.MeterModFailedMeterExists
		}
		t.meters[m.ID] = m
	case openflow.MeterModify:
		if !exists {
			return nil, openflow.MeterModFailedUnknownMeter
		}
		t.meters[m.ID] = m
	case openflow.MeterDelete:
		var changes []change
		for id := range t.meters {
			if id != m.ID && m.ID != openflow.MeterAll {
				continue
			}
			delete(t.meters, id)
			for key, f := range t.flows {
				if usesMeter(f.Instructions, id) {
					delete(t.flows, key)
					changes = append(changes, change{event: openflow.EventRemoved, reason: openflow.RemovedMeterDelete, flow: f})
				}
			}
		}
		return changes, 0
	default:
		return nil, openflow.MeterModFailedBadCommand
	}
	return nil, 0
}

func (t *tables) meterConfig(wanted uint32) openflow.MeterConfigReply {
	var list openflow.MeterConfigReply
	for _, id := range slices.Sorted(maps.Keys(t.meters)) {
		if m := t.meters[id]; wanted == id || wanted == openflow.MeterAll {
			list = append(list, openflow.MeterConfig{Flags: m.Flags, ID: id, Bands: m.Bands})
		}
	}
	return list
}

// meterFeatures are those of Open vSwitch 3.1 in userspace.
func (sw *Switch) meterFeatures() openflow.MeterFeatures {
	if sw.opts.NoMeters {
		return openflow.MeterFeatures{}
	}
	return openflow.MeterFeatures{
		MaxMeter: 1 << 16, BandTypes: 1 << openflow.BandDrop, MaxBands: 8,
		Capabilities: uint32(openflow.MeterKbps | openflow.MeterPktps | openflow.MeterBurst | openflow.MeterStats),
	}
}

// haveMeters says whether the meter that instructions name exists.
func (t *tables) haveMeters(list openflow.Instructions) bool {
	return !slices.ContainsFunc(list, func(i openflow.Instruction) bool {
		id, ok := i.(openflow.Meter)
		return ok && t.meters[uint32(id)] == nil
	})
}

func usesMeter(list openflow.Instructions, id uint32) bool {
	return slices.Contains(list, openflow.Instruction(openflow.Meter(id)))
}
