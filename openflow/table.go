package openflow

// TableMod configures a table (OF1.4 section 7.3.3).
type TableMod struct {
	Table      uint8 // TableAll for all
	Config     TableConfig
	Properties []TableProperty
}

// TableConfig is what a table does when it is full.
type TableConfig uint32

// The bits of TableConfig.
const (
	TableEviction      TableConfig = 1 << 2 // evict flows of lesser importance
	TableVacancyEvents TableConfig = 1 << 3 // tell with TableStatus
)

// TableProperty is a property of a TableMod or TableDesc.
type TableProperty struct {
	Type          uint16
	EvictionFlags uint32 // with TablePropertyEviction
	// With TablePropertyVacancy: the free space, in percent, below and above
	// which the switch tells, and what it is now.
	VacancyDown, VacancyUp, Vacancy uint8
	Data                            []byte // with other types; aliases the parsed octets
}

// The types of TableProperty.
const (
	TablePropertyEviction = 2
	TablePropertyVacancy  = 3
)

// TableDescRequest asks for TableDescReply.
type TableDescRequest struct{}

// TableDescReply lists the configuration of tables (OF1.4 section 7.3.5.16).
type TableDescReply []TableDesc

// TableDesc is the configuration of a table.
type TableDesc struct {
	Table      uint8
	Config     TableConfig
	Properties []TableProperty
}

// TableStatus tells that a table fills or empties (OF1.4 section 7.4.5).
type TableStatus struct {
	Reason TableReason
	Table  TableDesc
}

// TableReason says why a TableStatus was sent.
type TableReason uint8

// The reasons.
const (
	TableVacancyDown TableReason = 3
	TableVacancyUp   TableReason = 4
)

// Type returns TypeTableMod.
func (*TableMod) Type() Type { return TypeTableMod }

// Type returns TypeTableStatus.
func (*TableStatus) Type() Type { return TypeTableStatus }

// MultipartType returns MultipartTableDesc.
func (TableDescRequest) MultipartType() MultipartType { return MultipartTableDesc }

// MultipartType returns MultipartTableDesc.
func (TableDescReply) MultipartType() MultipartType { return MultipartTableDesc }

func (m *TableMod) appendBody(b []byte) ([]byte, error) {
	b = append32(append(b, m.Table, 0, 0, 0), uint32(m.Config))
	return appendTableProperties(b, m.Properties)
}

func parseTableMod(d *decoder) *TableMod {
	m := &TableMod{Table: d.u8()}
	d.skip(3)
	m.Config = TableConfig(d.u32())
	m.Properties = parseTableProperties(d)
	return m
}

func appendTableProperties(b []byte, list []TableProperty) ([]byte, error) {
	for _, p := range list {
		var err error
		switch p.Type {
		case TablePropertyEviction:
			b = append32(append(b, 0, TablePropertyEviction, 0, 8), p.EvictionFlags)
		case TablePropertyVacancy:
			b = append(b, 0, TablePropertyVacancy, 0, 8, p.VacancyDown, p.VacancyUp, p.Vacancy, 0)
		default:
			if b, err = appendRawProperties(b, []RawProperty{{p.Type, p.Data}}); err != nil {
				return b, err
			}
		}
	}
	return b, nil
}

func parseTableProperties(d *decoder) []TableProperty {
	var list []TableProperty
	for d.left() > 0 {
		typ, length, outer := d.tlv(4, "table property")
		p := TableProperty{Type: typ}
		switch typ {
		case TablePropertyEviction:
			p.EvictionFlags = d.u32()
		case TablePropertyVacancy:
			p.VacancyDown, p.VacancyUp, p.Vacancy = d.u8(), d.u8(), d.u8()
		default:
			p.Data = d.rest()
		}
		d.leave(outer)
		d.skip(-length & 7)
		if !d.bad {
			list = append(list, p)
		}
	}
	return list
}

func (TableDescRequest) appendRequest(b []byte) ([]byte, error) { return b, nil }

func (r TableDescReply) appendReply(b []byte) ([]byte, error) {
	var err error
	for i := range r {
		if b, err = appendTableDesc(b, &r[i]); err != nil {
			return b, err
		}
	}
	return b, nil
}

func appendTableDesc(b []byte, t *TableDesc) ([]byte, error) {
	start := len(b)
	b = append32(append(b, 0, 0, t.Table, 0), uint32(t.Config))
	b, err := appendTableProperties(b, t.Properties)
	if err != nil {
		return b, err
	}
	return patchLenAt(b, start, start, "table")
}

const tableDescMinLen = 8

func parseTableDesc(d *decoder) TableDesc {
	outer := d.entry(tableDescMinLen, "table")
	t := TableDesc{Table: d.u8()}
	d.skip(1)
	t.Config = TableConfig(d.u32())
	t.Properties = parseTableProperties(d)
	d.leave(outer)
	return t
}

func parseTableDescReply(d *decoder) TableDescReply {
	var list TableDescReply
	for d.left() > 0 {
		if t := parseTableDesc(d); !d.bad {
			list = append(list, t)
		}
	}
	return list
}

func (m *TableStatus) appendBody(b []byte) ([]byte, error) {
	return appendTableDesc(append(b, byte(m.Reason), 0, 0, 0, 0, 0, 0, 0), &m.Table)
}

func parseTableStatus(d *decoder) *TableStatus {
	m := &TableStatus{Reason: TableReason(d.u8())}
	d.skip(7)
	m.Table = parseTableDesc(d)
	return m
}
