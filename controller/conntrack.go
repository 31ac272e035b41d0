package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"brlb/ovsdb/unixctl"
)

const unixctlTimeout = 5 * time.Second

// relaxConntrack makes conntrack accept TCP segments out of the window. With the
// check on, the RST of a client that closes while data is under way is invalid,
// its entry lives on as established, and the next connection from that port has
// to wait for a retransmission. The setting is gone when ovs-vswitchd restarts,
// or the machine if it is the kernel's, so it is looked at for each session.
//
// A switch whose control socket cannot be reached is left as it is: what is
// invalid there takes the slower way through the controller.
func (l *loop) relaxConntrack(ctx context.Context) {
	cfg := l.view.Load().config
	problem := ""
	changed, err := turnOffSequenceCheck(ctx, cfg.RunDir)
	switch {
	case err != nil:
		l.opts.Logger.Warn("conntrack keeps checking TCP sequence numbers; connections from ports that were just used may start slowly", "err", err)
		if errors.Is(err, errKernelChecks) {
			problem = err.Error()
		}
	case changed:
		l.opts.Logger.Info("conntrack no longer checks TCP sequence numbers")
	}
	l.do(ctx, func() { l.sw.conntrack = problem }) // it fails when brlb ends
}

// turnOffSequenceCheck says whether it had to.
func turnOffSequenceCheck(ctx context.Context, runDir string) (changed bool, err error) {
	relaxed, kernel, err := sequenceCheck(ctx, runDir)
	if err != nil || relaxed {
		return false, err
	}
	if !kernel {
		_, err := ask(ctx, runDir, "dpctl/ct-disable-tcp-seq-chk")
		return err == nil, err
	}
	if err := os.WriteFile(liberal, []byte("1\n"), 0o644); err != nil {
		return false, fmt.Errorf("%w (%v)", errKernelChecks, err)
	}
	return true, nil
}

// liberal is the kernel's setting, for the network namespace of who reads or
// writes it. Each has its own.
const liberal = "/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal"

// errKernelChecks tells operators what only they can do.
var errKernelChecks = errors.New("the kernel's conntrack checks TCP sequence numbers, so connections from ports that were just used may start slowly: run sysctl -w net.netfilter.nf_conntrack_tcp_be_liberal=1 as root, in the network namespace of ovs-vswitchd, and keep it in /etc/sysctl.d")

// sequenceCheck says whether sequence checking is off, and whether it is the
// kernel's conntrack that has the setting.
func sequenceCheck(ctx context.Context, runDir string) (off, kernel bool, err error) {
	text, err := ask(ctx, runDir, "dpctl/ct-get-tcp-seq-chk")
	var refused *unixctl.Error
	if errors.As(err, &refused) && strings.Contains(refused.Text, "not supported") {
		off, err = kernelLiberal(runDir)
		return off, true, err
	}
	return strings.Contains(text, "disabled"), false, err
}

// kernelLiberal reads the kernel's setting, if this process is in the network
// namespace of the datapath.
func kernelLiberal(runDir string) (bool, error) {
	pid, err := unixctl.PID(runDir, "ovs-vswitchd")
	if err != nil {
		return false, err
	}
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return false, err
	}
	// Who may not look there takes it for the same.
	its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err == nil && its != own {
		return false, errors.New("ovs-vswitchd is in another network namespace than brlb: net.netfilter.nf_conntrack_tcp_be_liberal should be 1 there")
	}
	text, err := os.ReadFile(liberal)
	return strings.TrimSpace(string(text)) == "1", err
}

// settle waits until the datapath forwards by the tables as they are now. The
// switch confirms a change when its tables have it; what its datapath has
// cached follows within half a second at most, mostly within milliseconds. Without
// a control socket there is nothing to ask, and nothing to wait for.
func (l *loop) settle(ctx context.Context) {
	if _, err := ask(ctx, l.view.Load().config.RunDir, "revalidator/wait"); err != nil {
		l.opts.Logger.Debug("cannot wait for the datapath", "err", err)
	}
}

// ask sends one command to ovs-vswitchd's control socket.
func ask(ctx context.Context, runDir, method string, params ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, unixctlTimeout)
	defer cancel()
	path, err := unixctl.Find(runDir, "ovs-vswitchd")
	if err != nil {
		return "", fmt.Errorf("ovs-vswitchd's control socket: %w", err)
	}
	client, err := unixctl.Dial(ctx, path)
	if err != nil {
		return "", err
	}
	defer client.Close()
	return client.Call(ctx, method, params...)
}
