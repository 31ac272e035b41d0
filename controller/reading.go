package controller

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

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
	tally    conntrack.Tally
	suspects []conntrack.Entry // that may have to go
	more     bool              // there were more suspects
	zone     usage
	datapath usage
	// unlimited says why the zone's limit is not what the configuration says.
	unlimited string
}

// read asks the switch for brlb's connections. How full the table is comes back
// even if that fails.
func (t *tracker) read(ctx context.Context, v *view) (*reading, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	r := &reading{}
	zone := fmt.Sprintf("zone=%d", v.snapshot.Zone)
	var err error
	if r.datapath, err = t.datapathUsage(ctx); err != nil {
		return r, err
	}
	if text, err := t.switchd.Call(ctx, "dpctl/ct-get-limits", zone); err == nil {
		r.zone = zoneUsage(text, zone)
	}
	if want := v.config.ConntrackLimit; want > 0 && want != r.zone.limit && v.writer {
		// The switch forgets it when it restarts.
		if _, err := t.switchd.Call(ctx, "dpctl/ct-set-limits", fmt.Sprintf("%s,limit=%d", zone, want)); err != nil {
			r.unlimited = err.Error()
		} else {
			t.loop.opts.Logger.Info("conntrack: limit set", "zone", v.snapshot.Zone, "limit", want, "was", r.zone.limit)
			r.zone.limit = want
		}
	}
	if r.datapath.used > maxEntries {
		return r, fmt.Errorf("the switch's connection table has %d entries, and brlb reads no more than %d", r.datapath.used, maxEntries)
	}
	err = t.switchd.Lines(ctx, func(line []byte) error {
		e, ok := r.tally.Line(line)
		if !ok || e.Zone != v.snapshot.Zone || t.standing.fate(&e) == stays {
			return nil
		}
		if len(r.suspects) == maxSuspects {
			r.more = true
			return nil
		}
		r.suspects = append(r.suspects, e)
		return nil
	}, "dpctl/dump-conntrack", "-m", zone)
	if err == nil {
		r.zone.used = r.tally.Total.Open + r.tally.Total.Ended
	}
	return r, err
}

// connections is what a reading says, to those who ask.
func (r *reading) connections(at time.Time, err error) *connections {
	c := &connections{zone: r.zone, datapath: r.datapath, unlimited: r.unlimited}
	if err != nil {
		c.problem = err.Error()
		return c
	}
	c.at, c.byMember = at, map[uint16]conntrack.Count{}
	for mark, n := range r.tally.ByMark {
		_, number := pipeline.MarkParts(mark)
		sum := c.byMember[number]
		sum.Open += n.Open
		sum.Ended += n.Ended
		c.byMember[number] = sum
	}
	if r.tally.Unread > 0 {
		c.problem = fmt.Sprintf("%d lines of the switch's connection table make no sense to brlb: %v", r.tally.Unread, r.tally.Problem)
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
