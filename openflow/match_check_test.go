package openflow

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestMatchCheck(t *testing.T) {
	eth, tcp := EthType.Exact(0x0800), IPProto.Exact(6)
	for _, c := range []struct {
		match Match
		want  ErrorCode // 0: good
	}{
		{nil, 0},
		{Match{eth, tcp, TCPDst.Exact(80)}, 0},
		{append(RawOXM(0x7fff0000, []byte{1}), TunnelMetadata(1).Bytes(make([]byte, 100))...), 0},
		{Match{tcp, eth, TCPDst.Exact(80)}, BadMatchBadPrereq},
		{Match{eth, TCPDst.Exact(80)}, BadMatchBadPrereq},
		{Match{eth, IPFrag.Exact(3), tcp, TCPDst.Exact(80)}, BadMatchBadPrereq},
		{Match{IPv6Dst.Exact(1)}, BadMatchBadPrereq},
		{Match{VLANPCP.Exact(1)}, BadMatchBadPrereq},
		{Match{eth, eth}, BadMatchDupField},
		{Match{OXM{Field: EthType, masked: true, value: uint128{lo: 1}, mask: uint128{lo: 1}}}, BadMatchBadMask},
		{Match{OXM{Field: Reg0, masked: true, value: uint128{lo: 3}, mask: uint128{lo: 1}}}, BadMatchBadWildcards},
		{Match{VLANVID.Exact(vlanPresent | 100), VLANPCP.Exact(8)}, BadMatchBadValue},
	} {
		err := c.match.Check()
		if c.want == 0 && err != nil || c.want != 0 && !errors.Is(err, c.want) {
			t.Errorf("%v: %v, want %v", c.match, err, c.want)
		}
	}
}

// TestOfctlChecksMatches compares Check with what ovs-ofctl refuses.
func TestOfctlChecksMatches(t *testing.T) {
	needOfctl(t)
	var messages [][]byte
	var matches []Match
	rapid.Check(t, func(t *rapid.T) {
		m := NewFlowMod(FlowAdd)
		m.Match = slices.Clone(genValidMatch(t))
		if n := len(m.Match); n > 0 {
			i, j := rapid.IntRange(0, n-1).Draw(t, "i"), rapid.IntRange(0, n-1).Draw(t, "j")
			switch rapid.IntRange(0, 4).Draw(t, "fault") {
			case 0:
				m.Match[i], m.Match[j] = m.Match[j], m.Match[i]
			case 1:
				m.Match = append(m.Match, m.Match[i])
			case 2:
				m.Match = slices.Delete(m.Match, i, i+1)
			case 3:
				f := m.Match[i].Field
				m.Match[i].value.lo = u64(t) & allOnes(f.Size()).lo
			}
		}
		b, err := Append(nil, 1, m)
		if err != nil {
			t.Fatal(err)
		}
		messages, matches = append(messages, b), append(matches, m.Match)
	})
	refused := 0
	for i, text := range ofpParse(t, messages) {
		_, code, bad := strings.Cut(text, "***decode error: ")
		code, _, _ = strings.Cut(code, "*")
		err := matches[i].Check()
		if bad {
			refused++
		}
		if bad != (err != nil) || bad && !strings.Contains(err.Error(), code) {
			t.Errorf("%v: %v, ovs-ofctl says %q\n%x", matches[i], err, code, messages[i])
		}
	}
	t.Logf("ovs-ofctl refused %d of %d", refused, len(matches))
}
