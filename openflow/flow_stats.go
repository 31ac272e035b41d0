package openflow

import (
	"encoding/binary"
	"hash/maphash"
	"time"
)

// FlowSelector chooses flows in statistics requests.
type FlowSelector struct {
	Table      uint8  // TableAll for all
	OutPort    PortNo // only flows that output there; PortAny for all
	OutGroup   uint32 // only flows that use the group; GroupAny for all
	Cookie     uint64
	CookieMask uint64 // which bits of the cookie must agree; 0 for all flows
	Match      Match  // only flows that this includes; empty for all
}

// AllFlows selects every flow of every table.
func AllFlows() FlowSelector {
	return FlowSelector{Table: TableAll, OutPort: PortAny, OutGroup: GroupAny}
}

// FlowStatsRequest asks for FlowStatsReply (OF1.4 section 7.3.5.2).
type FlowStatsRequest FlowSelector

// AggregateRequest asks for AggregateReply (OF1.4 section 7.3.5.3).
type AggregateRequest FlowSelector

// FlowStatsReply lists flows; with MultipartMore not all of them. Parsed flows
// with the same instructions may share them: do not change their elements.
type FlowStatsReply []FlowStats

// FlowStats is a flow as the switch has it, and what it counted.
type FlowStats struct {
	Table        uint8
	DurationSec  uint32 // how long it is there
	DurationNSec uint32 // beyond DurationSec
	Priority     uint16
	IdleTimeout  uint16 // seconds
	HardTimeout  uint16 // seconds
	Flags        FlowModFlags
	Importance   uint16
	Cookie       uint64
	PacketCount  uint64
	ByteCount    uint64
	Match        Match
	Instructions Instructions
}

// Duration is how long the flow is there.
func (f *FlowStats) Duration() time.Duration { return duration(f.DurationSec, f.DurationNSec) }

// AggregateReply sums up the flows that were selected.
type AggregateReply struct {
	PacketCount uint64
	ByteCount   uint64
	FlowCount   uint32
}

// MultipartType returns MultipartFlow.
func (FlowStatsRequest) MultipartType() MultipartType { return MultipartFlow }

// MultipartType returns MultipartFlow.
func (FlowStatsReply) MultipartType() MultipartType { return MultipartFlow }

// MultipartType returns MultipartAggregate.
func (AggregateRequest) MultipartType() MultipartType { return MultipartAggregate }

// MultipartType returns MultipartAggregate.
func (AggregateReply) MultipartType() MultipartType { return MultipartAggregate }

func (r FlowStatsRequest) appendRequest(b []byte) ([]byte, error) { return FlowSelector(r).append(b) }
func (r AggregateRequest) appendRequest(b []byte) ([]byte, error) { return FlowSelector(r).append(b) }

func (s FlowSelector) append(b []byte) ([]byte, error) {
	b = append(b, s.Table, 0, 0, 0)
	b = append(append32(append32(b, uint32(s.OutPort)), s.OutGroup), 0, 0, 0, 0)
	return appendMatch(append64(append64(b, s.Cookie), s.CookieMask), s.Match)
}

func parseFlowSelector(d *decoder) (s FlowSelector) {
	s.Table = d.u8()
	d.skip(3)
	s.OutPort, s.OutGroup = PortNo(d.u32()), d.u32()
	d.skip(4)
	s.Cookie, s.CookieMask = d.u64(), d.u64()
	s.Match = parseMatch(d, nil)
	return s
}

func (r FlowStatsReply) appendReply(b []byte) ([]byte, error) {
	var err error
	for i := range r {
		if b, err = appendFlowStats(b, &r[i]); err != nil {
			return b, err
		}
	}
	return b, nil
}

func appendFlowStats(b []byte, f *FlowStats) ([]byte, error) {
	start := len(b)
	b = append(b, 0, 0, f.Table, 0)
	b = append32(append32(b, f.DurationSec), f.DurationNSec)
	b = append16(append16(append16(b, f.Priority), f.IdleTimeout), f.HardTimeout)
	b = append(append16(append16(b, uint16(f.Flags)), f.Importance), 0, 0)
	b = append64(append64(append64(b, f.Cookie), f.PacketCount), f.ByteCount)
	b, err := appendMatch(b, f.Match)
	if err == nil {
		b, err = appendInstructions(b, f.Instructions)
	}
	if err != nil {
		return b, err
	}
	return patchLenAt(b, start, start, "flow")
}

// flowStatsMinLen is the length of a flow without fields and instructions.
const flowStatsMinLen = 56

func parseFlowStatsReply(d *decoder) FlowStatsReply {
	var slabs flowSlabs
	var list FlowStatsReply
	for d.left() > 0 {
		if list == nil {
			list, slabs = sizeFlowStats(d)
		}
		list = extend(list)
		parseFlowStats(d, &list[len(list)-1], &slabs)
	}
	return list
}

// sizeFlowStats guesses from the first flow how many there are. The flows of
// most replies are alike; a wrong guess costs a copy.
func sizeFlowStats(d *decoder) (FlowStatsReply, flowSlabs) {
	n := 1
	if d.left() >= 2 {
		first := int(binary.BigEndian.Uint16(d.b[d.pos:]))
		first = max(first, flowStatsMinLen)
		n = (d.left() + first - 1) / first
	}
	return make(FlowStatsReply, 0, n), flowSlabs{
		memo: &instructionMemo{seed: maphash.MakeSeed()},
	}
}

func parseFlowStats(d *decoder, f *FlowStats, slabs *flowSlabs) {
	outer := d.entry(flowStatsMinLen, "flow")
	parseFlowCounters(d, f)
	f.Match = slabs.parseMatch(d)
	f.Instructions = parseInstructions(d, slabs)
	d.leave(outer)
}

// parseFlowCounters reads what a flow has before its match, after its length.
// It is read for every flow, so it is taken in one piece.
func parseFlowCounters(d *decoder, f *FlowStats) {
	b := d.take(flowStatsMinLen - 8 - 2) // less an empty match and the length
	if b == nil {
		return
	}
	f.Table = b[0]
	f.DurationSec, f.DurationNSec = binary.BigEndian.Uint32(b[2:]), binary.BigEndian.Uint32(b[6:])
	f.Priority, f.IdleTimeout, f.HardTimeout = binary.BigEndian.Uint16(b[10:]), binary.BigEndian.Uint16(b[12:]), binary.BigEndian.Uint16(b[14:])
	f.Flags, f.Importance = FlowModFlags(binary.BigEndian.Uint16(b[16:])), binary.BigEndian.Uint16(b[18:])
	f.Cookie, f.PacketCount, f.ByteCount = binary.BigEndian.Uint64(b[22:]), binary.BigEndian.Uint64(b[30:]), binary.BigEndian.Uint64(b[38:])
}

func (r AggregateReply) appendReply(b []byte) ([]byte, error) {
	return append(append32(append64(append64(b, r.PacketCount), r.ByteCount), r.FlowCount), 0, 0, 0, 0), nil
}

func parseAggregateReply(d *decoder) AggregateReply {
	r := AggregateReply{PacketCount: d.u64(), ByteCount: d.u64(), FlowCount: d.u32()}
	d.skip(4)
	return r
}
