package openflow

import (
	"net/netip"

	"pgregory.net/rapid"
)

// Generators of values of all types, for property tests. They draw values that
// Parse would return: empty lists are nil, and what Append normalises is not
// drawn in another form.

func genBytes(min, max int) *rapid.Generator[[]byte] {
	return rapid.Custom(func(t *rapid.T) []byte {
		b := rapid.SliceOfN(rapid.Byte(), min, max).Draw(t, "octets")
		if len(b) == 0 {
			return nil
		}
		return b
	})
}

// genList draws lists, nil instead of empty.
func genList[E any](g *rapid.Generator[E], max int) *rapid.Generator[[]E] {
	return rapid.Custom(func(t *rapid.T) []E {
		list := rapid.SliceOfN(g, 0, max).Draw(t, "list")
		if len(list) == 0 {
			return nil
		}
		return list
	})
}

func u8(t *rapid.T) uint8   { return rapid.Uint8().Draw(t, "u8") }
func u16(t *rapid.T) uint16 { return rapid.Uint16().Draw(t, "u16") }
func u32(t *rapid.T) uint32 { return rapid.Uint32().Draw(t, "u32") }
func u64(t *rapid.T) uint64 { return rapid.Uint64().Draw(t, "u64") }

func genMAC(t *rapid.T) MAC { return macFromUint64(u64(t)) }

func genText(max int) *rapid.Generator[string] {
	return rapid.StringMatching(`[a-z][a-z0-9 .-]*`).Filter(func(s string) bool { return len(s) <= max })
}

// genPort draws ports of ordinary numbers and reserved ones.
func genPort(t *rapid.T) PortNo {
	return rapid.OneOf(
		rapid.Map(rapid.Uint32Range(1, 0xfeff), func(n uint32) PortNo { return PortNo(n) }),
		rapid.SampledFrom([]PortNo{PortInPort, PortNormal, PortFlood, PortAll, PortController, PortLocal}),
	).Draw(t, "port")
}

// genField draws a known field for which keep is true.
func genField(keep func(Field) bool) *rapid.Generator[Field] {
	var list []Field
	for f := FieldUnknown + 1; f < fieldCount; f++ {
		if keep(f) {
			list = append(list, f)
		}
	}
	return rapid.SampledFrom(list)
}

// genParts draws fields with values and masks, known or not.
var genParts = rapid.Custom(func(t *rapid.T) Match {
	if rapid.IntRange(0, 9).Draw(t, "unknown") == 0 {
		header := uint32(rapid.SampledFrom([]uint16{0x0002, 0x8002, 0x7fff}).Draw(t, "class"))<<16 | u32(t)&0xff00
		return RawOXM(header, genBytes(0, 255).Draw(t, "payload"))
	}
	return genKnownParts(t, genField(func(Field) bool { return true }).Draw(t, "field"), 248)
})

func genKnownParts(t *rapid.T, f Field, most int) Match {
	masked := f.Maskable() && rapid.Bool().Draw(t, "masked")
	if f.info().format == formatBytes {
		if masked {
			most /= 2
		}
		v := genBytes(0, most).Draw(t, "value")
		if masked {
			return f.MaskedBytes(v, genBytes(len(v), len(v)).Draw(t, "mask"))
		}
		return f.Bytes(v)
	}
	limit := allOnes(f.Size())
	v := uint128{u64(t) & limit.hi, u64(t) & limit.lo}
	if masked {
		return Match{f.Masked128(v.hi, v.lo, u64(t)&limit.hi, u64(t)&limit.lo)}
	}
	return Match{{Field: f, value: v}}
}

var genMatch = rapid.Custom(func(t *rapid.T) Match {
	var m Match
	for _, parts := range genList(genParts, 6).Draw(t, "match") {
		m = append(m, parts...)
	}
	return m
})

// genSubfield draws runs of bits of a field with a 4-octet header, at most 64.
func genSubfield(t *rapid.T) Subfield {
	f := genField(func(f Field) bool { return !isExperimenter(f.actionHeader()) && f.Writable() }).Draw(t, "field")
	n := rapid.IntRange(1, min(f.Bits(), 64)).Draw(t, "bits")
	first := rapid.IntRange(0, min(f.Bits(), 1024)-n).Draw(t, "first")
	return f.Range(uint16(first), uint16(first+n-1))
}

// genWideSubfield draws runs of bits of any field.
func genWideSubfield(t *rapid.T, n int) Subfield {
	f := genField(func(f Field) bool { return f.Bits() >= n }).Draw(t, "field")
	first := rapid.IntRange(0, f.Bits()-n).Draw(t, "first")
	return Subfield{Field: f, Offset: uint16(first), Bits: uint16(n)}
}

func genAddr(t *rapid.T) netip.Addr {
	size := rapid.SampledFrom([]int{4, 16}).Draw(t, "size")
	return addrFromValue(uint128{u64(t), u64(t)}, size)
}

// genLeafAction draws actions that hold no actions.
var genLeafAction = rapid.Custom(func(t *rapid.T) Action {
	switch rapid.IntRange(0, 43).Draw(t, "action") {
	case 0:
		return Output{Port: genPort(t), MaxLen: u16(t)}
	case 1:
		return Group(u32(t))
	case 2:
		return PushVLAN(u16(t))
	case 3:
		return PopVLAN{}
	case 4:
		return PushMPLS(u16(t))
	case 5:
		return PopMPLS(u16(t))
	case 6:
		return SetMPLSTTL(u8(t))
	case 7:
		return DecMPLSTTL{}
	case 8:
		return SetQueue(u32(t))
	case 9:
		return SetNwTTL(u8(t))
	case 10:
		return DecNwTTL{}
	case 11:
		return CopyTTLOut{}
	case 12:
		return CopyTTLIn{}
	case 13:
		return PushPBB(u16(t))
	case 14:
		return PopPBB{}
	case 15:
		parts := genParts.Filter(func(m Match) bool { return len(m) == 1 && !m[0].masked }).Draw(t, "field")
		return SetField{parts[0]}
	case 16:
		dst := genSubfield(t)
		return RegLoad{Dst: dst, Value: u64(t) >> (64 - dst.Bits)}
	case 17:
		n := rapid.IntRange(1, 32).Draw(t, "bits")
		return RegMove{Src: genWideSubfield(t, n), Dst: genWideSubfield(t, n)}
	case 18:
		return Multipath{HashFields(u16(t) % 7), u16(t), LinkAlgorithm(u16(t) % 4), u16(t), u32(t), genSubfield(t)}
	case 19:
		return Resubmit{Port: genPort(t), Table: u8(t), CT: rapid.Bool().Draw(t, "ct")}
	case 20:
		return OutputReg{Src: genSubfield(t), MaxLen: u16(t)}
	case 21:
		return StackPush{genWideSubfield(t, 8)}
	case 22:
		return StackPop{genWideSubfield(t, 1)}
	case 23:
		n := rapid.IntRange(0, 9).Draw(t, "length")
		return Note(genBytes(8*n+6, 8*n+6).Draw(t, "note"))
	case 24:
		return Controller{u16(t), u16(t), PacketInReason(u8(t) % 6)}
	case 25:
		return Controller2{u16(t), u16(t), PacketInReason(u8(t) % 6), genBytes(0, 20).Draw(t, "data"), rapid.Bool().Draw(t, "pause"), u32(t)}
	case 26:
		return CTClear{}
	case 27:
		return genLearn(t)
	case 28:
		return RegLoad2{genKnownParts(t, genField(Field.Writable).Draw(t, "field"), 32)[0]}
	case 29:
		return SetTunnel(u32(t))
	case 30:
		return SetTunnel64(u64(t))
	case 31:
		return PopQueue{}
	case 32:
		return Exit{}
	case 33:
		return FinTimeout{u16(t), u16(t)}
	case 34:
		return WriteMetadataAction{u64(t), u64(t)}
	case 35:
		return DecTTLCntIDs(rapid.SliceOfN(rapid.Uint16(), 0, 5).Draw(t, "ids"))
	case 36:
		return Conjunction{u32(t), u8(t), u8(t)}
	case 37:
		return OutputTrunc{genPort(t), u32(t)}
	case 38:
		return CheckPktLarger{u16(t), genWideSubfield(t, 1)}
	case 39:
		return DeleteField{genField(func(Field) bool { return true }).Draw(t, "field")}
	case 40:
		return genRestAction(t)
	case 41:
		return LinkBundle{Fields: HashFields(u16(t) % 7), Basis: u16(t), Algorithm: BundleAlgorithm(u16(t) % 2),
			Members: genList(rapid.Custom(genPort), 5).Draw(t, "members"), Dst: genSubfield(t)}
	case 42:
		f := TunnelMetadata(rapid.IntRange(0, 63).Draw(t, "option"))
		if v := genBytes(17, 62).Draw(t, "value"); rapid.Bool().Draw(t, "masked") {
			return SetTunnelOption(f.MaskedBytes(v, genBytes(len(v), len(v)).Draw(t, "mask")))
		}
		return SetTunnelOption(f.Bytes(genBytes(33, 124).Draw(t, "value")))
	}
	n := 4 + 8*rapid.IntRange(0, 3).Draw(t, "length")
	return RawAction{Type: 0x7000 + u16(t)%16, Data: genBytes(n, n).Draw(t, "data")}
})

func genRestAction(t *rapid.T) Action {
	switch rapid.IntRange(0, 4).Draw(t, "action") {
	case 0:
		return Decap{u32(t)}
	case 1:
		return DecNSHTTL{}
	case 2:
		return Sample{Probability: u16(t), CollectorSetID: u32(t), ObsDomainID: u32(t), ObsPointID: u32(t), SamplingPort: PortAny}
	case 3:
		return Sample{Probability: u16(t), CollectorSetID: u32(t), ObsDomainID: u32(t), ObsPointID: u32(t), SamplingPort: genPort(t), Direction: SampleDirection(u8(t) % 3)}
	}
	properties := genList(rapid.Custom(func(t *rapid.T) EncapProperty {
		return EncapProperty{u16(t), u8(t), genBytes(0, 251).Draw(t, "data")}
	}), 3).Draw(t, "properties")
	return Encap{u16(t), u32(t), properties}
}

func genLearn(t *rapid.T) Learn {
	a := Learn{u16(t), u16(t), u16(t), u64(t), LearnFlags(u8(t) & 3), u8(t), u16(t), u16(t), nil, 0, Subfield{}}
	if rapid.Bool().Draw(t, "newer") {
		a.Limit = u32(t) | 1
		if rapid.Bool().Draw(t, "result") {
			a.Result = genWideSubfield(t, 1)
			a.Flags |= LearnWriteResult
		}
	}
	a.Specs = genList(rapid.Custom(func(t *rapid.T) LearnSpec {
		n := rapid.IntRange(1, 32).Draw(t, "bits")
		s := LearnSpec{Kind: LearnKind(u8(t) % 3), Bits: uint16(n)}
		if rapid.Bool().Draw(t, "immediate") {
			s.Value = genBytes(learnValueLen(s.Bits), learnValueLen(s.Bits)).Draw(t, "value")
		} else {
			s.Src = genWideSubfield(t, n)
		}
		if s.Kind != LearnOutput {
			s.Dst = genWideSubfield(t, n)
		}
		return s
	}), 4).Draw(t, "specs")
	return a
}

func genNAT(t *rapid.T) NAT {
	a := NAT{Flags: NATFlags(u8(t) & 31)}
	if rapid.Bool().Draw(t, "address") {
		a.MinAddr = genAddr(t)
		if rapid.Bool().Draw(t, "range") {
			if last := genAddr(t); last.Is4() == a.MinAddr.Is4() && last != a.MinAddr {
				a.MaxAddr = last
			}
		}
	}
	if rapid.Bool().Draw(t, "port") {
		a.MinPort = rapid.Uint16Range(1, 65534).Draw(t, "first")
		if rapid.Bool().Draw(t, "range") {
			a.MaxPort = a.MinPort + 1
		}
	}
	return a
}

// genActions draws lists of actions, with actions in them down to depth.
func genActions(depth int) *rapid.Generator[[]Action] {
	g := genLeafAction
	if depth > 0 {
		g = rapid.OneOf(genLeafAction, rapid.Custom(func(t *rapid.T) Action {
			exec := genActions(depth-1).Draw(t, "nested")
			if rapid.Bool().Draw(t, "clone") {
				return Clone(exec)
			}
			a := CT{Commit: rapid.Bool().Draw(t, "commit"), Force: rapid.Bool().Draw(t, "force"), Zone: u16(t), Table: u8(t), ALG: u16(t), Exec: exec}
			if rapid.Bool().Draw(t, "zone of a field") {
				a.Zone, a.ZoneSrc = 0, genSubfield(t)
			}
			if rapid.Bool().Draw(t, "nat") {
				a.Exec = append(a.Exec, genNAT(t))
			}
			return a
		}))
	}
	return genList(g, 5)
}

var genInstructions = rapid.Custom(func(t *rapid.T) Instructions {
	return genList(rapid.Custom(func(t *rapid.T) Instruction {
		switch rapid.IntRange(0, 6).Draw(t, "instruction") {
		case 0:
			return GotoTable(u8(t))
		case 1:
			return WriteMetadata{u64(t), u64(t)}
		case 2:
			return WriteActions(genActions(0).Draw(t, "actions"))
		case 3:
			return ClearActions{}
		case 4:
			return Meter(u32(t))
		case 5:
			return RawInstruction{Type: 0x100 + u16(t)%16, Data: genBytes(0, 20).Draw(t, "data")}
		}
		return ApplyActions(genActions(2).Draw(t, "actions"))
	}), 3).Draw(t, "instructions")
})

func genProperties(t *rapid.T) []RawProperty {
	return genList(rapid.Custom(func(t *rapid.T) RawProperty {
		return RawProperty{0x8000 + u16(t)%16, genBytes(0, 20).Draw(t, "data")}
	}), 3).Draw(t, "properties")
}
