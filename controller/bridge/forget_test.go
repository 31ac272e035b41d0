package bridge

import (
	"errors"
	"testing"

	"brlb/openflow"
	"brlb/openflow/oftest"
)

// TestForget: a switch that can is told of each connection; one that cannot is
// sent nothing, for it would forget all.
func TestForget(t *testing.T) {
	flushes := make([]openflow.CTFlush, flushesAtOnce+1)
	for i := range flushes {
		flushes[i] = openflow.CTFlush{
			Proto: 6, HasZone: true, Zone: 5,
			Orig: openflow.CTTuple{Src: host(1), Dst: host(2), SrcPort: uint16(i + 1), DstPort: 80},
		}
	}
	for _, c := range []struct {
		software string
		can      bool
	}{{"2.17.9", false}, {"3.0.5", false}, {"3.1.0", true}, {"4.0.1", true}, {"unknown", false}} {
		sw := oftest.NewSwitch(oftest.SwitchOptions{Service: true, Software: c.software, Ports: []openflow.Port{oftest.NewPort(openflow.PortLocal, "br0")}})
		t.Cleanup(sw.Close)
		st := newStandWith(t, sw)
		next[Connected](t, st)
		before := sw.Received(openflow.TypeExperimenter)
		err := st.bridge.Forget(t.Context(), flushes)
		switch sent := sw.Received(openflow.TypeExperimenter) - before; {
		case c.can && (err != nil || sent != len(flushes)):
			t.Errorf("%s: %d sent, %v", c.software, sent, err)
		case !c.can && (!errors.Is(err, ErrNoFlush) || sent != 0):
			t.Errorf("%s: %d sent, %v", c.software, sent, err)
		}
	}
}

func TestForgetWithoutASwitch(t *testing.T) {
	b := New(Options{Bridge: "br0"})
	if err := b.Forget(t.Context(), make([]openflow.CTFlush, 1)); !errors.Is(err, ErrNotConnected) {
		t.Error(err)
	}
}
