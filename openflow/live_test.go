package openflow

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// realSwitch is a private Open vSwitch without any datapath but the dummy one,
// with one bridge br0 that has the ports p1 to p3.
type realSwitch struct {
	dir  string
	conn net.Conn
	xid  uint32
}

// startRealSwitch starts a switch that ends with the test. Tests that need it
// are skipped where Open vSwitch is not installed.
func startRealSwitch(t *testing.T) *realSwitch {
	t.Helper()
	for _, program := range []string{"ovsdb-tool", "ovsdb-server", "ovs-vswitchd", "ovs-vsctl", "ovs-ofctl"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed (Debian: openvswitch-switch)", program)
		}
	}
	dir, err := os.MkdirTemp("", "ovs") // a short name: unix sockets have few octets for it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &realSwitch{dir: dir}
	db, socket := filepath.Join(dir, "db"), "unix:"+filepath.Join(dir, "db.sock")
	s.run(t, "ovsdb-tool", "create", db, "/usr/share/openvswitch/vswitch.ovsschema")
	s.start(t, "ovsdb-server", "--remote=p"+socket, "--no-chdir", "--unixctl="+filepath.Join(dir, "db.ctl"), db)
	s.start(t, "ovs-vswitchd", "--enable-dummy=override", "--disable-system", "--no-chdir", "--unixctl="+filepath.Join(dir, "vs.ctl"), socket)
	args := []string{"--db=" + socket, "--timeout=20", "--retry", "--no-wait", "init", "--", "add-br", "br0",
		"--", "set", "bridge", "br0", "datapath_type=dummy", "fail_mode=secure"}
	for i := 1; i <= 3; i++ {
		port := fmt.Sprintf("p%d", i)
		args = append(args, "--", "add-port", "br0", port, "--", "set", "interface", port, "type=dummy", fmt.Sprintf("ofport_request=%d", i))
	}
	s.run(t, "ovs-vsctl", args...)
	s.connect(t)
	return s
}

func (s *realSwitch) env() []string {
	return append(os.Environ(), "OVS_RUNDIR="+s.dir, "OVS_LOGDIR="+s.dir, "OVS_DBDIR="+s.dir, "OVS_SYSCONFDIR="+s.dir)
}

func (s *realSwitch) run(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = s.env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

func (s *realSwitch) start(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, append([]string{"-vconsole:off", "-vsyslog:off"}, args...)...)
	cmd.Env = s.env()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
}

func (s *realSwitch) target() string { return "unix:" + filepath.Join(s.dir, "br0.mgmt") }

// connect makes an OpenFlow connection, for which it waits until the bridge is there.
func (s *realSwitch) connect(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		conn, err := net.Dial("unix", filepath.Join(s.dir, "br0.mgmt"))
		if err == nil {
			s.conn = conn
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the switch did not start: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Cleanup(func() { s.conn.Close() })
	s.conn.SetDeadline(time.Now().Add(20 * time.Second))
	s.send(t, &Hello{Versions: HelloVersionBitmap(Version)})
	if _, m := s.receive(t); m == nil || m.Type() != TypeHello {
		t.Fatalf("got %v, want a hello", m)
	}
}

func (s *realSwitch) send(t *testing.T, m Message) {
	t.Helper()
	s.xid++
	b, err := Append(nil, s.xid, m)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.conn.Write(b); err != nil {
		t.Fatal(err)
	}
}

// receive returns the next message and checks that it encodes to the octets
// that came.
func (s *realSwitch) receive(t *testing.T) ([]byte, Message) {
	t.Helper()
	b, err := readMessage(s.conn)
	if err != nil {
		t.Fatal(err)
	}
	h, m, err := Parse(b)
	if err != nil {
		t.Fatalf("Parse(%x): %v", b, err)
	}
	again, err := Append(nil, h.Xid, m)
	if err != nil || string(again) != string(b) {
		t.Errorf("%v\n got %x\nwant %x\nerr %v", h.Type, again, b, err)
	}
	if echo, ok := m.(*EchoRequest); ok {
		s.send(t, &EchoReply{Data: echo.Data})
		return s.receive(t)
	}
	return b, m
}

// ask sends a request and returns all parts of the reply.
func (s *realSwitch) ask(t *testing.T, m Message) []Message {
	t.Helper()
	s.send(t, m)
	var parts []Message
	for {
		_, reply := s.receive(t)
		if e, ok := reply.(*Error); ok {
			t.Fatalf("%v: %v", m, e)
		}
		parts = append(parts, reply)
		if part, ok := reply.(*MultipartReply); !ok || part.Flags&MultipartMore == 0 {
			return parts
		}
	}
}

// stats are what dump-flows prints of the counters, which String leaves out.
var stats = regexp.MustCompile(`(duration|n_packets|n_bytes|idle_age|hard_age)=[^ ]+,? `)

func TestRealSwitch(t *testing.T) {
	s := startRealSwitch(t)

	// Each flow in a table of its own, as many of them match the same packets.
	var flows []string
	for i, c := range flowTexts(t) {
		if c.textDiffers || strings.Contains(c.text, "goto_table") || strings.Contains(c.text, "group") || strings.Contains(c.text, "meter") {
			continue
		}
		flows = append(flows, fmt.Sprintf("table=%d,cookie=%#x,%s", i%200, i+1, c.text))
	}
	var refused int
	for i, text := range flows {
		m, err := ParseFlow(text)
		if err != nil {
			t.Fatal(err)
		}
		m.Priority = uint16(i + 1)
		s.send(t, m)
		s.send(t, &BarrierRequest{})
		for {
			_, reply := s.receive(t)
			if _, ok := reply.(*BarrierReply); ok {
				break
			}
			refused++
			t.Logf("%s: %v", text, reply)
		}
	}
	if refused > len(flows)/10 {
		t.Errorf("%d of %d flows were refused", refused, len(flows))
	}

	var got []string
	for _, part := range s.ask(t, &MultipartRequest{Body: FlowStatsRequest(AllFlows())}) {
		for _, f := range part.(*MultipartReply).Body.(FlowStatsReply) {
			got = append(got, f.String())
			if again, err := ParseFlow(f.String()); err != nil {
				t.Errorf("ParseFlow(%q): %v", f.String(), err)
			} else if again.Match.String() != f.Match.String() || again.Instructions.String() != f.Instructions.String() {
				t.Errorf("ParseFlow(%q) is %v", f.String(), again)
			}
		}
	}
	out, _ := ofctl(t, "", "-OOpenFlow14", "--no-names", "--no-stats", "dump-flows", s.target())
	var want []string
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); strings.Contains(line, "actions=") {
			want = append(want, stats.ReplaceAllString(line, ""))
		}
	}
	if len(got) != len(flows)-refused || len(want) != len(got) {
		t.Errorf("%d flows, of which ovs-ofctl printed %d; want %d", len(got), len(want), len(flows)-refused)
	}
	slices.Sort(got)
	slices.Sort(want)
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("\n got %s\nwant %s", got[i], want[i])
		}
	}

	for _, request := range []Message{
		&FeaturesRequest{}, &GetConfigRequest{}, &GetAsyncRequest{}, &EchoRequest{Data: []byte("hello")}, &TLVTableRequest{},
		&RoleRequest{RoleBody{Role: RoleNoChange}}, &RoleRequest{RoleBody{Role: RoleMaster, GenerationID: 7}},
		&BundleControl{ID: 1, Kind: BundleOpenRequest, Flags: BundleAtomic}, &BundleControl{ID: 1, Kind: BundleDiscardRequest, Flags: BundleAtomic},
		&MultipartRequest{Body: DescRequest{}}, &MultipartRequest{Body: AggregateRequest(AllFlows())},
		&MultipartRequest{Body: TableStatsRequest{}}, &MultipartRequest{Body: PortDescRequest{}},
		&MultipartRequest{Body: PortStatsRequest{Port: PortAny}}, &MultipartRequest{Body: QueueStatsRequest{PortAny, QueueAll}},
		&MultipartRequest{Body: QueueDescRequest{1, QueueAll}},
		&MultipartRequest{Body: TableDescRequest{}}, &MultipartRequest{Body: TableFeaturesRequest{}},
		&MultipartRequest{Body: GroupFeaturesRequest{}}, &MultipartRequest{Body: MeterFeaturesRequest{}},
		&MultipartRequest{Body: FlowMonitorRequest{{ID: 1, OutPort: PortAny, OutGroup: GroupAny, Table: TableAll,
			Flags: MonitorInitial | MonitorAdd | MonitorRemoved | MonitorModify | MonitorInstructions}}},
	} {
		for _, reply := range s.ask(t, request) {
			if r, ok := reply.(*MultipartReply); ok {
				if _, raw := r.Body.(RawMultipart); raw {
					t.Errorf("%v: not known", r.Body.MultipartType())
				}
				if tables, ok := r.Body.(TableFeaturesReply); ok {
					checkTableFeatures(t, tables)
				}
			}
		}
	}
}

// checkTableFeatures checks that we know every field that the switch says it has.
func checkTableFeatures(t *testing.T, tables TableFeaturesReply) {
	t.Helper()
	for _, table := range tables {
		for _, feature := range table.Properties {
			switch feature.Type {
			case FeatureMatch, FeatureWildcards, FeatureApplySetField, FeatureWriteSetField:
				fields := feature.Fields()
				if slices.Contains(fields, FieldUnknown) || !slices.Contains(fields, Reg0) || !slices.Contains(fields, IPv4Dst) {
					t.Fatalf("table %d has %v", table.Table, fields)
				}
			case FeatureInstructions:
				if types := feature.Types(); !slices.Contains(types, instructionApplyActions) {
					t.Fatalf("table %d has instructions %v", table.Table, types)
				}
			case FeatureNextTables:
				if next := feature.Tables(); len(next) > 0 && next[0] <= table.Table {
					t.Fatalf("table %d goes on in %v", table.Table, next)
				}
			}
		}
	}
}

func TestRealSwitchGroupsAndMeters(t *testing.T) {
	s := startRealSwitch(t)
	for _, m := range []Message{
		&GroupMod{Command: GroupAdd, Kind: GroupTypeFF, ID: 7, Buckets: []Bucket{
			{WatchPort: 1, WatchGroup: GroupAny, Actions: []Action{Output{Port: 1}}},
			{WatchPort: 2, WatchGroup: GroupAny, Actions: []Action{Output{Port: 2}}}}},
		&GroupMod{Command: GroupAdd, Kind: GroupTypeSelect, ID: 8, Buckets: []Bucket{
			{Weight: 10, WatchPort: PortAny, WatchGroup: GroupAny, Actions: []Action{SetField{Reg1.Exact(1)}, Resubmit{Port: PortInPort, Table: 11}}}}},
		&MeterMod{Command: MeterAdd, Flags: MeterKbps | MeterBurst | MeterStats, ID: 3, Bands: []MeterBand{{Kind: BandDrop, Rate: 1000, Burst: 100}}},
		&TableMod{Table: 3, Config: TableEviction},
		&SetAsync{AsyncProperties{{Type: AsyncPacketInMaster, Mask: 0x3f}, {Type: AsyncTableStatusMaster, Mask: 0x18}}},
		&SetConfig{SwitchConfig{MissSendLen: 65535}},
		&SetControllerID{ID: 5}, &SetPacketInFormat{Format: PacketInNXT2},
		&TLVTableMod{Command: TLVTableAdd, Maps: []TLVMap{{Class: 0xffff, Type: 1, Len: 8, Index: 2}}},
		&CTFlushZone{Zone: 9}, &CTFlush{Proto: 6, HasZone: true, Zone: 9},
		&BarrierRequest{},
	} {
		s.send(t, m)
	}
	if _, reply := s.receive(t); reply.Type() != TypeBarrierReply {
		t.Fatalf("got %v, want a barrier reply", reply)
	}
	groups := s.ask(t, &MultipartRequest{Body: GroupDescRequest{}})[0].(*MultipartReply).Body.(GroupDescReply)
	if len(groups) != 2 || len(groups[0].Buckets)+len(groups[1].Buckets) != 3 {
		t.Errorf("groups %+v", groups)
	}
	tables := s.ask(t, &MultipartRequest{Body: TableDescRequest{}})[0].(*MultipartReply).Body.(TableDescReply)
	if len(tables) < 4 || tables[2].Config&TableEviction != 0 || tables[3].Config&TableEviction == 0 {
		t.Errorf("tables %+v, want eviction in table 3 alone", tables[:min(4, len(tables))])
	}
	for _, body := range []MultipartRequestBody{
		GroupStatsRequest{GroupAll}, MeterStatsRequest{MeterAll}, MeterConfigRequest{MeterAll}, QueueDescRequest{PortAny, QueueAll},
	} {
		if _, raw := s.ask(t, &MultipartRequest{Body: body})[0].(*MultipartReply).Body.(RawMultipart); raw {
			t.Errorf("%v: not known", body.MultipartType())
		}
	}
	s.ask(t, &TLVTableRequest{})

	// What the switch tells by itself: a packet, a flow that goes, a port.
	mod, err := ParseFlow("table=0,cookie=0x77,send_flow_rem,in_port=1,actions=load:5->NXM_NX_REG3[],controller(id=5,userdata=01.02.03,pause)")
	if err != nil {
		t.Fatal(err)
	}
	s.send(t, mod)
	packet := append(make([]byte, 12), 0x88, 0xb5, 1, 2, 3)
	s.send(t, &PacketOut{BufferID: NoBuffer, InPort: 1, Actions: []Action{Output{Port: PortTable}}, Data: packet})
	_, m := s.receive(t)
	paused, ok := m.(*PacketIn2)
	if !ok || string(paused.UserData) != "\x01\x02\x03" || len(paused.Continuation) == 0 {
		t.Fatalf("got %+v, want a paused packet", m)
	}
	if reg, ok := paused.Metadata.Get(Reg3); !ok || reg.Uint64() != 5 {
		t.Errorf("metadata %v, want reg3=0x5", paused.Metadata)
	}
	s.send(t, &Resume{*paused})
	s.send(t, &SetPacketInFormat{Format: PacketInStandard})
	s.send(t, &PacketOut{BufferID: NoBuffer, InPort: 1, Actions: []Action{Controller{MaxLen: 15, ControllerID: 5, Reason: PacketInPacketOut}}, Data: packet})
	for { // the packet that was resumed, in either format, then the one that was sent
		_, m = s.receive(t)
		if _, resumed := m.(*PacketIn2); resumed {
			continue
		}
		in, ok := m.(*PacketIn)
		if !ok || in.InPort() != 1 || int(in.TotalLen) != len(packet) {
			t.Fatalf("got %+v, want the packet", m)
		}
		if in.Reason == PacketInPacketOut {
			break
		}
	}
	remove := NewFlowMod(FlowDelete)
	remove.Table, remove.Cookie, remove.CookieMask = TableAll, 0x77, ^uint64(0)
	s.send(t, remove)
	if _, m := s.receive(t); m.Type() != TypeFlowRemoved {
		t.Fatalf("got %+v, want a flow removed", m)
	}
	s.send(t, &PortMod{No: 1, HWAddr: MAC{}, Config: PortDown, Mask: PortDown})
	if _, m := s.receive(t); m.Type() != TypeError {
		t.Errorf("got %+v, want an error for the wrong address", m)
	}
}
