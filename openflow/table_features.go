package openflow

import "encoding/binary"

// TableFeaturesRequest asks for TableFeaturesReply if it is empty, else it sets
// the features of the tables, which Open vSwitch refuses.
type TableFeaturesRequest []TableFeatures

// TableFeaturesReply lists what tables can do (OF1.4 section 7.3.5.5). Open
// vSwitch's is 1.2 million octets long: do not ask without need.
type TableFeaturesReply []TableFeatures

// TableFeatures is what a table can do.
type TableFeatures struct {
	Table         uint8
	Name          string // at most 32 octets
	MetadataMatch uint64 // bits of the metadata that can be matched
	MetadataWrite uint64 // bits of the metadata that can be written
	Config        uint32
	MaxEntries    uint32
	Properties    []TableFeature
}

// TableFeature is one list of things that a table can do. Its octets are kept
// as they are; the methods read them. Data aliases the parsed octets.
type TableFeature struct {
	Type TableFeatureType
	Data []byte
}

// TableFeatureType says what a TableFeature lists. The types of which there is
// one with Miss are for packets that match, and for those that do not.
type TableFeatureType uint16

// The types.
const (
	FeatureInstructions      TableFeatureType = 0
	FeatureInstructionsMiss  TableFeatureType = 1
	FeatureNextTables        TableFeatureType = 2
	FeatureNextTablesMiss    TableFeatureType = 3
	FeatureWriteActions      TableFeatureType = 4
	FeatureWriteActionsMiss  TableFeatureType = 5
	FeatureApplyActions      TableFeatureType = 6
	FeatureApplyActionsMiss  TableFeatureType = 7
	FeatureMatch             TableFeatureType = 8
	FeatureWildcards         TableFeatureType = 10
	FeatureWriteSetField     TableFeatureType = 12
	FeatureWriteSetFieldMiss TableFeatureType = 13
	FeatureApplySetField     TableFeatureType = 14
	FeatureApplySetFieldMiss TableFeatureType = 15
	FeatureTableSyncFrom     TableFeatureType = 16
)

// Tables reads a list of table ids.
func (f TableFeature) Tables() []uint8 { return f.Data }

// Types reads a list of instruction or action types, without those of
// experimenters beyond their type.
func (f TableFeature) Types() []uint16 {
	var list []uint16
	for b := f.Data; len(b) >= 4; {
		length := int(binary.BigEndian.Uint16(b[2:]))
		list = append(list, binary.BigEndian.Uint16(b))
		if length < 4 || length > len(b) {
			break
		}
		b = b[length:]
	}
	return list
}

// Fields reads a list of fields; FieldUnknown for those that this package does
// not know.
func (f TableFeature) Fields() []Field {
	var list []Field
	for b := f.Data; len(b) >= 4; {
		header, experimenter := binary.BigEndian.Uint32(b), uint32(0)
		b = b[4:]
		if isExperimenter(header) && len(b) >= 4 {
			experimenter = binary.BigEndian.Uint32(b)
			b = b[4:]
		}
		list = append(list, fieldByHeader(header, experimenter))
	}
	return list
}

// MultipartType returns MultipartTableFeatures.
func (TableFeaturesRequest) MultipartType() MultipartType { return MultipartTableFeatures }

// MultipartType returns MultipartTableFeatures.
func (TableFeaturesReply) MultipartType() MultipartType { return MultipartTableFeatures }

func (r TableFeaturesRequest) appendRequest(b []byte) ([]byte, error) {
	return appendTableFeatures(b, r)
}

func (r TableFeaturesReply) appendReply(b []byte) ([]byte, error) { return appendTableFeatures(b, r) }

const tableNameLen = 32

func appendTableFeatures(b []byte, list []TableFeatures) ([]byte, error) {
	var err error
	for i := range list {
		t, start := &list[i], len(b)
		b = append(b, 0, 0, t.Table, 0, 0, 0, 0, 0)
		if b, err = appendText(b, t.Name, tableNameLen, "table name"); err != nil {
			return b, err
		}
		b = append64(append64(b, t.MetadataMatch), t.MetadataWrite)
		b = append32(append32(b, t.Config), t.MaxEntries)
		for _, p := range t.Properties {
			if b, err = appendRawProperties(b, []RawProperty{{uint16(p.Type), p.Data}}); err != nil {
				return b, err
			}
		}
		if b, err = patchLenAt(b, start, start, "table features"); err != nil {
			return b, err
		}
	}
	return b, nil
}

const tableFeaturesMinLen = 64

func parseTableFeatures(d *decoder) []TableFeatures {
	var list []TableFeatures
	for d.left() > 0 {
		outer := d.entry(tableFeaturesMinLen, "table features")
		t := TableFeatures{Table: d.u8()}
		d.skip(5)
		t.Name = d.text(tableNameLen)
		t.MetadataMatch, t.MetadataWrite = d.u64(), d.u64()
		t.Config, t.MaxEntries = d.u32(), d.u32()
		for d.left() > 0 {
			typ, length, inner := d.tlv(4, "table feature")
			p := TableFeature{Type: TableFeatureType(typ), Data: d.rest()}
			d.leave(inner)
			d.skip(-length & 7)
			t.Properties = append(t.Properties, p)
		}
		d.leave(outer)
		if !d.bad {
			list = append(list, t)
		}
	}
	return list
}
