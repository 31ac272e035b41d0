package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"brlb/controller/api"
	"brlb/controller/config"
	"brlb/controller/pipeline"
)

func (a *App) flowsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "flows",
		GroupID: groupRead,
		Short:   "Show brlb's flows: what the switch should hold, what it holds, or the difference",
		Long: `Shows brlb's own flows in the syntax of ovs-ofctl. In a difference, "+" is missing
on the switch and "-" is too much there. -o wide adds packets and bytes.`,
		Example: `  brlb flows --explain
  brlb flows --actual -o wide
  brlb flows --diff
  brlb flows --legend`,
		Args: cobra.NoArgs,
	}
	f := formatFlag(c, true)
	desired := c.Flags().Bool("desired", false, "what the switch should hold (the default)")
	actual := c.Flags().Bool("actual", false, "what the switch holds")
	diff := c.Flags().Bool("diff", false, "what differs")
	explain := c.Flags().Bool("explain", false, "say what the rows are for")
	legend := c.Flags().Bool("legend", false, "what tables, registers, conntrack's fields and cookies hold; needs no running brlb")
	c.MarkFlagsMutuallyExclusive("desired", "actual", "diff", "legend")
	c.MarkFlagsMutuallyExclusive("explain", "legend")
	c.RunE = func(c *cobra.Command, _ []string) error {
		set := "desired"
		switch {
		case *desired:
		case *actual:
			set = "actual"
		case *diff:
			set = "diff"
		case *legend:
			legend := pipeline.NewLegend()
			return a.print(f, legend, func(s *screen) { drawLegend(s, legend) })
		}
		flows, err := fetch(c.Context(), a, func(ctx context.Context, client *api.Client) (*api.Flows, error) { return client.Flows(ctx, set) })
		if err != nil {
			return err
		}
		if set == "diff" && len(flows.Flows) == 0 && f.value != "json" && f.value != "yaml" {
			fmt.Fprintln(a.Stderr, "the switch holds exactly what it should")
		}
		return a.print(f, flows, func(s *screen) { drawFlows(s, flows, *explain, f.wide()) })
	}
	return c
}

func drawLegend(s *screen, legend *pipeline.Legend) {
	tables := newTable(">TABLE", "NAME", "ROWS", "MISS")
	for _, table := range legend.Tables {
		tables.row(text(strconv.Itoa(int(table.ID))), text(table.Name), text(table.Rows), text(table.Miss))
	}
	s.table(tables)
	for _, part := range []struct {
		title  string
		fields []pipeline.FieldLegend
	}{{"REGISTER", legend.Registers}, {"CONNTRACK", legend.Conntrack}, {"COOKIE BITS", legend.Cookie}} {
		s.line()
		fields := newTable(part.title, "SET IN", "READ IN", "HOLDS")
		for _, field := range part.fields {
			fields.row(text(field.Name), text(orDash(field.SetIn())), text(orDash(field.ReadIn())), text(field.Holds))
		}
		s.table(fields)
	}
}

// drawFlows keeps to what ovs-ofctl can read: an explanation is a comment, and
// stands once before the rows that it is about.
func drawFlows(s *screen, flows *api.Flows, explain, wide bool) {
	said := ""
	for _, flow := range flows.Flows {
		if explain && flow.Explain != said {
			said = flow.Explain
			s.linef("# %s", said)
		}
		line := text(flow.Text)
		if wide {
			line.text = fmt.Sprintf("n_packets=%d, n_bytes=%d, %s", flow.Packets, flow.Bytes, flow.Text)
		}
		switch flow.Sign {
		case "":
		case "+":
			line = coloured(green, "+"+line.text)
		default:
			line = coloured(red, flow.Sign+line.text)
		}
		s.line(line)
	}
}

func (a *App) traceCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "trace --src ADDRESS --sport PORT",
		GroupID: groupRead,
		Short:   "Show where the packets of one connection go",
		Long: `Computes hash, slot and member of one connection, bit-exact with the switch, and
shows beside it what the switch itself answers (name the port where the packet
enters with --seg). A client on the members' own network is known to them by a
gateway's address: that is shown, too. --frag asks about a later fragment of a
datagram, which has no ports. -o wide adds the switch's whole trace. The exit code is 1 when
the two disagree.

--offline needs no running brlb: it answers for a configuration file, as if every
member in it were active.`,
		Example: `  brlb trace --src 10.20.0.10 --sport 40000
  brlb trace --src 10.20.0.10 --sport 40000 --dst 10.20.0.100 --dport 80 --seg p1
  brlb trace --src 2001:db8:1::10 --sport 5000 --proto udp --dport 53 --vlan 20
  brlb trace --src 10.20.0.10 --sport 40000 --offline --config /etc/brlb/brlb.yaml`,
		Args: cobra.NoArgs,
	}
	f := formatFlag(c, true)
	var req api.TraceRequest
	c.Flags().StringVar(&req.Src, "src", "", "address of the client")
	c.Flags().Uint16Var(&req.SrcPort, "sport", 0, "port of the client")
	c.Flags().StringVar(&req.Dst, "dst", "", "VIP; may be left out when there is one")
	c.Flags().Uint16Var(&req.DstPort, "dport", 0, "port of the service; may be left out when there is one")
	c.Flags().StringVar(&req.Proto, "proto", "tcp", "protocol: tcp, udp or sctp")
	c.Flags().Uint16Var(&req.VLAN, "vlan", 0, "VLAN id of the frame, for the switch's own answer; the slot does not depend on it")
	c.Flags().StringVar(&req.InPort, "seg", "", "bridge port (segment) where the packet enters; likely by the source if left out")
	c.Flags().BoolVar(&req.Fragment, "frag", false, "a later fragment instead of a first packet")
	offline := c.Flags().Bool("offline", false, "answer for a configuration file instead of a running brlb")
	file := c.Flags().String("config", "", "configuration file for --offline")
	c.MarkFlagsRequiredTogether("offline", "config")
	c.MarkFlagsMutuallyExclusive("offline", "seg")
	c.MarkFlagRequired("src")
	c.MarkFlagRequired("sport")
	c.RunE = func(c *cobra.Command, _ []string) error {
		trace, err := a.traceOf(c.Context(), req, *offline, *file)
		if err != nil {
			return err
		}
		if err := a.print(f, trace, func(s *screen) { drawTrace(s, trace, f.wide()) }); err != nil {
			return err
		}
		if trace.Switch != nil && !trace.Switch.Agrees {
			return fmt.Errorf("the switch does not do what brlb computes: see brlb flows --diff and brlb verify")
		}
		return nil
	}
	return c
}

func (a *App) traceOf(ctx context.Context, req api.TraceRequest, offline bool, file string) (*api.Trace, error) {
	if !offline {
		return fetch(ctx, a, func(ctx context.Context, client *api.Client) (*api.Trace, error) { return client.Trace(ctx, req) })
	}
	loaded, err := config.Load(file)
	if err != nil {
		return nil, err
	}
	trace, err := a.TraceFile(loaded, req)
	if err != nil {
		return nil, err
	}
	if pool, _ := loaded.Pool(trace.Pool); len(pool.Names) > 0 {
		fmt.Fprintf(a.Stderr, "pool %s has members by name (%d), which are not looked up here; this is its table without them\n", pool.Name, len(pool.Names))
	}
	return trace, nil
}

func drawTrace(s *screen, trace *api.Trace, wide bool) {
	s.line(coloured(bold, trace.Flow))
	s.linef("  service    %s", trace.Service)
	s.linef("  pool       %s (id %d)", trace.Pool, trace.PoolID)
	if trace.Mode == config.ModeDSR || trace.Mode == config.ModeTunnel {
		s.linef("  mode       %s: no connection is tracked, every packet is hashed", trace.Mode)
	}
	if segment := segmentOf(trace); segment != "" {
		s.linef("  segment    %s", segment)
	}
	switch config.Affinity(trace.Affinity) {
	case config.AffinitySource:
		s.linef("  affinity   source: the client's address alone decides")
	case config.AffinityPort:
		s.linef("  affinity   port: the client's port alone decides")
	}
	s.linef("  hash       %s", trace.Hash)
	s.linef("  slot       %d", trace.Slot)
	if trace.Member == "" {
		s.line(text("  member     "), coloured(red, "none is active: the packet is dropped"))
	} else {
		s.linef("  member     %s %s", trace.Member, trace.Address)
	}
	if trace.MovingFrom != "" {
		s.linef("  moving     new connections only; %s keeps those that are open", trace.MovingFrom)
	}
	if trace.Hairpin != "" {
		s.linef("  hairpin    member sees %s (gateway)%s", trace.Hairpin, ifBeside(trace))
	}
	switch trace.Fragment {
	case api.FragmentFollows:
		s.linef("  fragment   goes where the rest of its datagram goes: conntrack knows")
	case api.FragmentHashed:
		s.linef("  fragment   is hashed by the client's address, as all of its datagram is")
	case api.FragmentDropped:
		s.line(text("  fragment   "), coloured(red, "is dropped: it has no ports, and only affinity source does without"))
	}
	if trace.SwitchError != "" {
		s.linef("  switch     not asked: %s", trace.SwitchError)
	}
	if trace.Switch != nil {
		drawSwitchTrace(s, trace.Switch, wide)
	}
}

// segmentOf says where the packet enters.
func segmentOf(trace *api.Trace) string {
	segment := trace.Segment
	if trace.VLAN != 0 {
		segment += fmt.Sprintf(" VLAN %d", trace.VLAN)
	}
	return strings.TrimSpace(segment)
}

// ifBeside says of which clients a hairpin is true when the segment is not known.
func ifBeside(trace *api.Trace) string {
	if trace.Segment != "" {
		return ""
	}
	return ", if the client is behind the same bridge port"
}

func drawSwitchTrace(s *screen, t *api.SwitchTrace, wide bool) {
	says := ""
	if t.Slot >= 0 {
		says = fmt.Sprintf("slot %d, ", t.Slot)
	}
	if t.Learned {
		says = "remembers the connection, "
	}
	switch {
	case t.Tracked:
		says = "asks conntrack"
	case t.Member != "":
		says += fmt.Sprintf("member %s (number %d)", t.Member, t.Number)
	case t.Number >= 0:
		says += fmt.Sprintf("member number %d", t.Number)
	default:
		says += "no member"
	}
	if t.Hairpin != "" {
		says += ", source " + t.Hairpin
	}
	verdict := coloured(green, "agrees")
	if !t.Agrees {
		verdict = coloured(red, "DISAGREES")
	}
	s.line(text("  switch     "+says+": "), verdict)
	s.linef("  actions    %s", orDash(t.Actions))
	s.linef("  conntrack  %s", orDash(t.Entry))
	if wide {
		s.linef("")
		s.block("  ", t.Text)
	}
}

func (a *App) verifyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "verify",
		GroupID: groupRead,
		Short:   "Read the switch and check every invariant",
		Long: `Reads what the switch holds and checks it, one line a check. The exit code is 1
when a check fails.`,
		Example: "  brlb verify\n  brlb verify -o json | jq '.checks[] | select(.ok | not)'",
		Args:    cobra.NoArgs,
	}
	f := formatFlag(c, false)
	c.RunE = func(c *cobra.Command, _ []string) error {
		verify, err := fetch(c.Context(), a, func(ctx context.Context, client *api.Client) (*api.Verify, error) { return client.Verify(ctx) })
		if err != nil {
			return err
		}
		if err := a.print(f, verify, func(s *screen) { drawVerify(s, verify) }); err != nil {
			return err
		}
		failed := 0
		for _, check := range verify.Checks {
			if !check.OK {
				failed++
			}
		}
		if failed > 0 || !verify.OK {
			return fmt.Errorf("%d of %d checks failed", failed, len(verify.Checks))
		}
		return nil
	}
	return c
}

func drawVerify(s *screen, verify *api.Verify) {
	width := 0
	for _, check := range verify.Checks {
		width = max(width, len(check.Name))
	}
	for _, check := range verify.Checks {
		verdict := coloured(green, "ok  ")
		if !check.OK {
			verdict = coloured(red, "FAIL")
		}
		s.line(verdict, text(fmt.Sprintf("  %-*s  %s", width, check.Name, check.Detail)))
	}
}
