package controller

import (
	"maps"
	"slices"
	"sync"
	"time"

	"brlb/controller/api"
	"brlb/controller/state"
	"brlb/maglev"
	"brlb/openflow/session"
)

// bundleBounds are the upper bounds, in seconds, of the histograms of bundle
// and convergence times.
var bundleBounds = []float64{0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}

// stats counts what the loop did since the start.
type stats struct {
	mu       sync.Mutex
	bundles  map[string]uint64
	rows     uint64
	bundling histogram
	converge histogram
	moves    map[string]api.MoveCounts
	drifts   uint64
	reloadOK bool
	reloadAt time.Time
}

func newStats(now time.Time) *stats {
	return &stats{
		bundles: map[string]uint64{
			session.Applied.String(): 0, session.Rejected.String(): 0, session.Unknown.String(): 0,
		},
		bundling: newHistogram(bundleBounds), converge: newHistogram(bundleBounds),
		moves: map[string]api.MoveCounts{}, reloadOK: true, reloadAt: now,
	}
}

func (s *stats) bundle(outcome session.Outcome, rows int, took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bundles[outcome.String()]++
	s.bundling.observe(took)
	if outcome == session.Applied {
		s.rows += uint64(rows)
	}
}

func (s *stats) converged(took time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.converge.observe(took)
}

func (s *stats) drift() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drifts++
}

func (s *stats) reloaded(ok bool, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reloadOK = ok
	if ok {
		s.reloadAt = now
	}
}

// moved counts the slots that changed owners between two confirmed snapshots.
func (s *stats) moved(before, after *state.Snapshot) {
	if before == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range after.Pools {
		p := &after.Pools[i]
		if i < len(before.Pools) && before.Pools[i].Table == p.Table && before.Pools[i].Name == p.Name {
			continue
		}
		was := before.Pool(p.Name)
		if was == nil || !was.Settled || !p.Settled || was.Table == p.Table {
			continue
		}
		change := maglev.Compare(table(was), table(p))
		total := s.moves[p.Name]
		total.Needed += uint64(change.Needed)
		total.Collateral += uint64(change.Collateral)
		s.moves[p.Name] = total
	}
	if !slices.EqualFunc(before.Pools, after.Pools, func(a, b state.Pool) bool { return a.Name == b.Name }) {
		maps.DeleteFunc(s.moves, func(name string, _ api.MoveCounts) bool { return after.Pool(name) == nil })
	}
}

// table returns a pool's slot table; the zero Table stands for none.
func table(p *state.Pool) *maglev.Table {
	if p.Table == nil {
		return new(maglev.Table)
	}
	return p.Table
}

// fill copies the counts into the document for the collector.
func (s *stats) fill(m *api.Metrics) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.Bundles = make(map[string]uint64, len(s.bundles))
	for outcome, n := range s.bundles {
		m.Bundles[outcome] = n
	}
	m.BundleRows, m.BundleSeconds, m.ConvergeSeconds = s.rows, s.bundling.read(), s.converge.read()
	m.SlotsMoved = make(map[string]api.MoveCounts, len(s.moves))
	for pool, n := range s.moves {
		m.SlotsMoved[pool] = n
	}
	m.DriftRepairs, m.ReloadOK, m.ReloadAt = s.drifts, s.reloadOK, s.reloadAt
}
