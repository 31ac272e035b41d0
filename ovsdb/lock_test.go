package ovsdb_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"brlb/ovsdb"
	"brlb/ovsdb/ovsdbtest"
)

func wantLock(t *testing.T, l *ovsdb.Lock, want ovsdb.LockReason) {
	t.Helper()
	synctest.Wait()
	if st, _ := l.State(); st.Reason != want || st.Held != (want == ovsdb.LockAcquired) {
		t.Errorf("the lock is %v (held: %v), want %v", st.Reason, st.Held, want)
	}
}

// What the server says of a lock, and what the connection's end means, in every
// order that matters.
func TestLockStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := ovsdbtest.NewScript(t)
		c := startScripted(t, script)
		l, err := c.Lock("brlb")
		if err != nil {
			t.Fatal(err)
		}
		p := script.Accept()
		p.Handshake(tinySchema)
		p.Reply(p.Expect("lock"), `{"locked":true,"more":1}`)
		wantLock(t, l, ovsdb.LockAcquired)
		p.Cut()
		wantLock(t, l, ovsdb.LockLost)

		// Somebody else was faster.
		p = script.Accept()
		p.Handshake(tinySchema)
		p.Reply(p.Expect("lock"), `{"locked":false}`)
		wantLock(t, l, ovsdb.LockWaiting)
		p.Notify("locked", `["brlb"]`)
		wantLock(t, l, ovsdb.LockAcquired)
		p.Notify("stolen", `["brlb"]`)
		wantLock(t, l, ovsdb.LockStolen)
		p.Cut()
		wantLock(t, l, ovsdb.LockWaiting)

		// Stealing while waiting: both requests at once, and the lock comes even
		// if nobody waits for the answer any more.
		p = script.Accept()
		p.Handshake(tinySchema)
		p.Reply(p.Expect("lock"), `{"locked":false}`)
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- l.Steal(ctx) }()
		unlock, steal := p.Expect("unlock"), p.Expect("steal")
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		p.Reply(unlock, `{}`)
		p.Reply(steal, `{"locked":true}`)
		wantLock(t, l, ovsdb.LockAcquired)
		if err := l.Steal(t.Context()); err != nil {
			t.Error(err) // it is held already
		}

		// A steal that is refused leaves the lock asked for.
		p.Notify("stolen", `["brlb"]`)
		wantLock(t, l, ovsdb.LockStolen)
		go func() { done <- l.Steal(t.Context()) }()
		p.Reply(p.Expect("unlock"), `{}`)
		p.Fail(p.Expect("steal"), `"no"`)
		if err := <-done; err == nil {
			t.Error("a refusal was taken for an answer")
		}
		p.Reply(p.Expect("lock"), `{"locked":true}`)
		wantLock(t, l, ovsdb.LockAcquired)
		if st, _ := l.State(); st.Acquired != 4 {
			t.Errorf("acquired %d times", st.Acquired)
		}

		// Released and asked for anew, in this order.
		go func() { done <- l.Release(t.Context()) }()
		p.Reply(p.Expect("unlock"), `{}`)
		if err := <-done; err != nil {
			t.Error(err)
		}
		wantLock(t, l, ovsdb.LockReleased)
		if err := l.Steal(t.Context()); !errors.Is(err, ovsdb.ErrClosed) {
			t.Errorf("steal after release: %v", err)
		}
		again, err := c.Lock("brlb")
		if err != nil {
			t.Fatal(err)
		}
		p.Reply(p.Expect("lock"), `{"locked":false}`)
		wantLock(t, again, ovsdb.LockWaiting)

		// The end of the client in the middle of a steal.
		go func() { done <- again.Steal(t.Context()) }()
		p.Expect("unlock")
		c.Close()
		if err := <-done; !errors.Is(err, ovsdb.ErrClosed) {
			t.Error(err)
		}
		if err := again.Steal(t.Context()); !errors.Is(err, ovsdb.ErrClosed) {
			t.Error(err)
		}
		if err := again.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The lock is stolen after the writer has looked at it and before its
// transaction arrives: nothing is written.
func TestLockStolenDuringTransaction(t *testing.T) {
	srv := ovsdbtest.StartServer(t)
	c1, c2 := dial(t, srv), dial(t, srv)
	l1, err := c1.Lock("brlb")
	if err != nil {
		t.Fatal(err)
	}
	acquired := func(l *ovsdb.Lock) {
		for st, changed := l.State(); !st.Held; st, changed = l.State() {
			<-changed
		}
	}
	acquired(l1)
	l2, err := c2.Lock("brlb")
	if err != nil {
		t.Fatal(err)
	}
	transact(t, c1, ovsdb.Update{Table: "Open_vSwitch", Row: ovsdb.Columns{"next_cfg": ovsdb.Integer(1)}})
	// The transaction waits inside of the server until somebody changes
	// next_cfg, and by then the lock has another owner.
	n := func(v int64) []ovsdb.Columns { return []ovsdb.Columns{{"next_cfg": ovsdb.Integer(v)}} }
	done := make(chan error, 1)
	go func() {
		_, err := c1.Transact(t.Context(), ovsdb.Wait{Table: "Open_vSwitch", Columns: []string{"next_cfg"}, Until: ovsdb.UntilEqual, Rows: n(2), Timeout: -1},
			l1.Assert(), ovsdb.Update{Table: "Open_vSwitch", Row: ovsdb.Columns{"next_cfg": ovsdb.Integer(99)}})
		done <- err
	}()
	transact(t, c1, ovsdb.Comment{Text: "the server has the one before"})
	if err := l2.Steal(t.Context()); err != nil {
		t.Fatal(err)
	}
	transact(t, c2, l2.Assert(), ovsdb.Update{Table: "Open_vSwitch", Row: ovsdb.Columns{"next_cfg": ovsdb.Integer(2)}})
	if err := <-done; !errors.Is(err, ovsdb.ErrNotOwner) {
		t.Errorf("written without the lock: %v", err)
	}
	row := transact(t, c2, ovsdb.Select{Table: "Open_vSwitch", Columns: []string{"next_cfg"}})[0].Rows[0]
	if v, _ := row.Get("next_cfg").AsInteger(); v != 2 {
		t.Errorf("next_cfg is %d", v)
	}
}
