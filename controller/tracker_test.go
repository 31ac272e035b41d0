package controller

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"brlb/controller/config"
	"brlb/controller/conntrack"
	"brlb/controller/state"
	"brlb/ovsdb/unixctl"
)

// refusal is an answer by which a daemon refuses a command.
type refusal string

// fakeSwitchd is a run directory with a control socket that answers commands;
// asked notes them.
func fakeSwitchd(t *testing.T, answers map[string]any) (runDir string, asked *[]string) {
	t.Helper()
	runDir, err := os.MkdirTemp("", "ctl") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(runDir) })
	if err := os.WriteFile(filepath.Join(runDir, "ovs-vswitchd.pid"), []byte("7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(runDir, "ovs-vswitchd.7.ctl"))
	if err != nil {
		t.Fatal(err)
	}
	asked = new([]string)
	done := make(chan struct{})
	t.Cleanup(func() { listener.Close(); <-done })
	go func() {
		defer close(done)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		in, out := json.NewDecoder(conn), json.NewEncoder(conn)
		for {
			var request struct {
				ID     int
				Method string
				Params []string
			}
			if in.Decode(&request) != nil {
				return
			}
			*asked = append(*asked, strings.Join(append([]string{request.Method}, request.Params...), " "))
			reply := map[string]any{"id": request.ID, "error": nil}
			switch answer := answers[request.Method].(type) {
			case nil:
				reply["error"] = "not a valid command\n"
			case refusal:
				reply["error"] = string(answer)
			default:
				reply["result"] = answer
			}
			if out.Encode(reply) != nil {
				return
			}
		}
	}()
	return runDir, asked
}

// TestRead: what is read of a switch, whatever it answers.
func TestRead(t *testing.T) {
	cfg := parse(t, "conntrack: {limit: 500}\n"+standingConfig)
	snapshot := state.AllActive(cfg)
	be1, be2 := &snapshot.Pool("web").Members[0], &snapshot.Pool("web").Members[1]
	be2.Cut = true
	line := func(m *state.Member) string {
		e := entryOf(m, 1, "10.20.0.100")
		return fmt.Sprintf("tcp,orig=(src=%s,dst=%s,sport=%d,dport=%d),reply=(src=%s,dst=%s,sport=%d,dport=%d),id=0,zone=18200,status=0,mark=%d,protoinfo=(state_orig=ESTABLISHED,state_reply=ESTABLISHED)\n",
			e.Orig.Src, e.Orig.Dst, e.Orig.SrcPort, e.Orig.DstPort, e.Reply.Src, e.Reply.Dst, e.Reply.SrcPort, e.Reply.DstPort, e.Mark)
	}
	usual := map[string]any{
		"dpctl/ct-get-nconns": "7\n", "dpctl/ct-get-maxconns": "3000000\n",
		"dpctl/ct-get-limits": "default limit=0\nzone=18200,limit=0,count=0\n", "dpctl/ct-set-limits": "",
		"dpctl/dump-conntrack": line(be1) + line(be1) + line(be2),
	}
	for _, c := range []struct {
		name    string
		method  string // that answers otherwise
		answer  any
		problem string
		wrong   string
		asked   string
		counted bool
	}{
		{"all is well", "", nil, "", "", "dpctl/ct-set-limits zone=18200,limit=500", true},
		{"the limit is right", "dpctl/ct-get-limits", "zone=18200,limit=500,count=3\n", "", "", "dump-conntrack -m zone=18200", true},
		{"limits are refused", "dpctl/ct-set-limits", refusal("managed by OVSDB\n"), "", "managed by OVSDB", "dump-conntrack", true},
		{"a line makes no sense", "dpctl/dump-conntrack", line(be1) + "nonsense\n" + line(be1) + line(be2), "1 lines", "", "", true},
		{"a kernel's table", "dpctl/ct-get-nconns", refusal("Operation not supported\n"), "", "", "dump-conntrack", true},
		{"too many", "dpctl/ct-get-nconns", "200001\n", "reads no more than 200000", "", "ct-get-limits", false},
		{"no number", "dpctl/ct-get-nconns", "many\n", "instead of a number", "", "", false},
		{"no table", "dpctl/dump-conntrack", refusal("no datapath\n"), "no datapath", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			answers := map[string]any{}
			for method, answer := range usual {
				answers[method] = answer
			}
			if c.method != "" {
				answers[c.method] = c.answer
			}
			runDir, asked := fakeSwitchd(t, answers)
			l := newLoop(cfg, loopOptions{Logger: slog.New(slog.DiscardHandler)}, nil)
			tr := &tracker{loop: l, switchd: unixctl.Daemon(runDir, "ovs-vswitchd"), standing: standingOf(snapshot, everyVIP(snapshot))}
			defer tr.switchd.Close()
			v := &view{snapshot: snapshot, config: cfg, writer: true}
			r, err := tr.read(t.Context(), v)
			got := r.connections(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), err)
			if (got.problem != "") != (c.problem != "") || !strings.Contains(got.problem, c.problem) {
				t.Errorf("problem %q, want %q", got.problem, c.problem)
			}
			if wrong := strings.Join(got.wrong(), "; "); !strings.Contains(wrong, c.wrong) || (wrong != "") != (c.wrong != "") {
				t.Errorf("wrong %q, want %q", wrong, c.wrong)
			}
			if !strings.Contains(strings.Join(*asked, "\n"), c.asked) {
				t.Errorf("asked %q, want %q", *asked, c.asked)
			}
			n, ok := got.of(be1.Number)
			if ok != c.counted || c.counted && (n != conntrack.Count{Open: 2}) {
				t.Errorf("be1: %+v %v", n, ok)
			}
			if c.counted && (len(r.suspects) != 1 || r.suspects[0].Reply.Src != be2.Address.Addr()) {
				t.Errorf("suspects: %+v", r.suspects)
			}
		})
	}
}

// TestDue: a change that ends connections is urgent once the switch forwards by
// it, and not before.
func TestDue(t *testing.T) {
	cfg := parse(t, standingConfig)
	before := state.AllActive(cfg)
	smaller := parse(t, strings.Replace(standingConfig, ", be2: 10.30.0.12:80", "", 1))
	next := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tr := &tracker{next: next, cleaned: standingOf(before, nil)}
	for _, c := range []struct {
		name   string
		cfg    *config.Config
		change func(*view)
		urgent bool
	}{
		{"nothing", cfg, func(*view) {}, false},
		{"a member gone", smaller, func(*view) {}, true},
		{"not confirmed", smaller, func(v *view) { v.inSync = false }, false},
		{"standing by", smaller, func(v *view) { v.writer = false }, false},
		{"no switch", smaller, func(v *view) { v.sw.session = 0 }, false},
		{"waiting for verdicts", smaller, func(v *view) { v.snapshot.Pools[0].Settled = false }, false},
	} {
		v := &view{snapshot: state.AllActive(c.cfg), writer: true, inSync: true, sw: switchInfo{session: 1}}
		c.change(v)
		at, urgent := tr.due(v)
		if urgent != c.urgent || !urgent && !at.Equal(next) {
			t.Errorf("%s: urgent %v, due at %v", c.name, urgent, at)
		}
	}
}
