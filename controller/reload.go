package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"brlb/controller/api"
	"brlb/controller/config"
	"brlb/controller/state"
)

// Reload implements api.Backend: it reads the configuration file again. A file
// that cannot be taken over leaves the running configuration in force.
func (l *loop) Reload(ctx context.Context, req api.ReloadRequest) (*api.ReloadResult, error) {
	// One at a time: else what was read first could be taken last.
	l.reloading.Lock()
	defer l.reloading.Unlock()
	cfg, result, err := l.foreseeReload(ctx, req)
	if req.DryRun {
		return result, err
	}
	if err == nil && result.Refused != "" {
		err = staysInForce(errors.New(result.Refused))
	}
	if err == nil && result.Changed {
		err = l.do(ctx, func() {
			l.state.SetConfig(cfg, time.Now())
			l.setProbes()
			result.Revision = l.state.Snapshot().Revision
		})
	}
	l.stats.reloaded(err == nil, time.Now())
	l.do(ctx, func() { l.refused = err })
	if err != nil {
		return nil, err
	}
	if result.Changed {
		result.Confirmed = l.wait(ctx, result.Revision, confirmTimeout)
		l.settle(ctx)
		l.note(state.Event{Time: time.Now(), Text: "configuration reloaded: " + strings.Join(result.Changes, "; ")})
	}
	return result, nil
}

// foreseeReload reads the configuration that a request means and lets it happen
// to a copy of the state.
func (l *loop) foreseeReload(ctx context.Context, req api.ReloadRequest) (*config.Config, *api.ReloadResult, error) {
	cfg, err := l.readConfig(req)
	if err != nil {
		return nil, nil, staysInForce(err)
	}
	var now *state.Snapshot
	var copied *state.State
	if err := l.do(ctx, func() { now, copied = l.state.Snapshot(), l.state.Clone() }); err != nil {
		return nil, nil, err
	}
	before := copied.Config().AllZones()
	result := foreseeConfig(now, copied, cfg, req.AllowShrink)
	if zones := cfg.AllZones(); result.Refused == "" && !slices.Equal(zones, before) {
		result.Refused = l.inv.ZoneClash(zones)
	}
	return cfg, result, nil
}

func (l *loop) readConfig(req api.ReloadRequest) (*config.Config, error) {
	if req.Config != "" {
		return config.Parse("the configuration", []byte(req.Config))
	}
	return config.Load(l.opts.ConfigPath)
}

func staysInForce(err error) error {
	return badRequest(http.StatusUnprocessableEntity, "the running configuration stays in force: %v", err)
}

// foreseeConfig says what a configuration would change. now is the picture of
// the copied state.
func foreseeConfig(now *state.Snapshot, copied *state.State, cfg *config.Config, allowShrink bool) *api.ReloadResult {
	result := &api.ReloadResult{Revision: now.Revision}
	old := copied.Config()
	if old.Equal(cfg) {
		return result
	}
	result.Changed = true
	result.Changes = describeConfigs(old, cfg, copied.Override)
	copied.TryConfig(cfg)
	then := copied.Snapshot()
	for i := range then.Pools {
		after := &then.Pools[i]
		before := now.Pool(after.Name)
		if before == nil {
			continue
		}
		m := moves(before, after)
		if m.Moved == 0 {
			continue
		}
		result.Pools = append(result.Pools, api.PoolMoves{Pool: after.Name, Moves: m, Members: memberMoves(before, after)})
		result.Changes = append(result.Changes, fmt.Sprintf("pool %s: %d of %d slots move, %d needed and %d collateral%s",
			after.Name, m.Moved, m.Slots, m.Needed, m.Collateral, onceTheyWork(before, after)))
	}
	err := unchangeable(old, cfg)
	if err == nil && !allowShrink {
		err = shrinks(old, cfg)
	}
	if err != nil {
		result.Refused = err.Error()
	}
	return result
}

// onceTheyWork names the condition on which slots of a pool move to new members.
func onceTheyWork(before, after *state.Pool) string {
	for i := range after.Members {
		if m := &after.Members[i]; m.Slots > 0 && before.Member(m.ID.Key) == nil {
			return ", when the new members' probes pass"
		}
	}
	return ""
}

// shrinks refuses a configuration that takes away more than half of the members
// or of the services: more often than not it was cut off, or made by a program
// that failed.
func shrinks(old, new *config.Config) error {
	for _, kind := range []struct {
		name     string
		old, new map[string]bool
	}{
		{"members", memberKeys(old), memberKeys(new)},
		{"services", serviceNames(old), serviceNames(new)},
	} {
		removed := 0
		for key := range kind.old {
			if !kind.new[key] {
				removed++
			}
		}
		if 2*removed > len(kind.old) {
			return fmt.Errorf("it removes %d of %d %s, more than half: if that is meant, brlb --socket %s reload --allow-shrink does it",
				removed, len(kind.old), kind.name, old.API.Socket)
		}
	}
	return nil
}

func memberKeys(cfg *config.Config) map[string]bool {
	keys := map[string]bool{}
	inside := map[string][]string{}
	for _, p := range cfg.InnerFirst() {
		for _, m := range p.Members {
			inside[p.Name] = append(inside[p.Name], m.Key())
		}
		for _, n := range p.Names {
			inside[p.Name] = append(inside[p.Name], n.String())
		}
		for _, n := range p.Nested {
			inside[p.Name] = append(inside[p.Name], inside[n.Pool]...)
		}
		for _, key := range inside[p.Name] {
			keys[p.Name+"/"+key] = true
		}
	}
	return keys
}

func serviceNames(cfg *config.Config) map[string]bool {
	names := map[string]bool{}
	for i := range cfg.Services {
		names[cfg.Services[i].Name] = true
	}
	return names
}

// reloadPause is the least time from one SIGHUP that is acted on to the next:
// those that come meanwhile are one.
const reloadPause = 100 * time.Millisecond

// reloadAndLog is Reload for SIGHUP: there is nobody to answer.
func (l *loop) reloadAndLog(ctx context.Context) {
	result, err := l.Reload(ctx, api.ReloadRequest{})
	switch {
	case err != nil:
		l.opts.Logger.Error("reload refused", "file", l.opts.ConfigPath, "err", err)
	case !result.Changed:
		l.opts.Logger.Info("reloaded, nothing has changed", "file", l.opts.ConfigPath)
	}
}
