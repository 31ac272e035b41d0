package ovsdb_test

import (
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"brlb/ovsdb"
	"brlb/ovsdb/ovsdbtest"
)

// Each of these ends the connection once, and the next attempt waits.
func TestGarbageIsMetWithBackoff(t *testing.T) {
	deep := strings.Repeat("[", 100_000)
	for name, garbage := range map[string]string{
		"syntax": `{"id":}`, "not an object": `[]`, "truncated": `{"id":`, "utf-8": "{\"\xff\":1}",
		"nesting": `{"id":1,"result":` + deep, "nested params": `{"method":"x","params":` + deep,
		"nested update": `{"id":null,"method":"update2","params":[` + deep,
		"huge string":   `{"method":"x","params":["` + strings.Repeat("x", 2<<20),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				script := ovsdbtest.NewScript(t)
				c := startScripted(t, script, func(c *ovsdb.Config) { c.MaxMessage = 1 << 20 })
				var times []time.Time
				for range 12 {
					p := script.Accept()
					times = append(times, time.Now())
					p.Handshake(tinySchema)
					if p.TrySend(garbage) == nil && name == "truncated" {
						p.Cut()
					}
					p.ExpectGone()
				}
				c.Close()
				if last := times[11].Sub(times[10]); last < 4*time.Second || last > 8*time.Second {
					t.Errorf("the last wait was %v", last)
				}
				if first := times[1].Sub(times[0]); first > 100*time.Millisecond {
					t.Errorf("the first wait was %v", first)
				}
			})
		})
	}
}

func TestSilentServerIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		script := ovsdbtest.NewScript(t)
		c := startScripted(t, script)
		p := script.Accept()
		p.Handshake(tinySchema)
		began := time.Now()
		p.Reply(p.Expect("echo"), "[]")
		p.Expect("echo")
		p.ExpectGone()
		if took := time.Since(began); took != 30*time.Second {
			t.Errorf("given up after %v", took)
		}
		// One that never answers the handshake.
		p = script.Accept()
		began = time.Now()
		p.ExpectGone()
		if took := time.Since(began); took != 5*time.Second {
			t.Errorf("given up after %v", took)
		}
		synctest.Wait()
		if st, _ := c.State(); st.Connected || st.Reason == nil || !strings.Contains(st.Reason.Error(), "list_dbs: no answer: 5s have passed") {
			t.Errorf("state: %+v", st)
		}
		c.Close()
	})
}

// A server that floods the client without reading must not block its reader,
// nor make it grow.
func TestServerThatDoesNotRead(t *testing.T) {
	script := ovsdbtest.NewScript(t)
	c := startScripted(t, script)
	p := script.Accept()
	p.Handshake(tinySchema)
	echo := `{"method":"echo","id":1,"params":["` + strings.Repeat("x", 1<<20) + `"]}`
	for i := 0; ; i++ {
		if p.TrySend(echo) != nil {
			break
		}
		if i > 100 {
			t.Fatal("the client queues answers without end")
		}
	}
	for {
		st, changed := c.State()
		if st.Reason != nil {
			if !strings.Contains(st.Reason.Error(), "does not read") {
				t.Error(st.Reason)
			}
			break
		}
		<-changed
	}
}

// A long reply is decoded as it comes, and its buffers do not stay.
func TestHugeReply(t *testing.T) {
	script := ovsdbtest.NewScript(t)
	c := startScripted(t, script)
	p := script.Accept()
	p.Handshake(tinySchema)
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	done := make(chan int, 1)
	go func() {
		res, err := c.Transact(t.Context(), ovsdb.Select{Table: "T", Columns: []string{"name"}})
		if err != nil {
			t.Error(err)
		}
		s, _ := res[0].Rows[0].Get("name").AsString()
		done <- len(s)
	}()
	r := p.Expect("transact")
	p.Send(`{"id":` + string(r.ID) + `,"result":[{"rows":[{"name":"`)
	chunk := strings.Repeat("x", 1<<20)
	for range 60 {
		p.Send(chunk)
	}
	p.Send(`\n"}]}],"error":null}`)
	if n := <-done; n != 60<<20+1 {
		t.Errorf("got %d bytes", n)
	}
	p.Send(`{"method":"echo","params":[],"id":1}`) // the next message lets go of the buffers
	if _, err := p.NextRaw(); err != nil {
		t.Fatal(err)
	}
	p.Send(`{"method":"echo","params":[],"id":2}`)
	if _, err := p.NextRaw(); err != nil {
		t.Fatal(err)
	}
	if after := heap(); after > before+8<<20 {
		t.Errorf("%d MB stay", (after-before)>>20)
	}
	// One byte too many is refused as early.
	go c.Transact(t.Context(), ovsdb.Comment{})
	p.Expect("transact")
	for range 66 {
		if p.TrySend(`"`+chunk+`"`) != nil {
			break
		}
	}
	p.ExpectGone()
}
