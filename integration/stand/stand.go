// Package stand is the standard scene of the integration tests and of
// `brlb demo`: a lab with a client on segment p1, servers on segment p2, and a
// brlb process that balances between them.
//
//	client 10.20.0.10 ── p1 ┐
//	                        ├─ br-lb ── p2 ── be1..beN 10.30.0.11..
//	VIP 10.20.0.100:80      └─ LOCAL 10.30.0.2: brlb probes from here
//
// brlb answers for the servers' gateway, 10.30.0.1. Between the switch and brlb
// sits a relay that counts messages, so that "nothing was sent" can be seen on
// the wire.
package stand

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"brlb/controller/api"
	"brlb/integration/lab"
)

// Addresses of the stand.
const (
	VIP        = "10.20.0.100:80"
	VIPAddress = "10.20.0.100"
	Gateway    = "10.30.0.1"

	// With Options.IPv6, beside those.
	VIP6Address    = "2001:db8:20::100"
	Client6Address = "2001:db8:20::10"
	Gateway6       = "2001:db8:30::1"
)

// Options say how the stand differs from the usual one.
type Options struct {
	Brlb    string           // path of the brlb executable
	Servers int              // 4 if 0
	Machine lab.StartMachine // where Open vSwitch runs; nil: on this machine
	TCP     bool             // OpenFlow over TCP instead of unix sockets
	IPv6    bool             // every host has an IPv6 address too, and there is a pool web6 with id 6
	Config  func(string) string
	Log     io.Writer // of brlb; nil: a file in the lab's directory
}

// Stand is the scene. Close takes it away.
type Stand struct {
	Lab     *lab.Lab
	Client  *lab.Host
	Hosts   []*lab.Host
	Servers []*lab.Server
	Relay   *lab.Relay
	API     *api.Client

	// Also are configuration files of further bridges for the same brlb.
	Also []string

	options Options
	prefix  string // of file names, "" or "second-"
	log     *os.File
	process *lab.Process
}

// New builds the scene and starts the servers, but not brlb.
func New(ctx context.Context, options Options) (s *Stand, err error) {
	if options.Servers == 0 {
		options.Servers = 4
	}
	s = &Stand{options: options}
	defer func() {
		if err != nil {
			s.Close()
			s = nil
		}
	}()
	local := []string{"10.30.0.2/24"}
	if options.IPv6 {
		local = append(local, "2001:db8:30::2/64")
	}
	if s.Lab, err = lab.New(ctx, lab.Options{LocalAddrs: local, Machine: options.Machine}); err != nil {
		return s, err
	}
	for _, segment := range []string{"p1", "p2"} {
		if err = s.Lab.AddSegment(segment, lab.SegmentOptions{}); err != nil {
			return s, err
		}
	}
	if s.Client, err = s.Lab.AddHost("client", "10.20.0.10/24", lab.HostOptions{Port: "p1"}); err != nil {
		return s, err
	}
	if options.IPv6 {
		if err = s.Client.AddAddress(Client6Address+"/64", ""); err != nil {
			return s, err
		}
	}
	for i := range options.Servers {
		if err = s.addServer(ctx, i); err != nil {
			return s, err
		}
	}
	if s.Relay, err = s.Lab.NewRelay(s.endpoint("relay", 6653), s.endpoint("brlb", 6654)); err != nil {
		return s, err
	}
	if err = s.WriteConfig(s.DefaultConfig()); err != nil {
		return s, err
	}
	s.API, err = api.NewClient(s.Socket())
	return s, err
}

func (s *Stand) addServer(ctx context.Context, i int) error {
	name := fmt.Sprintf("be%d", i+1)
	host, err := s.Lab.AddHost(name, s.address(i)+"/24", lab.HostOptions{Port: "p2", Gateway: Gateway})
	if err != nil {
		return err
	}
	server, err := host.StartServer(ctx, name, s.address(i)+":8080")
	if err != nil {
		return err
	}
	s.Hosts, s.Servers = append(s.Hosts, host), append(s.Servers, server)
	if !s.options.IPv6 {
		return nil
	}
	if err := host.AddAddress(s.address6(i)+"/64", Gateway6); err != nil {
		return err
	}
	_, err = host.StartServer(ctx, name, "["+s.address6(i)+"]:8080")
	return err
}

func (s *Stand) address6(i int) string { return fmt.Sprintf("2001:db8:30::%x", 0x11+i) }

func (s *Stand) address(i int) string { return fmt.Sprintf("10.30.0.%d", 11+i) }

func (s *Stand) endpoint(name string, port int) string {
	if s.options.TCP {
		return fmt.Sprintf("tcp:127.0.0.1:%d", port)
	}
	return "unix:" + filepath.Join(s.Lab.Dir(), name+".sock")
}

// Socket is the path of brlb's API socket.
func (s *Stand) Socket() string { return filepath.Join(s.Lab.Dir(), s.prefix+"api.sock") }

// ConfigPath is the path of brlb's configuration file.
func (s *Stand) ConfigPath() string { return filepath.Join(s.Lab.Dir(), s.prefix+"brlb.yaml") }

// LogPath is the path of brlb's log.
func (s *Stand) LogPath() string { return filepath.Join(s.Lab.Dir(), s.prefix+"brlb.log") }

// DefaultConfig is the configuration of one service over all servers.
func (s *Stand) DefaultConfig() string {
	var b strings.Builder
	fmt.Fprintf(&b, `bridge: %s
run_dir: %s
ovsdb: %s
openflow: {listen: "%s", target: "%s"}
api: {socket: %s, http: ""}
gateways: [%s/24]
checks:
  web: {type: http, path: /healthz, interval: 1s, fast: 500ms, down: 500ms, timeout: 500ms, rise: 2, fall: 3}
pools:
  web:
    id: 1
    check: web
    members:
`, s.Lab.Bridge(), s.Lab.Dir(), s.Lab.OVSDB(), s.endpoint("brlb", 6654), s.endpoint("relay", 6653), s.Socket(), Gateway)
	for i := range s.Servers {
		fmt.Fprintf(&b, "      be%d: %s:8080\n", i+1, s.address(i))
	}
	if s.options.IPv6 {
		b.WriteString("  web6:\n    id: 6\n    check: web\n    members:\n")
		for i := range s.Servers {
			fmt.Fprintf(&b, "      be%d: \"[%s]:8080\"\n", i+1, s.address6(i))
		}
	}
	fmt.Fprintf(&b, "services:\n  web: {address: %s, ports: [80/tcp], pool: web}\n", VIPAddress)
	text := b.String()
	if s.options.IPv6 {
		text = strings.Replace(text, "gateways: [", "gateways: ["+Gateway6+"/64, ", 1)
		text = strings.Replace(text, VIPAddress+", ports: [80/tcp], pool: web}", "["+VIPAddress+", \""+VIP6Address+"\"], ports: [80/tcp], pool: web, pool6: web6}", 1)
	}
	return text
}

// WriteConfig writes brlb's configuration file. A running brlb reads it at the
// next reload.
func (s *Stand) WriteConfig(text string) error {
	if s.options.Config != nil {
		text = s.options.Config(text)
	}
	return os.WriteFile(s.ConfigPath(), []byte(text), 0o644)
}

// Start starts brlb.
func (s *Stand) Start() error {
	out := s.options.Log
	if out == nil {
		if s.log == nil {
			log, err := os.OpenFile(s.LogPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
			if err != nil {
				return err
			}
			s.log = log
		}
		out = s.log
	}
	cmd := exec.Command(s.options.Brlb, "run", "--log-level", "debug", s.ConfigPath())
	cmd.Args = append(cmd.Args, s.Also...)
	cmd.Stdout, cmd.Stderr = out, out
	process, err := s.Lab.Switch.Start(cmd)
	if err != nil {
		return fmt.Errorf("start brlb: %w", err)
	}
	s.process = process
	return nil
}

// Second is the same scene with another brlb, of the same configuration but for
// its sockets. Only its brlb is its own.
func (s *Stand) Second() (*Stand, error) {
	second := *s
	second.process, second.log = nil, nil
	second.prefix = "second-"
	text := s.DefaultConfig()
	for _, socket := range []string{"brlb.sock", "relay.sock", "api.sock"} {
		text = strings.ReplaceAll(text, socket, "second-"+socket)
	}
	text = strings.ReplaceAll(text, "second-relay.sock", "second-brlb.sock")
	if err := second.WriteConfig(text); err != nil {
		return nil, err
	}
	var err error
	second.API, err = api.NewClient(second.Socket())
	return &second, err
}

// Kill ends brlb as a crash does (SIGKILL).
func (s *Stand) Kill() error { return s.process.Kill() }

// Stop ends brlb as an operator does (SIGTERM), and waits.
func (s *Stand) Stop() error {
	if err := s.process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	return s.process.Wait()
}

// Process is the running brlb.
func (s *Stand) Process() *lab.Process { return s.process }

// Await waits until brlb's status meets a condition.
func (s *Stand) Await(ctx context.Context, what string, condition func(*api.Status) bool) (*api.Status, error) {
	var last *api.Status
	for {
		status, err := s.API.Status(ctx)
		if err == nil {
			if condition(status) {
				return status, nil
			}
			last = status
		}
		select {
		case <-ctx.Done():
			return last, fmt.Errorf("waiting for %s: %w (%s)", what, ctx.Err(), describe(last, err))
		case <-s.process.Done():
			return last, fmt.Errorf("waiting for %s: brlb has ended, see its log", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func describe(status *api.Status, err error) string {
	if status == nil {
		return fmt.Sprint("no status: ", err)
	}
	return fmt.Sprintf("phase %s, degraded %q", status.Phase, status.Degraded)
}

// Steady is the condition that the switch holds a table over so many members.
func Steady(active int) func(*api.Status) bool {
	return func(s *api.Status) bool {
		return s.Phase == "steady" && s.InSync && len(s.Pools) > 0 && s.Pools[0].Active == active
	}
}

// SteadyPools is the condition that the switch holds tables over so many members,
// pool by pool.
func SteadyPools(active ...int) func(*api.Status) bool {
	return func(s *api.Status) bool {
		for i, n := range active {
			if i >= len(s.Pools) || s.Pools[i].Active != n {
				return false
			}
		}
		return s.Phase == "steady" && s.InSync
	}
}

// Close ends brlb and takes the scene away.
func (s *Stand) Close() error {
	if s.API != nil {
		s.API.Close()
	}
	if s.process != nil {
		s.process.Kill()
	}
	if s.log != nil {
		s.log.Close()
	}
	if s.Lab == nil {
		return nil
	}
	return s.Lab.Close()
}
