package openflow

import (
	"testing"
)

// FuzzParse is the target for whole messages: nothing may panic, and what is
// parsed must encode to what parses to the same.
func FuzzParse(f *testing.F) {
	for _, b := range sampleMessages(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		checkParse(t, b)
		if len(b) >= HeaderLen && len(b) <= MaxMessageLen {
			checkParse(t, withLength(b)) // spare the fuzzer the finding of the length
		}
	})
}

// fuzzPart makes a target for one part of messages: wrap puts octets where the
// part is.
func fuzzPart(f *testing.F, seeds [][]byte, wrap func([]byte) []byte) {
	for _, b := range seeds {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if whole := wrap(b); len(whole) <= MaxMessageLen {
			checkParse(t, withLength(whole))
		}
	})
}

// flowModStart is a flow mod up to its match.
func flowModStart() []byte {
	b, err := Append(nil, 1, NewFlowMod(FlowAdd))
	if err != nil {
		panic(err)
	}
	return b[:48]
}

// FuzzMatch is the target for the fields of a match.
func FuzzMatch(f *testing.F) {
	var seeds [][]byte
	for field := FieldUnknown + 1; field < fieldCount; field++ {
		for _, o := range []OXM{field.Exact(1), field.Masked(1, 3)} {
			if b, err := appendOXM(nil, &o); err == nil {
				seeds = append(seeds, b)
			}
		}
	}
	fuzzPart(f, seeds, func(b []byte) []byte {
		m := flowModStart()
		start := len(m)
		m = append(append16(append16(m, matchTypeOXM), uint16(len(b)+4)), b...)
		return pad8(m, start)
	})
}

// FuzzActions is the target for lists of actions.
func FuzzActions(f *testing.F) {
	var seeds [][]byte
	for _, c := range flowTexts(f) {
		m, err := ParseFlow(c.text)
		if err != nil {
			f.Fatal(err)
		}
		for _, i := range m.Instructions {
			if a, ok := i.(ApplyActions); ok {
				b, err := appendActions(nil, a)
				if err != nil {
					f.Fatal(err)
				}
				seeds = append(seeds, b)
			}
		}
	}
	fuzzPart(f, seeds, func(b []byte) []byte {
		m, err := Append(nil, 1, &PacketOut{})
		if err != nil {
			panic(err)
		}
		m[16], m[17] = byte(len(b)>>8), byte(len(b))
		return append(m, b...)
	})
}

// FuzzInstructions is the target for lists of instructions.
func FuzzInstructions(f *testing.F) {
	var seeds [][]byte
	for _, c := range flowTexts(f) {
		m, err := ParseFlow(c.text)
		if err != nil {
			f.Fatal(err)
		}
		b, err := appendInstructions(nil, m.Instructions)
		if err != nil {
			f.Fatal(err)
		}
		seeds = append(seeds, b)
	}
	fuzzPart(f, seeds, func(b []byte) []byte {
		return append(append(flowModStart(), 0, matchTypeOXM, 0, 4, 0, 0, 0, 0), b...)
	})
}

// FuzzMultipartReply is the target for statistics and descriptions, of all types.
func FuzzMultipartReply(f *testing.F) {
	for _, c := range messageCases() {
		if m, ok := c.message.(*MultipartReply); ok {
			b, err := m.Body.appendReply(nil)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(m.Body.MultipartType()), b)
		}
	}
	f.Fuzz(func(t *testing.T, typ uint8, b []byte) {
		whole, err := Append(nil, 1, &MultipartReply{Body: RawMultipart{MultipartType(typ % 18), b}})
		if err == nil {
			checkParse(t, whole)
			whole[1] = byte(TypeMultipartRequest)
			checkParse(t, whole)
		}
	})
}

// FuzzFlowStatsReader is the target for the reader of flow statistics, which
// must agree with Parse.
func FuzzFlowStatsReader(f *testing.F) {
	for _, c := range messageCases() {
		if m, ok := c.message.(*MultipartReply); ok && m.Body.MultipartType() == MultipartFlow {
			b, err := Append(nil, 7, m)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < HeaderLen+8 || len(b) > MaxMessageLen {
			return
		}
		b = withLength(b)
		b[0], b[1] = Version, byte(TypeMultipartReply)
		b[8], b[9] = 0, byte(MultipartFlow)
		checkFlowStatsReader(t, b)
	})
}

// FuzzText is the target for the readers of text: nothing may panic, and what
// is read must be written and read to the same.
func FuzzText(f *testing.F) {
	for _, c := range flowTexts(f) {
		f.Add(c.text)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m, err := ParseFlow(s)
		if err != nil {
			return
		}
		b, err := Append(nil, 1, m)
		if err != nil {
			return // a value that text can say and the wire cannot
		}
		checkParse(t, b)
	})
}
