package packet

import (
	"encoding/binary"
	"errors"
	"fmt"

	"brlb/openflow"
)

const (
	minFrame    = 60 // without its check sequence; shorter ones are padded
	tagSize     = 4
	maxTags     = 2
	etherIPv4   = 0x0800
	etherARP    = 0x0806
	etherVLAN   = 0x8100
	etherIPv6   = 0x86dd
	etherVLANs  = 0x88a8 // the outer one of two tags (IEEE 802.1ad)
	vlanIDMask  = 0x0fff
	macSize     = 6
	offEtherSrc = 6
	offEther    = 12
)

var broadcast = openflow.MAC{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// link is an Ethernet frame taken apart.
type link struct {
	dst, src  openflow.MAC
	tags      []byte // each with its EtherType before it
	etherType uint16
	payload   []byte
}

func parseLink(frame []byte) (link, error) {
	if len(frame) < offEther+2 {
		return link{}, fmt.Errorf("frame of %d octets is shorter than an Ethernet header", len(frame))
	}
	l := link{dst: openflow.MAC(frame), src: openflow.MAC(frame[offEtherSrc:])}
	at := offEther
	for {
		l.etherType = binary.BigEndian.Uint16(frame[at:])
		if l.etherType != etherVLAN && l.etherType != etherVLANs {
			break
		}
		if at == offEther+maxTags*tagSize {
			return link{}, fmt.Errorf("frame has more than %d VLAN tags", maxTags)
		}
		at += tagSize
		if len(frame) < at+2 {
			return link{}, errors.New("frame ends within its VLAN tag")
		}
	}
	l.tags, l.payload = frame[offEther:at], frame[at+2:]
	return l, nil
}

// vlan is the outermost VLAN id, 0 for none.
func (l *link) vlan() uint16 {
	if len(l.tags) == 0 {
		return 0
	}
	return binary.BigEndian.Uint16(l.tags[2:]) & vlanIDMask
}

// Tag puts an untagged frame into a VLAN (1 to 4094); 0 leaves it as it is.
func Tag(frame []byte, vlan uint16) []byte {
	if vlan == 0 {
		return frame
	}
	tagged := append(make([]byte, 0, len(frame)+tagSize), frame[:offEther]...)
	tagged = binary.BigEndian.AppendUint16(tagged, etherVLAN)
	tagged = binary.BigEndian.AppendUint16(tagged, vlan&vlanIDMask)
	return append(tagged, frame[offEther:]...)
}

// newFrame begins a frame. Its payload is appended, and then it is padded.
func newFrame(dst, src openflow.MAC, tags []byte, etherType uint16) []byte {
	frame := make([]byte, 0, 128)
	frame = append(append(frame, dst[:]...), src[:]...)
	return binary.BigEndian.AppendUint16(append(frame, tags...), etherType)
}

func pad(frame []byte) []byte {
	if missing := minFrame - len(frame); missing > 0 {
		frame = append(frame, make([]byte, missing)...)
	}
	return frame
}

func isGroup(mac openflow.MAC) bool { return mac[0]&1 != 0 }

// canSpeak says whether a MAC can be that of a station.
func canSpeak(mac openflow.MAC) bool { return !isGroup(mac) && mac != openflow.MAC{} }
