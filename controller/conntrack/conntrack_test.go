package conntrack

import (
	"bufio"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

var compareAddr = cmpopts.EquateComparable(netip.Addr{})

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// TestGolden: what Open vSwitch 3.1 has printed of its userspace table, and what
// its source says that it prints of a kernel's.
func TestGolden(t *testing.T) {
	v4 := Tuple{Src: addr("10.20.0.10"), Dst: addr("10.20.0.100")}
	back4 := Tuple{Src: addr("10.30.0.11"), Dst: addr("10.20.0.10")}
	v6 := Tuple{Src: addr("2001:db8::1"), Dst: addr("2001:db8::100")}
	back6 := Tuple{Src: addr("fd00::11"), Dst: addr("2001:db8::1")}
	ports := func(t Tuple, src, dst uint16) Tuple { t.SrcPort, t.DstPort = src, dst; return t }
	icmp := func(t Tuple, kind uint8) Tuple { t.ICMPType = kind; return t }
	for file, want := range map[string][]Entry{
		"userspace-3.1.txt": {
			{Proto: ProtoTCP, Orig: ports(v4, 40000, 80), Reply: ports(back4, 8080, 40000), Mark: 0x10001, OrigState: SynSent, ReplyState: Closed},
			{Proto: ProtoTCP, Orig: ports(v4, 40001, 80), Reply: ports(back4, 8080, 40001), Mark: 0x10001, OrigState: Established, ReplyState: SynSent},
			{Proto: ProtoUDP, Orig: ports(v4, 5000, 53), Reply: ports(back4, 5353, 5000), Mark: 0x10002},
			{Proto: ProtoTCP, Orig: ports(v6, 40000, 80), Reply: ports(back6, 8080, 40000), Mark: 0x10004, OrigState: SynSent, ReplyState: Closed},
			{Proto: ProtoICMP, Orig: icmp(v4, 8), Reply: back4},
			{Proto: ProtoUDP, Orig: ports(v6, 40000, 53), Reply: ports(back6, 53, 40000), Mark: 0x10004},
			{Proto: ProtoICMPv6, Orig: icmp(v6, 128), Reply: icmp(back6, 129), Mark: 0x20005},
			{Proto: ProtoSCTP, Orig: v4, Reply: Tuple{Src: v4.Dst, Dst: v4.Src}, Mark: 0x10003},
		},
		"kernel.txt": {
			{Proto: ProtoTCP, Orig: ports(v4, 40000, 80), Reply: ports(back4, 8080, 40000), Mark: 0x10001, OrigState: Established, ReplyState: Established},
			{Proto: ProtoTCP, Orig: ports(v4, 40001, 80), Reply: ports(back4, 8080, 40001), Mark: 0x10001, OrigState: Closing, ReplyState: Closing},
		},
	} {
		f, err := os.Open("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		var got []Entry
		for lines := bufio.NewScanner(f); lines.Scan(); {
			e, err := Parse(lines.Bytes())
			if err != nil {
				t.Errorf("%s: %s: %v", file, lines.Text(), err)
			}
			got = append(got, e)
		}
		for i := range want {
			want[i].Zone = 18200
		}
		if diff := cmp.Diff(want, got, compareAddr); diff != "" {
			t.Errorf("%s:\n%s", file, diff)
		}
	}
}

// TestOpen: which states of the two ends make a connection that goes on.
func TestOpen(t *testing.T) {
	for _, c := range []struct {
		orig, reply State
		open        bool
	}{
		{"", "", true}, // not TCP
		{SynSent, Closed, true},
		{Established, Established, true},
		{Established, Closing, true},  // one end has closed
		{FinWait2, Established, true}, // likewise, acknowledged: the other may go on for hours
		{FinWait2, FinWait2, false},
		{FinWait2, Closing, false},
		{TimeWait, TimeWait, false}, // reset, in userspace
		{Closing, Closing, false},   // reset, in a kernel
		{FinWait1, FinWait1, true},  // one end has closed, in a kernel
		{CloseWait, CloseWait, true},
		{LastAck, LastAck, true},
		{"SOMETHING_NEW", "SOMETHING_NEW", true},
	} {
		e := Entry{Proto: ProtoTCP, OrigState: c.orig, ReplyState: c.reply}
		if e.Open() != c.open {
			t.Errorf("%s/%s: open %v", c.orig, c.reply, !c.open)
		}
	}
}

func TestRefused(t *testing.T) {
	const whole = "tcp,orig=(src=10.0.0.1,dst=10.0.0.2,sport=1,dport=2),reply=(src=10.0.0.2,dst=10.0.0.1,sport=2,dport=1)"
	if _, err := Parse([]byte(whole)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ line, want string }{
		{"", "begin with a protocol"},
		{"tcp", "not all addresses"},
		{"quic,orig=()", "begin with a protocol"},
		{"tcp,orig", "KEY=VALUE"},
		{"tcp,orig=(src=10.0.0.1", "closing parenthesis"},
		{strings.Replace(whole, "sport=1", "sport=65536", 1), "number of 16 bits"},
		{strings.Replace(whole, "src=10.0.0.1", "src=10.0.0.256", 1), "orig:"},
		{strings.Replace(whole, "dst=10.0.0.1", "dst=fe80::1%eth0", 1), "has a zone"},
		{whole + ",zone=-1", "zone:"},
		{whole + ",mark=0x10", "mark:"},
		{strings.Replace(whole, ",reply", ",other", 1), "not all addresses"},
	} {
		if _, err := Parse([]byte(c.line)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %q", c.line, err, c.want)
		}
	}
}

// text writes an entry as ct_dpif_format_entry does.
func text(e *Entry) string {
	names := map[uint8]string{ProtoTCP: "tcp", ProtoUDP: "udp", ProtoSCTP: "sctp", ProtoICMP: "icmp", ProtoICMPv6: "icmpv6"}
	tuple := func(t *Tuple) string {
		s := fmt.Sprintf("src=%s,dst=%s", t.Src, t.Dst)
		if e.Proto == ProtoICMP || e.Proto == ProtoICMPv6 {
			return s + fmt.Sprintf(",id=%d,type=%d,code=%d", t.ICMPID, t.ICMPType, t.ICMPCode)
		}
		return s + fmt.Sprintf(",sport=%d,dport=%d", t.SrcPort, t.DstPort)
	}
	name, known := names[e.Proto]
	if !known {
		name = fmt.Sprint(e.Proto)
	}
	s := fmt.Sprintf("%s,orig=(%s),reply=(%s),id=7", name, tuple(&e.Orig), tuple(&e.Reply))
	if e.Zone != 0 {
		s += fmt.Sprintf(",zone=%d", e.Zone)
	}
	s += ",status=SEEN_REPLY|CONFIRMED"
	if e.Mark != 0 {
		s += fmt.Sprintf(",mark=%d,labels=0x102", e.Mark)
	}
	if e.Proto == ProtoTCP {
		s += fmt.Sprintf(",protoinfo=(state_orig=%s,state_reply=%s,flags_orig=0,flags_reply=0)", e.OrigState, e.ReplyState)
	}
	return s
}

// TestWriteAndRead: every entry is read as it was written.
func TestWriteAndRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := Entry{
			Proto: rapid.SampledFrom([]uint8{ProtoTCP, ProtoUDP, ProtoSCTP, ProtoICMP, ProtoICMPv6, 47, 50}).Draw(t, "proto"),
			Zone:  rapid.Uint16().Draw(t, "zone"),
			Mark:  rapid.Uint32().Draw(t, "mark"),
		}
		address := func(label string) netip.Addr {
			if rapid.Bool().Draw(t, label+" is v4") {
				return netip.AddrFrom4([4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, label)))
			}
			return netip.AddrFrom16([16]byte(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, label)))
		}
		tuple := func(label string) Tuple {
			tuple := Tuple{Src: address(label + " src"), Dst: address(label + " dst")}
			if e.Proto == ProtoICMP || e.Proto == ProtoICMPv6 {
				tuple.ICMPID, tuple.ICMPType, tuple.ICMPCode = rapid.Uint16().Draw(t, "id"), rapid.Uint8().Draw(t, "type"), rapid.Uint8().Draw(t, "code")
			} else {
				tuple.SrcPort, tuple.DstPort = rapid.Uint16().Draw(t, "sport"), rapid.Uint16().Draw(t, "dport")
			}
			return tuple
		}
		e.Orig, e.Reply = tuple("orig"), tuple("reply")
		if e.Proto == ProtoTCP {
			states := []State{Closed, SynSent, SynRecv, Established, CloseWait, FinWait1, Closing, LastAck, FinWait2, TimeWait}
			e.OrigState, e.ReplyState = rapid.SampledFrom(states).Draw(t, "state"), rapid.SampledFrom(states).Draw(t, "state")
		}
		got, err := Parse([]byte(text(&e)))
		if err != nil {
			t.Fatalf("%s: %v", text(&e), err)
		}
		if diff := cmp.Diff(e, got, compareAddr); diff != "" {
			t.Fatalf("%s:\n%s", text(&e), diff)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, file := range []string{"userspace-3.1.txt", "kernel.txt"} {
		data, err := os.ReadFile("testdata/" + file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			f.Add(strings.TrimSuffix(line, "\n"))
		}
	}
	f.Fuzz(func(t *testing.T, line string) {
		e, err := Parse([]byte(line))
		if err != nil {
			return
		}
		for _, a := range []netip.Addr{e.Orig.Src, e.Orig.Dst, e.Reply.Src, e.Reply.Dst} {
			if !a.IsValid() {
				t.Errorf("%q: %+v", line, e)
			}
		}
	})
}

func TestTally(t *testing.T) {
	line := func(mark uint32, state State) []byte {
		e := Entry{
			Proto: ProtoTCP, Mark: mark, OrigState: state, ReplyState: state,
			Orig:  Tuple{Src: addr("10.0.0.1"), Dst: addr("10.0.0.2")},
			Reply: Tuple{Src: addr("10.0.0.3"), Dst: addr("10.0.0.1")},
		}
		return []byte(text(&e))
	}
	var tally Tally
	for _, l := range [][]byte{
		line(0x10001, Established), line(0x10001, Established), line(0x10001, TimeWait),
		line(0x10002, SynSent), line(0, Established), []byte("nonsense"), []byte(""),
	} {
		tally.Line(l)
	}
	want := Tally{
		Total:  Count{Open: 4, Ended: 1},
		ByMark: map[uint32]Count{0x10001: {Open: 2, Ended: 1}, 0x10002: {Open: 1}, 0: {Open: 1}},
		Unread: 2,
	}
	if diff := cmp.Diff(want, tally, cmpopts.IgnoreFields(Tally{}, "Problem")); diff != "" {
		t.Error(diff)
	}
	if tally.Problem == nil || !strings.Contains(tally.Problem.Error(), "nonsense") {
		t.Errorf("problem: %v", tally.Problem)
	}
}

func BenchmarkParse(b *testing.B) {
	data, err := os.ReadFile("testdata/userspace-3.1.txt")
	if err != nil {
		b.Fatal(err)
	}
	line := []byte(strings.SplitN(string(data), "\n", 2)[0])
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(line); err != nil {
			b.Fatal(err)
		}
	}
}
