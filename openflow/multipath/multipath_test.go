package multipath

import (
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"strconv"
	"testing"

	"pgregory.net/rapid"
)

type goldenFlow struct {
	Src, Dst string
	EthType  uint16 `json:"eth_type"`
	NwSrc    string `json:"nw_src"`
	NwDst    string `json:"nw_dst"`
	Proto    uint8
	Sp, Dp   uint16
	VLANs    []uint16
	Frag     string
}

func (g goldenFlow) packet(t *testing.T) *Packet {
	t.Helper()
	mac := func(s string) (m [6]byte) {
		hw, err := net.ParseMAC(s)
		if err != nil {
			t.Fatal(err)
		}
		copy(m[:], hw)
		return m
	}
	p := &Packet{
		EthSrc: mac(g.Src), EthDst: mac(g.Dst), EthType: g.EthType, VLANs: g.VLANs,
		Proto: g.Proto, SrcPort: g.Sp, DstPort: g.Dp,
	}
	if g.NwSrc != "" {
		p.Src, p.Dst = netip.MustParseAddr(g.NwSrc), netip.MustParseAddr(g.NwDst)
	}
	switch g.Frag {
	case "first":
		p.Frag = FirstFrag
	case "later":
		p.Frag = LaterFrag
	}
	return p
}

type goldenFile struct {
	Hash []struct {
		Fields, Name string
		Basis        uint16
		Flow         goldenFlow
		Hash         string
		Mod1024      uint16
		CRC32C       string `json:"hash_crc32c_build_computed"`
	}
	Alg []struct {
		Alg, Name string
		NLinks    int `json:"n_links"`
		Arg       uint32
		Hash      string
		Link      uint16
		CRC32C    *uint16 `json:"link_crc32c_build_computed"`
	}
	Random []struct {
		Basis   uint16
		Flow    goldenFlow
		Hash    string
		Mod1024 uint16
	} `json:"random_symmetric_l4"`
}

func golden(t *testing.T) goldenFile {
	t.Helper()
	raw, err := os.ReadFile("testdata/ovs_multipath.json")
	if err != nil {
		t.Fatal(err)
	}
	var g goldenFile
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

func hex32(t *testing.T, s string) uint32 {
	t.Helper()
	v, err := strconv.ParseUint(s, 0, 32)
	if err != nil {
		t.Fatal(err)
	}
	return uint32(v)
}

func allFields() map[string]Fields {
	m := map[string]Fields{}
	for f := EthSrc; f <= SymmetricL3; f++ {
		m[f.String()] = f
	}
	return m
}

func allAlgorithms() map[string]Algorithm {
	m := map[string]Algorithm{}
	for a := ModuloN; a <= IterHash; a++ {
		m[a.String()] = a
	}
	return m
}

func TestHashGolden(t *testing.T) {
	fields := allFields()
	for _, g := range golden(t).Hash {
		p, f := g.Flow.packet(t), fields[g.Fields]
		h := Hash(f, g.Basis, p)
		if want := hex32(t, g.Hash); h != want {
			t.Errorf("%s basis %d %s: hash %#x, the switch says %#x", g.Fields, g.Basis, g.Name, h, want)
		}
		if l := Link(ModuloN, h, 1024, 0); l != g.Mod1024 {
			t.Errorf("%s basis %d %s: slot %d, the switch says %d", g.Fields, g.Basis, g.Name, l, g.Mod1024)
		}
		want := h
		if g.CRC32C != "" {
			want = hex32(t, g.CRC32C)
		}
		if h := CRC32C.Hash(f, g.Basis, p); h != want {
			t.Errorf("crc32c %s basis %d %s: hash %#x, want %#x", g.Fields, g.Basis, g.Name, h, want)
		}
	}
}

func TestRandomSymmetricL4Golden(t *testing.T) {
	for i, g := range golden(t).Random {
		h := Hash(SymmetricL4, g.Basis, g.Flow.packet(t))
		if want := hex32(t, g.Hash); h != want || Link(ModuloN, h, 1024, 0) != g.Mod1024 {
			t.Errorf("vector %d: hash %#x, the switch says %#x", i, h, want)
		}
	}
}

func TestLinkGolden(t *testing.T) {
	algs := allAlgorithms()
	for _, g := range golden(t).Alg {
		h := hex32(t, g.Hash)
		if l := Link(algs[g.Alg], h, g.NLinks, g.Arg); l != g.Link {
			t.Errorf("%s(%#x, n=%d, arg=%d) = %d, the switch says %d", g.Alg, h, g.NLinks, g.Arg, l, g.Link)
		}
		if g.CRC32C == nil {
			continue
		}
		if l := CRC32C.Link(algs[g.Alg], h, g.NLinks, g.Arg); l != *g.CRC32C {
			t.Errorf("crc32c %s(%#x, n=%d, arg=%d) = %d, want %d", g.Alg, h, g.NLinks, g.Arg, l, *g.CRC32C)
		}
	}
}

func TestNamesOfUnknownValues(t *testing.T) {
	if got := Fields(9).String(); got != "fields(9)" {
		t.Error(got)
	}
	if got := Algorithm(7).String(); got != "algorithm(7)" {
		t.Error(got)
	}
}

func packets() *rapid.Generator[*Packet] {
	return rapid.Custom(func(t *rapid.T) *Packet {
		var p Packet
		copy(p.EthSrc[:], rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "src"))
		copy(p.EthDst[:], rapid.SliceOfN(rapid.Byte(), 6, 6).Draw(t, "dst"))
		p.EthType = rapid.OneOf(rapid.Just[uint16](ethIPv4), rapid.Just[uint16](ethIPv6), rapid.Uint16()).Draw(t, "type")
		p.VLANs = rapid.SliceOfN(rapid.Uint16(), 0, 2).Draw(t, "vlans")
		addr := rapid.Custom(func(t *rapid.T) netip.Addr {
			n := rapid.SampledFrom([]int{0, 4, 16}).Draw(t, "len")
			a, _ := netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), n, n).Draw(t, "addr"))
			return a
		})
		p.Src, p.Dst = addr.Draw(t, "nw_src"), addr.Draw(t, "nw_dst")
		p.Proto = rapid.OneOf(rapid.SampledFrom([]uint8{protoTCP, protoUDP, protoSCTP}), rapid.Uint8()).Draw(t, "proto")
		p.SrcPort, p.DstPort = rapid.Uint16().Draw(t, "sp"), rapid.Uint16().Draw(t, "dp")
		p.Frag = Frag(rapid.IntRange(0, 2).Draw(t, "frag"))
		return &p
	})
}

// Both directions of a connection hash alike, in both builds.
func TestSymmetry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := packets().Draw(t, "packet")
		r := *p
		r.EthSrc, r.EthDst = p.EthDst, p.EthSrc
		r.Src, r.Dst = p.Dst, p.Src
		r.SrcPort, r.DstPort = p.DstPort, p.SrcPort
		basis := rapid.Uint16().Draw(t, "basis")
		for _, b := range []Build{Murmur, CRC32C} {
			for _, f := range []Fields{SymmetricL4, SymmetricL3, SymmetricL3L4, SymmetricL3L4UDP} {
				if x, y := b.Hash(f, basis, p), b.Hash(f, basis, &r); x != y {
					t.Fatalf("%v %v: %#x forward, %#x backward", b, f, x, y)
				}
			}
		}
	})
}

// Every link is below n, and IterHash ends, for every argument.
func TestLinkRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(-1, maxLinks+1).Draw(t, "n")
		hash, arg := rapid.Uint32().Draw(t, "hash"), rapid.Uint32().Draw(t, "arg")
		for _, b := range []Build{Murmur, CRC32C} {
			for a := ModuloN; a <= IterHash+1; a++ {
				l := int(b.Link(a, hash, n, arg))
				if l != 0 && l >= n {
					t.Fatalf("%v %v: link %d of %d", b, a, l, n)
				}
			}
		}
	})
}

func TestNoAllocations(t *testing.T) {
	p := goldenFlow{
		Src: "02:00:00:00:00:01", Dst: "02:00:00:00:00:02", EthType: ethIPv6,
		NwSrc: "2001:db8::1", NwDst: "2001:db8::2", Proto: protoTCP, Sp: 1, Dp: 2, VLANs: []uint16{100},
	}.packet(t)
	for _, b := range []Build{Murmur, CRC32C} {
		for f := EthSrc; f <= SymmetricL3; f++ {
			n := testing.AllocsPerRun(100, func() {
				b.Link(IterHash, b.Hash(f, 7, p), 1000, 0)
			})
			if n != 0 {
				t.Errorf("%v %v: %v allocations", b, f, n)
			}
		}
	}
}

func BenchmarkHash(b *testing.B) {
	p := &Packet{
		EthType: ethIPv4, Src: netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.100"),
		Proto: protoTCP, SrcPort: 12345, DstPort: 80,
	}
	for _, f := range []Fields{SymmetricL4, SymmetricL3L4} {
		b.Run(f.String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Link(ModuloN, Hash(f, 7, p), 1024, 0)
			}
		})
	}
}
