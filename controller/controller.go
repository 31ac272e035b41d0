package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"brlb/controller/api"
	"brlb/controller/bridge"
	"brlb/controller/config"
	"brlb/controller/inventory"
	"brlb/controller/metrics"
	"brlb/health"
)

// Options say what to run.
type Options struct {
	ConfigPaths []string // of each bridge; read at the start and at each reload
	Logger      *slog.Logger
	Version     string
	Reload      <-chan os.Signal // each value asks for a reload of all
}

// Run runs a brlb for each configuration until ctx ends. They share nothing, but
// all end when one fails. Run leaves the flows on the switch as they are. It fails
// if a configuration cannot be read, if two of them want the same thing, or if a
// socket cannot be opened.
func Run(ctx context.Context, opts Options) error {
	cfgs := make([]*config.Config, len(opts.ConfigPaths))
	for i, path := range opts.ConfigPaths {
		var err error
		if cfgs[i], err = config.Load(path); err != nil {
			return err
		}
	}
	if err := keptApart(opts.ConfigPaths, cfgs); err != nil {
		return err
	}
	reloads := make([]chan os.Signal, len(cfgs))
	group, ctx := errgroup.WithContext(ctx)
	for i, cfg := range cfgs {
		reloads[i] = make(chan os.Signal, 1)
		one := loopOptions{
			ConfigPath: opts.ConfigPaths[i], Logger: opts.Logger.With("bridge", cfg.Bridge), Version: opts.Version, Reload: reloads[i],
		}
		group.Go(func() error {
			if err := runOne(ctx, cfg, one); err != nil {
				return fmt.Errorf("%s: %w", one.ConfigPath, err)
			}
			return nil
		})
	}
	group.Go(func() error { passOn(ctx, opts.Reload, reloads); return nil })
	return group.Wait()
}

// passOn gives each signal to all who have none waiting.
func passOn(ctx context.Context, from <-chan os.Signal, to []chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case signal := <-from:
			for _, c := range to {
				select {
				case c <- signal:
				default:
				}
			}
		}
	}
}

// loopOptions are Options for one bridge.
type loopOptions struct {
	ConfigPath string
	Logger     *slog.Logger
	Version    string
	Reload     <-chan os.Signal
}

// runOne runs the brlb of one bridge.
func runOne(ctx context.Context, cfg *config.Config, opts loopOptions) error {
	inv, err := inventory.Start(inventory.Options{
		Endpoint: cfg.OVSDB, Bridge: cfg.Bridge, Target: switchTarget(cfg), Zones: cfg.AllZones(), Logger: opts.Logger,
	})
	if err != nil {
		return err
	}
	l := newLoop(cfg, opts, inv)
	l.bridge = bridge.New(bridgeOptions(cfg, opts.Logger, l))
	l.path = newProbePath(l.bridge.LastHeard)
	l.prober = health.New(proberOptions(cfg, l))

	unix, err := api.ListenUnix(cfg.API.Socket)
	if err != nil {
		return err
	}
	defer unix.Close()
	var tcp net.Listener
	if cfg.API.HTTP != "" {
		if tcp, err = api.ListenTCP(cfg.API.HTTP); err != nil {
			return err
		}
		defer tcp.Close()
	}
	if err := l.bridge.Open(); err != nil {
		return err
	}
	server := api.NewServer(l, metrics.Handler(l), opts.Logger)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return quiet(inv.Run(ctx)) })
	group.Go(func() error { return quiet(l.bridge.Run(ctx)) })
	group.Go(func() error { l.prober.Run(ctx); return nil })
	group.Go(func() error { l.names.Run(ctx); return nil })
	group.Go(func() error { l.run(ctx); return nil })
	group.Go(func() error { l.trackConnections(ctx); return nil })
	group.Go(func() error { return quiet(api.Serve(ctx, unix, server.Full(), opts.Logger)) })
	if tcp != nil {
		group.Go(func() error { return quiet(api.Serve(ctx, tcp, server.ReadOnly(), opts.Logger)) })
	}
	group.Go(func() error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-opts.Reload:
				l.reloadAndLog(ctx)
				sleep(ctx, reloadPause)
			}
		}
	})
	opts.Logger.Info("brlb runs", "version", opts.Version, "ovsdb", cfg.OVSDB, "api", cfg.API.Socket, "http", cfg.API.HTTP)
	return group.Wait()
}

// quiet drops the error of a part that ended because it was told to.
func quiet(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// switchTarget is what the switch must dial; nothing in service mode.
func switchTarget(cfg *config.Config) string {
	if cfg.OpenFlow.Mode == config.ModeController {
		return cfg.OpenFlow.Target
	}
	return ""
}

func bridgeOptions(cfg *config.Config, logger *slog.Logger, l *loop) bridge.Options {
	opts := bridge.Options{
		Bridge: cfg.Bridge, Refresh: cfg.NeighbourRefresh, Logger: logger,
		Emit: func(e bridge.Event) { l.post(e) },
	}
	if cfg.OpenFlow.Mode == config.ModeController {
		opts.Listen = cfg.OpenFlow.Listen
	} else {
		opts.Dial = cfg.OpenFlow.Target
	}
	return opts
}

func proberOptions(cfg *config.Config, l *loop) health.Options {
	dialer := &health.Dialer{
		Source4: cfg.ProbeSource4, Source6: cfg.ProbeSource6, Device: cfg.ProbeDevice, Netns: cfg.ProbeNetns,
	}
	return health.Options{
		Dial: dialer.DialContext, Connect: dialer.Connect, Netns: cfg.ProbeNetns, Allow: cfg.ProbeAllow, AllowExec: cfg.AllowExec,
		OnResult: l.probes.observe, Excuse: l.path.excuse,
	}
}

// unchangeable says which settings of a new configuration cannot be taken over
// by a running brlb.
func unchangeable(old, new *config.Config) error {
	for _, setting := range []struct {
		name     string
		old, new any
	}{
		{"bridge", old.Bridge, new.Bridge},
		{"ovsdb", old.OVSDB, new.OVSDB},
		{"run_dir", old.RunDir, new.RunDir},
		{"openflow", old.OpenFlow, new.OpenFlow},
		{"api", old.API, new.API},
		{"zone", old.Zone, new.Zone},
		{"probe_allow", old.ProbeAllow, new.ProbeAllow},
		{"probe_source", [2]netip.Addr{old.ProbeSource4, old.ProbeSource6}, [2]netip.Addr{new.ProbeSource4, new.ProbeSource6}},
		{"probe_device", old.ProbeDevice, new.ProbeDevice},
		{"probe_netns", old.ProbeNetns, new.ProbeNetns},
		{"allow_exec", old.AllowExec, new.AllowExec},
	} {
		if !reflect.DeepEqual(setting.old, setting.new) {
			return fmt.Errorf("%s cannot change while brlb runs (it is %v, the file says %v): restart brlb, which loses no connection", setting.name, setting.old, setting.new)
		}
	}
	return otherZones(old, new)
}

// otherZones refuses a configuration by which connections would be looked for in
// another conntrack zone than the one that knows them.
func otherZones(old, new *config.Config) error {
	vips := func(cfg *config.Config) map[string]uint16 {
		zones := map[string]uint16{}
		for _, service := range cfg.Services {
			if p, known := cfg.Pool(service.Pool); known && !p.Stateless() {
				for _, vip := range service.Addresses {
					zones["the conntrack zone of "+vip.String()] = cmp.Or(p.Zone, cfg.Zone)
				}
			}
		}
		for _, p := range cfg.Pools {
			if !p.Stateless() {
				zones["the conntrack zone of pool "+p.Name] = cmp.Or(p.Zone, cfg.Zone)
			}
		}
		return zones
	}
	before, then := vips(old), vips(new)
	for _, what := range slices.Sorted(maps.Keys(before)) {
		if zone, stays := then[what]; stays && zone != before[what] {
			return fmt.Errorf("%s cannot change while brlb runs (it is %d, the file says %d): the connections that are open would end; restart brlb when they may", what, before[what], zone)
		}
	}
	return nil
}

// tick is how often the loop looks at the clock for what only time changes.
const tick = 250 * time.Millisecond
