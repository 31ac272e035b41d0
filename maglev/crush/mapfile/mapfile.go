// Package mapfile reads CRUSH maps from YAML, in a form that says what crushtool's
// text form says:
//
//	types: [host, rack, root]        # of buckets, from the narrowest to the widest
//	tunables: {total_tries: 50}      # others than the jewel profile's
//	buckets:
//	  - {name: a, type: host, items: [osd.0, osd.1 2.5]}
//	  - {name: b, type: host, alg: list, items: [osd.2, osd.3]}
//	  - {name: default, type: root, id: -1, items: [a, b 1.5]}
//	classes: {ssd: [osd.0, osd.2]}
//	reweight: {osd.3: 0.5}           # the probability that the device is in
//	rules:
//	  replicated: [take default, chooseleaf firstn 0 type host, emit]
//	  fast: [take default class ssd, choose firstn 0 type osd, emit]
//
// A rule's first step may be "type msr_firstn" or "type msr_indep"; then its others
// are "choosemsr 3 type host" and the like.
//
// An item is a device, osd.N, or a bucket that stands above it in the list, with
// its weight behind it: 1 for a device unless it is given, the sum of its items'
// for a bucket. A bucket's alg is straw2 (the default), uniform, list or tree; its
// id is the nearest free one to -1 unless it is given. The ids matter: the straws
// of other ids have other lengths.
package mapfile

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"brlb/maglev/crush"
)

// Map is a map with the names that the file gives.
type Map struct {
	crush.Map
	Reweight []uint32              // by device, 16.16
	Rules    map[string]crush.Rule // by name
}

// maxFile bounds what Parse reads, in bytes.
const maxFile = 16 << 20

// file is the form of the YAML.
type file struct {
	Types    []string            `yaml:"types"`
	Tunables map[string]int      `yaml:"tunables"`
	Buckets  []bucket            `yaml:"buckets"`
	Classes  map[string][]string `yaml:"classes"`
	Reweight map[string]float64  `yaml:"reweight"`
	Rules    map[string][]string `yaml:"rules"`
}

type bucket struct {
	Name  string   `yaml:"name"`
	ID    int32    `yaml:"id"`
	Type  string   `yaml:"type"`
	Alg   string   `yaml:"alg"`
	Items []string `yaml:"items"`
}

// Parse reads a map. Errors say what is wrong and, for what is no such YAML,
// where. Whether the hierarchy is sound says [crush.New].
func Parse(data []byte) (*Map, error) {
	if len(data) > maxFile {
		return nil, fmt.Errorf("a CRUSH map of %d bytes: at most %d are read", len(data), maxFile)
	}
	var f file
	if err := unmarshal(data, &f); err != nil {
		return nil, fmt.Errorf("CRUSH map: %s", strings.TrimRight(yaml.FormatError(err, false, true), "\n"))
	}
	r := reader{
		file: &f, m: &Map{Map: crush.Map{Tunables: crush.Jewel()}, Rules: map[string]crush.Rule{}},
		types: map[string]int32{"osd": 0}, ids: map[string]int32{}, shadows: map[string]int32{},
	}
	if err := r.read(); err != nil {
		return nil, err
	}
	return r.m, nil
}

// unmarshal reads YAML strictly. The library panics on some tags, as in "!- {a: b}".
func unmarshal(data []byte, f *file) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("the YAML cannot be read: %v", cause)
		}
	}()
	return yaml.UnmarshalWithOptions(data, f, yaml.Strict())
}

// reader turns a file into a Map.
type reader struct {
	file    *file
	m       *Map
	types   map[string]int32
	ids     map[string]int32 // of buckets, by name
	shadows map[string]int32 // of a bucket and a class, "NAME CLASS"
}

func (r *reader) read() error {
	for i, name := range r.file.Types {
		if _, known := r.types[name]; known || name == "" {
			return fmt.Errorf("CRUSH map: type %.40q is there twice, or has no name", name)
		}
		r.types[name] = int32(i + 1)
	}
	if err := r.tunables(); err != nil {
		return err
	}
	taken := map[int32]bool{}
	for _, b := range r.file.Buckets {
		taken[b.ID] = true
	}
	for i := range r.file.Buckets {
		if err := r.bucket(&r.file.Buckets[i], taken); err != nil {
			return err
		}
	}
	if err := r.reweight(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(r.file.Rules)) {
		rule := crush.Rule{Type: crush.Replicated}
		for i, text := range r.file.Rules[name] {
			if kind, ok := strings.CutPrefix(text, "type "); ok && i == 0 {
				if rule.Type, ok = ruleTypes[kind]; !ok {
					return fmt.Errorf("CRUSH map: rule %.40s: type %.40q is not replicated, erasure, msr_firstn or msr_indep", name, kind)
				}
				continue
			}
			step, err := r.step(text)
			if err != nil {
				return fmt.Errorf("CRUSH map: rule %.40s: step %.60q: %w", name, text, err)
			}
			rule.Steps = append(rule.Steps, step)
		}
		r.m.Rules[name] = rule
	}
	return nil
}

func (r *reader) tunables() error {
	t := &r.m.Tunables
	for name, value := range r.file.Tunables {
		switch name {
		case "local_tries":
			t.LocalTries = value
		case "local_fallback_tries":
			t.LocalFallbackTries = value
		case "total_tries":
			t.TotalTries = value
		case "descend_once":
			t.DescendOnce = value != 0
		case "vary_r":
			t.VaryR = value
		case "stable":
			t.Stable = value != 0
		case "msr_descents":
			t.MSRDescents = value
		case "msr_collision_tries":
			t.MSRCollisionTries = value
		default:
			return fmt.Errorf("CRUSH map: tunable %.40q is not known: there is local_tries, local_fallback_tries, total_tries, descend_once, vary_r, stable, msr_descents, msr_collision_tries", name)
		}
	}
	return nil
}

var algorithms = map[string]crush.Algorithm{
	"": crush.Straw2, "straw2": crush.Straw2, "uniform": crush.Uniform, "list": crush.List, "tree": crush.Tree,
}

func (r *reader) bucket(b *bucket, taken map[int32]bool) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("CRUSH map: bucket %.40q: %w", b.Name, fmt.Errorf(format, args...))
	}
	kind, known := r.types[b.Type]
	algorithm, possible := algorithms[b.Alg]
	_, again := r.ids[b.Name]
	switch {
	case b.Name == "" || strings.ContainsAny(b.Name, " ") || strings.HasPrefix(b.Name, "osd."):
		return fail("a name has no space and does not begin with osd.")
	case again:
		return fail("it is there twice")
	case !known || kind == 0:
		return fail("type %.40q is not one of %s", b.Type, strings.Join(r.file.Types, ", "))
	case !possible:
		return fail("alg %.40q is not straw2, uniform, list or tree", b.Alg)
	}
	made := crush.Bucket{ID: b.ID, Type: kind, Algorithm: algorithm}
	if b.ID == 0 {
		for made.ID = -1; taken[made.ID]; made.ID-- {
		}
		taken[made.ID] = true
	}
	for _, text := range b.Items {
		item, weight, err := r.item(text)
		if err != nil {
			return fail("item %.60q: %w", text, err)
		}
		made.Items = append(made.Items, item)
		made.Weights = append(made.Weights, weight)
	}
	r.ids[b.Name] = made.ID
	r.m.Buckets = append(r.m.Buckets, made)
	return nil
}

// item reads NAME, or NAME WEIGHT.
func (r *reader) item(text string) (item int32, weight uint32, err error) {
	name, behind, weighed := strings.Cut(text, " ")
	if item, err = r.named(name); err != nil {
		return 0, 0, err
	}
	if weighed {
		weight, err = fixed(strings.TrimSpace(behind))
		return item, weight, err
	}
	if item >= 0 {
		return item, crush.One, nil
	}
	for i := range r.m.Buckets {
		if b := &r.m.Buckets[i]; b.ID == item {
			return item, b.Weight(), nil
		}
	}
	return 0, 0, fmt.Errorf("it must stand above in the list")
}

// named returns the id of a device or bucket.
func (r *reader) named(name string) (int32, error) {
	if number, ok := strings.CutPrefix(name, "osd."); ok {
		id, err := strconv.ParseUint(number, 10, 31)
		if err != nil || id >= crush.MaxDevices {
			return 0, fmt.Errorf("%.40q is not osd.0 to osd.%d", name, crush.MaxDevices-1)
		}
		r.m.Devices = max(r.m.Devices, int(id)+1)
		return int32(id), nil
	}
	id, ok := r.ids[name]
	if !ok {
		return 0, fmt.Errorf("there is no bucket %.40q above it", name)
	}
	return id, nil
}

// fixed reads a weight into 16.16.
func fixed(text string) (uint32, error) {
	weight, err := strconv.ParseFloat(text, 64)
	if err != nil || !(weight >= 0 && weight <= 10000) {
		return 0, fmt.Errorf("weight %.40q is not a number from 0 to 10000", text)
	}
	return uint32(math.Round(weight * crush.One)), nil
}

func (r *reader) reweight() error {
	r.m.Reweight = slices.Repeat([]uint32{crush.One}, r.m.Devices)
	for name, value := range r.file.Reweight {
		id, err := r.named(name)
		switch {
		case err != nil:
			return fmt.Errorf("CRUSH map: reweight: %w", err)
		case id < 0 || int(id) >= len(r.m.Reweight):
			return fmt.Errorf("CRUSH map: reweight: no bucket holds device %.40q", name)
		case !(value >= 0 && value <= 1):
			return fmt.Errorf("CRUSH map: reweight of %s is %v: it must be from 0 to 1", name, value)
		}
		r.m.Reweight[id] = uint32(math.Round(value * crush.One))
	}
	return nil
}
