package mapfile

import (
	"bytes"
	"strings"
	"testing"

	"brlb/maglev/crush"
)

// placed runs a rule over inputs 0..n-1 and returns the placements by device.
func placed(t *testing.T, m *Map, rule string, size int, n uint32) []int {
	t.Helper()
	mapper, err := crush.New(m.Map)
	if err != nil {
		t.Fatal(err)
	}
	trial, err := mapper.Try(m.Rules[rule], size, 0, n-1, m.Reweight, nil)
	if err != nil {
		t.Fatal(err)
	}
	var counts []int
	for _, d := range trial.Devices {
		counts = append(counts, d.Placed)
	}
	return counts
}

// The counts are those of Ceph's own C code.
func TestCeph(t *testing.T) {
	for _, c := range []struct {
		name, text string
		inputs     uint32
		want       []int
	}{
		{"straw2", "{types: [root], buckets: [{name: r, type: root, items: [osd.0, osd.1, osd.2 2]}], rules: {one: [take r, choose firstn 1 type osd, emit]}}",
			300000, []int{75274, 74753, 149973}},
		{"list", "{types: [root], buckets: [{name: r, id: -6, alg: list, type: root, items: [osd.20, osd.21, osd.22 2]}], rules: {one: [take r, choose firstn 1 type osd, emit]}}",
			400000, []int{100336, 99970, 199694}},
		{"tree", "{types: [root], buckets: [{name: r, id: -7, alg: tree, type: root, items: [osd.30, osd.31 2, osd.32 3, osd.33 4]}], rules: {one: [take r, choose firstn 1 type osd, emit]}}",
			400000, []int{39864, 79935, 119737, 160464}},
		{"reweight", "{types: [root], tunables: {total_tries: 0}, buckets: [{name: r, type: root, items: [osd.7]}], reweight: {osd.7: 0.5}, rules: {one: [take r, choose firstn 1 type osd, emit]}}",
			100000, []int{50069}},
	} {
		m, err := Parse([]byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := placed(t, m, "one", 1, c.inputs)
		for len(got) > len(c.want) && got[0] == 0 {
			got = got[1:] // devices that no bucket holds
		}
		if len(got) != len(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
				break
			}
		}
	}
}

const hosts = `
types: [host, rack, root]
tunables: {total_tries: 100, vary_r: 1, stable: 1, descend_once: 1, local_tries: 0, local_fallback_tries: 0, msr_descents: 50, msr_collision_tries: 50}
buckets:
  - {name: a, type: host, items: [osd.0, osd.1 2]}
  - {name: b, type: host, items: [osd.2, osd.3]}
  - {name: c, type: host, id: -9, items: [osd.4, osd.5]}
  - {name: default, type: root, items: [a, b, c 4]}
classes: {ssd: [osd.0, osd.2, osd.4], hdd: [osd.1]}
reweight: {osd.3: 0}
rules:
  replicated: [set_choose_tries 200, take default, chooseleaf firstn 0 type host, emit]
  fast: [take default class ssd, chooseleaf firstn 0 type host, emit]
  msr: [type msr_indep, set_msr_descents 60, take default, choosemsr 3 type host, choosemsr 1 type osd, emit]
  indep: [take default, choose indep 0 type osd, emit]
`

func TestMap(t *testing.T) {
	m, err := Parse([]byte(hosts))
	if err != nil {
		t.Fatal(err)
	}
	if m.Devices != 6 || m.Tunables.TotalTries != 100 || m.Reweight[3] != 0 || m.Reweight[2] != crush.One {
		t.Errorf("%d devices, tunables %+v, reweight %v", m.Devices, m.Tunables, m.Reweight)
	}
	root := &m.Buckets[3]
	if root.Items[2] != -9 || root.Weights[0] != 3*crush.One || root.Weights[2] != 4*crush.One {
		t.Errorf("the root is %+v", root)
	}
	for rule, used := range map[string][]bool{
		"replicated": {true, true, true, false, true, true}, // osd.3 is out
		"fast":       {true, false, true, false, true, false},
		"msr":        {true, true, true, false, true, true},
		"indep":      {true, true, true, false, true, true},
	} {
		for device, n := range placed(t, m, rule, 3, 500) {
			if (n > 0) != used[device] {
				t.Errorf("rule %s: osd.%d has %d placements", rule, device, n)
			}
		}
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"- a":                              "CRUSH map: [1:1]",
		"typs: [host]":                     `unknown field "typs"`,
		"types: [host, host]":              `type "host" is there twice`,
		"types: [osd]":                     `type "osd" is there twice`,
		"tunables: {tries: 1}":             `tunable "tries" is not known`,
		"buckets: [{name: a, type: host}]": `bucket "a": type "host" is not one of`,
		"{types: [h], buckets: [{name: osd.1, type: h}]}":                    "does not begin with osd.",
		"{types: [h], buckets: [{name: a, type: h, alg: straw}]}":            `alg "straw" is not straw2`,
		"{types: [h], buckets: [{name: a, type: h}, {name: a, type: h}]}":    "there twice",
		"{types: [h], buckets: [{name: a, type: h, items: [b]}]}":            `there is no bucket "b" above it`,
		"{types: [h], buckets: [{name: a, type: h, items: [osd.x]}]}":        `"osd.x" is not osd.0 to`,
		"{types: [h], buckets: [{name: a, type: h, items: [osd.99999999]}]}": "is not osd.0 to",
		"{types: [h], buckets: [{name: a, type: h, items: [osd.1 -2]}]}":     "is not a number from 0 to 10000",
		"{types: [h], buckets: [{name: a, type: h, items: [osd.1 NaN]}]}":    "is not a number from 0 to 10000",
		"reweight: {osd.1: 0.5}": `no bucket holds device "osd.1"`,
		"{types: [h], buckets: [{name: a, type: h, items: [osd.0]}], reweight: {osd.0: 2}}": "must be from 0 to 1",
		"rules: {r: [jump]}":                       `step "jump": it is none of take`,
		"rules: {r: [take x]}":                     `there is no bucket "x"`,
		"buckets:\n !- {name: a}\n":                `the YAML cannot be read`,
		"rules: {r: [type fast]}":                  `type "fast" is not replicated`,
		"rules: {r: [choose firstn 1 type x]}":     `type "x" is not known`,
		"rules: {r: [choose firstn one type osd]}": `"one" is not a whole number`,
		"{types: [h], buckets: [{name: a, type: h}], rules: {r: [take a class x]}}": `there is no class "x"`,
	} {
		if m, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) || m != nil {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// Whatever is read can be tried without a panic.
func FuzzParse(f *testing.F) {
	f.Add([]byte(hosts))
	f.Add([]byte("buckets:\n !- {name: a}\n"))
	f.Add([]byte("{types: [root], buckets: [{name: r, id: -6, alg: list, type: root, items: [osd.20]}], rules: {one: [take r, choose firstn 1 type osd, emit]}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := Parse(data)
		if err != nil {
			return
		}
		// A map may ask for ten thousand tries at every level, which takes its time.
		if tunables := m.Tunables; max(tunables.TotalTries, tunables.LocalTries, tunables.LocalFallbackTries) > 50 || bytes.Contains(data, []byte("_tries")) {
			return
		}
		mapper, err := crush.New(m.Map)
		if err != nil {
			return
		}
		for _, rule := range m.Rules {
			mapper.Do(nil, rule, 7, 3, m.Reweight)
		}
	})
}
