package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	startTimeout = 15 * time.Second // for a daemon to come up
	toolTimeout  = 30 * time.Second // for one run of an Open vSwitch tool
	// pollInterval is how often a condition that nobody announces is checked.
	pollInterval = 2 * time.Millisecond
)

// daemon is one of the two Open vSwitch daemons, which may be killed and
// started again.
type daemon struct {
	lab  *Lab
	argv []string

	mu      sync.Mutex
	process *Process // nil while it is dead
}

func (d *daemon) start(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.process != nil {
		return fmt.Errorf("lab: start %s: it runs already", d.argv[0])
	}
	process, err := d.lab.machine.Start(ctx, d.argv, d.lab.ovsEnv())
	if err != nil {
		return err
	}
	d.lab.track(process)
	d.process = process
	return nil
}

// running returns the process, or an error while there is none.
func (d *daemon) running() (*Process, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.process == nil {
		return nil, fmt.Errorf("lab: %s does not run", d.argv[0])
	}
	return d.process, nil
}

func (d *daemon) kill() error {
	process, err := d.running()
	if err != nil {
		return err
	}
	if err := process.Kill(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.process = nil
	return nil
}

func (d *daemon) pause() error {
	process, err := d.running()
	if err != nil {
		return err
	}
	return process.Pause()
}

func (d *daemon) resume() error {
	process, err := d.running()
	if err != nil {
		return err
	}
	return process.Resume()
}

// startSwitch starts both daemons on a new database and creates the bridge.
func (l *Lab) startSwitch(ctx context.Context, failMode string) error {
	if err := l.runTool(ctx, "ovsdb-tool", "create", l.dir+"/conf.db", "/usr/share/openvswitch/vswitch.ovsschema"); err != nil {
		return err
	}
	ovsdbArgs := []string{
		"ovsdb-server", l.dir + "/conf.db", "--remote=punix:" + l.dir + "/db.sock",
		"--pidfile", "--log-file", "-vconsole:off",
	}
	for _, remote := range l.machine.OVSDBRemotes() {
		ovsdbArgs = append(ovsdbArgs, "--remote="+remote)
	}
	l.ovsdb = &daemon{lab: l, argv: ovsdbArgs}
	l.vswitchd = &daemon{lab: l, argv: []string{
		"ovs-vswitchd", "unix:" + l.dir + "/db.sock", "--pidfile", "--log-file", "-vconsole:off",
	}}
	if err := l.StartOVSDB(ctx); err != nil {
		return err
	}
	if _, err := l.Vsctl("--no-wait", "init"); err != nil {
		return err
	}
	if err := waitForUptime(ctx); err != nil {
		return err
	}
	if err := l.vswitchd.start(ctx); err != nil {
		return err
	}
	// hwaddr keeps the LOCAL port's address: by default it follows that of
	// the ports, and changes as they come.
	addBridge := []string{
		"add-br", l.bridge, "--", "set", "Bridge", l.bridge, "datapath_type=" + l.datapath,
		`other_config:hwaddr="02:00:00:00:00:01"`,
	}
	if failMode != "" {
		addBridge = append(addBridge, "fail_mode="+failMode)
	}
	if _, err := l.Vsctl(addBridge...); err != nil {
		return errors.Join(err, l.endOfLog("ovs-vswitchd.log"))
	}
	return l.waitForLocalPort(ctx)
}

// AddBridge adds another bridge, whose LOCAL port has an address, with prefix
// length, that lasts until ovs-vswitchd ends.
func (l *Lab) AddBridge(name, localAddr string) error {
	addr, err := netip.ParsePrefix(localAddr)
	if err != nil {
		return fmt.Errorf("lab: address of the LOCAL port of %s: %w", name, err)
	}
	if _, err := l.Vsctl("add-br", name, "--", "set", "Bridge", name, "datapath_type=netdev", `other_config:hwaddr="02:00:00:00:00:02"`); err != nil {
		return errors.Join(err, l.endOfLog("ovs-vswitchd.log"))
	}
	if err := l.Switch.setLink(name, true); err != nil {
		return err
	}
	return l.Switch.addAddress(name, addr)
}

// waitForUptime waits until the machine is up for 11 s: Open vSwitch started
// earlier counts no CPU cores, starts no handler threads and loses every
// packet that misses its cache.
func waitForUptime(ctx context.Context) error {
	return waitFor(ctx, startTimeout, "the machine to be up for 11 s", func() (bool, error) {
		var now unix.Timespec
		err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)
		return now.Sec >= 11, err
	})
}

// waitForLocalPort waits for the bridge's LOCAL device, which ovs-vswitchd
// makes anew each time it starts, and gives it its addresses.
func (l *Lab) waitForLocalPort(ctx context.Context) error {
	err := waitFor(ctx, startTimeout, "device "+l.bridge, func() (bool, error) {
		if process, err := l.vswitchd.running(); err != nil {
			return false, err
		} else if ended(process) {
			return false, errors.Join(errors.New("lab: ovs-vswitchd ended"), l.endOfLog("ovs-vswitchd.log"))
		}
		_, err := l.Switch.link.LinkByName(l.bridge)
		return err == nil, nil
	})
	if err != nil {
		return err
	}
	if err := l.Switch.setLink(l.bridge, true); err != nil {
		return err
	}
	for _, addr := range l.localAddrs {
		if err := l.Switch.addAddress(l.bridge, addr); err != nil {
			return err
		}
	}
	return nil
}

// StartOVSDB starts ovsdb-server on the lab's database and returns when it
// accepts connections.
func (l *Lab) StartOVSDB(ctx context.Context) error {
	// A socket of the last one would accept nothing but would be found.
	if err := os.Remove(l.dir + "/db.sock"); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("lab: remove old socket: %w", err)
	}
	if err := l.ovsdb.start(ctx); err != nil {
		return err
	}
	return waitFor(ctx, startTimeout, "ovsdb-server", func() (bool, error) {
		if process, err := l.ovsdb.running(); err != nil {
			return false, err
		} else if ended(process) {
			return false, errors.Join(errors.New("lab: ovsdb-server ended"), l.endOfLog("ovsdb-server.log"))
		}
		conn, err := net.Dial("unix", l.dir+"/db.sock")
		if err != nil {
			return false, nil
		}
		return true, conn.Close()
	})
}

// KillOVSDB ends ovsdb-server with SIGKILL; the database file stays.
func (l *Lab) KillOVSDB() error { return l.ovsdb.kill() }

// PauseOVSDB stops ovsdb-server (SIGSTOP) until ResumeOVSDB.
func (l *Lab) PauseOVSDB() error { return l.ovsdb.pause() }

// ResumeOVSDB lets a paused ovsdb-server go on.
func (l *Lab) ResumeOVSDB() error { return l.ovsdb.resume() }

// StartOVS starts ovs-vswitchd, whose flow tables and conntrack are then
// empty, and returns when the bridge's LOCAL port is back.
func (l *Lab) StartOVS(ctx context.Context) error {
	if err := l.vswitchd.start(ctx); err != nil {
		return err
	}
	return l.waitForLocalPort(ctx)
}

// KillOVS ends ovs-vswitchd with SIGKILL. Flows, conntrack entries and the
// LOCAL port go with it; the database stays, with ovsdb-server running.
func (l *Lab) KillOVS() error { return l.vswitchd.kill() }

// PauseOVS stops ovs-vswitchd (SIGSTOP) until ResumeOVS.
func (l *Lab) PauseOVS() error { return l.vswitchd.pause() }

// ResumeOVS lets a paused ovs-vswitchd go on.
func (l *Lab) ResumeOVS() error { return l.vswitchd.resume() }

// Vsctl runs ovs-vsctl on the lab's database and returns what it printed. It
// returns when ovs-vswitchd has done what was asked, unless args hold
// --no-wait.
func (l *Lab) Vsctl(args ...string) (string, error) {
	return l.tool("ovs-vsctl", append([]string{"--db=unix:" + l.dir + "/db.sock", "--timeout=20"}, args...)...)
}

// Ofctl runs ovs-ofctl, for example Ofctl("-OOpenFlow14", "--no-names",
// "dump-flows", lab.Bridge()), and returns what it printed.
func (l *Lab) Ofctl(args ...string) (string, error) { return l.tool("ovs-ofctl", args...) }

// Appctl runs ovs-appctl on the lab's ovs-vswitchd, for example
// Appctl("ofproto/trace", ...), and returns what it printed.
func (l *Lab) Appctl(args ...string) (string, error) {
	// ovs-appctl's own way to the socket asks the kernel who locks the pid
	// file, and that pid is another one when the daemon is in a container.
	pid, err := os.ReadFile(l.dir + "/ovs-vswitchd.pid")
	if err != nil {
		return "", fmt.Errorf("lab: find ovs-vswitchd: %w", err)
	}
	socket := fmt.Sprintf("%s/ovs-vswitchd.%s.ctl", l.dir, strings.TrimSpace(string(pid)))
	return l.tool("ovs-appctl", append([]string{"--target=" + socket, "--timeout=20"}, args...)...)
}

// ovsEnv makes Open vSwitch's programs use the lab's directory alone.
func (l *Lab) ovsEnv() []string {
	return []string{"OVS_RUNDIR=" + l.dir, "OVS_LOGDIR=" + l.dir, "OVS_DBDIR=" + l.dir, "OVS_SYSCONFDIR=" + l.dir}
}

func (l *Lab) tool(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), toolTimeout)
	defer cancel()
	return l.toolOutput(ctx, name, args...)
}

func (l *Lab) runTool(ctx context.Context, name string, args ...string) error {
	_, err := l.toolOutput(ctx, name, args...)
	return err
}

func (l *Lab) toolOutput(ctx context.Context, name string, args ...string) (string, error) {
	path, err := findProgram(name)
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), l.ovsEnv()...)
	out, err := cmd.Output()
	return string(out), commandError(cmd, err)
}

// endOfLog returns the end of a daemon's log as an error, to be joined to the
// one that it explains.
func (l *Lab) endOfLog(name string) error {
	text, err := os.ReadFile(filepath.Join(l.dir, name))
	if err != nil {
		return fmt.Errorf("lab: read log: %w", err)
	}
	const most = 2000
	return fmt.Errorf("end of %s:\n%s", name, text[max(0, len(text)-most):])
}

// ended tells whether the process is gone.
func ended(p *Process) bool {
	select {
	case <-p.Done():
		return true
	default:
		return false
	}
}

// waitFor polls condition until it holds, fails, or the time is over.
func waitFor(ctx context.Context, timeout time.Duration, what string, condition func() (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		ok, err := condition()
		if err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("lab: wait for %s: %w", what, ctx.Err())
		case <-time.After(pollInterval):
		}
	}
}
