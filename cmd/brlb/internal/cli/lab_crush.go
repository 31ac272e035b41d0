package cli

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"brlb/maglev/crush"
	"brlb/maglev/crush/mapfile"
)

// crushTest is what -o json prints of a run.
type crushTest struct {
	Rule    string         `json:"rule"`
	Size    int            `json:"size"`   // devices wanted for each input
	Inputs  int            `json:"inputs"` // how many were placed
	Sizes   map[int]int    `json:"sizes"`  // inputs by how many devices they got
	Bad     []uint32       `json:"bad"`    // the first inputs that got fewer than wanted
	Devices []crushDevice  `json:"devices"`
	Maps    []crushMapping `json:"mappings,omitempty"`
}

type crushDevice struct {
	Name     string `json:"name"`
	Placed   int    `json:"placed"`
	Expected int    `json:"expected"` // by its weight
}

type crushMapping struct {
	Input   uint32   `json:"input"`
	Devices []string `json:"devices"` // "-" for a position that stays empty
}

func (a *App) labCrushCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "crush MAP",
		Short: "Run a rule of a CRUSH map over many inputs, like crushtool --test",
		Long: `Places inputs by a rule of a CRUSH map and says how many devices they got, how many
placements each device has beside what its weight entitles it to, and which inputs
got too few devices. The placements are bit for bit those of Ceph.

The map is YAML:

  types: [host, rack, root]        # of buckets, from the narrowest to the widest
  tunables: {total_tries: 50}      # others than the jewel profile's
  buckets:
    - {name: a, type: host, items: [osd.0, osd.1 2.5]}
    - {name: b, type: host, alg: list, items: [osd.2, osd.3]}
    - {name: default, type: root, id: -1, items: [a, b 1.5]}
  classes: {ssd: [osd.0, osd.2]}
  reweight: {osd.3: 0.5}           # the probability that the device is in
  rules:
    replicated: [take default, chooseleaf firstn 0 type host, emit]
    fast: [take default class ssd, choose firstn 0 type osd, emit]
    msr: [type msr_indep, take default, choosemsr 2 type host, choosemsr 2 type osd, emit]

Items are devices, osd.N, or buckets that stand above, each with its weight behind
it. A bucket's alg is straw2, uniform, list or tree; its id is the nearest free one
to -1 unless it is given.`,
		Example: `  brlb lab crush map.yaml --size 3
  brlb lab crush map.yaml --rule fast --inputs 0..99 --mappings
  brlb lab crush map.yaml --reweight osd.3=0 -o json`,
		Args: cobra.ExactArgs(1),
	}
	f := formatsFlag(c, "text", "json")
	rule := c.Flags().String("rule", "", "rule to run; may be left out when there is one")
	size := c.Flags().Int("size", 3, "devices for each input")
	inputs := c.Flags().String("inputs", "0..1023", "range of inputs, both ends included")
	reweight := c.Flags().StringToString("reweight", nil, "probability that a device is in, osd.N=0..1")
	mappings := c.Flags().Bool("mappings", false, "show where each input is placed")
	c.RunE = func(_ *cobra.Command, args []string) error {
		m, err := loadCrushMap(args[0], *reweight)
		if err != nil {
			return err
		}
		test, err := runCrush(m, *rule, *size, *inputs, *mappings)
		if err != nil {
			return err
		}
		return a.print(f, test, func(s *screen) { drawCrush(s, test) })
	}
	return c
}

func loadCrushMap(path string, reweight map[string]string) (*mapfile.Map, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := mapfile.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for name, value := range reweight {
		device, err := strconv.Atoi(strings.TrimPrefix(name, "osd."))
		in, err2 := strconv.ParseFloat(value, 64)
		if err != nil || device < 0 || device >= m.Devices || err2 != nil || !(in >= 0 && in <= 1) {
			return nil, usageErrorf("--reweight %.40s=%.40s: name a device of the map and a number from 0 to 1, such as osd.3=0.5", name, value)
		}
		m.Reweight[device] = uint32(in * crush.One)
	}
	return m, nil
}

// maxCrushInputs bounds a run.
const maxCrushInputs = 10_000_000

func runCrush(m *mapfile.Map, name string, size int, inputs string, mappings bool) (*crushTest, error) {
	names := slices.Sorted(maps.Keys(m.Rules))
	if name == "" && len(names) == 1 {
		name = names[0]
	}
	rule, ok := m.Rules[name]
	if !ok {
		return nil, usageErrorf("the map has no rule %.40q: --rule is one of %s", name, strings.Join(names, ", "))
	}
	low, high, ok := strings.Cut(inputs, "..")
	from, err := strconv.ParseUint(low, 10, 32)
	to, err2 := strconv.ParseUint(high, 10, 32)
	if !ok || err != nil || err2 != nil || to < from || to-from >= maxCrushInputs {
		return nil, usageErrorf("--inputs is %.40q: write a range of at most %d, such as 0..1023", inputs, maxCrushInputs)
	}
	mapper, err := crush.New(m.Map)
	if err != nil {
		return nil, err
	}
	test := &crushTest{Rule: name, Size: size, Sizes: map[int]int{}}
	var each func(uint32, []int32)
	if mappings {
		each = func(x uint32, devices []int32) {
			test.Maps = append(test.Maps, crushMapping{Input: x, Devices: deviceNames(devices)})
		}
	}
	trial, err := mapper.Try(rule, size, uint32(from), uint32(to), m.Reweight, each)
	if err != nil {
		return nil, err
	}
	test.Inputs, test.Bad = trial.Inputs, trial.Bad
	for n, count := range trial.Sizes {
		if count > 0 {
			test.Sizes[n] = count
		}
	}
	for device, u := range trial.Devices {
		if u.Placed > 0 || u.Expected > 0 {
			test.Devices = append(test.Devices, crushDevice{Name: fmt.Sprintf("osd.%d", device), Placed: u.Placed, Expected: u.Expected})
		}
	}
	return test, nil
}

func deviceNames(devices []int32) []string {
	names := make([]string, len(devices))
	for i, d := range devices {
		switch {
		case d == crush.None:
			names[i] = "-"
		case d >= 0:
			names[i] = fmt.Sprintf("osd.%d", d)
		default:
			names[i] = fmt.Sprintf("bucket %d", d)
		}
	}
	return names
}

func drawCrush(s *screen, test *crushTest) {
	for _, m := range test.Maps {
		s.linef("input %d  %s", m.Input, strings.Join(m.Devices, " "))
	}
	s.line(coloured(bold, "RULE "+test.Rule), text(fmt.Sprintf("  %s, %d devices each", count(test.Inputs, "input"), test.Size)))
	for _, n := range slices.Sorted(maps.Keys(test.Sizes)) {
		s.linef("  %d of %d got %d devices", test.Sizes[n], test.Inputs, n)
	}
	t := newTable("DEVICE", ">PLACED", ">EXPECTED", ">RATIO")
	for _, d := range test.Devices {
		ratio := "-"
		if d.Expected > 0 {
			ratio = fmt.Sprintf("%.3f", float64(d.Placed)/float64(d.Expected))
		}
		t.row(text(d.Name), text(fmt.Sprint(d.Placed)), text(fmt.Sprint(d.Expected)), text(ratio))
	}
	s.table(t)
	if len(test.Bad) > 0 {
		s.line(coloured(yellow, fmt.Sprintf("bad mappings, the first %d: inputs %s", len(test.Bad), strings.Trim(fmt.Sprint(test.Bad), "[]"))))
	}
}
