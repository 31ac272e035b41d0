package openflow

import "time"

// MeterMod changes a meter (OF1.4 section 7.3.4.4).
type MeterMod struct {
	Command MeterModCommand
	Flags   MeterFlags
	ID      uint32 // MeterAll with MeterDelete
	Bands   []MeterBand
}

// MeterModCommand says what a MeterMod does.
type MeterModCommand uint16

// The commands.
const (
	MeterAdd    MeterModCommand = 0
	MeterModify MeterModCommand = 1
	MeterDelete MeterModCommand = 2
)

// The reserved meter ids.
const (
	MeterMax        = 0xffff0000 // the last that flows can use
	MeterSlowPath   = 0xfffffffd
	MeterController = 0xfffffffe // of the way to the controller
	MeterAll        = 0xffffffff
)

// MeterFlags say how a meter measures.
type MeterFlags uint16

// The flags.
const (
	MeterKbps  MeterFlags = 1 // rates in kbit/s
	MeterPktps MeterFlags = 2 // rates in packets/s
	MeterBurst MeterFlags = 4 // bands have a burst size
	MeterStats MeterFlags = 8
)

// MeterBand is what happens above a rate.
type MeterBand struct {
	Kind      MeterBandType
	Rate      uint32 // kbit/s or packets/s
	Burst     uint32 // kbit or packets
	PrecLevel uint8  // with BandDSCPRemark: drop precedences to add
	// Data follows Burst in bands of other types: the experimenter id and what
	// it adds. It aliases the parsed octets.
	Data []byte
}

// MeterBandType says what a band does.
type MeterBandType uint16

// The types.
const (
	BandDrop         MeterBandType = 1
	BandDSCPRemark   MeterBandType = 2
	BandExperimenter MeterBandType = 0xffff
)

// Type returns TypeMeterMod.
func (*MeterMod) Type() Type { return TypeMeterMod }

func (m *MeterMod) appendBody(b []byte) ([]byte, error) {
	b = append32(append16(append16(b, uint16(m.Command)), uint16(m.Flags)), m.ID)
	return appendMeterBands(b, m.Bands)
}

func parseMeterMod(d *decoder) *MeterMod {
	m := &MeterMod{Command: MeterModCommand(d.u16()), Flags: MeterFlags(d.u16()), ID: d.u32()}
	m.Bands = parseMeterBands(d)
	return m
}

func appendMeterBands(b []byte, list []MeterBand) ([]byte, error) {
	for _, band := range list {
		start := len(b)
		b = append(append16(b, uint16(band.Kind)), 0, 0)
		b = append32(append32(b, band.Rate), band.Burst)
		switch band.Kind {
		case BandDrop:
			b = append(b, 0, 0, 0, 0)
		case BandDSCPRemark:
			b = append(b, band.PrecLevel, 0, 0, 0)
		default:
			b = append(b, band.Data...)
		}
		var err error
		if b, err = patchLen(b, start, "meter band"); err != nil {
			return b, err
		}
	}
	return b, nil
}

func parseMeterBands(d *decoder) []MeterBand {
	var list []MeterBand
	for d.left() > 0 {
		typ, length, outer := d.tlv(12, "meter band")
		band := MeterBand{Kind: MeterBandType(typ), Rate: d.u32(), Burst: d.u32()}
		switch band.Kind {
		case BandDrop:
			d.skip(4)
		case BandDSCPRemark:
			band.PrecLevel = d.u8()
			d.skip(3)
		default:
			band.Data = d.rest()
		}
		if d.pos != d.end {
			d.failf(ErrBadLength, "meter band type %d: length %d", typ, length)
		}
		d.leave(outer)
		if !d.bad {
			list = append(list, band)
		}
	}
	return list
}

// MeterStatsRequest asks for MeterStatsReply; MeterAll for all meters.
type MeterStatsRequest struct{ ID uint32 }

// MeterStatsReply lists what meters counted (OF1.4 section 7.3.5.12).
type MeterStatsReply []MeterStatistics

// MeterStatistics is what a meter counted.
type MeterStatistics struct {
	ID           uint32
	FlowCount    uint32
	PacketCount  uint64
	ByteCount    uint64
	DurationSec  uint32 // how long it is there
	DurationNSec uint32 // beyond DurationSec
	Bands        []BucketCounter
}

// Duration is how long the meter is there.
func (m *MeterStatistics) Duration() time.Duration { return duration(m.DurationSec, m.DurationNSec) }

// MeterConfigRequest asks for MeterConfigReply; MeterAll for all meters.
type MeterConfigRequest struct{ ID uint32 }

// MeterConfigReply lists meters (OF1.4 section 7.3.5.13).
type MeterConfigReply []MeterConfig

// MeterConfig is a meter.
type MeterConfig struct {
	Flags MeterFlags
	ID    uint32
	Bands []MeterBand
}

// MeterFeaturesRequest asks for MeterFeatures.
type MeterFeaturesRequest struct{}

// MeterFeatures says what the switch can do with meters (OF1.4 section
// 7.3.5.14).
type MeterFeatures struct {
	MaxMeter     uint32
	BandTypes    uint32 // bit n for band type n
	Capabilities uint32 // MeterFlags
	MaxBands     uint8
	MaxColor     uint8
}

// MultipartType returns MultipartMeter.
func (MeterStatsRequest) MultipartType() MultipartType { return MultipartMeter }

// MultipartType returns MultipartMeter.
func (MeterStatsReply) MultipartType() MultipartType { return MultipartMeter }

// MultipartType returns MultipartMeterConfig.
func (MeterConfigRequest) MultipartType() MultipartType { return MultipartMeterConfig }

// MultipartType returns MultipartMeterConfig.
func (MeterConfigReply) MultipartType() MultipartType { return MultipartMeterConfig }

// MultipartType returns MultipartMeterFeatures.
func (MeterFeaturesRequest) MultipartType() MultipartType { return MultipartMeterFeatures }

// MultipartType returns MultipartMeterFeatures.
func (MeterFeatures) MultipartType() MultipartType { return MultipartMeterFeatures }

func (r MeterStatsRequest) appendRequest(b []byte) ([]byte, error) {
	return append(append32(b, r.ID), 0, 0, 0, 0), nil
}

func (r MeterConfigRequest) appendRequest(b []byte) ([]byte, error) {
	return append(append32(b, r.ID), 0, 0, 0, 0), nil
}

func (MeterFeaturesRequest) appendRequest(b []byte) ([]byte, error) { return b, nil }

// parseMeterID reads the body of both meter requests.
func parseMeterID(d *decoder) uint32 {
	id := d.u32()
	d.skip(4)
	return id
}

func (r MeterStatsReply) appendReply(b []byte) ([]byte, error) {
	for i := range r {
		m, start := &r[i], len(b)
		b = appendZeros(append32(b, m.ID), 8)
		b = append64(append64(append32(b, m.FlowCount), m.PacketCount), m.ByteCount)
		b = append32(append32(b, m.DurationSec), m.DurationNSec)
		for _, k := range m.Bands {
			b = append64(append64(b, k.PacketCount), k.ByteCount)
		}
		var err error
		if b, err = patchLenAt(b, start, start+4, "meter statistics"); err != nil {
			return b, err
		}
	}
	return b, nil
}

const meterStatsMinLen = 40

func parseMeterStatsReply(d *decoder) MeterStatsReply {
	var list MeterStatsReply
	for d.left() > 0 {
		m := MeterStatistics{ID: d.u32()}
		outer := d.entryAfter(4, meterStatsMinLen, "meter statistics")
		d.skip(6)
		m.FlowCount, m.PacketCount, m.ByteCount = d.u32(), d.u64(), d.u64()
		m.DurationSec, m.DurationNSec = d.u32(), d.u32()
		for d.left() > 0 {
			m.Bands = append(m.Bands, BucketCounter{d.u64(), d.u64()})
		}
		d.leave(outer)
		if !d.bad {
			list = append(list, m)
		}
	}
	return list
}

func (r MeterConfigReply) appendReply(b []byte) ([]byte, error) {
	for i := range r {
		m, start := &r[i], len(b)
		b = append32(append16(append(b, 0, 0), uint16(m.Flags)), m.ID)
		var err error
		if b, err = appendMeterBands(b, m.Bands); err == nil {
			b, err = patchLenAt(b, start, start, "meter")
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

const meterConfigMinLen = 8

func parseMeterConfigReply(d *decoder) MeterConfigReply {
	var list MeterConfigReply
	for d.left() > 0 {
		outer := d.entry(meterConfigMinLen, "meter")
		m := MeterConfig{Flags: MeterFlags(d.u16()), ID: d.u32()}
		m.Bands = parseMeterBands(d)
		d.leave(outer)
		if !d.bad {
			list = append(list, m)
		}
	}
	return list
}

func (r MeterFeatures) appendReply(b []byte) ([]byte, error) {
	b = append32(append32(append32(b, r.MaxMeter), r.BandTypes), r.Capabilities)
	return append(b, r.MaxBands, r.MaxColor, 0, 0), nil
}

func parseMeterFeatures(d *decoder) MeterFeatures {
	r := MeterFeatures{MaxMeter: d.u32(), BandTypes: d.u32(), Capabilities: d.u32(), MaxBands: d.u8(), MaxColor: d.u8()}
	d.skip(2)
	return r
}
