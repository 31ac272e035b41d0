package ovsdb_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"brlb/ovsdb"
	"brlb/ovsdb/ovsdbtest"
)

// Close at any moment, in the middle of everything: every call returns, with
// what is true of it, and no goroutine stays (TestMain looks).
func TestCloseInTheMiddle(t *testing.T) {
	srv := ovsdbtest.StartServer(t)
	transact(t, dial(t, srv), addBridge("br0")...)
	for range 30 {
		closeInTheMiddle(t, srv, rand.N(8*time.Millisecond))
	}
}

func closeInTheMiddle(t *testing.T, srv *ovsdbtest.Server, after time.Duration) {
	cut := &cutter{}
	c, err := ovsdb.Start(ovsdb.Config{Endpoints: []string{srv.Endpoint(), "unix:/nobody"}, Dial: cut.dial, MinBackoff: time.Microsecond, MaxBackoff: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	var wg sync.WaitGroup
	// each calls f until the client is closed.
	each := func(name string, f func() error) {
		wg.Go(func() {
			for {
				err := f()
				if errors.Is(err, ovsdb.ErrClosed) {
					return
				}
				if err != nil && !errors.Is(err, ovsdb.ErrNotConnected) && !errors.Is(err, ovsdb.ErrOutcomeUnknown) &&
					!strings.Contains(err.Error(), "ovsdb: ") {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	each("ready", func() error { return c.Ready(ctx) })
	for range 2 {
		each("transact", func() error {
			_, err := c.Transact(ctx, ovsdb.Mutate{Table: "Open_vSwitch", Mutations: []ovsdb.Mutation{{Column: "next_cfg", Mutator: ovsdb.MutateAdd, Value: ovsdb.Integer(1)}}})
			return err
		})
		each("monitor", func() error {
			rep, err := c.Monitor(ctx, bridgeSpec)
			if err != nil {
				return err
			}
			defer rep.Close()
			sub := rep.Subscribe(3)
			defer sub.Close()
			if _, err := sub.Next(ctx); err != nil {
				return err
			}
			if err := rep.SetConditions(ctx, "Bridge", ovsdb.Is("name", ovsdb.String("br0"))); err != nil {
				return err
			}
			_, err = sub.Next(ctx) // next_cfg changes all the time
			return err
		})
	}
	each("lock", func() error {
		l, err := c.Lock("brlb")
		if err != nil {
			return err
		}
		short, cancel := context.WithTimeout(ctx, rand.N(2*time.Millisecond))
		defer cancel()
		if err := l.Steal(short); err != nil && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, ovsdb.ErrNotConnected) {
			return errors.Join(err, l.Release(ctx))
		}
		return l.Release(ctx)
	})
	wg.Go(func() {
		for c.Ready(ctx) == nil {
			cut.cut()
			time.Sleep(time.Millisecond)
		}
	})
	time.Sleep(after)
	c.Close()
	wg.Wait()
	c.Close()
}

// cutter dials, and can cut what it has dialled.
type cutter struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (c *cutter) dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, network, address)
	if err == nil {
		c.mu.Lock()
		c.conns = append(c.conns, nc)
		c.mu.Unlock()
	}
	return nc, err
}

func (c *cutter) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, nc := range c.conns {
		nc.Close()
	}
	c.conns = nil
}
