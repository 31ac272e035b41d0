package oftest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Bridge is the name of the bridge that [StartOVS] makes.
const Bridge = "br0"

// OVS is a private ovs-vswitchd with its own database, in a network namespace
// of its own, with one bridge ([Bridge]) on the dummy datapath: fail_mode
// secure, OpenFlow 1.4 only, no controller, no flows.
type OVS struct {
	// Dir is the run directory: sockets, database, logs.
	Dir string

	tb       testing.TB
	vswitchd *exec.Cmd
	db       *exec.Cmd
}

// StartOVS starts a private Open vSwitch for the length of the test. It skips
// the test where that cannot work: not root, or Open vSwitch not installed.
// The dummy ports p1, p2, ... get the OpenFlow port numbers 1, 2, ...
func StartOVS(tb testing.TB, ports int) *OVS {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("needs root: a private Open vSwitch gets a network namespace of its own")
	}
	for _, tool := range []string{"ovs-vswitchd", "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl"} {
		if _, err := exec.LookPath(tool); err != nil {
			tb.Skipf("needs Open vSwitch: %v", err)
		}
	}
	// Not tb.TempDir(): a unix socket's path ends at 108 octets.
	dir, err := os.MkdirTemp("", "ovs")
	if err != nil {
		tb.Fatal(err)
	}
	o := &OVS{Dir: dir, tb: tb}
	tb.Cleanup(o.stop)

	o.Run("ovsdb-tool", "create", o.path("conf.db"), "/usr/share/openvswitch/vswitch.ovsschema")
	o.db = o.daemon("ovsdb-server", o.path("conf.db"), "--remote=punix:"+o.path("db.sock"), "--pidfile", "--log-file")
	o.await("ovsdb-server", o.db, o.path("db.sock"))
	o.Vsctl("--no-wait", "init")
	o.vswitchd = o.startVswitchd()
	args := []string{"add-br", Bridge, "--", "set", "bridge", Bridge, "datapath-type=dummy",
		"fail-mode=secure", "protocols=OpenFlow14", "other-config:hwaddr=aa:55:aa:55:00:00"}
	for i := 1; i <= ports; i++ {
		p := fmt.Sprintf("p%d", i)
		args = append(args, "--", "add-port", Bridge, p,
			"--", "set", "interface", p, "type=dummy", fmt.Sprintf("ofport_request=%d", i))
	}
	o.Vsctl(args...)
	o.await("ovs-vswitchd", o.vswitchd, o.MgmtSocket())
	return o
}

// MgmtSocket is the path of the unix socket where the bridge takes OpenFlow
// service connections.
func (o *OVS) MgmtSocket() string { return o.path(Bridge + ".mgmt") }

// Dial opens an OpenFlow connection to the bridge.
func (o *OVS) Dial() net.Conn {
	o.tb.Helper()
	conn, err := net.Dial("unix", o.MgmtSocket())
	if err != nil {
		o.tb.Fatal(err)
	}
	return conn
}

// Vsctl runs ovs-vsctl on the private database and returns its output.
func (o *OVS) Vsctl(args ...string) string {
	o.tb.Helper()
	return o.Run("ovs-vsctl", append([]string{"--timeout=20", "--db=unix:" + o.path("db.sock")}, args...)...)
}

// Appctl runs a command of ovs-vswitchd, such as ofproto/trace. It speaks to the
// control socket itself, which is much quicker than ovs-appctl.
func (o *OVS) Appctl(command string, args ...string) string {
	o.tb.Helper()
	conn, err := net.Dial("unix", o.ctlSocket())
	if err != nil {
		o.tb.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	request := map[string]any{"id": 0, "method": command, "params": append([]string{}, args...)}
	var reply struct{ Result, Error string }
	if err := json.NewEncoder(conn).Encode(request); err != nil {
		o.tb.Fatal(err)
	}
	if err := json.NewDecoder(conn).Decode(&reply); err != nil || reply.Error != "" {
		o.tb.Fatalf("%s %s: %v %s", command, strings.Join(args, " "), err, reply.Error)
	}
	return reply.Result
}

// Ofctl runs ovs-ofctl for OpenFlow 1.4 with names off; the command comes first
// and the bridge's address is put after it.
func (o *OVS) Ofctl(command string, args ...string) string {
	o.tb.Helper()
	return o.Run("ovs-ofctl", append([]string{"-OOpenFlow14", "--no-names", "--timeout=20", command, "unix:" + o.MgmtSocket()}, args...)...)
}

// Signal sends a signal, such as SIGSTOP, to ovs-vswitchd.
func (o *OVS) Signal(sig syscall.Signal) {
	o.tb.Helper()
	if err := o.vswitchd.Process.Signal(sig); err != nil {
		o.tb.Fatal(err)
	}
}

// Restart kills ovs-vswitchd and starts it again: it comes up without flows.
func (o *OVS) Restart() {
	o.tb.Helper()
	kill(o.vswitchd)
	if err := os.Remove(o.MgmtSocket()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.tb.Fatal(err)
	}
	o.vswitchd = o.startVswitchd()
	o.await("ovs-vswitchd", o.vswitchd, o.MgmtSocket())
}

// Run runs a tool against the private run directory and returns its output.
func (o *OVS) Run(tool string, args ...string) string {
	o.tb.Helper()
	cmd := exec.Command(tool, args...)
	cmd.Env = o.env()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		o.tb.Fatalf("%s %s: %v\n%s", tool, strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

// Complaints returns the warnings and errors in ovs-vswitchd's log.
func (o *OVS) Complaints() string {
	log, err := os.ReadFile(o.path("ovs-vswitchd.log"))
	if err != nil {
		return err.Error()
	}
	var lines strings.Builder
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, "|WARN|") || strings.Contains(line, "|ERR|") || strings.Contains(line, "|EMER|") {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

func (o *OVS) path(name string) string { return filepath.Join(o.Dir, name) }

// ctlSocket is ovs-vswitchd's control socket.
func (o *OVS) ctlSocket() string {
	return o.path(fmt.Sprintf("ovs-vswitchd.%d.ctl", o.vswitchd.Process.Pid))
}

func (o *OVS) env() []string {
	return append(os.Environ(), "OVS_RUNDIR="+o.Dir, "OVS_LOGDIR="+o.Dir, "OVS_DBDIR="+o.Dir, "OVS_SYSCONFDIR="+o.Dir)
}

func (o *OVS) startVswitchd() *exec.Cmd {
	return o.daemon("ovs-vswitchd", "unix:"+o.path("db.sock"), "--enable-dummy=override", "--disable-system", "--pidfile", "--log-file")
}

// daemon starts a server that dies with the test process. ovs-vswitchd allows
// one userspace datapath in a network namespace, so each gets its own; unix
// sockets reach across.
func (o *OVS) daemon(name string, args ...string) *exec.Cmd {
	o.tb.Helper()
	cmd := exec.Command(name, append(args, "-vconsole:off")...)
	cmd.Env = o.env()
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := cmd.Start(); err != nil {
		o.tb.Skipf("cannot start %s in a network namespace of its own: %v", name, err)
	}
	return cmd
}

// await waits until a server listens on its socket.
func (o *OVS) await(name string, cmd *exec.Cmd, socket string) {
	o.tb.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if conn, err := net.Dial("unix", socket); err == nil {
			conn.Close()
			return
		}
		if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
			break
		}
	}
	log, _ := os.ReadFile(o.path(name + ".log"))
	o.tb.Fatalf("%s does not listen on %s\n%s", name, socket, log)
}

func (o *OVS) stop() {
	for _, cmd := range []*exec.Cmd{o.vswitchd, o.db} {
		if cmd != nil {
			kill(cmd)
		}
	}
	if o.tb.Failed() {
		o.tb.Logf("complaints of ovs-vswitchd:\n%s", o.Complaints())
	}
	os.RemoveAll(o.Dir)
}

// kill ends a process, stopped ones too, and reaps it.
func kill(cmd *exec.Cmd) {
	cmd.Process.Kill()
	cmd.Wait()
}
