package health

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestParseAgent(t *testing.T) {
	for _, tc := range []struct {
		line  string
		agent string
		down  string
		err   string
	}{
		{"", "", "", ""},
		{"up", "", "", ""},
		{"75%", "75%", "", ""},
		{"up, ready 50%\n", "ready 50%", "", ""},
		{"DRAIN", "drain", "", ""},
		{"maint # kernel upgrade, 1000000%", "maint", "", ""},
		{"0%", "0%", "", ""},
		{"1000%", "1000%", "", ""},
		{"1001%", "", "", "out of range"},
		{"-5%", "", "", "out of range"},
		{"%", "", "", "out of range"},
		{"down # disk full", "", "down", ""},
		{"stopped 10%", "10%", "stopped", ""},
		{"fail", "", "fail", ""},
		{"maxconn:30 20%", "20%", "", ""},
		{"hello", "", "", `agent word "hello" is not known`},
	} {
		a, down, err := parseAgent(tc.line)
		if a.String() != tc.agent || down != tc.down || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%q: agent %q, down %q, error %v; want %q, %q, %q", tc.line, a, down, err, tc.agent, tc.down, tc.err)
		}
	}
}

func FuzzParseAgent(f *testing.F) {
	for _, seed := range []string{"up 75%", "drain,ready # why", "maxconn:9 down", "99999999999999999999%"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, line string) {
		a, _, err := parseAgent(line)
		if err != nil {
			return
		}
		again, _, err := parseAgent(a.String())
		if err != nil || again != a {
			t.Errorf("%q is %+v, which reads back as %+v, %v", line, a, again, err)
		}
	})
}

func TestAgentOnLoopback(t *testing.T) {
	check := Check{Type: AgentLine, Interval: 2 * time.Second, Timeout: 2 * time.Second}
	say := func(line string) func(net.Conn) { return func(c net.Conn) { io.WriteString(c, line) } }
	for _, tc := range []struct {
		name   string
		handle func(net.Conn)
		code   Code
		agent  string
	}{
		{"weight", say("up 75%\n"), L7OK, "75%"},
		{"no line feed", say("drain"), L7OK, "drain"},
		{"down", say("down # disk full\n"), L7STS, ""},
		{"nothing", say(""), L7RSP, ""},
		{"not an agent", say("SSH-2.0\n"), L7RSP, ""},
		{"an endless line", flood("", "x"), L7RSP, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			check := check
			if tc.name == "an endless line" {
				check.Send = "status\n"
			}
			got := attempt(t, check, serve(t, tc.handle))
			wantReport(t, got, tc.code, "")
			if got.agent.String() != tc.agent {
				t.Errorf("agent %q, want %q", got.agent, tc.agent)
			}
		})
	}
	t.Run("in an HTTP header", func(t *testing.T) {
		check := Check{Type: HTTP, HTTP: HTTPOptions{AgentHeader: "X-Load"}}
		got := attempt(t, check, serve(t, answer("HTTP/1.1 200 OK\r\nX-Load: drain 30%\r\n\r\n")))
		wantReport(t, got, L7OK, "200")
		if got.agent != (Agent{Mode: DrainMode, HasWeight: true, Weight: 30}) {
			t.Errorf("agent %+v", got.agent)
		}
		wantReport(t, attempt(t, check, serve(t, answer("HTTP/1.1 200 OK\r\nX-Load: down\r\n\r\n"))), L7STS, "200, but it says down")
		wantReport(t, attempt(t, check, serve(t, answer("HTTP/1.1 200 OK\r\nX-Load: a\xffb\r\n\r\n"))), L7OK, "is not known")
	})
}

// TestAgentTransitions follows an endpoint that stays up and changes its mind.
func TestAgentTransitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		said := make(chan string, 1)
		said <- "ready\n"
		dial := newFakeNet(open)
		p := New(Options{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			c, err := dial.dial(ctx, network, address)
			if err != nil {
				return nil, err
			}
			line := <-said
			said <- line
			return &sayingConn{c, strings.NewReader(line)}, nil
		}})
		target := testTarget(1, Check{Type: AgentLine})
		runProber(t, p, []Target{target})
		if tr := <-p.Transitions(); tr.To != Up || tr.Result.Agent.Mode != ReadyMode {
			t.Fatalf("first transition %+v", tr)
		}
		<-said
		said <- "drain 50%\n"
		if tr := <-p.Transitions(); tr.From != Up || tr.To != Up || tr.Result.Agent.String() != "drain 50%" {
			t.Fatalf("second transition %+v", tr)
		}
		dial.setRule(refuse) // an agent that does not answer takes nothing back
		if tr := <-p.Transitions(); tr.To != Down || tr.Result.Agent.String() != "drain 50%" {
			t.Fatalf("third transition %+v", tr)
		}
		if s, _ := p.Snapshot(target); s.Agent.Mode != DrainMode {
			t.Errorf("snapshot %+v", s)
		}
	})
}

// sayingConn answers reads from r.
type sayingConn struct {
	net.Conn
	r io.Reader
}

func (c *sayingConn) Read(b []byte) (int, error) { return c.r.Read(b) }
