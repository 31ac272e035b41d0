package ovsdb_test

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"brlb/ovsdb"
	"brlb/ovsdb/ovsdbtest"
)

const benchRows = 5000

var statistics = []string{"collisions", "rx_bytes", "rx_crc_err", "rx_dropped", "rx_errors", "rx_frame_err", "rx_missed_errors",
	"rx_over_err", "rx_packets", "tx_bytes", "tx_dropped", "tx_errors", "tx_packets"}

// interfaceColumns are all columns of Interface in Open vSwitch 3.1's schema.
var interfaceColumns = []string{"name", "type", "options", "ingress_policing_rate", "ingress_policing_burst", "ingress_policing_kpkts_rate",
	"ingress_policing_kpkts_burst", "mac_in_use", "mac", "ifindex", "external_ids", "ofport", "ofport_request", "bfd", "bfd_status", "cfm_mpid",
	"cfm_remote_mpids", "cfm_flap_count", "cfm_fault", "cfm_fault_status", "cfm_remote_opstate", "cfm_health", "lacp_current", "lldp",
	"other_config", "statistics", "status", "admin_state", "link_state", "link_resets", "link_speed", "duplex", "mtu", "mtu_request", "error"}

var interfaceSpec = ovsdb.MonitorSpec{Tables: []ovsdb.TableSpec{{Table: "Interface", Columns: interfaceColumns, Indexes: [][]string{{"name"}}}}}

// manyInterfaces fills a server with interfaces as ovs-vswitchd reports them.
func manyInterfaces(b testing.TB) (*ovsdbtest.Server, *ovsdb.Client) {
	b.Helper()
	srv := ovsdbtest.StartServer(b)
	c, err := ovsdb.Dial(b.Context(), ovsdb.Config{Endpoints: []string{srv.Endpoint()}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.Close)
	br := transact(b, c, addBridge("br0")...)[2].UUID
	const batch = 100
	for i := 0; i < benchRows-1; i += batch {
		var ops []ovsdb.Op
		var ports []string
		for j := i; j < min(i+batch, benchRows-1); j++ {
			name := fmt.Sprintf("vport%05d", j)
			ports = append(ports, name)
			ops = append(ops,
				ovsdb.Insert{Table: "Interface", Name: "i" + name, Row: ovsdb.Columns{
					"name": ovsdb.String(name), "type": ovsdb.String("internal"), "ofport": ovsdb.Integer(int64(j)),
					"admin_state": ovsdb.String("up"), "link_state": ovsdb.String("up"), "link_resets": ovsdb.Integer(1),
					"link_speed": ovsdb.Integer(10_000_000_000), "duplex": ovsdb.String("full"), "mtu": ovsdb.Integer(1500),
					"ifindex": ovsdb.Integer(int64(j) + 10), "mac_in_use": ovsdb.String(fmt.Sprintf("02:00:00:00:%02x:%02x", j>>8, j&255)),
					"external_ids": ovsdb.StringMap(map[string]string{"attached-mac": fmt.Sprintf("02:00:00:01:%02x:%02x", j>>8, j&255), "iface-id": fmt.Sprintf("0ba6a9ba-0c2b-4a28-9a93-%012x", j), "iface-status": "active"}),
					"status":       ovsdb.StringMap(map[string]string{"driver_name": "openvswitch", "driver_version": "", "firmware_version": ""}),
					"statistics":   someStatistics(j),
				}},
				ovsdb.Insert{Table: "Port", Name: name, Row: ovsdb.Columns{"name": ovsdb.String(name), "interfaces": ovsdb.NamedRef("i" + name)}})
		}
		ops = append(ops, ovsdb.Mutate{Table: "Bridge", Where: []ovsdb.Condition{ovsdb.IsRow(br)}, Mutations: []ovsdb.Mutation{{Column: "ports", Mutator: ovsdb.MutateInsert, Value: ovsdb.NamedRefs(ports...)}}})
		transact(b, c, ops...)
	}
	return srv, c
}

func someStatistics(n int) ovsdb.Value {
	m := make(map[string]int64)
	for i, name := range statistics {
		m[name] = int64(n) * int64(i) * 1_234_567
	}
	return ovsdb.IntegerMap(m)
}

func heapAlloc() (live, mallocs uint64) {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc, m.Mallocs
}

func cpuTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// firstCopyCost is what one first copy takes.
func firstCopyCost(b testing.TB, c *ovsdb.Client) (mallocs, live uint64, cpu, wall time.Duration) {
	liveBefore, mallocsBefore := heapAlloc()
	cpuBefore, began := cpuTime(), time.Now()
	rep, err := c.Monitor(b.Context(), interfaceSpec)
	if err != nil {
		b.Fatal(err)
	}
	wall, cpu = time.Since(began), cpuTime()-cpuBefore
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	mallocs = m.Mallocs - mallocsBefore
	liveAfter, _ := heapAlloc()
	live = liveAfter - liveBefore
	if n := rep.Snapshot().Len("Interface"); n != benchRows {
		b.Fatalf("%d rows", n)
	}
	rep.Close()
	return mallocs, live, cpu, wall
}

// TestFirstCopyIsFrugal guards what does not depend on the machine.
func TestFirstCopyIsFrugal(t *testing.T) {
	if testing.Short() {
		t.Skip("copies 5000 rows")
	}
	_, c := manyInterfaces(t)
	mallocs, live, _, _ := firstCopyCost(t, c)
	if perRow := mallocs / benchRows; perRow > 20 {
		t.Errorf("%d allocations a row", perRow)
	}
	if live > 12<<20 {
		t.Errorf("%d bytes stay", live)
	}
}

// BenchmarkFirstCopy measures a first copy, and beside it what it takes to
// receive the same reply and scan its tokens.
func BenchmarkFirstCopy(b *testing.B) {
	srv, c := manyInterfaces(b)
	var mallocs, live uint64
	var cpu, wall, scan time.Duration
	var size int64
	b.ReportAllocs()
	for b.Loop() {
		m, l, p, w := firstCopyCost(b, c)
		mallocs, live, cpu, wall = mallocs+m, live+l, cpu+p, wall+w
		took, n := scanReply(b, srv)
		scan, size = scan+took, n
	}
	n := float64(b.N)
	b.ReportMetric(float64(mallocs)/n/benchRows, "mallocs/row")
	b.ReportMetric(float64(live)/n/1e6, "MB-live")
	b.ReportMetric(cpu.Seconds()/n, "cpu-s")
	b.ReportMetric(wall.Seconds()/n, "wall-s")
	b.ReportMetric(wall.Seconds()/scan.Seconds(), "wall/scan")
	b.ReportMetric(float64(size)/1e6, "MB-reply")
}

func scanReply(b testing.TB, srv *ovsdbtest.Server) (time.Duration, int64) {
	var d net.Dialer
	nc, err := d.DialContext(context.Background(), "unix", srv.Socket())
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	request := `{"method":"monitor_cond_since","id":1,"params":["Open_vSwitch",1,{"Interface":[{"columns":[`
	for i, c := range interfaceColumns {
		if i > 0 {
			request += ","
		}
		request += `"` + c + `"`
	}
	request += `]}]},"00000000-0000-0000-0000-000000000000"]}`
	runtime.GC()
	began := time.Now()
	if _, err := nc.Write([]byte(request)); err != nil {
		b.Fatal(err)
	}
	dec := jsontext.NewDecoder(nc)
	for {
		if _, err := dec.ReadToken(); err != nil {
			b.Fatal(err)
		}
		if dec.StackDepth() == 0 {
			return time.Since(began), dec.InputOffset()
		}
	}
}

// BenchmarkUpdate measures one update of one row's statistics, from the
// transaction to the end of the subscriber's batch.
func BenchmarkUpdate(b *testing.B) {
	srv, writer := manyInterfaces(b)
	c, err := ovsdb.Dial(b.Context(), ovsdb.Config{Endpoints: []string{srv.Endpoint()}})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	rep, err := c.Monitor(b.Context(), interfaceSpec)
	if err != nil {
		b.Fatal(err)
	}
	sub := rep.Subscribe(0)
	next(b, sub)
	var rows []ovsdb.UUID
	for r := range rep.Snapshot().Rows("Interface") {
		rows = append(rows, r.UUID())
	}
	before, _ := heapAlloc()
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		i++
		transact(b, writer, ovsdb.Update{Table: "Interface", Where: []ovsdb.Condition{ovsdb.IsRow(rows[i%len(rows)])},
			Row: ovsdb.Columns{"statistics": someStatistics(i + 1<<20)}})
		next(b, sub)
	}
	b.StopTimer()
	after, _ := heapAlloc()
	b.ReportMetric((float64(after)-float64(before))/1e6, "MB-growth")
	runtime.KeepAlive(rep)
}
