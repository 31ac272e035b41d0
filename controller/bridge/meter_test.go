package bridge

import (
	"testing"

	"brlb/openflow"
	"brlb/openflow/oftest"
	"brlb/openflow/session"
)

// A switch that can have no meters is told, and gets its rows nevertheless.
func TestSwitchWithoutMeters(t *testing.T) {
	for _, none := range []bool{false, true} {
		sw := oftest.NewSwitch(oftest.SwitchOptions{Service: true, NoMeters: none, Ports: []openflow.Port{oftest.NewPort(openflow.PortLocal, "br0")}})
		t.Cleanup(sw.Close)
		st := newStandWith(t, sw)
		connected := next[Connected](t, st)
		if connected.NoMeters != none {
			t.Errorf("no meters: %t, want %t", connected.NoMeters, none)
		}
		if r := st.bridge.Apply(t.Context(), connected.Session, []openflow.Message{openflow.NewFlowMod(openflow.FlowAdd)}); r.Outcome != session.Applied {
			t.Errorf("no meters %t: %v, %v", none, r.Outcome, r.Err)
		}
		meters, err := st.bridge.Meters(t.Context())
		if err != nil || (len(meters) == 0) != none {
			t.Errorf("no meters %t: there are %v, %v", none, meters, err)
		}
	}
}
