package openflow

import "time"

// QueueSelector chooses queues in requests.
type QueueSelector struct {
	Port  PortNo // PortAny for all
	Queue uint32 // QueueAll for all
}

// QueueAll is the queue id that says "all queues".
const QueueAll = 0xffffffff

// QueueStatsRequest asks for QueueStatsReply.
type QueueStatsRequest QueueSelector

// QueueDescRequest asks for QueueDescReply.
type QueueDescRequest QueueSelector

// QueueStatsReply lists what queues counted (OF1.4 section 7.3.5.8).
type QueueStatsReply []QueueStats

// QueueStats is what a queue counted.
type QueueStats struct {
	Port         PortNo
	Queue        uint32
	TxBytes      uint64
	TxPackets    uint64
	TxErrors     uint64 // packets dropped for want of room
	DurationSec  uint32 // how long the queue is there
	DurationNSec uint32 // beyond DurationSec
	Properties   []RawProperty
}

// Duration is how long the queue is there.
func (q *QueueStats) Duration() time.Duration { return duration(q.DurationSec, q.DurationNSec) }

// QueueDescReply lists queues (OF1.4 section 7.3.5.8.2).
type QueueDescReply []QueueDesc

// QueueDesc is a queue.
type QueueDesc struct {
	Port       PortNo
	Queue      uint32
	Properties []QueueProperty
}

// QueueProperty is a property of a queue.
type QueueProperty struct {
	Type uint16
	Rate uint16 // with QueueMinRate and QueueMaxRate: in 0.1 % of the port's; above 1000: none
	Data []byte // with other types; aliases the parsed octets
}

// The types of QueueProperty.
const (
	QueueMinRate = 1
	QueueMaxRate = 2
)

// MultipartType returns MultipartQueueStats.
func (QueueStatsRequest) MultipartType() MultipartType { return MultipartQueueStats }

// MultipartType returns MultipartQueueStats.
func (QueueStatsReply) MultipartType() MultipartType { return MultipartQueueStats }

// MultipartType returns MultipartQueueDesc.
func (QueueDescRequest) MultipartType() MultipartType { return MultipartQueueDesc }

// MultipartType returns MultipartQueueDesc.
func (QueueDescReply) MultipartType() MultipartType { return MultipartQueueDesc }

func (r QueueStatsRequest) appendRequest(b []byte) ([]byte, error) {
	return append32(append32(b, uint32(r.Port)), r.Queue), nil
}

func (r QueueDescRequest) appendRequest(b []byte) ([]byte, error) {
	return append32(append32(b, uint32(r.Port)), r.Queue), nil
}

func parseQueueSelector(d *decoder) QueueSelector {
	return QueueSelector{Port: PortNo(d.u32()), Queue: d.u32()}
}

func (r QueueStatsReply) appendReply(b []byte) ([]byte, error) {
	var err error
	for i := range r {
		q, start := &r[i], len(b)
		b = append32(append32(appendZeros(b, 8), uint32(q.Port)), q.Queue)
		b = append64(append64(append64(b, q.TxBytes), q.TxPackets), q.TxErrors)
		b = append32(append32(b, q.DurationSec), q.DurationNSec)
		if b, err = appendRawProperties(b, q.Properties); err == nil {
			b, err = patchLenAt(b, start, start, "queue statistics")
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

const queueStatsMinLen = 48

func parseQueueStatsReply(d *decoder) QueueStatsReply {
	var list QueueStatsReply
	for d.left() > 0 {
		outer := d.entry(queueStatsMinLen, "queue statistics")
		d.skip(6)
		q := QueueStats{
			Port: PortNo(d.u32()), Queue: d.u32(), TxBytes: d.u64(), TxPackets: d.u64(), TxErrors: d.u64(),
			DurationSec: d.u32(), DurationNSec: d.u32(),
		}
		q.Properties = parseRawProperties(d, "queue statistics property")
		d.leave(outer)
		if !d.bad {
			list = append(list, q)
		}
	}
	return list
}

func (r QueueDescReply) appendReply(b []byte) ([]byte, error) {
	for i := range r {
		q, start := &r[i], len(b)
		b = appendZeros(append32(append32(b, uint32(q.Port)), q.Queue), 8)
		var err error
		for _, p := range q.Properties {
			if p.Type == QueueMinRate || p.Type == QueueMaxRate {
				b = append(append16(append(b, 0, byte(p.Type), 0, 8), p.Rate), 0, 0)
			} else if b, err = appendRawProperties(b, []RawProperty{{p.Type, p.Data}}); err != nil {
				return b, err
			}
		}
		if b, err = patchLenAt(b, start, start+8, "queue"); err != nil {
			return b, err
		}
	}
	return b, nil
}

const queueDescMinLen = 16

func parseQueueDescReply(d *decoder) QueueDescReply {
	var list QueueDescReply
	for d.left() > 0 {
		q := QueueDesc{Port: PortNo(d.u32()), Queue: d.u32()}
		outer := d.entryAfter(8, queueDescMinLen, "queue")
		d.skip(6)
		for d.left() > 0 {
			typ, length, inner := d.tlv(4, "queue property")
			p := QueueProperty{Type: typ}
			if typ == QueueMinRate || typ == QueueMaxRate {
				p.Rate = d.u16()
			} else {
				p.Data = d.rest()
			}
			d.leave(inner)
			d.skip(-length & 7)
			q.Properties = append(q.Properties, p)
		}
		d.leave(outer)
		if !d.bad {
			list = append(list, q)
		}
	}
	return list
}
