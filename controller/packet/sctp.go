package packet

import (
	"encoding/binary"
	"errors"
	"fmt"

	"brlb/openflow"
)

const (
	offSCTPTag   = 4 // the verification tag
	chunkSize    = 4 // of a chunk's header
	initSize     = 20
	offInitTag   = 4 // of an INIT: the tag that its sender wants to see
	tagReflected = 0x01

	chunkInit             = 1
	chunkAbort            = 6
	chunkShutdownAck      = 8
	chunkError            = 9
	chunkCookieAck        = 11
	chunkShutdownComplete = 14
)

// abort is what answers an SCTP packet of no association: to a SHUTDOWN ACK that
// the shutdown is complete, to all else an ABORT (RFC 9260 sections 5.1 and 8.4).
// It carries the tag that its receiver checks: the one of the INIT, or else the
// packet's own, reflected.
func abort(l *link, d *datagram, mac openflow.MAC) ([]byte, error) {
	packet := d.payload()
	if d.more || len(packet) < sctpSize+chunkSize {
		return nil, errors.New("SCTP packet is a fragment, or has no chunk")
	}
	if err := checkChunks(packet[sctpSize:]); err != nil {
		return nil, err
	}
	tag, first := packet[offSCTPTag:offSCTPTag+4], packet[sctpSize:]
	kind, flags := byte(chunkAbort), byte(tagReflected)
	switch first[0] {
	case chunkInit:
		if len(first) < initSize || binary.BigEndian.Uint32(tag) != 0 {
			return nil, errors.New("SCTP INIT is cut, or has a verification tag")
		}
		if tag, flags = first[offInitTag:offInitTag+4], 0; binary.BigEndian.Uint32(tag) == 0 {
			return nil, errors.New("SCTP INIT has no initiate tag")
		}
	case chunkShutdownAck:
		kind = chunkShutdownComplete
	}
	answer := make([]byte, sctpSize, sctpSize+chunkSize)
	copy(answer, packet[offPortDst:offPortDst+2])
	copy(answer[offPortDst:], packet[:2])
	copy(answer[offSCTPTag:], tag)
	answer = append(answer, kind, flags, 0, chunkSize)
	setSCTPSum(answer)
	frame := newFrame(l.src, mac, l.tags, l.etherType)
	frame = appendIP(frame, d.dst, d.src, protoSCTP, len(answer))
	return pad(append(frame, answer...)), nil
}

// checkChunks says why a packet with these chunks must not be answered.
func checkChunks(chunks []byte) error {
	for rest := chunks; len(rest) > 0; {
		if len(rest) < chunkSize {
			return errors.New("SCTP packet ends within a chunk")
		}
		length := int(binary.BigEndian.Uint16(rest[2:]))
		if length < chunkSize || length > len(rest) {
			return fmt.Errorf("SCTP chunk of %d octets says that it has %d", len(rest), length)
		}
		padded := (length + 3) &^ 3
		switch rest[0] {
		case chunkAbort, chunkShutdownComplete, chunkError, chunkCookieAck:
			return fmt.Errorf("SCTP packet has a chunk of type %d, which is not answered", rest[0])
		case chunkInit:
			if len(rest) != len(chunks) || padded < len(rest) {
				return errors.New("SCTP INIT is not alone in its packet")
			}
		}
		rest = rest[min(padded, len(rest)):]
	}
	return nil
}
