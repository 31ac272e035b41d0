package openflow

// RawProperty is a property or element (type, length, data, padding to 8) that
// this package does not know. Data aliases the parsed octets.
type RawProperty struct {
	Type uint16
	Data []byte
}

func appendRawProperties(b []byte, list []RawProperty) ([]byte, error) {
	for _, p := range list {
		start := len(b)
		b = append(append(append16(b, p.Type), 0, 0), p.Data...)
		var err error
		if b, err = patchLen(b, start, "property"); err != nil {
			return b, err
		}
		b = pad8(b, start)
	}
	return b, nil
}

// parseRawProperties reads properties until the window ends.
func parseRawProperties(d *decoder, what string) []RawProperty {
	var list []RawProperty
	for d.left() > 0 {
		typ, length, outer := d.tlv(4, what)
		p := RawProperty{Type: typ, Data: d.rest()}
		d.leave(outer)
		d.skip(-length & 7)
		if !d.bad {
			list = append(list, p)
		}
	}
	return list
}
