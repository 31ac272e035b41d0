package controller

import (
	"context"
	"fmt"
	"strings"
	"time"

	"brlb/ovsdb/unixctl"
)

const unixctlTimeout = 5 * time.Second

// relaxConntrack makes the userspace conntrack accept TCP segments out of the
// window. With the check on, the RST of a client that closes while data is
// under way is invalid, its entry lives on as established, and the next
// connection from that port has to wait for a retransmission. The setting is
// gone when ovs-vswitchd restarts, so it is made anew for each session.
//
// A switch whose control socket cannot be reached is left as it is: what is
// invalid there takes the slower way through the controller.
func (l *loop) relaxConntrack(ctx context.Context) {
	relaxed, err := conntrackRelaxed(ctx, l.view.Load().config.RunDir)
	if err == nil && relaxed {
		return
	}
	if err == nil {
		_, err = ask(ctx, l.view.Load().config.RunDir, "dpctl/ct-disable-tcp-seq-chk")
	}
	if err != nil {
		l.opts.Logger.Warn("conntrack keeps checking TCP sequence numbers; connections from ports that were just used may start slowly", "err", err)
		return
	}
	l.opts.Logger.Info("conntrack no longer checks TCP sequence numbers")
}

// conntrackRelaxed says whether sequence checking is off.
func conntrackRelaxed(ctx context.Context, runDir string) (bool, error) {
	text, err := ask(ctx, runDir, "dpctl/ct-get-tcp-seq-chk")
	if err != nil {
		return false, err
	}
	return strings.Contains(text, "disabled"), nil
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
