package multipath_test

import (
	"fmt"
	"net/netip"

	"brlb/openflow/multipath"
)

// The slot of a connection whose MACs the pipeline sets to zero before
// multipath(symmetric_l4,7,modulo_n,1024,0,NXM_NX_REG1[]).
func Example() {
	p := multipath.Packet{
		EthType: 0x0800,
		Src:     netip.MustParseAddr("10.0.0.1"), Dst: netip.MustParseAddr("10.0.0.100"),
		Proto: 6, SrcPort: 12345, DstPort: 80,
	}
	hash := multipath.Hash(multipath.SymmetricL4, 7, &p)
	fmt.Printf("%#x -> slot %d\n", hash, multipath.Link(multipath.ModuloN, hash, 1024, 0))
	// Output: 0x35b62cfa -> slot 250
}
