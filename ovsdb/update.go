package ovsdb

// format is the notation of a monitor's updates.
type format uint8

const (
	formatRFC   format = iota // monitor: <table-updates> with "old" and "new" (RFC 7047 §4.1.6)
	formatCond                // monitor_cond: <table-updates2> with differences (ovsdb-server(7))
	formatSince               // monitor_cond_since: the same, with the transaction's id
)

// tableUpdates decodes a <table-updates> or <table-updates2> and applies it to
// d. A contentError means that the update does not fit what the replica holds.
func (r *reader) tableUpdates(d *draft, f format) error {
	if _, err := r.enter('{'); err != nil {
		return err
	}
	for {
		more, err := r.more()
		if err != nil || !more {
			return err
		}
		name, err := r.text()
		if err != nil {
			return err
		}
		i, ok := d.next.contents.byName[string(name)]
		if !ok {
			return contentErrorf("an update for table %s, which is not monitored", quoteCut(string(name)))
		}
		if err := r.tableUpdate(d, i, f); err != nil {
			return err
		}
	}
}

func (r *reader) tableUpdate(d *draft, table int, f format) error {
	if _, err := r.enter('{'); err != nil {
		return err
	}
	for {
		more, err := r.more()
		if err != nil || !more {
			return err
		}
		text, err := r.text()
		if err != nil {
			return err
		}
		u, ok := parseUUID(text)
		if !ok {
			return contentErrorf("%s is not a uuid", quoteCut(string(text)))
		}
		old := d.next.tables[table].rows.get(u)
		if err := r.rowUpdate(d, table, u, old, f); err != nil {
			return err
		}
	}
}

// rowUpdate decodes one <row-update> or <row-update2>.
func (r *reader) rowUpdate(d *draft, table int, u UUID, old *Row, f format) error {
	if _, err := r.enter('{'); err != nil {
		return err
	}
	lay := d.next.contents.tables[table].layout
	row, gone := old, false
	for {
		more, err := r.more()
		if err != nil {
			return err
		}
		if !more {
			break
		}
		what, err := r.text()
		if err != nil {
			return err
		}
		switch {
		case f == formatRFC && string(what) == "old":
			gone = row == old
			err = r.dec.SkipValue()
		case f == formatRFC && string(what) == "new":
			// "new" has all columns, and whether the row is new is told by "old".
			gone = false
			row, err = r.row(lay, u, old, false)
		case f != formatRFC && (string(what) == "insert" || string(what) == "initial"):
			if old != nil {
				return contentErrorf("row %s of table %s is inserted, but it is there", u, lay.table)
			}
			row, err = r.row(lay, u, nil, false)
		case f != formatRFC && string(what) == "modify":
			if old == nil {
				return contentErrorf("row %s of table %s is modified, but it is not there", u, lay.table)
			}
			row, err = r.row(lay, u, old, true)
		case f != formatRFC && string(what) == "delete":
			gone = true
			err = r.dec.SkipValue()
		default:
			err = contentErrorf("a row update has a member %s", quoteCut(string(what)))
		}
		if err != nil {
			return err
		}
	}
	switch {
	case gone && old == nil:
		return contentErrorf("row %s of table %s is deleted, but it is not there", u, lay.table)
	case gone:
		d.put(table, old, nil)
	case row == nil:
		return contentErrorf("row %s of table %s has an update that says nothing", u, lay.table)
	case old == nil || !old.equal(row):
		d.put(table, old, row)
	}
	return nil
}

// row decodes a <row> on top of base, or of the columns' defaults if base is
// nil. With diffs, columns that can hold several elements carry the difference.
func (r *reader) row(lay *layout, u UUID, base *Row, diffs bool) (*Row, error) {
	if _, err := r.enter('{'); err != nil {
		return nil, err
	}
	from := lay.defaults
	if base != nil {
		from = base.values
	}
	row := &Row{layout: lay, uuid: u, values: append(make([]Value, 0, len(from)), from...)}

	// All columns are decoded into one buffer, which becomes one string that
	// the values share.
	r.values.buf = r.values.buf[:0]
	r.spans = r.spans[:0]
	for {
		more, err := r.more()
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		name, err := r.text()
		if err != nil {
			return nil, err
		}
		i, ok := lay.index[string(name)]
		if !ok {
			return nil, contentErrorf("column %s of table %s is not monitored", quoteCut(string(name)), lay.table)
		}
		c := lay.columns[i]
		start := len(r.values.buf)
		if err := r.value(c); err != nil {
			return nil, inColumn(err, lay, c)
		}
		if diffs && c.composite() {
			change := Value{string(r.values.buf[start:])}
			r.values.buf = r.values.buf[:start]
			applyDiff(&r.values, row.values[i], change)
		}
		if n := r.values.count; n < c.Min || n > c.Max {
			return nil, inColumn(contentErrorf("holds %d elements", n), lay, c)
		}
		r.spans = append(r.spans, span{i, start, len(r.values.buf)})
	}
	all := string(r.values.buf)
	for _, s := range r.spans {
		row.values[s.column] = Value{all[s.start:s.end]}
		if lay.columns[s.column].Name == "_uuid" {
			row.uuid, _ = row.values[s.column].AsUUID()
		}
	}
	return row, nil
}

// span is where the value of a column lies in the buffer of its row.
type span struct{ column, start, end int }

func inColumn(err error, lay *layout, c *Column) error {
	if isContentError(err) {
		return contentErrorf("column %s.%s: %v", lay.table, c.Name, err)
	}
	return err
}
