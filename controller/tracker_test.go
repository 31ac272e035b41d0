package controller

import (
	"cmp"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"brlb/controller/config"
	"brlb/controller/conntrack"
	"brlb/controller/pipeline"
	"brlb/controller/state"
	"brlb/ovsdb/unixctl"
)

// refusal is an answer by which a daemon refuses a command.
type refusal string

// fakeSwitchd is a run directory with a control socket that answers commands, known
// with all arguments or by the method alone; asked notes them.
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
			command := strings.Join(append([]string{request.Method}, request.Params...), " ")
			*asked = append(*asked, command)
			reply := map[string]any{"id": request.ID, "error": nil}
			switch answer := cmp.Or(answers[command], answers[request.Method]).(type) {
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

// TestReadZones: each zone has its own limit, and what is in any of them is
// counted, and judged, also if its pool has gone.
func TestReadZones(t *testing.T) {
	cfg := parse(t, strings.NewReplacer("web: {id: 1,", "web: {id: 1, conntrack: {limit: 10},", "10.30.0.11:80, be3", "10.30.0.14:80, be3").Replace("conntrack: {limit: 500}\n"+standingConfig))
	snapshot := state.AllActive(cfg)
	web, api := &snapshot.Pool("web").Members[0], &snapshot.Pool("api").Members[0]
	line := func(m *state.Member, pool, zone uint16) string {
		return fmt.Sprintf("tcp,orig=(src=10.20.0.10,dst=10.20.0.100,sport=4000,dport=80),reply=(src=%s,dst=10.20.0.10,sport=%d,dport=4000),id=0,zone=%d,status=0,mark=%d,protoinfo=(state_orig=ESTABLISHED,state_reply=ESTABLISHED)\n",
			m.Address.Addr(), m.Address.Port(), zone, pipeline.Mark(pool, m.Number))
	}
	runDir, asked := fakeSwitchd(t, map[string]any{
		"dpctl/ct-get-nconns": "7\n", "dpctl/ct-get-maxconns": "3000000\n", "dpctl/ct-set-limits": "",
		"dpctl/ct-get-limits":                "default limit=0\n",
		"dpctl/ct-get-limits zone=18201":     "default limit=0\nzone=18201,limit=10,count=9\n",
		"dpctl/dump-conntrack -m zone=18200": line(api, 2, 18200) + line(web, 1, 18200),
		"dpctl/dump-conntrack -m zone=18201": line(web, 1, 18201) + line(web, 1, 18201),
		"dpctl/dump-conntrack -m zone=18207": line(web, 1, 18207),
		"dpctl/dump-conntrack -m zone=18208": "",
	})
	l := newLoop(cfg, loopOptions{Logger: slog.New(slog.DiscardHandler)}, nil)
	tr := &tracker{loop: l, switchd: unixctl.Daemon(runDir, "ovs-vswitchd"), standing: standingOf(snapshot, everyVIP(snapshot)), zones: []uint16{18200, 18207, 18208}}
	defer tr.switchd.Close()
	r, err := tr.read(t.Context(), &view{snapshot: snapshot, config: cfg, writer: true})
	if err != nil {
		t.Fatal(err)
	}
	got := r.connections(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), nil)
	doc := got.document()
	if doc.Zone.Number != 18200 || doc.Zone.Entries != 2 || doc.Zone.Limit != 500 ||
		len(doc.Pools) != 1 || doc.Pools[0].Number != 18201 || doc.Pools[0].Entries != 9 || doc.Pools[0].Limit != 10 || !slices.Equal(doc.Pools[0].Pools, []string{"web"}) {
		t.Errorf("%+v", doc)
	}
	if wrong := got.wrong(); len(wrong) != 1 || !strings.HasPrefix(wrong[0], "pool web: conntrack is nearly full: 9 entries, and the limit of zone 18201 allows 10;") {
		t.Errorf("wrong: %q", wrong)
	}
	if n, _ := got.of(web.Number); n.Open != 4 {
		t.Errorf("a member of the pool: %+v", n)
	}
	var suspects []uint16 // zones
	for _, e := range r.suspects {
		suspects = append(suspects, e.Zone)
	}
	if !slices.Equal(suspects, []uint16{18200, 18207}) {
		t.Errorf("suspects in %v", suspects)
	}
	if !slices.Equal(tr.zones, []uint16{18200, 18201, 18207}) {
		t.Errorf("to be read next: %v", tr.zones)
	}
	if all := strings.Join(*asked, "\n"); !strings.Contains(all, "ct-set-limits zone=18200,limit=500") || strings.Contains(all, "ct-set-limits zone=18201") {
		t.Errorf("asked %q", *asked)
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
