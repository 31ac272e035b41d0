package metrics

import "github.com/prometheus/client_golang/prometheus"

// The metrics of brlb. Times are in seconds.
var (
	buildInfo = family("build_info",
		"The running brlb; always 1.", "version", "goversion")

	switchConnected = family("switch_connected",
		"1 while the OpenFlow session with the switch is established.")
	ovsdbConnected = family("ovsdb_connected",
		"1 while the connection to ovsdb-server is established.")
	inSync = family("in_sync",
		"1 while the switch has confirmed everything that it should hold.")
	degraded = family("degraded",
		"1 while something is wrong; brlb status says what.")
	ownFlows = family("own_flows",
		"Flows of brlb on the switch.")
	driftRepairs = family("drift_repairs_total",
		"Times that somebody else had changed flows of brlb and they were put right.")
	eventsDropped = family("events_dropped_total",
		"Events for people that were dropped because they came too fast.")
	resent = family("resent_packets_total",
		"Packets put back into the switch after the stale conntrack entry in their way was flushed.")
	answered = family("answered_packets_total",
		"Packets answered by brlb itself: refused, out of time to live, or asking whether an IPv6 address is free.")

	sessions = family("openflow_sessions_total",
		"OpenFlow sessions that were established.")
	messages = family("openflow_messages_total",
		"OpenFlow messages by direction (sent, received) and type.", "direction", "type")
	bundles = family("bundles_total",
		"OpenFlow bundles by outcome: applied, rejected or unknown (the switch was read back).", "outcome")
	bundleSeconds = family("bundle_duration_seconds",
		"Time from the first message of a bundle to the answer to its commit.")
	convergeSeconds = family("convergence_duration_seconds",
		"Time from an event to the confirmed table that takes it into account.")
	flowMods = family("flow_mods_total",
		"Flow modifications in applied bundles.")

	poolSlots = family("pool_slots",
		"Size of the pool's slot table.", "pool")
	poolActive = family("pool_active_members",
		"Members that may own slots: enabled, up and reachable.", "pool")
	poolLayout = family("pool_layout_info",
		"The layout of the pool's slot table, the table's digest and, of layout v2, its anchor's; always 1.", "pool", "layout", "version", "digest", "anchor")
	rebaseSlots = family("pool_rebase_slots",
		"Slots that a rebase of the pool would move; 0 while its anchor is its members.", "pool")
	poolEmergency = family("pool_emergency",
		"1 while a rule decides against what probes say: panic, kept (on_all_down) or short (min_active).", "pool", "rule")
	poolNames = family("pool_name_resolved",
		"1 while DNS answers for a member by name; 0 while it is unresolved, or its last answer holds.", "pool", "name", "host")
	serviceOnBackup = family("service_on_backup",
		"1 while a backup pool serves.", "service")
	poolMembers = family("pool_members",
		"Members by state.", "pool", "state")
	slotsMoved = family("slots_moved_total",
		"Slots whose owner changed: needed (the old owner left or the new one's share grew) or collateral.", "pool", "kind")

	memberActive = family("member_active",
		"1 while the member may own slots.", "pool", "member", "address")
	memberHealthy = family("member_healthy",
		"1 while the member's probes pass.", "pool", "member", "address")
	memberSlots = family("member_slots",
		"Slots that the member owns.", "pool", "member", "address")
	memberWeight = family("member_weight",
		"The member's weight in force, a percentage of it included.", "pool", "member", "address")

	memberConnections = family("member_connections",
		"Connections of the member that are open through the switch.", "pool", "member", "address")

	conntrackEntries = family("conntrack_entries",
		"Entries of the switch's connection table: of the bridge's zone, of pools' own zones, and of the whole datapath.", "scope", "zone", "pool")
	conntrackLimit = family("conntrack_limit",
		"How many entries are possible there; no series without a limit.", "scope", "zone", "pool")

	probes = family("probes_total",
		"Probes by result code.", "pool", "member", "check", "result")
	probeSeconds = family("probe_duration_seconds",
		"Time that a probe took.", "pool", "member", "check")

	reloadOK = family("config_last_reload_successful",
		"1 if the newest attempt to load the configuration succeeded.")
	reloadAt = family("config_last_reload_success_timestamp_seconds",
		"When the configuration was last loaded with success.")
)

// families is all of the above.
var families = []*prometheus.Desc{
	buildInfo, switchConnected, ovsdbConnected, inSync, degraded, ownFlows, driftRepairs, eventsDropped, resent, answered,
	sessions, messages, bundles, bundleSeconds, convergeSeconds, flowMods,
	poolSlots, poolActive, poolLayout, rebaseSlots, poolEmergency, poolNames, serviceOnBackup, poolMembers, slotsMoved,
	memberActive, memberHealthy, memberSlots, memberWeight, memberConnections, conntrackEntries, conntrackLimit,
	probes, probeSeconds, reloadOK, reloadAt,
}

func family(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("brlb_"+name, help, labels, nil)
}
