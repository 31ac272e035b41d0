package openflow

// FeaturesRequest asks what the switch is (OF1.4 section 7.3.1).
type FeaturesRequest struct{}

// FeaturesReply says what the switch is.
type FeaturesReply struct {
	DatapathID   uint64
	Buffers      uint32 // packets that it can hold; Open vSwitch: 0
	Tables       uint8
	AuxiliaryID  uint8
	Capabilities Capabilities
	Reserved     uint32
}

// Capabilities of a switch (ofp_capabilities).
type Capabilities uint32

// The capabilities.
const (
	CapFlowStats      Capabilities = 1 << 0
	CapTableStats     Capabilities = 1 << 1
	CapPortStats      Capabilities = 1 << 2
	CapGroupStats     Capabilities = 1 << 3
	CapIPReassembly   Capabilities = 1 << 5
	CapQueueStats     Capabilities = 1 << 6
	CapPortBlocked    Capabilities = 1 << 8
	CapBundles        Capabilities = 1 << 9
	CapFlowMonitoring Capabilities = 1 << 10
)

// Type returns TypeFeaturesRequest.
func (*FeaturesRequest) Type() Type { return TypeFeaturesRequest }

// Type returns TypeFeaturesReply.
func (*FeaturesReply) Type() Type { return TypeFeaturesReply }

func (*FeaturesRequest) appendBody(b []byte) ([]byte, error) { return b, nil }

func (m *FeaturesReply) appendBody(b []byte) ([]byte, error) {
	b = append32(append64(b, m.DatapathID), m.Buffers)
	b = append(b, m.Tables, m.AuxiliaryID, 0, 0)
	return append32(append32(b, uint32(m.Capabilities)), m.Reserved), nil
}

func parseFeaturesReply(d *decoder) *FeaturesReply {
	m := &FeaturesReply{DatapathID: d.u64(), Buffers: d.u32(), Tables: d.u8(), AuxiliaryID: d.u8()}
	d.skip(2)
	m.Capabilities, m.Reserved = Capabilities(d.u32()), d.u32()
	return m
}

// GetConfigRequest asks for the configuration (OF1.4 section 7.3.2).
type GetConfigRequest struct{}

// GetConfigReply tells the configuration.
type GetConfigReply struct{ SwitchConfig }

// SetConfig sets the configuration. On a connection that the switch accepted
// (a service connection), Open vSwitch sends no asynchronous message before a
// SetConfig with MissSendLen other than 0.
type SetConfig struct{ SwitchConfig }

// SwitchConfig is what SetConfig sets.
type SwitchConfig struct {
	Flags       uint16 // fragments: 0 normal, 1 drop, 2 reassemble
	MissSendLen uint16 // octets of a packet to send to the controller on a table miss
}

// Type returns TypeGetConfigRequest.
func (*GetConfigRequest) Type() Type { return TypeGetConfigRequest }

// Type returns TypeGetConfigReply.
func (*GetConfigReply) Type() Type { return TypeGetConfigReply }

// Type returns TypeSetConfig.
func (*SetConfig) Type() Type { return TypeSetConfig }

func (*GetConfigRequest) appendBody(b []byte) ([]byte, error) { return b, nil }

func (m *SwitchConfig) appendBody(b []byte) ([]byte, error) {
	return append16(append16(b, m.Flags), m.MissSendLen), nil
}

func parseSwitchConfig(d *decoder) SwitchConfig {
	return SwitchConfig{Flags: d.u16(), MissSendLen: d.u16()}
}
