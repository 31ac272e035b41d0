package openflow

import "fmt"

// fields is the table of all fields, by Field.
var fields = newFieldTable()

func newFieldTable() (table [fieldCount]fieldInfo) {
	table = knownFields
	for n := range tunnelMetadataFields {
		table[TunnelMetadata(n)] = fieldInfo{
			name: fmt.Sprintf("tun_metadata%d", n), wire: fmt.Sprintf("NXM_NX_TUN_METADATA%d", n),
			match: classNXM1<<16 | uint32(40+n)<<9 | 124, size: 124, bits: 992,
			format: formatBytes, maskable: true, writable: true,
		}
	}
	return table
}

// knownFields are all fields but the tunnel options.
var knownFields = [fieldCount]fieldInfo{
	PacketType:        {name: "packet_type", wire: "OXM_OF_PACKET_TYPE", match: 0x80005804, size: 4, bits: 32, format: formatPacketType, need: needNothing},
	DPHash:            {name: "dp_hash", wire: "NXM_NX_DP_HASH", match: 0x00014604, size: 4, bits: 32, format: formatHex, need: needNothing, maskable: true},
	RecircID:          {name: "recirc_id", wire: "NXM_NX_RECIRC_ID", match: 0x00014804, size: 4, bits: 32, format: formatDecimal, need: needNothing},
	ConjID:            {name: "conj_id", wire: "NXM_NX_CONJ_ID", match: 0x00014a04, size: 4, bits: 32, format: formatDecimal, need: needNothing},
	InPort:            {name: "in_port", wire: "OXM_OF_IN_PORT", match: 0x80000004, size: 4, bits: 32, format: formatPort, need: needNothing, writable: true},
	InPortNXM:         {name: "in_port", wire: "NXM_OF_IN_PORT", match: 0x00000002, size: 2, bits: 16, format: formatPort, need: needNothing, writable: true},
	ActsetOutput:      {name: "actset_output", wire: "ONFOXM_ET_ACTSET_OUTPUT", match: 0xffff5608, experimenter: ExperimenterONF, size: 4, bits: 32, format: formatPort, need: needNothing},
	EthSrc:            {name: "eth_src", alias: "dl_src", wire: "OXM_OF_ETH_SRC", match: 0x80000806, nxm: "NXM_OF_ETH_SRC", action: 0x00000406, size: 6, bits: 48, format: formatMAC, need: needEthernet, maskable: true, writable: true},
	EthDst:            {name: "eth_dst", alias: "dl_dst", wire: "OXM_OF_ETH_DST", match: 0x80000606, nxm: "NXM_OF_ETH_DST", action: 0x00000206, size: 6, bits: 48, format: formatMAC, need: needEthernet, maskable: true, writable: true},
	EthType:           {name: "eth_type", alias: "dl_type", wire: "OXM_OF_ETH_TYPE", match: 0x80000a02, nxm: "NXM_OF_ETH_TYPE", action: 0x00000602, size: 2, bits: 16, format: formatHex, need: needEthernet},
	VLANVID:           {name: "vlan_vid", wire: "OXM_OF_VLAN_VID", match: 0x80000c02, size: 2, bits: 12, format: formatDecimal, need: needEthernet, maskable: true, writable: true},
	VLANPCP:           {name: "vlan_pcp", wire: "OXM_OF_VLAN_PCP", match: 0x80000e01, size: 1, bits: 3, format: formatDecimal, need: needVLAN, writable: true},
	VLANTCI:           {name: "vlan_tci", wire: "NXM_OF_VLAN_TCI", match: 0x00000802, size: 2, bits: 16, format: formatHex, need: needEthernet, maskable: true, writable: true},
	MPLSTC:            {name: "mpls_tc", wire: "OXM_OF_MPLS_TC", match: 0x80004601, size: 1, bits: 3, format: formatDecimal, need: needMPLS, writable: true},
	MPLSBOS:           {name: "mpls_bos", wire: "OXM_OF_MPLS_BOS", match: 0x80004801, size: 1, bits: 1, format: formatDecimal, need: needMPLS},
	MPLSTTL:           {name: "mpls_ttl", wire: "NXM_NX_MPLS_TTL", match: 0x00013c01, size: 1, bits: 8, format: formatDecimal, need: needMPLS, writable: true},
	MPLSLabel:         {name: "mpls_label", wire: "OXM_OF_MPLS_LABEL", match: 0x80004404, size: 4, bits: 20, format: formatDecimal, need: needMPLS, writable: true},
	IPv4Src:           {name: "ip_src", alias: "nw_src", wire: "OXM_OF_IPV4_SRC", match: 0x80001604, nxm: "NXM_OF_IP_SRC", action: 0x00000e04, size: 4, bits: 32, format: formatIPv4, need: needIPv4, maskable: true, writable: true},
	IPv4Dst:           {name: "ip_dst", alias: "nw_dst", wire: "OXM_OF_IPV4_DST", match: 0x80001804, nxm: "NXM_OF_IP_DST", action: 0x00001004, size: 4, bits: 32, format: formatIPv4, need: needIPv4, maskable: true, writable: true},
	IPv6Src:           {name: "ipv6_src", wire: "OXM_OF_IPV6_SRC", match: 0x80003410, nxm: "NXM_NX_IPV6_SRC", action: 0x00012610, size: 16, bits: 128, format: formatIPv6, need: needIPv6, maskable: true, writable: true},
	IPv6Dst:           {name: "ipv6_dst", wire: "OXM_OF_IPV6_DST", match: 0x80003610, nxm: "NXM_NX_IPV6_DST", action: 0x00012810, size: 16, bits: 128, format: formatIPv6, need: needIPv6, maskable: true, writable: true},
	IPFrag:            {name: "ip_frag", alias: "nw_frag", wire: "NXM_NX_IP_FRAG", match: 0x00013401, size: 1, bits: 2, format: formatFrag, need: needIP, maskable: true},
	IPDSCP:            {name: "ip_dscp", wire: "OXM_OF_IP_DSCP", match: 0x80001001, size: 1, bits: 6, format: formatDecimal, need: needIP, writable: true},
	IPTOS:             {name: "nw_tos", wire: "NXM_OF_IP_TOS", match: 0x00000a01, size: 1, bits: 8, format: formatDecimal, need: needIP, writable: true},
	IPECN:             {name: "nw_ecn", alias: "ip_ecn", wire: "OXM_OF_IP_ECN", match: 0x80001201, nxm: "NXM_NX_IP_ECN", action: 0x00013801, size: 1, bits: 2, format: formatDecimal, need: needIP, writable: true},
	IPTTL:             {name: "nw_ttl", wire: "NXM_NX_IP_TTL", match: 0x00013a01, size: 1, bits: 8, format: formatDecimal, need: needIP, writable: true},
	IPv6FLabel:        {name: "ipv6_label", wire: "OXM_OF_IPV6_FLABEL", match: 0x80003804, nxm: "NXM_NX_IPV6_LABEL", action: 0x00013604, size: 4, bits: 20, format: formatHex, need: needIPv6, maskable: true, writable: true},
	IPProto:           {name: "nw_proto", alias: "ip_proto", wire: "OXM_OF_IP_PROTO", match: 0x80001401, nxm: "NXM_OF_IP_PROTO", action: 0x00000c01, size: 1, bits: 8, format: formatDecimal, need: needIP},
	TCPSrc:            {name: "tcp_src", alias: "tp_src", wire: "OXM_OF_TCP_SRC", match: 0x80001a02, nxm: "NXM_OF_TCP_SRC", action: 0x00001202, size: 2, bits: 16, format: formatDecimal, need: needTCP, maskable: true, writable: true},
	TCPDst:            {name: "tcp_dst", alias: "tp_dst", wire: "OXM_OF_TCP_DST", match: 0x80001c02, nxm: "NXM_OF_TCP_DST", action: 0x00001402, size: 2, bits: 16, format: formatDecimal, need: needTCP, maskable: true, writable: true},
	TCPFlags:          {name: "tcp_flags", wire: "ONFOXM_ET_TCP_FLAGS", match: 0xffff5406, experimenter: ExperimenterONF, nxm: "NXM_NX_TCP_FLAGS", action: 0x00014402, size: 2, bits: 12, format: formatTCPFlags, need: needTCP, maskable: true},
	UDPSrc:            {name: "udp_src", wire: "OXM_OF_UDP_SRC", match: 0x80001e02, nxm: "NXM_OF_UDP_SRC", action: 0x00001602, size: 2, bits: 16, format: formatDecimal, need: needUDP, maskable: true, writable: true},
	UDPDst:            {name: "udp_dst", wire: "OXM_OF_UDP_DST", match: 0x80002002, nxm: "NXM_OF_UDP_DST", action: 0x00001802, size: 2, bits: 16, format: formatDecimal, need: needUDP, maskable: true, writable: true},
	SCTPSrc:           {name: "sctp_src", wire: "OXM_OF_SCTP_SRC", match: 0x80002202, size: 2, bits: 16, format: formatDecimal, need: needSCTP, maskable: true, writable: true},
	SCTPDst:           {name: "sctp_dst", wire: "OXM_OF_SCTP_DST", match: 0x80002402, size: 2, bits: 16, format: formatDecimal, need: needSCTP, maskable: true, writable: true},
	ICMPv4Type:        {name: "icmp_type", wire: "OXM_OF_ICMPV4_TYPE", match: 0x80002601, nxm: "NXM_OF_ICMP_TYPE", action: 0x00001a01, size: 1, bits: 8, format: formatDecimal, need: needICMPv4, writable: true},
	ICMPv4Code:        {name: "icmp_code", wire: "OXM_OF_ICMPV4_CODE", match: 0x80002801, nxm: "NXM_OF_ICMP_CODE", action: 0x00001c01, size: 1, bits: 8, format: formatDecimal, need: needICMPv4, writable: true},
	ICMPv6Type:        {name: "icmpv6_type", wire: "OXM_OF_ICMPV6_TYPE", match: 0x80003a01, nxm: "NXM_NX_ICMPV6_TYPE", action: 0x00012a01, size: 1, bits: 8, format: formatDecimal, need: needICMPv6, writable: true},
	ICMPv6Code:        {name: "icmpv6_code", wire: "OXM_OF_ICMPV6_CODE", match: 0x80003c01, nxm: "NXM_NX_ICMPV6_CODE", action: 0x00012c01, size: 1, bits: 8, format: formatDecimal, need: needICMPv6, writable: true},
	IPv6NDTarget:      {name: "nd_target", wire: "OXM_OF_IPV6_ND_TARGET", match: 0x80003e10, nxm: "NXM_NX_ND_TARGET", action: 0x00012e10, size: 16, bits: 128, format: formatIPv6, need: needND, maskable: true, writable: true},
	IPv6NDSLL:         {name: "nd_sll", wire: "OXM_OF_IPV6_ND_SLL", match: 0x80004006, nxm: "NXM_NX_ND_SLL", action: 0x00013006, size: 6, bits: 48, format: formatMAC, need: needNDSolicit, maskable: true, writable: true},
	IPv6NDTLL:         {name: "nd_tll", wire: "OXM_OF_IPV6_ND_TLL", match: 0x80004206, nxm: "NXM_NX_ND_TLL", action: 0x00013206, size: 6, bits: 48, format: formatMAC, need: needNDAdvert, maskable: true, writable: true},
	IPv6NDReserved:    {name: "nd_reserved", wire: "ERICOXM_OF_ICMPV6_ND_RESERVED", match: 0x10000204, size: 4, bits: 32, format: formatDecimal, need: needND, writable: true},
	IPv6NDOptionsType: {name: "nd_options_type", wire: "ERICOXM_OF_ICMPV6_ND_OPTIONS_TYPE", match: 0x10000401, size: 1, bits: 8, format: formatDecimal, need: needND, writable: true},
	ARPOp:             {name: "arp_op", wire: "OXM_OF_ARP_OP", match: 0x80002a02, nxm: "NXM_OF_ARP_OP", action: 0x00001e02, size: 2, bits: 16, format: formatDecimal, need: needARP, writable: true},
	ARPSPA:            {name: "arp_spa", wire: "OXM_OF_ARP_SPA", match: 0x80002c04, nxm: "NXM_OF_ARP_SPA", action: 0x00002004, size: 4, bits: 32, format: formatIPv4, need: needARP, maskable: true, writable: true},
	ARPTPA:            {name: "arp_tpa", wire: "OXM_OF_ARP_TPA", match: 0x80002e04, nxm: "NXM_OF_ARP_TPA", action: 0x00002204, size: 4, bits: 32, format: formatIPv4, need: needARP, maskable: true, writable: true},
	ARPSHA:            {name: "arp_sha", wire: "OXM_OF_ARP_SHA", match: 0x80003006, nxm: "NXM_NX_ARP_SHA", action: 0x00012206, size: 6, bits: 48, format: formatMAC, need: needARP, maskable: true, writable: true},
	ARPTHA:            {name: "arp_tha", wire: "OXM_OF_ARP_THA", match: 0x80003206, nxm: "NXM_NX_ARP_THA", action: 0x00012406, size: 6, bits: 48, format: formatMAC, need: needARP, maskable: true, writable: true},
	TunnelID:          {name: "tun_id", alias: "tunnel_id", wire: "OXM_OF_TUNNEL_ID", match: 0x80004c08, nxm: "NXM_NX_TUN_ID", action: 0x00012008, size: 8, bits: 64, format: formatHex, need: needNothing, maskable: true, writable: true},
	TunnelFlags:       {name: "tun_flags", wire: "NXM_NX_TUN_FLAGS", match: 0x0001d002, size: 2, bits: 1, format: formatTunnelFlags, need: needNothing, maskable: true, writable: true},
	TunnelIPv4Src:     {name: "tun_src", wire: "NXM_NX_TUN_IPV4_SRC", match: 0x00013e04, size: 4, bits: 32, format: formatIPv4, need: needNothing, maskable: true, writable: true},
	TunnelIPv4Dst:     {name: "tun_dst", wire: "NXM_NX_TUN_IPV4_DST", match: 0x00014004, size: 4, bits: 32, format: formatIPv4, need: needNothing, maskable: true, writable: true},
	TunnelIPv6Src:     {name: "tun_ipv6_src", wire: "NXM_NX_TUN_IPV6_SRC", match: 0x0001da10, size: 16, bits: 128, format: formatIPv6, need: needNothing, maskable: true, writable: true},
	TunnelIPv6Dst:     {name: "tun_ipv6_dst", wire: "NXM_NX_TUN_IPV6_DST", match: 0x0001dc10, size: 16, bits: 128, format: formatIPv6, need: needNothing, maskable: true, writable: true},
	TunnelGBPID:       {name: "tun_gbp_id", wire: "NXM_NX_TUN_GBP_ID", match: 0x00014c02, size: 2, bits: 16, format: formatDecimal, need: needNothing, maskable: true, writable: true},
	TunnelGBPFlags:    {name: "tun_gbp_flags", wire: "NXM_NX_TUN_GBP_FLAGS", match: 0x00014e01, size: 1, bits: 8, format: formatHex, need: needNothing, maskable: true, writable: true},
	TunnelERSPANIdx:   {name: "tun_erspan_idx", wire: "NXOXM_ET_ERSPAN_IDX", match: 0xffff1608, experimenter: ExperimenterNicira, size: 4, bits: 20, format: formatHex, need: needNothing, maskable: true, writable: true},
	TunnelERSPANVer:   {name: "tun_erspan_ver", wire: "NXOXM_ET_ERSPAN_VER", match: 0xffff1805, experimenter: ExperimenterNicira, size: 1, bits: 4, format: formatDecimal, need: needNothing, maskable: true, writable: true},
	TunnelERSPANDir:   {name: "tun_erspan_dir", wire: "NXOXM_ET_ERSPAN_DIR", match: 0xffff1a05, experimenter: ExperimenterNicira, size: 1, bits: 1, format: formatDecimal, need: needNothing, maskable: true, writable: true},
	TunnelERSPANHWID:  {name: "tun_erspan_hwid", wire: "NXOXM_ET_ERSPAN_HWID", match: 0xffff1c05, experimenter: ExperimenterNicira, size: 1, bits: 6, format: formatHex, need: needNothing, maskable: true, writable: true},
	TunnelGTPUFlags:   {name: "tun_gtpu_flags", wire: "NXOXM_ET_GTPU_FLAGS", match: 0xffff1e05, experimenter: ExperimenterNicira, size: 1, bits: 8, format: formatHex, need: needNothing, maskable: true},
	TunnelGTPUMsgType: {name: "tun_gtpu_msgtype", wire: "NXOXM_ET_GTPU_MSGTYPE", match: 0xffff2005, experimenter: ExperimenterNicira, size: 1, bits: 8, format: formatDecimal, need: needNothing, maskable: true},
	NSHFlags:          {name: "nsh_flags", wire: "NXOXM_NSH_FLAGS", match: 0xffff0205, experimenter: ExperimenterNSH, size: 1, bits: 8, format: formatDecimal, need: needNSH, maskable: true, writable: true},
	NSHTTL:            {name: "nsh_ttl", wire: "NXOXM_NSH_TTL", match: 0xffff1405, experimenter: ExperimenterNSH, size: 1, bits: 8, format: formatDecimal, need: needNSH, writable: true},
	NSHMDType:         {name: "nsh_mdtype", wire: "NXOXM_NSH_MDTYPE", match: 0xffff0405, experimenter: ExperimenterNSH, size: 1, bits: 8, format: formatDecimal, need: needNSH},
	NSHNP:             {name: "nsh_np", wire: "NXOXM_NSH_NP", match: 0xffff0605, experimenter: ExperimenterNSH, size: 1, bits: 8, format: formatDecimal, need: needNSH},
	NSHSPI:            {name: "nsh_spi", alias: "nsp", wire: "NXOXM_NSH_SPI", match: 0xffff0808, experimenter: ExperimenterNSH, size: 4, bits: 24, format: formatHex, need: needNSH, writable: true},
	NSHSI:             {name: "nsh_si", alias: "nsi", wire: "NXOXM_NSH_SI", match: 0xffff0a05, experimenter: ExperimenterNSH, size: 1, bits: 8, format: formatDecimal, need: needNSH, writable: true},
	NSHC1:             {name: "nsh_c1", alias: "nshc1", wire: "NXOXM_NSH_C1", match: 0xffff0c08, experimenter: ExperimenterNSH, size: 4, bits: 32, format: formatHex, need: needNSH, maskable: true, writable: true},
	NSHC2:             {name: "nsh_c2", alias: "nshc2", wire: "NXOXM_NSH_C2", match: 0xffff0e08, experimenter: ExperimenterNSH, size: 4, bits: 32, format: formatHex, need: needNSH, maskable: true, writable: true},
	NSHC3:             {name: "nsh_c3", alias: "nshc3", wire: "NXOXM_NSH_C3", match: 0xffff1008, experimenter: ExperimenterNSH, size: 4, bits: 32, format: formatHex, need: needNSH, maskable: true, writable: true},
	NSHC4:             {name: "nsh_c4", alias: "nshc4", wire: "NXOXM_NSH_C4", match: 0xffff1208, experimenter: ExperimenterNSH, size: 4, bits: 32, format: formatHex, need: needNSH, maskable: true, writable: true},
	Reg0:              {name: "reg0", wire: "NXM_NX_REG0", match: 0x00010004, size: 4, bits: 32, format: formatHex, need: needNothing, maskable: true, writable: true},
	Reg1:              {name: "reg1", wire: "NXM_NX_REG1", match: 0x00010204, size: 4, bits: 32, format: formatHex, need: needNothing, maskable: true, writable: true},
	Reg2:              {name: "reg2", wire: "NXM_NX_REG2", match: 0x00010404, size: 4, bits: 32, format: formatHex, need: needNothing, maskable: true, writable: true},
	Reg3:              {name: "reg3", wire: "NXM_NX_REG3", match: 0x00010604, size: 4, bits: 32, format: formatHex, need: needNothing, maskable: true, writable: true},
	Reg4:              {name: "reg4", wire: "NXM_NX_REG4", match: 0x00010804, size: 4, bits: 32, format: formatHex, need: needNothing, maskable: true, writable: true},
	Reg5:              {name: "reg5", wire: "NXM_NX_REG5", match: 0x00010a04, size: 4, bits: 32, format: formatHex, need: needNothing, maskable: true, writable: true},
	Reg6:              {name: "reg6", wire: "NXM_NX_REG6", match: 0x00010c04, size: 4, bits: 32, format: formatHex, need: needNothing, maskable: true, writable: true},
	Reg7:              {name: "reg7", wire: "NXM_NX_REG7", match: 0x00010e04, size: 4, bits: 32, format: formatHex, need: needNothing, maskable: true, writable: true},
	Reg8:              {name: "reg8", wire: "NXM_NX_REG8", match: 0x00011004, size: 4, bits: 32, format: formatHex, need: needNothing, maskable: true, writable: true},
	Reg9:              {name: "reg9", wire: "NXM_NX_REG9", match: 0x00011204, size: 4, bits: 32, format: formatHex, need: needNothing, maskable: true, writable: true},
	Reg10:             {name: "reg10", wire: "NXM_NX_REG10", match: 0x00011404, size: 4, bits: 32, format: formatHex, need: needNothing, maskable: true, writable: true},
	Reg11:             {name: "reg11", wire: "NXM_NX_REG11", match: 0x00011604, size: 4, bits: 32, format: formatHex, need: needNothing, maskable: true, writable: true},
	Reg12:             {name: "reg12", wire: "NXM_NX_REG12", match: 0x00011804, size: 4, bits: 32, format: formatHex, need: needNothing, maskable: true, writable: true},
	Reg13:             {name: "reg13", wire: "NXM_NX_REG13", match: 0x00011a04, size: 4, bits: 32, format: formatHex, need: needNothing, maskable: true, writable: true},
	Reg14:             {name: "reg14", wire: "NXM_NX_REG14", match: 0x00011c04, size: 4, bits: 32, format: formatHex, need: needNothing, maskable: true, writable: true},
	Reg15:             {name: "reg15", wire: "NXM_NX_REG15", match: 0x00011e04, size: 4, bits: 32, format: formatHex, need: needNothing, maskable: true, writable: true},
	XReg0:             {name: "xreg0", wire: "OXM_OF_PKT_REG0", match: 0x80010008, size: 8, bits: 64, format: formatHex, need: needNothing, maskable: true, writable: true},
	XReg1:             {name: "xreg1", wire: "OXM_OF_PKT_REG1", match: 0x80010208, size: 8, bits: 64, format: formatHex, need: needNothing, maskable: true, writable: true},
	XReg2:             {name: "xreg2", wire: "OXM_OF_PKT_REG2", match: 0x80010408, size: 8, bits: 64, format: formatHex, need: needNothing, maskable: true, writable: true},
	XReg3:             {name: "xreg3", wire: "OXM_OF_PKT_REG3", match: 0x80010608, size: 8, bits: 64, format: formatHex, need: needNothing, maskable: true, writable: true},
	XReg4:             {name: "xreg4", wire: "OXM_OF_PKT_REG4", match: 0x80010808, size: 8, bits: 64, format: formatHex, need: needNothing, maskable: true, writable: true},
	XReg5:             {name: "xreg5", wire: "OXM_OF_PKT_REG5", match: 0x80010a08, size: 8, bits: 64, format: formatHex, need: needNothing, maskable: true, writable: true},
	XReg6:             {name: "xreg6", wire: "OXM_OF_PKT_REG6", match: 0x80010c08, size: 8, bits: 64, format: formatHex, need: needNothing, maskable: true, writable: true},
	XReg7:             {name: "xreg7", wire: "OXM_OF_PKT_REG7", match: 0x80010e08, size: 8, bits: 64, format: formatHex, need: needNothing, maskable: true, writable: true},
	XXReg0:            {name: "xxreg0", wire: "NXM_NX_XXREG0", match: 0x0001de10, size: 16, bits: 128, format: formatHex, need: needNothing, maskable: true, writable: true},
	XXReg1:            {name: "xxreg1", wire: "NXM_NX_XXREG1", match: 0x0001e010, size: 16, bits: 128, format: formatHex, need: needNothing, maskable: true, writable: true},
	XXReg2:            {name: "xxreg2", wire: "NXM_NX_XXREG2", match: 0x0001e210, size: 16, bits: 128, format: formatHex, need: needNothing, maskable: true, writable: true},
	XXReg3:            {name: "xxreg3", wire: "NXM_NX_XXREG3", match: 0x0001e410, size: 16, bits: 128, format: formatHex, need: needNothing, maskable: true, writable: true},
	PktMark:           {name: "pkt_mark", wire: "NXM_NX_PKT_MARK", match: 0x00014204, size: 4, bits: 32, format: formatHex, need: needNothing, maskable: true, writable: true},
	CTState:           {name: "ct_state", wire: "NXM_NX_CT_STATE", match: 0x0001d204, size: 4, bits: 32, format: formatCTState, need: needNothing, maskable: true},
	CTZone:            {name: "ct_zone", wire: "NXM_NX_CT_ZONE", match: 0x0001d402, size: 2, bits: 16, format: formatHex, need: needNothing},
	CTMark:            {name: "ct_mark", wire: "NXM_NX_CT_MARK", match: 0x0001d604, size: 4, bits: 32, format: formatHex, need: needNothing, maskable: true, writable: true},
	CTLabel:           {name: "ct_label", wire: "NXM_NX_CT_LABEL", match: 0x0001d810, size: 16, bits: 128, format: formatHex, need: needNothing, maskable: true, writable: true},
	CTNwSrc:           {name: "ct_nw_src", wire: "NXM_NX_CT_NW_SRC", match: 0x0001f004, size: 4, bits: 32, format: formatIPv4, need: needCT, maskable: true},
	CTIPv6Src:         {name: "ct_ipv6_src", wire: "NXM_NX_CT_IPV6_SRC", match: 0x0001f410, size: 16, bits: 128, format: formatIPv6, need: needCT, maskable: true},
	CTNwDst:           {name: "ct_nw_dst", wire: "NXM_NX_CT_NW_DST", match: 0x0001f204, size: 4, bits: 32, format: formatIPv4, need: needCT, maskable: true},
	CTIPv6Dst:         {name: "ct_ipv6_dst", wire: "NXM_NX_CT_IPV6_DST", match: 0x0001f610, size: 16, bits: 128, format: formatIPv6, need: needCT, maskable: true},
	CTNwProto:         {name: "ct_nw_proto", wire: "NXM_NX_CT_NW_PROTO", match: 0x0001ee01, size: 1, bits: 8, format: formatDecimal, need: needCT},
	CTTpSrc:           {name: "ct_tp_src", wire: "NXM_NX_CT_TP_SRC", match: 0x0001f802, size: 2, bits: 16, format: formatDecimal, need: needCT, maskable: true},
	CTTpDst:           {name: "ct_tp_dst", wire: "NXM_NX_CT_TP_DST", match: 0x0001fa02, size: 2, bits: 16, format: formatDecimal, need: needCT, maskable: true},
	Metadata:          {name: "metadata", wire: "OXM_OF_METADATA", match: 0x80000408, size: 8, bits: 64, format: formatHex, need: needNothing, maskable: true, writable: true}}

// The classes of OXM headers that the table uses.
const (
	classNXM0    = 0x0000 // Nicira: what OpenFlow 1.0 could match
	classNXM1    = 0x0001 // Nicira: the rest
	classERIC    = 0x1000 // Ericsson
	classOXM     = 0x8000 // OpenFlow basic
	classPktReg  = 0x8001 // OpenFlow packet registers
	classExpmter = 0xffff // followed by an experimenter id
)

// fieldCodes finds fields by the 7-bit number of their class.
type fieldCodes struct {
	nxm0, nxm1, eric, oxm, pktReg, onf, nicira, nsh [128]Field
}

// class returns the numbers of a class, nil for one without known fields.
func (c *fieldCodes) class(class uint16, experimenter uint32) *[128]Field {
	switch class {
	case classNXM1:
		return &c.nxm1
	case classOXM:
		return &c.oxm
	case classNXM0:
		return &c.nxm0
	case classPktReg:
		return &c.pktReg
	case classERIC:
		return &c.eric
	case classExpmter:
		switch experimenter {
		case ExperimenterONF:
			return &c.onf
		case ExperimenterNicira:
			return &c.nicira
		case ExperimenterNSH:
			return &c.nsh
		}
	}
	return nil
}

// codes is the reverse of fields.
var codes = newFieldCodes()

func newFieldCodes() *fieldCodes {
	c := new(fieldCodes)
	add := func(header, experimenter uint32, f Field) {
		c.class(uint16(header>>16), experimenter)[header>>9&127] = f
	}
	for f := FieldUnknown + 1; f < fieldCount; f++ {
		add(fields[f].match, fields[f].experimenter, f)
		if fields[f].action != 0 {
			add(fields[f].action, 0, f)
		}
	}
	// Later or experimental codes of fields that are written by another one.
	add(classOXM<<16|42<<9, 0, TCPFlags)
	add(classOXM<<16|43<<9, 0, ActsetOutput)
	add(classExpmter<<16, ExperimenterNicira, DPHash)
	return c
}

// fieldByHeader finds the field of a 32-bit OXM header and, for class 0xffff,
// experimenter id; FieldUnknown if there is none.
func fieldByHeader(header, experimenter uint32) Field {
	class := codes.class(uint16(header>>16), experimenter)
	if class == nil {
		return FieldUnknown
	}
	return class[header>>9&127]
}
