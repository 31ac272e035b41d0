// Package ovsdbtest has what tests of OVSDB clients need: a scripted server that
// misbehaves byte by byte ([Listen]), and private instances of the real
// ovsdb-server and ovs-vswitchd ([StartServer], [StartSwitch]) that touch
// nothing of the host's Open vSwitch.
package ovsdbtest

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// SchemaFile is where Debian's packages put the Open_vSwitch schema.
const SchemaFile = "/usr/share/openvswitch/vswitch.ovsschema"

// startTimeout bounds how long a daemon may take to listen.
const startTimeout = 20 * time.Second

// Server is a private ovsdb-server with one Open_vSwitch database that holds
// its root row. It is killed when the test ends.
type Server struct {
	// Dir is its run directory, with a short path: those of unix sockets must
	// be.
	Dir     string
	t       testing.TB
	options []string
	relayed string // what a relay serves instead of its Database
	cmd     *exec.Cmd
}

// StartServer runs an ovsdb-server, or skips the test where there is none, as
// everything here does; with BRLB_LAB_REQUIRED in the environment the test fails
// instead. The server gets the options beside those that it needs.
func StartServer(t testing.TB, options ...string) *Server {
	t.Helper()
	return StartServerOn(t, SchemaFile, options...)
}

// StartServerOn is StartServer with another version of the schema.
func StartServerOn(t testing.TB, schemaFile string, options ...string) *Server {
	t.Helper()
	needServer(t)
	s := &Server{Dir: shortDir(t), t: t, options: options}
	s.Tool("create", s.Database(), schemaFile)
	s.Tool("transact", s.Database(), rootRow)
	s.Start()
	t.Cleanup(s.Kill)
	return s
}

const rootRow = `["Open_vSwitch",{"op":"insert","table":"Open_vSwitch","row":{}}]`

// StartCluster runs n ovsdb-servers that form a cluster with one Open_vSwitch
// database, which holds its root row, or skips the test where there is no
// ovsdb-server. When it returns a leader has been elected.
func StartCluster(t testing.TB, n int) []*Server {
	t.Helper()
	needServer(t)
	dir := shortDir(t)
	var servers []*Server
	for i := range n {
		s := &Server{Dir: filepath.Join(dir, fmt.Sprint(i)), t: t}
		if err := os.Mkdir(s.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		raft := "unix:" + filepath.Join(s.Dir, "raft")
		if i == 0 {
			s.Tool("create-cluster", s.Database(), SchemaFile, raft)
		} else {
			s.Tool("join-cluster", s.Database(), "Open_vSwitch", raft, "unix:"+filepath.Join(servers[0].Dir, "raft"))
		}
		s.Start()
		t.Cleanup(s.Kill)
		run(t, s.Dir, "ovsdb-client", "wait", s.Endpoint(), "Open_vSwitch", "connected")
		servers = append(servers, s)
	}
	run(t, dir, "ovsdb-client", "transact", servers[0].Endpoint(), rootRow)
	return servers
}

// StartRelay runs an ovsdb-server that has no database of its own and passes on
// that of source.
func StartRelay(t testing.TB, source *Server) *Server {
	t.Helper()
	s := &Server{Dir: shortDir(t), t: t, relayed: "relay:Open_vSwitch:" + source.Endpoint()}
	s.Start()
	t.Cleanup(s.Kill)
	run(t, s.Dir, "ovsdb-client", "wait", s.Endpoint(), "Open_vSwitch", "connected")
	return s
}

func needServer(t testing.TB) {
	t.Helper()
	need(t, "ovsdb-server", "ovsdb-tool", "ovsdb-client", "ovs-appctl")
	if _, err := os.Stat(SchemaFile); err != nil {
		missing(t, err)
	}
}

func shortDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ovs")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func need(t testing.TB, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			missing(t, err)
		}
	}
}

// missing skips a test for want of Open vSwitch, or fails it where the
// environment has BRLB_LAB_REQUIRED: no test may skip there.
func missing(t testing.TB, err error) {
	t.Helper()
	if os.Getenv("BRLB_LAB_REQUIRED") != "" {
		t.Fatalf("needs Open vSwitch: run apt-get install openvswitch-switch: %v", err)
	}
	t.Skipf("needs Open vSwitch: run apt-get install openvswitch-switch: %v", err)
}

// Database returns the path of the database's file.
func (s *Server) Database() string { return filepath.Join(s.Dir, "conf.db") }

// Socket returns the path of the server's socket.
func (s *Server) Socket() string { return filepath.Join(s.Dir, "db.sock") }

// Endpoint returns the server's address in the notation of ovs-vsctl --db.
func (s *Server) Endpoint() string { return "unix:" + s.Socket() }

// Tool runs ovsdb-tool, which can change the database while the server is not
// running.
func (s *Server) Tool(args ...string) {
	s.t.Helper()
	run(s.t, s.Dir, "ovsdb-tool", args...)
}

// Client runs ovsdb-client and returns its output.
func (s *Server) Client(args ...string) string {
	s.t.Helper()
	return run(s.t, s.Dir, "ovsdb-client", args...)
}

// Vsctl runs ovs-vsctl on the server, without waiting for ovs-vswitchd, and
// returns its output.
func (s *Server) Vsctl(args ...string) string {
	s.t.Helper()
	need(s.t, "ovs-vsctl")
	return run(s.t, s.Dir, "ovs-vsctl", append([]string{"--no-wait", "--db=" + s.Endpoint()}, args...)...)
}

// Leader tells whether the server is the leader of its cluster.
func (s *Server) Leader() bool {
	s.t.Helper()
	out := run(s.t, s.Dir, "ovs-appctl", "-t", control(s.Dir, "ovsdb-server", s.cmd), "cluster/status", "Open_vSwitch")
	return strings.Contains(out, "\nRole: leader")
}

// Start runs the server again after Kill, on the same database.
func (s *Server) Start() {
	s.t.Helper()
	s.cmd = daemon(s.t, s.Dir, "ovsdb-server", append(s.options, cmp.Or(s.relayed, s.Database()), "--remote=p"+s.Endpoint())...)
	waitFor(s.t, s.Socket())
	waitFor(s.t, control(s.Dir, "ovsdb-server", s.cmd))
}

// Kill ends the server as a crash would. It may be called when it is not
// running.
func (s *Server) Kill() {
	kill(s.cmd)
	s.cmd = nil
	os.Remove(s.Socket())
}

// Switch is a private ovs-vswitchd on a Server, with dummy datapaths: it
// configures bridges and ports of type "dummy" without touching the kernel.
type Switch struct {
	*Server
	vswitchd *exec.Cmd
}

// StartSwitch runs an ovs-vswitchd with an ovsdb-server of its own, or skips the
// test where there is none.
func StartSwitch(t testing.TB) *Switch {
	t.Helper()
	need(t, "ovs-vswitchd")
	s := &Switch{Server: StartServer(t)}
	s.vswitchd = daemon(t, s.Dir, "ovs-vswitchd", s.Endpoint(), "--enable-dummy=override", "--disable-system")
	t.Cleanup(func() { kill(s.vswitchd) })
	waitFor(t, control(s.Dir, "ovs-vswitchd", s.vswitchd))
	return s
}

// control is the path of a daemon's control socket.
func control(dir, name string, cmd *exec.Cmd) string {
	return filepath.Join(dir, fmt.Sprintf("%s.%d.ctl", name, cmd.Process.Pid))
}

// daemon starts a program of Open vSwitch with dir for all of its files.
func daemon(t testing.TB, dir, name string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(name, append(args, "--pidfile", "--no-chdir", "-vfile:off", "-vconsole:off", "-vsyslog:off")...)
	cmd.Env = environment(dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func environment(dir string) []string {
	return append(os.Environ(), "OVS_RUNDIR="+dir, "OVS_LOGDIR="+dir, "OVS_DBDIR="+dir, "OVS_SYSCONFDIR="+dir)
}

func run(t testing.TB, dir, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = environment(dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// waitFor waits until somebody listens on a unix socket, which exists a moment
// before that.
func waitFor(t testing.TB, socket string) {
	t.Helper()
	for deadline := time.Now().Add(startTimeout); ; time.Sleep(2 * time.Millisecond) {
		nc, err := net.Dial("unix", socket)
		if err == nil {
			nc.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody listens: %v", err)
		}
	}
}

func kill(cmd *exec.Cmd) {
	if cmd == nil {
		return
	}
	cmd.Process.Kill()
	cmd.Wait() // says that it was killed
}
