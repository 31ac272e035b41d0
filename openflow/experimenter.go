package openflow

// Experimenter is a message of an experimenter that this package does not know
// (OF1.4 section 7.5.5). Data follows ExpType and aliases the parsed octets.
type Experimenter struct {
	Experimenter uint32
	ExpType      uint32
	Data         []byte
}

// Type returns TypeExperimenter.
func (*Experimenter) Type() Type { return TypeExperimenter }

func (m *Experimenter) appendBody(b []byte) ([]byte, error) {
	return append(append32(append32(b, m.Experimenter), m.ExpType), m.Data...), nil
}

// Types of Open vSwitch's own messages.
const (
	nxtCTFlushZone = 29
	nxtCTFlush     = 32
)

func parseExperimenter(d *decoder) Message {
	m := &Experimenter{Experimenter: d.u32(), ExpType: d.u32()}
	body := d.pos
	if m.Experimenter == ExperimenterNicira {
		var known Message
		switch m.ExpType {
		case nxtCTFlushZone:
			known = parseCTFlushZone(d)
		case nxtCTFlush:
			if f := parseCTFlush(d); f != nil {
				known = f
			}
		}
		if known != nil {
			return known
		}
		d.pos = body
	}
	m.Data = d.rest()
	return m
}
