package openflow

import "fmt"

// FlowStatsReader reads the flows of a MultipartReply one by one and allocates
// nothing for each: the way to go over ten thousand flows. Parse does the same
// at once, with lists that can be kept.
//
//	r, err := openflow.NewFlowStatsReader(message)
//	for r.Next() {
//		f := r.Flow()
//		...
//	}
//	err = r.Err()
type FlowStatsReader struct {
	header Header
	flags  MultipartFlags
	d      decoder
	flow   FlowView
}

// FlowView is a flow that a FlowStatsReader is at. All of it is overwritten by
// Next, and the octets alias the message.
type FlowView struct {
	// FlowStats without Instructions: they are InstructionOctets.
	FlowStats
	// MatchOctets are type, length, fields and padding of the match, as
	// AppendMatch writes them.
	MatchOctets []byte
	// InstructionOctets are the instructions, as AppendInstructions writes them.
	InstructionOctets []byte

	offset int
	b      []byte
}

// ParseInstructions decodes the instructions of the flow. They can be kept, but
// for octets that alias the message.
func (f *FlowView) ParseInstructions() (Instructions, error) {
	d := decoder{b: f.b, pos: f.offset, end: f.offset + len(f.InstructionOctets)}
	list := parseInstructions(&d, new(flowSlabs))
	if d.bad {
		return nil, d.fault()
	}
	return list, nil
}

// NewFlowStatsReader reads the start of b, which must be one whole
// MultipartReply with flow statistics.
func NewFlowStatsReader(b []byte) (*FlowStatsReader, error) {
	h, err := ParseHeader(b)
	if err != nil {
		return nil, err
	}
	d := decoder{b: b, pos: HeaderLen, end: len(b)}
	t, flags := parseMultipartStart(&d)
	switch {
	case int(h.Length) != len(b):
		d.failf(ErrBadLength, "%v: header states %d octets, have %d", h.Type, h.Length, len(b))
	case h.Version != Version:
		d.failf(ErrBadVersion, "%v: version %d, want %d", h.Type, h.Version, Version)
	case !d.bad && (h.Type != TypeMultipartReply || t != MultipartFlow):
		d.failf(ErrBadValue, "%v of %v, want flow statistics", h.Type, t)
	}
	if d.bad {
		return nil, d.fault()
	}
	return &FlowStatsReader{header: h, flags: flags, d: d}, nil
}

// Header is the message's header.
func (r *FlowStatsReader) Header() Header { return r.header }

// More reports whether another message follows with more flows.
func (r *FlowStatsReader) More() bool { return r.flags&MultipartMore != 0 }

// Next goes to the next flow; false at the end, and if the message is bad.
func (r *FlowStatsReader) Next() bool {
	d := &r.d
	if d.bad || d.left() == 0 {
		return false
	}
	f := &r.flow
	outer := d.entry(flowStatsMinLen, "flow")
	parseFlowCounters(d, &f.FlowStats)
	start := d.pos
	f.Match = parseMatch(d, f.Match[:0])
	if !d.bad {
		f.MatchOctets = d.b[start:d.pos:d.pos]
		f.b, f.offset = d.b, d.pos
		f.InstructionOctets = d.rest()
	}
	d.leave(outer)
	return !d.bad
}

// Flow is the flow that Next went to.
func (r *FlowStatsReader) Flow() *FlowView { return &r.flow }

// Err is what is wrong with the message, nil if nothing was found.
func (r *FlowStatsReader) Err() error {
	if fault := r.d.fault(); fault != nil {
		return fmt.Errorf("flow statistics: %w", fault)
	}
	return nil
}

// AppendMatch appends a match as it stands in messages, to compare with
// FlowView.MatchOctets.
func AppendMatch(b []byte, m Match) ([]byte, error) { return appendMatch(b, m) }

// AppendInstructions appends instructions as they stand in messages, to compare
// with FlowView.InstructionOctets.
func AppendInstructions(b []byte, list Instructions) ([]byte, error) {
	return appendInstructions(b, list)
}
