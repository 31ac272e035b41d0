package openflow

import (
	"time"
)

// GroupMod changes a group (OF1.4 section 7.3.4.2).
type GroupMod struct {
	Command GroupModCommand
	Kind    GroupType
	ID      uint32 // GroupAll with GroupDelete
	Buckets []Bucket
}

// GroupModCommand says what a GroupMod does.
type GroupModCommand uint16

// The commands. Deleting a group deletes the flows that use it.
const (
	GroupAdd    GroupModCommand = 0
	GroupModify GroupModCommand = 1
	GroupDelete GroupModCommand = 2
)

// GroupType says which buckets of a group a packet goes through.
type GroupType uint8

// The types.
const (
	GroupTypeAll      GroupType = 0 // a copy through each
	GroupTypeSelect   GroupType = 1 // one, by a hash
	GroupTypeIndirect GroupType = 2 // the only one
	GroupTypeFF       GroupType = 3 // the first that is live
)

// Bucket is a list of actions in a group.
type Bucket struct {
	Weight     uint16 // share of the packets, with GroupTypeSelect
	WatchPort  PortNo // the bucket is live if that port is; PortAny for none
	WatchGroup uint32 // the bucket is live if that group is; GroupAny for none
	Actions    []Action
}

// Type returns TypeGroupMod.
func (*GroupMod) Type() Type { return TypeGroupMod }

func (m *GroupMod) appendBody(b []byte) ([]byte, error) {
	b = append32(append(append16(b, uint16(m.Command)), byte(m.Kind), 0), m.ID)
	return appendBuckets(b, m.Buckets)
}

func parseGroupMod(d *decoder) *GroupMod {
	m := &GroupMod{Command: GroupModCommand(d.u16()), Kind: GroupType(d.u8())}
	d.skip(1)
	m.ID = d.u32()
	m.Buckets = parseBuckets(d)
	return m
}

func appendBuckets(b []byte, list []Bucket) ([]byte, error) {
	for _, k := range list {
		start := len(b)
		b = append16(append(b, 0, 0), k.Weight)
		b = append32(append32(b, uint32(k.WatchPort)), k.WatchGroup)
		b = append(b, 0, 0, 0, 0)
		var err error
		if b, err = appendActions(b, k.Actions); err == nil {
			b, err = patchLenAt(b, start, start, "bucket")
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

const bucketMinLen = 16

func parseBuckets(d *decoder) []Bucket {
	var list []Bucket
	for d.left() > 0 {
		outer := d.entry(bucketMinLen, "bucket")
		k := Bucket{Weight: d.u16(), WatchPort: PortNo(d.u32()), WatchGroup: d.u32()}
		d.skip(4)
		k.Actions = parseActions(d, nil)
		d.leave(outer)
		if !d.bad {
			list = append(list, k)
		}
	}
	return list
}

// GroupStatsRequest asks for GroupStatsReply; GroupAll for all groups.
type GroupStatsRequest struct{ ID uint32 }

// GroupStatsReply lists what groups counted (OF1.4 section 7.3.5.9).
type GroupStatsReply []GroupStats

// GroupStats is what a group counted.
type GroupStats struct {
	ID           uint32
	RefCount     uint32 // flows and groups that use it
	PacketCount  uint64
	ByteCount    uint64
	DurationSec  uint32 // how long it is there
	DurationNSec uint32 // beyond DurationSec
	Buckets      []BucketCounter
}

// BucketCounter is what a bucket counted.
type BucketCounter struct{ PacketCount, ByteCount uint64 }

// Duration is how long the group is there.
func (g *GroupStats) Duration() time.Duration { return duration(g.DurationSec, g.DurationNSec) }

// GroupDescRequest asks for GroupDescReply.
type GroupDescRequest struct{}

// GroupDescReply lists the groups (OF1.4 section 7.3.5.10).
type GroupDescReply []GroupDesc

// GroupDesc is a group.
type GroupDesc struct {
	Kind    GroupType
	ID      uint32
	Buckets []Bucket
}

// GroupFeaturesRequest asks for GroupFeatures.
type GroupFeaturesRequest struct{}

// GroupFeatures says what the switch can do with groups (OF1.4 section
// 7.3.5.11). The arrays are by GroupType.
type GroupFeatures struct {
	Types        uint32 // bit n for type n
	Capabilities uint32
	MaxGroups    [4]uint32
	Actions      [4]uint32 // bit n for action type n
}

// MultipartType returns MultipartGroup.
func (GroupStatsRequest) MultipartType() MultipartType { return MultipartGroup }

// MultipartType returns MultipartGroup.
func (GroupStatsReply) MultipartType() MultipartType { return MultipartGroup }

// MultipartType returns MultipartGroupDesc.
func (GroupDescRequest) MultipartType() MultipartType { return MultipartGroupDesc }

// MultipartType returns MultipartGroupDesc.
func (GroupDescReply) MultipartType() MultipartType { return MultipartGroupDesc }

// MultipartType returns MultipartGroupFeatures.
func (GroupFeaturesRequest) MultipartType() MultipartType { return MultipartGroupFeatures }

// MultipartType returns MultipartGroupFeatures.
func (GroupFeatures) MultipartType() MultipartType { return MultipartGroupFeatures }

func (r GroupStatsRequest) appendRequest(b []byte) ([]byte, error) {
	return append(append32(b, r.ID), 0, 0, 0, 0), nil
}

func (GroupDescRequest) appendRequest(b []byte) ([]byte, error)     { return b, nil }
func (GroupFeaturesRequest) appendRequest(b []byte) ([]byte, error) { return b, nil }

func parseGroupStatsRequest(d *decoder) GroupStatsRequest {
	r := GroupStatsRequest{ID: d.u32()}
	d.skip(4)
	return r
}

func (r GroupStatsReply) appendReply(b []byte) ([]byte, error) {
	for i := range r {
		g, start := &r[i], len(b)
		b = append32(append32(append(b, 0, 0, 0, 0), g.ID), g.RefCount)
		b = append64(append64(append(b, 0, 0, 0, 0), g.PacketCount), g.ByteCount)
		b = append32(append32(b, g.DurationSec), g.DurationNSec)
		for _, k := range g.Buckets {
			b = append64(append64(b, k.PacketCount), k.ByteCount)
		}
		var err error
		if b, err = patchLenAt(b, start, start, "group statistics"); err != nil {
			return b, err
		}
	}
	return b, nil
}

const groupStatsMinLen = 40

func parseGroupStatsReply(d *decoder) GroupStatsReply {
	var list GroupStatsReply
	for d.left() > 0 {
		outer := d.entry(groupStatsMinLen, "group statistics")
		d.skip(2)
		g := GroupStats{ID: d.u32(), RefCount: d.u32()}
		d.skip(4)
		g.PacketCount, g.ByteCount = d.u64(), d.u64()
		g.DurationSec, g.DurationNSec = d.u32(), d.u32()
		for d.left() > 0 {
			g.Buckets = append(g.Buckets, BucketCounter{d.u64(), d.u64()})
		}
		d.leave(outer)
		if !d.bad {
			list = append(list, g)
		}
	}
	return list
}

func (r GroupDescReply) appendReply(b []byte) ([]byte, error) {
	for i := range r {
		g, start := &r[i], len(b)
		b = append32(append(b, 0, 0, byte(g.Kind), 0), g.ID)
		var err error
		if b, err = appendBuckets(b, g.Buckets); err == nil {
			b, err = patchLenAt(b, start, start, "group")
		}
		if err != nil {
			return b, err
		}
	}
	return b, nil
}

const groupDescMinLen = 8

func parseGroupDescReply(d *decoder) GroupDescReply {
	var list GroupDescReply
	for d.left() > 0 {
		outer := d.entry(groupDescMinLen, "group")
		g := GroupDesc{Kind: GroupType(d.u8())}
		d.skip(1)
		g.ID = d.u32()
		g.Buckets = parseBuckets(d)
		d.leave(outer)
		if !d.bad {
			list = append(list, g)
		}
	}
	return list
}

func (r GroupFeatures) appendReply(b []byte) ([]byte, error) {
	b = append32(append32(b, r.Types), r.Capabilities)
	for _, n := range r.MaxGroups {
		b = append32(b, n)
	}
	for _, n := range r.Actions {
		b = append32(b, n)
	}
	return b, nil
}

func parseGroupFeatures(d *decoder) (r GroupFeatures) {
	r.Types, r.Capabilities = d.u32(), d.u32()
	for i := range r.MaxGroups {
		r.MaxGroups[i] = d.u32()
	}
	for i := range r.Actions {
		r.Actions[i] = d.u32()
	}
	return r
}
