package openflow

import "testing"

// slots is the size of the table that the benchmarks write and read.
const slots = 512 // of the 1,024 of a pool: what fits into one message

func slotInstructions(slot int) Instructions {
	return Instructions{ApplyActions{RegLoad{Dst: Reg2.Whole(), Value: uint64(slot % 7)}}, GotoTable(12)}
}

// slotMods are the flows of a pool of 1,024 slots.
func slotMods() []*FlowMod {
	mods := make([]*FlowMod, 1024)
	for i := range mods {
		m := NewFlowMod(FlowAdd)
		m.Table, m.Priority, m.Cookie = 11, 100, 0x6272_6c62_0001_0000
		m.Match = Match{Reg0.Exact(1), Reg1.Exact(uint64(i))}
		m.Instructions = slotInstructions(i)
		mods[i] = m
	}
	return mods
}

// tableOfSlots is a message with the statistics of such flows.
func tableOfSlots(t testing.TB) []byte {
	var reply FlowStatsReply
	for i, m := range slotMods()[:slots] {
		reply = append(reply, FlowStats{Table: 11, Priority: 100, Cookie: m.Cookie, PacketCount: uint64(i), Match: m.Match, Instructions: m.Instructions})
	}
	b, err := Append(nil, 1, &MultipartReply{Body: reply})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func BenchmarkAppendFlowMods(b *testing.B) {
	mods := slotMods()
	buf := make([]byte, 0, 1<<20)
	b.ReportAllocs()
	for b.Loop() {
		buf = buf[:0]
		for i, m := range mods {
			var err error
			if buf, err = Append(buf, uint32(i), m); err != nil {
				b.Fatal(err)
			}
		}
	}
	perFlow(b, len(mods))
}

func BenchmarkAppendBundle(b *testing.B) {
	mods := slotMods()
	adds := make([]*BundleAdd, len(mods))
	for i, m := range mods {
		adds[i] = &BundleAdd{ID: 1, Flags: BundleAtomic, Message: m}
	}
	buf := make([]byte, 0, 1<<20)
	b.ReportAllocs()
	for b.Loop() {
		buf = buf[:0]
		for i, m := range adds {
			var err error
			if buf, err = Append(buf, uint32(i), m); err != nil {
				b.Fatal(err)
			}
		}
	}
	perFlow(b, len(mods))
}

func BenchmarkParseFlowStats(b *testing.B) {
	message := tableOfSlots(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Parse(message); err != nil {
			b.Fatal(err)
		}
	}
	perFlow(b, slots)
}

func BenchmarkFlowStatsReader(b *testing.B) {
	message := tableOfSlots(b)
	b.ReportAllocs()
	for b.Loop() {
		r, err := NewFlowStatsReader(message)
		if err != nil {
			b.Fatal(err)
		}
		n := 0
		for r.Next() {
			n += len(r.Flow().Match)
		}
		if n != 2*slots {
			b.Fatal(r.Err())
		}
	}
	perFlow(b, slots)
}

func BenchmarkParsePacketIn(b *testing.B) {
	message, err := Append(nil, 1, &PacketIn{BufferID: NoBuffer, Match: Match{InPort.Exact(1)}, Data: make([]byte, 64)})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := Parse(message); err != nil {
			b.Fatal(err)
		}
	}
}

func perFlow(b *testing.B, flows int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(flows), "ns/flow")
}

// TestAppendAllocatesNothing holds the promise of Append.
func TestAppendAllocatesNothing(t *testing.T) {
	mods := slotMods()
	add := &BundleAdd{Message: mods[0]}
	buf := make([]byte, 0, 1<<20)
	if n := testing.AllocsPerRun(10, func() {
		buf = buf[:0]
		var err error
		for i, m := range mods {
			if buf, err = Append(buf, uint32(i), m); err != nil {
				t.Fatal(err)
			}
		}
		if buf, err = Append(buf, 1, add); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations for %d flows", n, len(mods))
	}
}

// TestReaderAllocatesNothing holds the promise of FlowStatsReader: what it
// allocates does not grow with the flows.
func TestReaderAllocatesNothing(t *testing.T) {
	message := tableOfSlots(t)
	if n := testing.AllocsPerRun(10, func() {
		r, err := NewFlowStatsReader(message)
		if err != nil {
			t.Fatal(err)
		}
		for r.Next() {
		}
	}); n > 4 {
		t.Errorf("%v allocations for %d flows", n, slots)
	}
}
