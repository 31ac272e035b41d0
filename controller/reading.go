package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"brlb/controller/config"
	"brlb/controller/conntrack"
	"brlb/controller/pipeline"
	"brlb/ovsdb/unixctl"
)

const (
	// maxEntries bounds the table that is read: it takes the switch about a
	// second to write that down.
	maxEntries = 200_000
	// maxSuspects is how many entries that may have to go are kept of one reading.
	maxSuspects = 50_000
	readTimeout = 30 * time.Second
	// kernelTable is where Linux says how full its connection table is.
	kernelTable = "/proc/sys/net/netfilter"
)

// reading is one of the switch's connection table.
type reading struct {
	zones    []zoneUse // of the configuration
	byMark   map[uint32]conntrack.Count
	unread   int               // lines that made no sense
	nonsense error             // of the first of them
	suspects []conntrack.Entry // that may have to go
	more     bool              // there were more suspects
	datapath usage
}

// read asks the switch for brlb's connections. How full the table is comes back
// even if that fails.
func (t *tracker) read(ctx context.Context, v *view) (*reading, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	r := &reading{byMark: map[uint32]conntrack.Count{}}
	var err error
	if r.datapath, err = t.datapathUsage(ctx); err != nil {
		return r, err
	}
	r.zones = t.limit(ctx, v)
	if r.datapath.used > maxEntries {
		return r, fmt.Errorf("the switch's connection table has %d entries, and brlb reads no more than %d", r.datapath.used, maxEntries)
	}
	for i := range r.zones {
		z := &r.zones[i]
		entries, err := t.count(ctx, r, z.Number)
		if err != nil {
			return r, err
		}
		// The switch counts those that have timed out until it takes them away.
		z.used = max(z.used, entries)
	}
	return r, t.readFormer(ctx, r)
}

// readFormer reads the zones of pools that a reload has taken away, until nothing
// is left in them.
func (t *tracker) readFormer(ctx context.Context, r *reading) error {
	var now, former []uint16
	for i := range r.zones {
		now = append(now, r.zones[i].Number)
	}
	for _, zone := range t.zones {
		if slices.Contains(now, zone) {
			continue
		}
		left, err := t.count(ctx, r, zone)
		if err != nil {
			return err
		}
		if left > 0 {
			former = append(former, zone)
		}
	}
	t.zones = append(now, former...)
	return nil
}

// limit asks how full each zone is, and limits it as the configuration says.
func (t *tracker) limit(ctx context.Context, v *view) []zoneUse {
	var zones []zoneUse
	for _, z := range v.config.Zones() {
		zones = append(zones, t.limited(ctx, z, v.writer))
	}
	return zones
}

func (t *tracker) limited(ctx context.Context, z config.Zone, writer bool) zoneUse {
	use, zone := zoneUse{Zone: z}, fmt.Sprintf("zone=%d", z.Number)
	if text, err := t.switchd.Call(ctx, "dpctl/ct-get-limits", zone); err == nil {
		use.usage = zoneUsage(text, zone)
	}
	if z.Limit == 0 || z.Limit == use.limit || !writer {
		return use
	}
	// The switch forgets it when it restarts.
	if _, err := t.switchd.Call(ctx, "dpctl/ct-set-limits", fmt.Sprintf("%s,limit=%d", zone, z.Limit)); err != nil {
		use.unlimited = err.Error()
		return use
	}
	t.loop.opts.Logger.Info("conntrack: limit set", "zone", z.Number, "limit", z.Limit, "was", use.limit)
	use.limit = z.Limit
	return use
}

// count reads the entries of a zone, and returns how many there are.
func (t *tracker) count(ctx context.Context, r *reading, zone uint16) (int, error) {
	var tally conntrack.Tally
	err := t.switchd.Lines(ctx, func(line []byte) error {
		e, ok := tally.Line(line)
		if !ok || e.Zone != zone || t.standing.fate(&e) == stays {
			return nil
		}
		if len(r.suspects) == maxSuspects {
			r.more = true
			return nil
		}
		r.suspects = append(r.suspects, e)
		return nil
	}, "dpctl/dump-conntrack", "-m", fmt.Sprintf("zone=%d", zone))
	for mark, n := range tally.ByMark {
		r.byMark[mark] = r.byMark[mark].Plus(n)
	}
	if tally.Unread > 0 {
		r.unread, r.nonsense = r.unread+tally.Unread, cmp.Or(r.nonsense, tally.Problem)
	}
	return tally.Total.Open + tally.Total.Ended, err
}

// connections is what a reading says, to those who ask.
func (r *reading) connections(at time.Time, err error) *connections {
	c := &connections{zones: r.zones, datapath: r.datapath}
	if err != nil {
		c.problem = err.Error()
		return c
	}
	c.at, c.byMember = at, map[uint16]conntrack.Count{}
	for mark, n := range r.byMark {
		_, number := pipeline.MarkParts(mark)
		c.byMember[number] = c.byMember[number].Plus(n)
	}
	if r.unread > 0 {
		c.problem = fmt.Sprintf("%d lines of the switch's connection table make no sense to brlb: %v", r.unread, r.nonsense)
	}
	return c
}

// datapathUsage asks how full the whole table is. Open vSwitch says it of its own
// datapath; of a kernel's, the kernel does.
func (t *tracker) datapathUsage(ctx context.Context) (usage, error) {
	used, err := t.number(ctx, "dpctl/ct-get-nconns")
	var refused *unixctl.Error
	switch {
	case errors.As(err, &refused):
		return kernelUsage(kernelTable), nil
	case err != nil:
		return usage{}, err
	}
	limit, err := t.number(ctx, "dpctl/ct-get-maxconns")
	if errors.As(err, &refused) {
		err = nil
	}
	return usage{used: used, limit: limit}, err
}

func (t *tracker) number(ctx context.Context, method string) (int, error) {
	text, err := t.switchd.Call(ctx, method)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s answers %.40q instead of a number", method, text)
	}
	return n, nil
}

// kernelUsage reads how full Linux's connection table is; the zero usage if that
// is not to be had.
func kernelUsage(dir string) usage {
	read := func(name string) int {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return 0
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			return 0
		}
		return n
	}
	return usage{used: read("nf_conntrack_count"), limit: read("nf_conntrack_max")}
}

// zoneUsage reads the answer of dpctl/ct-get-limits about one zone:
//
//	default limit=0
//	zone=18200,limit=200000,count=1234
//
// Without a limit the switch does not count either.
func zoneUsage(text, zone string) usage {
	for line := range strings.Lines(text) {
		rest, found := strings.CutPrefix(strings.TrimSpace(line), zone+",limit=")
		if !found {
			continue
		}
		limit, count, _ := strings.Cut(rest, ",count=")
		n, err := strconv.Atoi(limit)
		if err != nil {
			return usage{}
		}
		used, _ := strconv.Atoi(count)
		return usage{used: used, limit: n}
	}
	return usage{}
}
