package openflow

// The error codes of OF1.4 section 7.5.4, named after type and code, then those
// of Open vSwitch's extensions.
const (
	// OFPET_HELLO_FAILED, type 0.
	HelloFailedIncompatible ErrorCode = 0 << 16
	HelloFailedEPERM        ErrorCode = 0<<16 | 1

	// OFPET_BAD_REQUEST, type 1.
	BadRequestBadVersion              ErrorCode = 1 << 16
	BadRequestBadType                 ErrorCode = 1<<16 | 1
	BadRequestBadMultipart            ErrorCode = 1<<16 | 2
	BadRequestBadExperimenter         ErrorCode = 1<<16 | 3
	BadRequestBadExpType              ErrorCode = 1<<16 | 4
	BadRequestEPERM                   ErrorCode = 1<<16 | 5
	BadRequestBadLen                  ErrorCode = 1<<16 | 6
	BadRequestBufferEmpty             ErrorCode = 1<<16 | 7
	BadRequestBufferUnknown           ErrorCode = 1<<16 | 8
	BadRequestBadTableID              ErrorCode = 1<<16 | 9
	BadRequestIsSlave                 ErrorCode = 1<<16 | 10
	BadRequestBadPort                 ErrorCode = 1<<16 | 11
	BadRequestBadPacket               ErrorCode = 1<<16 | 12
	BadRequestMultipartBufferOverflow ErrorCode = 1<<16 | 13
	BadRequestMultipartRequestTimeout ErrorCode = 1<<16 | 14
	BadRequestMultipartReplyTimeout   ErrorCode = 1<<16 | 15

	// OFPET_BAD_ACTION, type 2.
	BadActionBadType           ErrorCode = 2 << 16
	BadActionBadLen            ErrorCode = 2<<16 | 1
	BadActionBadExperimenter   ErrorCode = 2<<16 | 2
	BadActionBadExpType        ErrorCode = 2<<16 | 3
	BadActionBadOutPort        ErrorCode = 2<<16 | 4
	BadActionBadArgument       ErrorCode = 2<<16 | 5
	BadActionEPERM             ErrorCode = 2<<16 | 6
	BadActionTooMany           ErrorCode = 2<<16 | 7
	BadActionBadQueue          ErrorCode = 2<<16 | 8
	BadActionBadOutGroup       ErrorCode = 2<<16 | 9
	BadActionMatchInconsistent ErrorCode = 2<<16 | 10
	BadActionUnsupportedOrder  ErrorCode = 2<<16 | 11
	BadActionBadTag            ErrorCode = 2<<16 | 12
	BadActionBadSetType        ErrorCode = 2<<16 | 13
	BadActionBadSetLen         ErrorCode = 2<<16 | 14
	BadActionBadSetArgument    ErrorCode = 2<<16 | 15

	// OFPET_BAD_INSTRUCTION, type 3.
	BadInstructionUnknownInst       ErrorCode = 3 << 16
	BadInstructionUnsupInst         ErrorCode = 3<<16 | 1
	BadInstructionBadTableID        ErrorCode = 3<<16 | 2
	BadInstructionUnsupMetadata     ErrorCode = 3<<16 | 3
	BadInstructionUnsupMetadataMask ErrorCode = 3<<16 | 4
	BadInstructionBadExperimenter   ErrorCode = 3<<16 | 5
	BadInstructionBadExpType        ErrorCode = 3<<16 | 6
	BadInstructionBadLen            ErrorCode = 3<<16 | 7
	BadInstructionEPERM             ErrorCode = 3<<16 | 8
	BadInstructionDupInst           ErrorCode = 3<<16 | 9

	// OFPET_BAD_MATCH, type 4.
	BadMatchBadType       ErrorCode = 4 << 16
	BadMatchBadLen        ErrorCode = 4<<16 | 1
	BadMatchBadTag        ErrorCode = 4<<16 | 2
	BadMatchBadDLAddrMask ErrorCode = 4<<16 | 3
	BadMatchBadNWAddrMask ErrorCode = 4<<16 | 4
	BadMatchBadWildcards  ErrorCode = 4<<16 | 5
	BadMatchBadField      ErrorCode = 4<<16 | 6
	BadMatchBadValue      ErrorCode = 4<<16 | 7
	BadMatchBadMask       ErrorCode = 4<<16 | 8
	BadMatchBadPrereq     ErrorCode = 4<<16 | 9
	BadMatchDupField      ErrorCode = 4<<16 | 10
	BadMatchEPERM         ErrorCode = 4<<16 | 11

	// OFPET_FLOW_MOD_FAILED, type 5.
	FlowModFailedUnknown     ErrorCode = 5 << 16
	FlowModFailedTableFull   ErrorCode = 5<<16 | 1
	FlowModFailedBadTableID  ErrorCode = 5<<16 | 2
	FlowModFailedOverlap     ErrorCode = 5<<16 | 3
	FlowModFailedEPERM       ErrorCode = 5<<16 | 4
	FlowModFailedBadTimeout  ErrorCode = 5<<16 | 5
	FlowModFailedBadCommand  ErrorCode = 5<<16 | 6
	FlowModFailedBadFlags    ErrorCode = 5<<16 | 7
	FlowModFailedCantSync    ErrorCode = 5<<16 | 8
	FlowModFailedBadPriority ErrorCode = 5<<16 | 9
	FlowModFailedIsSync      ErrorCode = 5<<16 | 10

	// OFPET_GROUP_MOD_FAILED, type 6.
	GroupModFailedGroupExists         ErrorCode = 6 << 16
	GroupModFailedInvalidGroup        ErrorCode = 6<<16 | 1
	GroupModFailedWeightUnsupported   ErrorCode = 6<<16 | 2
	GroupModFailedOutOfGroups         ErrorCode = 6<<16 | 3
	GroupModFailedOutOfBuckets        ErrorCode = 6<<16 | 4
	GroupModFailedChainingUnsupported ErrorCode = 6<<16 | 5
	GroupModFailedWatchUnsupported    ErrorCode = 6<<16 | 6
	GroupModFailedLoop                ErrorCode = 6<<16 | 7
	GroupModFailedUnknownGroup        ErrorCode = 6<<16 | 8
	GroupModFailedChainedGroup        ErrorCode = 6<<16 | 9
	GroupModFailedBadType             ErrorCode = 6<<16 | 10
	GroupModFailedBadCommand          ErrorCode = 6<<16 | 11
	GroupModFailedBadBucket           ErrorCode = 6<<16 | 12
	GroupModFailedBadWatch            ErrorCode = 6<<16 | 13
	GroupModFailedEPERM               ErrorCode = 6<<16 | 14

	// OFPET_PORT_MOD_FAILED, type 7.
	PortModFailedBadPort      ErrorCode = 7 << 16
	PortModFailedBadHWAddr    ErrorCode = 7<<16 | 1
	PortModFailedBadConfig    ErrorCode = 7<<16 | 2
	PortModFailedBadAdvertise ErrorCode = 7<<16 | 3
	PortModFailedEPERM        ErrorCode = 7<<16 | 4

	// OFPET_TABLE_MOD_FAILED, type 8.
	TableModFailedBadTable  ErrorCode = 8 << 16
	TableModFailedBadConfig ErrorCode = 8<<16 | 1
	TableModFailedEPERM     ErrorCode = 8<<16 | 2

	// OFPET_QUEUE_OP_FAILED, type 9.
	QueueOpFailedBadPort  ErrorCode = 9 << 16
	QueueOpFailedBadQueue ErrorCode = 9<<16 | 1
	QueueOpFailedEPERM    ErrorCode = 9<<16 | 2

	// OFPET_SWITCH_CONFIG_FAILED, type 10.
	SwitchConfigFailedBadFlags ErrorCode = 10 << 16
	SwitchConfigFailedBadLen   ErrorCode = 10<<16 | 1
	SwitchConfigFailedEPERM    ErrorCode = 10<<16 | 2

	// OFPET_ROLE_REQUEST_FAILED, type 11.
	RoleRequestFailedStale   ErrorCode = 11 << 16
	RoleRequestFailedUnsup   ErrorCode = 11<<16 | 1
	RoleRequestFailedBadRole ErrorCode = 11<<16 | 2

	// OFPET_METER_MOD_FAILED, type 12.
	MeterModFailedUnknown      ErrorCode = 12 << 16
	MeterModFailedMeterExists  ErrorCode = 12<<16 | 1
	MeterModFailedInvalidMeter ErrorCode = 12<<16 | 2
	MeterModFailedUnknownMeter ErrorCode = 12<<16 | 3
	MeterModFailedBadCommand   ErrorCode = 12<<16 | 4
	MeterModFailedBadFlags     ErrorCode = 12<<16 | 5
	MeterModFailedBadRate      ErrorCode = 12<<16 | 6
	MeterModFailedBadBurst     ErrorCode = 12<<16 | 7
	MeterModFailedBadBand      ErrorCode = 12<<16 | 8
	MeterModFailedBadBandValue ErrorCode = 12<<16 | 9
	MeterModFailedOutOfMeters  ErrorCode = 12<<16 | 10
	MeterModFailedOutOfBands   ErrorCode = 12<<16 | 11

	// OFPET_TABLE_FEATURES_FAILED, type 13.
	TableFeaturesFailedBadTable    ErrorCode = 13 << 16
	TableFeaturesFailedBadMetadata ErrorCode = 13<<16 | 1
	TableFeaturesFailedEPERM       ErrorCode = 13<<16 | 5

	// OFPET_BAD_PROPERTY, type 14.
	BadPropertyBadType         ErrorCode = 14 << 16
	BadPropertyBadLen          ErrorCode = 14<<16 | 1
	BadPropertyBadValue        ErrorCode = 14<<16 | 2
	BadPropertyTooMany         ErrorCode = 14<<16 | 3
	BadPropertyDupType         ErrorCode = 14<<16 | 4
	BadPropertyBadExperimenter ErrorCode = 14<<16 | 5
	BadPropertyBadExpType      ErrorCode = 14<<16 | 6
	BadPropertyBadExpValue     ErrorCode = 14<<16 | 7
	BadPropertyEPERM           ErrorCode = 14<<16 | 8

	// OFPET_ASYNC_CONFIG_FAILED, type 15.
	AsyncConfigFailedInvalid     ErrorCode = 15 << 16
	AsyncConfigFailedUnsupported ErrorCode = 15<<16 | 1
	AsyncConfigFailedEPERM       ErrorCode = 15<<16 | 2

	// OFPET_FLOW_MONITOR_FAILED, type 16.
	FlowMonitorFailedUnknown        ErrorCode = 16 << 16
	FlowMonitorFailedMonitorExists  ErrorCode = 16<<16 | 1
	FlowMonitorFailedInvalidMonitor ErrorCode = 16<<16 | 2
	FlowMonitorFailedUnknownMonitor ErrorCode = 16<<16 | 3
	FlowMonitorFailedBadCommand     ErrorCode = 16<<16 | 4
	FlowMonitorFailedBadFlags       ErrorCode = 16<<16 | 5
	FlowMonitorFailedBadTableID     ErrorCode = 16<<16 | 6
	FlowMonitorFailedBadOut         ErrorCode = 16<<16 | 7

	// OFPET_BUNDLE_FAILED, type 17.
	BundleFailedUnknown          ErrorCode = 17 << 16
	BundleFailedEPERM            ErrorCode = 17<<16 | 1
	BundleFailedBadID            ErrorCode = 17<<16 | 2
	BundleFailedBundleExist      ErrorCode = 17<<16 | 3
	BundleFailedBundleClosed     ErrorCode = 17<<16 | 4
	BundleFailedOutOfBundles     ErrorCode = 17<<16 | 5
	BundleFailedBadType          ErrorCode = 17<<16 | 6
	BundleFailedBadFlags         ErrorCode = 17<<16 | 7
	BundleFailedMsgBadLen        ErrorCode = 17<<16 | 8
	BundleFailedMsgBadXid        ErrorCode = 17<<16 | 9
	BundleFailedMsgUnsup         ErrorCode = 17<<16 | 10
	BundleFailedMsgConflict      ErrorCode = 17<<16 | 11
	BundleFailedMsgTooMany       ErrorCode = 17<<16 | 12
	BundleFailedMsgFailed        ErrorCode = 17<<16 | 13
	BundleFailedTimeout          ErrorCode = 17<<16 | 14
	BundleFailedBundleInProgress ErrorCode = 17<<16 | 15

	// Experimenter 0x2320.
	NiciraBadRequestNXMInvalid           ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 2
	NiciraBadRequestNXMBadType           ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 3
	NiciraBadRequestMustBeZero           ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 4
	NiciraBadRequestBadReason            ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 5
	NiciraBadRequestFMBadEvent           ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 9
	NiciraBadRequestUnencodableError     ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 10
	NiciraBadActionMustBeZero            ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 11
	NiciraFlowModFailedHardware          ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 12
	NiciraFlowModFailedBadTableID        ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 13
	NiciraBadActionBadConjunction        ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 15
	NiciraTLVTableModFailedBadCommand    ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 16
	NiciraTLVTableModFailedBadOptLen     ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 17
	NiciraTLVTableModFailedBadFieldIdx   ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 18
	NiciraTLVTableModFailedTableFull     ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 19
	NiciraTLVTableModFailedAlreadyMapped ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 20
	NiciraTLVTableModFailedDupEntry      ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 21
	BundleFailedBadVersion               ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 22
	NiciraQueueOpFailedQueueError        ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 23
	NiciraRoleNotSupported               ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 34
	NiciraRoleStale                      ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 35
	NiciraFlowModFailedInvalidTLVField   ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 37
	NiciraTLVTableModFailedInvalidTLVDel ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 38
	NiciraBadActionBadHeaderType         ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 39
	NiciraBadActionUnknownEDProp         ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 40
	NiciraBadActionBadEDProp             ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 41
	NiciraBadActionCTDatapathSupport     ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 42
	NiciraBadMatchCTDatapathSupport      ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 43
	NiciraTableFeaturesFailedDupTable    ErrorCode = 0x2320<<32 | errorTypeExperimenter<<16 | 44

	// Experimenter 0x4f4e4600.
	BadActionBadSetMask ErrorCode = 0x4f4e4600<<32 | errorTypeExperimenter<<16 | 4250
)

var errorNames = map[ErrorCode]string{
	HelloFailedIncompatible:              "OFPHFC_INCOMPATIBLE",
	HelloFailedEPERM:                     "OFPHFC_EPERM",
	BadRequestBadVersion:                 "OFPBRC_BAD_VERSION",
	BadRequestBadType:                    "OFPBRC_BAD_TYPE",
	BadRequestBadMultipart:               "OFPBRC_BAD_MULTIPART",
	BadRequestBadExperimenter:            "OFPBRC_BAD_EXPERIMENTER",
	BadRequestBadExpType:                 "OFPBRC_BAD_EXP_TYPE",
	BadRequestEPERM:                      "OFPBRC_EPERM",
	BadRequestBadLen:                     "OFPBRC_BAD_LEN",
	BadRequestBufferEmpty:                "OFPBRC_BUFFER_EMPTY",
	BadRequestBufferUnknown:              "OFPBRC_BUFFER_UNKNOWN",
	BadRequestBadTableID:                 "OFPBRC_BAD_TABLE_ID",
	BadRequestIsSlave:                    "OFPBRC_IS_SLAVE",
	BadRequestBadPort:                    "OFPBRC_BAD_PORT",
	BadRequestBadPacket:                  "OFPBRC_BAD_PACKET",
	BadRequestMultipartBufferOverflow:    "OFPBRC_MULTIPART_BUFFER_OVERFLOW",
	BadRequestMultipartRequestTimeout:    "OFPBRC_MULTIPART_REQUEST_TIMEOUT",
	BadRequestMultipartReplyTimeout:      "OFPBRC_MULTIPART_REPLY_TIMEOUT",
	BadActionBadType:                     "OFPBAC_BAD_TYPE",
	BadActionBadLen:                      "OFPBAC_BAD_LEN",
	BadActionBadExperimenter:             "OFPBAC_BAD_EXPERIMENTER",
	BadActionBadExpType:                  "OFPBAC_BAD_EXP_TYPE",
	BadActionBadOutPort:                  "OFPBAC_BAD_OUT_PORT",
	BadActionBadArgument:                 "OFPBAC_BAD_ARGUMENT",
	BadActionEPERM:                       "OFPBAC_EPERM",
	BadActionTooMany:                     "OFPBAC_TOO_MANY",
	BadActionBadQueue:                    "OFPBAC_BAD_QUEUE",
	BadActionBadOutGroup:                 "OFPBAC_BAD_OUT_GROUP",
	BadActionMatchInconsistent:           "OFPBAC_MATCH_INCONSISTENT",
	BadActionUnsupportedOrder:            "OFPBAC_UNSUPPORTED_ORDER",
	BadActionBadTag:                      "OFPBAC_BAD_TAG",
	BadActionBadSetType:                  "OFPBAC_BAD_SET_TYPE",
	BadActionBadSetLen:                   "OFPBAC_BAD_SET_LEN",
	BadActionBadSetArgument:              "OFPBAC_BAD_SET_ARGUMENT",
	BadInstructionUnknownInst:            "OFPBIC_UNKNOWN_INST",
	BadInstructionUnsupInst:              "OFPBIC_UNSUP_INST",
	BadInstructionBadTableID:             "OFPBIC_BAD_TABLE_ID",
	BadInstructionUnsupMetadata:          "OFPBIC_UNSUP_METADATA",
	BadInstructionUnsupMetadataMask:      "OFPBIC_UNSUP_METADATA_MASK",
	BadInstructionBadExperimenter:        "OFPBIC_BAD_EXPERIMENTER",
	BadInstructionBadExpType:             "OFPBIC_BAD_EXP_TYPE",
	BadInstructionBadLen:                 "OFPBIC_BAD_LEN",
	BadInstructionEPERM:                  "OFPBIC_EPERM",
	BadInstructionDupInst:                "OFPBIC_DUP_INST",
	BadMatchBadType:                      "OFPBMC_BAD_TYPE",
	BadMatchBadLen:                       "OFPBMC_BAD_LEN",
	BadMatchBadTag:                       "OFPBMC_BAD_TAG",
	BadMatchBadDLAddrMask:                "OFPBMC_BAD_DL_ADDR_MASK",
	BadMatchBadNWAddrMask:                "OFPBMC_BAD_NW_ADDR_MASK",
	BadMatchBadWildcards:                 "OFPBMC_BAD_WILDCARDS",
	BadMatchBadField:                     "OFPBMC_BAD_FIELD",
	BadMatchBadValue:                     "OFPBMC_BAD_VALUE",
	BadMatchBadMask:                      "OFPBMC_BAD_MASK",
	BadMatchBadPrereq:                    "OFPBMC_BAD_PREREQ",
	BadMatchDupField:                     "OFPBMC_DUP_FIELD",
	BadMatchEPERM:                        "OFPBMC_EPERM",
	FlowModFailedUnknown:                 "OFPFMFC_UNKNOWN",
	FlowModFailedTableFull:               "OFPFMFC_TABLE_FULL",
	FlowModFailedBadTableID:              "OFPFMFC_BAD_TABLE_ID",
	FlowModFailedOverlap:                 "OFPFMFC_OVERLAP",
	FlowModFailedEPERM:                   "OFPFMFC_EPERM",
	FlowModFailedBadTimeout:              "OFPFMFC_BAD_TIMEOUT",
	FlowModFailedBadCommand:              "OFPFMFC_BAD_COMMAND",
	FlowModFailedBadFlags:                "OFPFMFC_BAD_FLAGS",
	FlowModFailedCantSync:                "OFPFMFC_CANT_SYNC",
	FlowModFailedBadPriority:             "OFPFMFC_BAD_PRIORITY",
	FlowModFailedIsSync:                  "OFPFMFC_IS_SYNC",
	GroupModFailedGroupExists:            "OFPGMFC_GROUP_EXISTS",
	GroupModFailedInvalidGroup:           "OFPGMFC_INVALID_GROUP",
	GroupModFailedWeightUnsupported:      "OFPGMFC_WEIGHT_UNSUPPORTED",
	GroupModFailedOutOfGroups:            "OFPGMFC_OUT_OF_GROUPS",
	GroupModFailedOutOfBuckets:           "OFPGMFC_OUT_OF_BUCKETS",
	GroupModFailedChainingUnsupported:    "OFPGMFC_CHAINING_UNSUPPORTED",
	GroupModFailedWatchUnsupported:       "OFPGMFC_WATCH_UNSUPPORTED",
	GroupModFailedLoop:                   "OFPGMFC_LOOP",
	GroupModFailedUnknownGroup:           "OFPGMFC_UNKNOWN_GROUP",
	GroupModFailedChainedGroup:           "OFPGMFC_CHAINED_GROUP",
	GroupModFailedBadType:                "OFPGMFC_BAD_TYPE",
	GroupModFailedBadCommand:             "OFPGMFC_BAD_COMMAND",
	GroupModFailedBadBucket:              "OFPGMFC_BAD_BUCKET",
	GroupModFailedBadWatch:               "OFPGMFC_BAD_WATCH",
	GroupModFailedEPERM:                  "OFPGMFC_EPERM",
	PortModFailedBadPort:                 "OFPPMFC_BAD_PORT",
	PortModFailedBadHWAddr:               "OFPPMFC_BAD_HW_ADDR",
	PortModFailedBadConfig:               "OFPPMFC_BAD_CONFIG",
	PortModFailedBadAdvertise:            "OFPPMFC_BAD_ADVERTISE",
	PortModFailedEPERM:                   "OFPPMFC_EPERM",
	TableModFailedBadTable:               "OFPTMFC_BAD_TABLE",
	TableModFailedBadConfig:              "OFPTMFC_BAD_CONFIG",
	TableModFailedEPERM:                  "OFPTMFC_EPERM",
	QueueOpFailedBadPort:                 "OFPQOFC_BAD_PORT",
	QueueOpFailedBadQueue:                "OFPQOFC_BAD_QUEUE",
	QueueOpFailedEPERM:                   "OFPQOFC_EPERM",
	SwitchConfigFailedBadFlags:           "OFPSCFC_BAD_FLAGS",
	SwitchConfigFailedBadLen:             "OFPSCFC_BAD_LEN",
	SwitchConfigFailedEPERM:              "OFPSCFC_EPERM",
	RoleRequestFailedStale:               "OFPRRFC_STALE",
	RoleRequestFailedUnsup:               "OFPRRFC_UNSUP",
	RoleRequestFailedBadRole:             "OFPRRFC_BAD_ROLE",
	MeterModFailedUnknown:                "OFPMMFC_UNKNOWN",
	MeterModFailedMeterExists:            "OFPMMFC_METER_EXISTS",
	MeterModFailedInvalidMeter:           "OFPMMFC_INVALID_METER",
	MeterModFailedUnknownMeter:           "OFPMMFC_UNKNOWN_METER",
	MeterModFailedBadCommand:             "OFPMMFC_BAD_COMMAND",
	MeterModFailedBadFlags:               "OFPMMFC_BAD_FLAGS",
	MeterModFailedBadRate:                "OFPMMFC_BAD_RATE",
	MeterModFailedBadBurst:               "OFPMMFC_BAD_BURST",
	MeterModFailedBadBand:                "OFPMMFC_BAD_BAND",
	MeterModFailedBadBandValue:           "OFPMMFC_BAD_BAND_VALUE",
	MeterModFailedOutOfMeters:            "OFPMMFC_OUT_OF_METERS",
	MeterModFailedOutOfBands:             "OFPMMFC_OUT_OF_BANDS",
	TableFeaturesFailedBadTable:          "OFPTFFC_BAD_TABLE",
	TableFeaturesFailedBadMetadata:       "OFPTFFC_BAD_METADATA",
	TableFeaturesFailedEPERM:             "OFPTFFC_EPERM",
	BadPropertyBadType:                   "OFPBPC_BAD_TYPE",
	BadPropertyBadLen:                    "OFPBPC_BAD_LEN",
	BadPropertyBadValue:                  "OFPBPC_BAD_VALUE",
	BadPropertyTooMany:                   "OFPBPC_TOO_MANY",
	BadPropertyDupType:                   "OFPBPC_DUP_TYPE",
	BadPropertyBadExperimenter:           "OFPBPC_BAD_EXPERIMENTER",
	BadPropertyBadExpType:                "OFPBPC_BAD_EXP_TYPE",
	BadPropertyBadExpValue:               "OFPBPC_BAD_EXP_VALUE",
	BadPropertyEPERM:                     "OFPBPC_EPERM",
	AsyncConfigFailedInvalid:             "OFPACFC_INVALID",
	AsyncConfigFailedUnsupported:         "OFPACFC_UNSUPPORTED",
	AsyncConfigFailedEPERM:               "OFPACFC_EPERM",
	FlowMonitorFailedUnknown:             "OFPMOFC_UNKNOWN",
	FlowMonitorFailedMonitorExists:       "OFPMOFC_MONITOR_EXISTS",
	FlowMonitorFailedInvalidMonitor:      "OFPMOFC_INVALID_MONITOR",
	FlowMonitorFailedUnknownMonitor:      "OFPMOFC_UNKNOWN_MONITOR",
	FlowMonitorFailedBadCommand:          "OFPMOFC_BAD_COMMAND",
	FlowMonitorFailedBadFlags:            "OFPMOFC_BAD_FLAGS",
	FlowMonitorFailedBadTableID:          "OFPMOFC_BAD_TABLE_ID",
	FlowMonitorFailedBadOut:              "OFPMOFC_BAD_OUT",
	BundleFailedUnknown:                  "OFPBFC_UNKNOWN",
	BundleFailedEPERM:                    "OFPBFC_EPERM",
	BundleFailedBadID:                    "OFPBFC_BAD_ID",
	BundleFailedBundleExist:              "OFPBFC_BUNDLE_EXIST",
	BundleFailedBundleClosed:             "OFPBFC_BUNDLE_CLOSED",
	BundleFailedOutOfBundles:             "OFPBFC_OUT_OF_BUNDLES",
	BundleFailedBadType:                  "OFPBFC_BAD_TYPE",
	BundleFailedBadFlags:                 "OFPBFC_BAD_FLAGS",
	BundleFailedMsgBadLen:                "OFPBFC_MSG_BAD_LEN",
	BundleFailedMsgBadXid:                "OFPBFC_MSG_BAD_XID",
	BundleFailedMsgUnsup:                 "OFPBFC_MSG_UNSUP",
	BundleFailedMsgConflict:              "OFPBFC_MSG_CONFLICT",
	BundleFailedMsgTooMany:               "OFPBFC_MSG_TOO_MANY",
	BundleFailedMsgFailed:                "OFPBFC_MSG_FAILED",
	BundleFailedTimeout:                  "OFPBFC_TIMEOUT",
	BundleFailedBundleInProgress:         "OFPBFC_BUNDLE_IN_PROGRESS",
	NiciraBadRequestNXMInvalid:           "NXBRC_NXM_INVALID",
	NiciraBadRequestNXMBadType:           "NXBRC_NXM_BAD_TYPE",
	NiciraBadRequestMustBeZero:           "NXBRC_MUST_BE_ZERO",
	NiciraBadRequestBadReason:            "NXBRC_BAD_REASON",
	NiciraBadRequestFMBadEvent:           "NXBRC_FM_BAD_EVENT",
	NiciraBadRequestUnencodableError:     "NXBRC_UNENCODABLE_ERROR",
	NiciraBadActionMustBeZero:            "NXBAC_MUST_BE_ZERO",
	NiciraFlowModFailedHardware:          "NXFMFC_HARDWARE",
	NiciraFlowModFailedBadTableID:        "NXFMFC_BAD_TABLE_ID",
	NiciraBadActionBadConjunction:        "NXBAC_BAD_CONJUNCTION",
	NiciraTLVTableModFailedBadCommand:    "NXTTMFC_BAD_COMMAND",
	NiciraTLVTableModFailedBadOptLen:     "NXTTMFC_BAD_OPT_LEN",
	NiciraTLVTableModFailedBadFieldIdx:   "NXTTMFC_BAD_FIELD_IDX",
	NiciraTLVTableModFailedTableFull:     "NXTTMFC_TABLE_FULL",
	NiciraTLVTableModFailedAlreadyMapped: "NXTTMFC_ALREADY_MAPPED",
	NiciraTLVTableModFailedDupEntry:      "NXTTMFC_DUP_ENTRY",
	BundleFailedBadVersion:               "OFPBFC_BAD_VERSION",
	NiciraQueueOpFailedQueueError:        "NXQOFC_QUEUE_ERROR",
	NiciraRoleNotSupported:               "NXR_NOT_SUPPORTED",
	NiciraRoleStale:                      "NXR_STALE",
	NiciraFlowModFailedInvalidTLVField:   "NXFMFC_INVALID_TLV_FIELD",
	NiciraTLVTableModFailedInvalidTLVDel: "NXTTMFC_INVALID_TLV_DEL",
	NiciraBadActionBadHeaderType:         "NXBAC_BAD_HEADER_TYPE",
	NiciraBadActionUnknownEDProp:         "NXBAC_UNKNOWN_ED_PROP",
	NiciraBadActionBadEDProp:             "NXBAC_BAD_ED_PROP",
	NiciraBadActionCTDatapathSupport:     "NXBAC_CT_DATAPATH_SUPPORT",
	NiciraBadMatchCTDatapathSupport:      "NXBMC_CT_DATAPATH_SUPPORT",
	NiciraTableFeaturesFailedDupTable:    "NXTFFC_DUP_TABLE",
	BadActionBadSetMask:                  "OFPBAC_BAD_SET_MASK",
}
