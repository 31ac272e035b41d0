package openflow

import "fmt"

// MultipartRequest asks for statistics or a description (OF1.4 section 7.3.5).
type MultipartRequest struct {
	Flags MultipartFlags
	Body  MultipartRequestBody
}

// MultipartReply is an answer, or one part of it: if MultipartMore is set,
// another follows with the same transaction id and type.
type MultipartReply struct {
	Flags MultipartFlags
	Body  MultipartReplyBody
}

// MultipartFlags of a request or reply.
type MultipartFlags uint16

// MultipartMore says that more messages follow with the same transaction id.
const MultipartMore MultipartFlags = 1

// MultipartType says what a multipart message is about (ofp_multipart_type).
type MultipartType uint16

// The types.
const (
	MultipartDesc          MultipartType = 0
	MultipartFlow          MultipartType = 1
	MultipartAggregate     MultipartType = 2
	MultipartTable         MultipartType = 3
	MultipartPortStats     MultipartType = 4
	MultipartQueueStats    MultipartType = 5
	MultipartGroup         MultipartType = 6
	MultipartGroupDesc     MultipartType = 7
	MultipartGroupFeatures MultipartType = 8
	MultipartMeter         MultipartType = 9
	MultipartMeterConfig   MultipartType = 10
	MultipartMeterFeatures MultipartType = 11
	MultipartTableFeatures MultipartType = 12
	MultipartPortDesc      MultipartType = 13
	MultipartTableDesc     MultipartType = 14
	MultipartQueueDesc     MultipartType = 15
	MultipartFlowMonitor   MultipartType = 16
	MultipartExperimenter  MultipartType = 0xffff
)

var multipartNames = [...]string{
	"DESC", "FLOW", "AGGREGATE", "TABLE", "PORT_STATS", "QUEUE_STATS", "GROUP", "GROUP_DESC", "GROUP_FEATURES",
	"METER", "METER_CONFIG", "METER_FEATURES", "TABLE_FEATURES", "PORT_DESC", "TABLE_DESC", "QUEUE_DESC", "FLOW_MONITOR",
}

// String returns the specification's name, such as "OFPMP_FLOW".
func (t MultipartType) String() string {
	switch {
	case int(t) < len(multipartNames):
		return "OFPMP_" + multipartNames[t]
	case t == MultipartExperimenter:
		return "OFPMP_EXPERIMENTER"
	}
	return fmt.Sprintf("OFPMP(%d)", uint16(t))
}

// MultipartRequestBody is the body of a MultipartRequest: DescRequest,
// FlowStatsRequest, ..., or RawMultipart.
type MultipartRequestBody interface {
	MultipartType() MultipartType
	appendRequest(b []byte) ([]byte, error)
}

// MultipartReplyBody is the body of a MultipartReply: Desc, FlowStatsReply, ...,
// or RawMultipart.
type MultipartReplyBody interface {
	MultipartType() MultipartType
	appendReply(b []byte) ([]byte, error)
}

// RawMultipart is a body of a type that this package does not know. Data
// aliases the parsed octets.
type RawMultipart struct {
	RawType MultipartType
	Data    []byte
}

// MultipartType returns the type.
func (r RawMultipart) MultipartType() MultipartType { return r.RawType }

func (r RawMultipart) appendRequest(b []byte) ([]byte, error) { return append(b, r.Data...), nil }
func (r RawMultipart) appendReply(b []byte) ([]byte, error)   { return append(b, r.Data...), nil }

// ExperimenterMultipart is a request or reply body of an experimenter. Data
// aliases the parsed octets.
type ExperimenterMultipart struct {
	Experimenter uint32
	ExpType      uint32
	Data         []byte
}

// MultipartType returns MultipartExperimenter.
func (ExperimenterMultipart) MultipartType() MultipartType { return MultipartExperimenter }

func (r ExperimenterMultipart) append(b []byte) ([]byte, error) {
	return append(append32(append32(b, r.Experimenter), r.ExpType), r.Data...), nil
}

func (r ExperimenterMultipart) appendRequest(b []byte) ([]byte, error) { return r.append(b) }
func (r ExperimenterMultipart) appendReply(b []byte) ([]byte, error)   { return r.append(b) }

func parseExperimenterMultipart(d *decoder) ExperimenterMultipart {
	return ExperimenterMultipart{Experimenter: d.u32(), ExpType: d.u32(), Data: d.rest()}
}

// Type returns TypeMultipartRequest.
func (*MultipartRequest) Type() Type { return TypeMultipartRequest }

// Type returns TypeMultipartReply.
func (*MultipartReply) Type() Type { return TypeMultipartReply }

func (m *MultipartRequest) appendBody(b []byte) ([]byte, error) {
	if m.Body == nil {
		return b, encodeErrorf("multipart request without a body")
	}
	return m.Body.appendRequest(appendMultipartStart(b, m.Body.MultipartType(), m.Flags))
}

func (m *MultipartReply) appendBody(b []byte) ([]byte, error) {
	if m.Body == nil {
		return b, encodeErrorf("multipart reply without a body")
	}
	return m.Body.appendReply(appendMultipartStart(b, m.Body.MultipartType(), m.Flags))
}

func appendMultipartStart(b []byte, t MultipartType, flags MultipartFlags) []byte {
	return append(append16(append16(b, uint16(t)), uint16(flags)), 0, 0, 0, 0)
}

func parseMultipartStart(d *decoder) (MultipartType, MultipartFlags) {
	t, flags := MultipartType(d.u16()), MultipartFlags(d.u16())
	d.skip(4)
	return t, flags
}

func parseMultipartRequest(d *decoder) *MultipartRequest {
	t, flags := parseMultipartStart(d)
	m := &MultipartRequest{Flags: flags}
	switch t {
	case MultipartDesc:
		m.Body = DescRequest{}
	case MultipartFlow:
		m.Body = FlowStatsRequest(parseFlowSelector(d))
	case MultipartAggregate:
		m.Body = AggregateRequest(parseFlowSelector(d))
	case MultipartTable:
		m.Body = TableStatsRequest{}
	case MultipartPortStats:
		m.Body = parsePortStatsRequest(d)
	case MultipartQueueStats:
		m.Body = QueueStatsRequest(parseQueueSelector(d))
	case MultipartGroup:
		m.Body = parseGroupStatsRequest(d)
	case MultipartGroupDesc:
		m.Body = GroupDescRequest{}
	case MultipartGroupFeatures:
		m.Body = GroupFeaturesRequest{}
	case MultipartMeter:
		m.Body = MeterStatsRequest{ID: parseMeterID(d)}
	case MultipartMeterConfig:
		m.Body = MeterConfigRequest{ID: parseMeterID(d)}
	case MultipartMeterFeatures:
		m.Body = MeterFeaturesRequest{}
	case MultipartTableFeatures:
		m.Body = TableFeaturesRequest(parseTableFeatures(d))
	case MultipartPortDesc:
		m.Body = PortDescRequest{}
	case MultipartTableDesc:
		m.Body = TableDescRequest{}
	case MultipartQueueDesc:
		m.Body = QueueDescRequest(parseQueueSelector(d))
	case MultipartExperimenter:
		m.Body = parseExperimenterMultipart(d)
	case MultipartFlowMonitor:
		m.Body = parseFlowMonitorRequest(d)
	default:
		m.Body = RawMultipart{RawType: t, Data: d.rest()}
	}
	return m
}

func parseMultipartReply(d *decoder) *MultipartReply {
	t, flags := parseMultipartStart(d)
	m := &MultipartReply{Flags: flags}
	switch t {
	case MultipartDesc:
		m.Body = parseDesc(d)
	case MultipartFlow:
		m.Body = parseFlowStatsReply(d)
	case MultipartAggregate:
		m.Body = parseAggregateReply(d)
	case MultipartTable:
		m.Body = parseTableStatsReply(d)
	case MultipartPortStats:
		m.Body = parsePortStatsReply(d)
	case MultipartQueueStats:
		m.Body = parseQueueStatsReply(d)
	case MultipartGroup:
		m.Body = parseGroupStatsReply(d)
	case MultipartGroupDesc:
		m.Body = parseGroupDescReply(d)
	case MultipartGroupFeatures:
		m.Body = parseGroupFeatures(d)
	case MultipartMeter:
		m.Body = parseMeterStatsReply(d)
	case MultipartMeterConfig:
		m.Body = parseMeterConfigReply(d)
	case MultipartMeterFeatures:
		m.Body = parseMeterFeatures(d)
	case MultipartTableFeatures:
		m.Body = TableFeaturesReply(parseTableFeatures(d))
	case MultipartPortDesc:
		m.Body = parsePortDescReply(d)
	case MultipartTableDesc:
		m.Body = parseTableDescReply(d)
	case MultipartQueueDesc:
		m.Body = parseQueueDescReply(d)
	case MultipartExperimenter:
		m.Body = parseExperimenterMultipart(d)
	case MultipartFlowMonitor:
		m.Body = parseFlowMonitorReply(d)
	default:
		m.Body = RawMultipart{RawType: t, Data: d.rest()}
	}
	return m
}

// DescRequest asks for Desc.
type DescRequest struct{}

// Desc describes the switch (OF1.4 section 7.3.5.1). Open vSwitch has its
// version in Software.
type Desc struct {
	Manufacturer string // at most 256 octets
	Hardware     string // at most 256 octets
	Software     string // at most 256 octets
	SerialNumber string // at most 32 octets
	Datapath     string // at most 256 octets
}

// MultipartType returns MultipartDesc.
func (DescRequest) MultipartType() MultipartType { return MultipartDesc }

// MultipartType returns MultipartDesc.
func (Desc) MultipartType() MultipartType { return MultipartDesc }

func (DescRequest) appendRequest(b []byte) ([]byte, error) { return b, nil }

func (r Desc) appendReply(b []byte) ([]byte, error) {
	var err error
	for _, field := range []struct {
		text string
		size int
	}{{r.Manufacturer, 256}, {r.Hardware, 256}, {r.Software, 256}, {r.SerialNumber, 32}, {r.Datapath, 256}} {
		if b, err = appendText(b, field.text, field.size, "description"); err != nil {
			return b, err
		}
	}
	return b, nil
}

func parseDesc(d *decoder) Desc {
	return Desc{d.text(256), d.text(256), d.text(256), d.text(32), d.text(256)}
}

// PortDescRequest asks for PortDescReply.
type PortDescRequest struct{}

// PortDescReply lists the ports (OF1.4 section 7.3.5.7).
type PortDescReply []Port

// MultipartType returns MultipartPortDesc.
func (PortDescRequest) MultipartType() MultipartType { return MultipartPortDesc }

// MultipartType returns MultipartPortDesc.
func (PortDescReply) MultipartType() MultipartType { return MultipartPortDesc }

func (PortDescRequest) appendRequest(b []byte) ([]byte, error) { return b, nil }

func (r PortDescReply) appendReply(b []byte) ([]byte, error) {
	var err error
	for i := range r {
		if b, err = appendPort(b, &r[i]); err != nil {
			return b, err
		}
	}
	return b, nil
}

func parsePortDescReply(d *decoder) PortDescReply {
	var list PortDescReply
	for d.left() > 0 {
		var p Port
		parsePort(d, &p)
		if !d.bad {
			list = append(list, p)
		}
	}
	return list
}

// TableStatsRequest asks for TableStatsReply.
type TableStatsRequest struct{}

// TableStatsReply lists the tables, those that hold no flow too (OF1.4 section
// 7.3.5.4).
type TableStatsReply []TableStats

// TableStats counts what a table did.
type TableStats struct {
	Table       uint8
	ActiveCount uint32 // flows
	LookupCount uint64 // packets
	MatchCount  uint64 // packets
}

// MultipartType returns MultipartTable.
func (TableStatsRequest) MultipartType() MultipartType { return MultipartTable }

// MultipartType returns MultipartTable.
func (TableStatsReply) MultipartType() MultipartType { return MultipartTable }

func (TableStatsRequest) appendRequest(b []byte) ([]byte, error) { return b, nil }

func (r TableStatsReply) appendReply(b []byte) ([]byte, error) {
	for _, t := range r {
		b = append32(append(b, t.Table, 0, 0, 0), t.ActiveCount)
		b = append64(append64(b, t.LookupCount), t.MatchCount)
	}
	return b, nil
}

func parseTableStatsReply(d *decoder) TableStatsReply {
	list := make(TableStatsReply, 0, d.left()/24)
	for d.left() > 0 {
		t := TableStats{Table: d.u8()}
		d.skip(3)
		t.ActiveCount, t.LookupCount, t.MatchCount = d.u32(), d.u64(), d.u64()
		if !d.bad {
			list = append(list, t)
		}
	}
	return list
}
