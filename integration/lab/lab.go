package lab

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"

	"github.com/vishvananda/netns"
)

// Options says what the lab's bridge is like. The zero value is the bridge
// br-lb as Open vSwitch makes it: no controller, so it forwards like any
// Ethernet switch.
type Options struct {
	// Bridge is the bridge's name; br-lb if empty.
	Bridge string
	// FailMode is the bridge's fail_mode: "secure", "standalone", or empty
	// for unset, which Open vSwitch takes for standalone.
	FailMode string
	// LocalAddrs are addresses with prefix length, such as "10.30.0.1/24",
	// for the bridge's LOCAL port: what runs in the switch namespace reaches
	// the hosts, and is reached, through the bridge.
	LocalAddrs []string
	// Machine says where the Open vSwitch daemons run: nil means here.
	Machine StartMachine
}

// Datapath is the datapath_type of a lab's bridges: what the environment has in
// BRLB_LAB_DATAPATH, such as "system" for the kernel's datapath, or else
// "netdev", the userspace datapath.
func Datapath() string {
	if datapath := os.Getenv("BRLB_LAB_DATAPATH"); datapath != "" {
		return datapath
	}
	return "netdev"
}

// Lab is a private network around one Open vSwitch. Its methods may be called
// from several goroutines, but not while Close runs.
type Lab struct {
	// Switch is the namespace of the bridge's ports, where the controller
	// runs too.
	Switch *Namespace

	name       string // brlb-PID-N
	dir        string
	bridge     string
	datapath   string
	localAddrs []netip.Prefix
	machine    Machine
	ovsdb      *daemon
	vswitchd   *daemon

	mu       sync.Mutex
	named    []string // namespaces to delete
	hosts    map[string]*Host
	segments map[string]*Segment
	ports    int // OpenFlow port numbers handed out
	procs    []*Process
	closers  []func() error // in the order of opening
}

// New builds a lab: a switch namespace, Open vSwitch's two daemons, and the
// bridge. ctx bounds the building alone; the lab lives until Close. It fails
// with [ErrPrivilege] without root's capabilities and with a *[MissingError]
// where Open vSwitch is not installed.
func New(ctx context.Context, options Options) (*Lab, error) {
	if err := checkPrivilege(); err != nil {
		return nil, err
	}
	if missing := Missing(); len(missing) > 0 {
		return nil, &MissingError{Packages: missing}
	}
	l := &Lab{
		bridge:   options.Bridge,
		datapath: Datapath(),
		hosts:    make(map[string]*Host),
		segments: make(map[string]*Segment),
	}
	if l.bridge == "" {
		l.bridge = "br-lb"
	}
	for _, addr := range options.LocalAddrs {
		prefix, err := netip.ParsePrefix(addr)
		if err != nil {
			return nil, fmt.Errorf("lab: address of the bridge's LOCAL port: %w", err)
		}
		l.localAddrs = append(l.localAddrs, prefix)
	}
	if err := l.build(ctx, options); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Lab) build(ctx context.Context, options Options) (err error) {
	if l.name, l.dir, err = makeDir(); err != nil {
		return err
	}
	startMachine := options.Machine
	if startMachine == nil {
		startMachine = l.startLocalMachine
	}
	if l.machine, err = startMachine(ctx, l.name+"-sw", l.dir); err != nil {
		return err
	}
	if err := l.openSwitch(); err != nil {
		return err
	}
	return l.startSwitch(ctx, options.FailMode)
}

// openSwitch prepares the namespace the machine lives in.
func (l *Lab) openSwitch() error {
	handle, err := netns.GetFromPath(l.machine.Netns())
	if err != nil {
		return fmt.Errorf("lab: open the switch's network namespace: %w", err)
	}
	l.Switch = &Namespace{Name: l.name + "-sw", lab: l, handle: handle}
	if err := l.Switch.open(); err != nil {
		return err
	}
	// The kernel sees a copy of what the userspace datapath receives on a
	// veth port. It must not answer ARP there for the LOCAL port's address.
	if err := l.Switch.Sysctl("net/ipv4/conf/all/arp_ignore", "1"); err != nil {
		return err
	}
	// Container engines turn IPv6 off where their own network has none.
	return l.Switch.Sysctl("net/ipv6/conf/all/disable_ipv6", "0")
}

// shortTempDir serves where TMPDIR is too long for unix sockets below it.
const shortTempDir = "/tmp"

// makeDir makes the lab's directory under the first free name. Making it is
// what claims the name. Unix socket paths end at 107 bytes, and the longest
// name below the directory has about 40, so a long TMPDIR is passed over.
func makeDir() (name, dir string, err error) {
	parent := os.TempDir()
	if len(parent) > 40 {
		parent = shortTempDir
	}
	for n := 1; ; n++ {
		name = fmt.Sprintf("brlb-%d-%d", os.Getpid(), n)
		dir = filepath.Join(parent, name)
		err = os.Mkdir(dir, 0o755)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", "", fmt.Errorf("lab: make directory: %w", err)
		}
		return name, dir, nil
	}
}

// Name returns the lab's name, the first part of the names of its namespaces.
func (l *Lab) Name() string { return l.name }

// Dir returns the lab's directory: the run directory of its Open vSwitch, with
// its database, sockets, pid files and logs. Short enough for unix sockets.
func (l *Lab) Dir() string { return l.dir }

// Bridge returns the name of the bridge.
func (l *Lab) Bridge() string { return l.bridge }

// OVSDB returns how a program in the switch namespace reaches the database:
// "unix:PATH" or "tcp:IP:PORT".
func (l *Lab) OVSDB() string { return l.machine.OVSDB() }

// track remembers a process that Close must end.
func (l *Lab) track(p *Process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.procs = append(l.procs, p)
}

// atClose remembers what Close must do before it deletes the namespaces.
func (l *Lab) atClose(f func() error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closers = append(l.closers, f)
}

// addNamespace creates a namespace called after the lab and suffix.
func (l *Lab) addNamespace(suffix string) (*Namespace, error) {
	n, err := newNamespace(l, l.name+"-"+suffix)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	l.named = append(l.named, n.Name)
	l.mu.Unlock()
	l.atClose(n.close)
	return n, nil
}

// Close kills every process of the lab and removes its namespaces, links and
// directory. It goes on after an error and returns all of them; a second call
// does nothing.
func (l *Lab) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, p := range l.procs {
		errs = append(errs, p.Kill())
	}
	for i := len(l.closers) - 1; i >= 0; i-- {
		errs = append(errs, l.closers[i]())
	}
	if l.Switch != nil {
		errs = append(errs, l.Switch.close())
	}
	if l.machine != nil {
		errs = append(errs, l.machine.Close())
	}
	for _, name := range l.named {
		if err := netns.DeleteNamed(name); err != nil {
			errs = append(errs, fmt.Errorf("lab: delete network namespace %s: %w", name, err))
		}
	}
	if l.dir != "" {
		errs = append(errs, os.RemoveAll(l.dir))
	}
	l.procs, l.closers, l.named = nil, nil, nil
	l.Switch, l.machine, l.dir = nil, nil, ""
	return errors.Join(errs...)
}

// macOf gives an interface a MAC address that shows its IP address: 02:00 and
// the last four bytes. Tables and packet dumps are easier to read for it.
func macOf(addr netip.Addr) net.HardwareAddr {
	bytes := addr.AsSlice()
	return append(net.HardwareAddr{0x02, 0x00}, bytes[len(bytes)-4:]...)
}
