package openflow

import (
	"net/netip"
	"slices"
	"testing"
	"unsafe"
)

func TestOXM(t *testing.T) {
	v4, v6 := netip.MustParseAddr("10.0.0.100"), netip.MustParseAddr("2001:db8::1")
	mac := MAC{2, 0, 0, 0, 0, 9}
	for _, c := range []struct {
		oxm  OXM
		want string
	}{
		{EthType.Exact(0x800), "dl_type=0x0800"},
		{Reg0.Exact(0), "reg0=0"},
		{Reg0.Exact(16), "reg0=0x10"},
		{Reg0.Masked(0xff, 0xf), "reg0=0xf/0xf"},
		{Reg0.Masked(5, 0xffffffff), "reg0=0x5"},
		{Metadata.Masked(5, ^uint64(0)), "metadata=0x5"},
		{CTLabel.Exact128(1, 2), "ct_label=0x10000000000000002"},
		{CTLabel.Masked128(1, 2, 0, 3), "ct_label=0x2/0x3"},
		{IPv4Dst.Addr(v4), "nw_dst=10.0.0.100"},
		{IPv4Dst.Prefix(netip.MustParsePrefix("10.0.0.7/24")), "nw_dst=10.0.0.0/24"},
		{IPv4Dst.Prefix(netip.PrefixFrom(v4, 32)), "nw_dst=10.0.0.100"},
		{IPv4Dst.Prefix(netip.MustParsePrefix("0.0.0.0/0")), "nw_dst=0.0.0.0/0"},
		{IPv6Dst.Addr(v6), "ipv6_dst=2001:db8::1"},
		{IPv6Dst.Prefix(netip.MustParsePrefix("2001:db8::1/32")), "ipv6_dst=2001:db8::/32"},
		{IPv6Dst.Prefix(netip.PrefixFrom(v6, 100)), "ipv6_dst=2001:db8::/100"},
		{EthDst.MAC(mac), "dl_dst=02:00:00:00:00:09"},
		{EthDst.MaskedMAC(mac, MAC{1}), "dl_dst=00:00:00:00:00:00/01:00:00:00:00:00"},
		{VLANVID.Exact(vlanPresent | 100), "dl_vlan=100"},
		{InPort.Exact(uint64(PortLocal)), "in_port=LOCAL"},
		{RawOXM(0x7fff0000, []byte{1, 2})[0], "oxm(7fff0000:0102)"},
	} {
		if got := c.oxm.String(); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
	if IPv4Dst.Addr(v4).IP() != v4 || IPv6Dst.Addr(v6).IP() != v6 || EthDst.MAC(mac).MAC() != mac || Reg0.Exact(1).IP() != netip.AddrFrom4([4]byte{0, 0, 0, 1}) || TCPDst.Exact(1).IP().IsValid() {
		t.Error("addresses do not come back")
	}
	if hi, lo := CTLabel.Exact128(1, 2).Uint128(); hi != 1 || lo != 2 {
		t.Errorf("got %d, %d", hi, lo)
	}
	if o := Reg0.Masked(5, 15); !o.IsMasked() || o.Mask() != 15 || o.Uint64() != 5 {
		t.Errorf("got %v", o)
	}
	if o := TCPDst.Exact(5); o.IsMasked() || o.Mask() != 0xffff {
		t.Errorf("got mask %#x", o.Mask())
	}
	if size := unsafe.Sizeof(OXM{}); size > 40 {
		t.Errorf("an OXM has %d octets", size)
	}
}

func TestRawFields(t *testing.T) {
	value, mask := make([]byte, 100), make([]byte, 100)
	for i := range value {
		value[i], mask[i] = byte(i), 0xff
	}
	m := Match{Reg5.Exact(1)}
	m = append(m, RawOXM(0x7fff0300, value)...)
	m = append(m, TunnelMetadata(3).MaskedBytes(value, mask)...)
	m = append(m, Reg1.Exact(2))
	b, err := AppendMatch(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	d := decoder{b: b, end: len(b)}
	got := parseMatch(&d, nil)
	if d.fault() != nil || !slices.Equal(got, m) {
		t.Fatalf("%v\n got %v\nwant %v", d.fault(), got, m)
	}
	for i, o := range got {
		gotValue, gotMask := got.Octets(i)
		switch o.Field {
		case FieldUnknown:
			if !slices.Equal(gotValue, value) || gotMask != nil || o.Header() != 0x7fff0300 {
				t.Errorf("header %08x, %x, %x", o.Header(), gotValue, gotMask)
			}
		case TunnelMetadata(3):
			if !slices.Equal(gotValue, value) || !slices.Equal(gotMask, mask) {
				t.Errorf("%x, %x", gotValue, gotMask)
			}
		}
	}
	sortMatch(got, fieldOrder)
	if _, err := AppendMatch(nil, got); err != nil || got[0].Field != FieldUnknown || got[len(got)-1].Field != Reg5 {
		t.Errorf("sorted: %v, %v", err, got)
	}
	if _, err := AppendMatch(nil, Match{{Field: FieldMore}}); err == nil {
		t.Error("AppendMatch took a FieldMore alone")
	}
}

func TestFields(t *testing.T) {
	if Reg(15) != Reg15 || XReg(7) != XReg7 || XXReg(3) != XXReg3 || TunnelMetadata(0) != TunnelMetadata0 || TunnelMetadata(63) != TunnelERSPANIdx-1 {
		t.Error("numbered fields are wrong")
	}
	for _, f := range []Field{Reg(-1), Reg(16), XReg(8), XXReg(4), TunnelMetadata(64)} {
		if f != FieldUnknown {
			t.Errorf("got %v, want no field", f)
		}
	}
	for f := FieldUnknown + 1; f < fieldCount; f++ {
		info := f.info()
		if info.name == "" || info.wire == "" || info.size == 0 || info.bits == 0 || int(info.bits) > 8*int(info.size) {
			t.Errorf("field %d: %+v", f, info)
		}
		want := int(info.size)
		if info.experimenter != 0 {
			want += 4
		}
		if oxmLen(info.match) != want || fieldByHeader(info.match, info.experimenter) != f {
			t.Errorf("%v: header %08x", f, info.match)
		}
		if info.action != 0 && (oxmLen(info.action) != int(info.size) || fieldByHeader(info.action, 0) != f) {
			t.Errorf("%v: header %08x in actions", f, info.action)
		}
		if byName, err := fieldByName(info.wire); err != nil || byName != f {
			t.Errorf("%v: %s is %v", f, info.wire, byName)
		}
	}
	if s := Reg0.Range(0, 15).String(); s != "NXM_NX_REG0[0..15]" {
		t.Error(s)
	}
	if s := FieldUnknown.String(); s != "field(0)" {
		t.Error(s)
	}
}
