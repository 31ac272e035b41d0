package controller

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"brlb/controller/config"
	"brlb/controller/state"
)

// describeConfigs says what differs between two configurations, a sentence
// each. overrideOf is what operators have decided about a member.
func describeConfigs(old, new *config.Config, overrideOf func(state.MemberID) state.Override) []string {
	d := &description{overrideOf: overrideOf}
	for _, f := range differences(old, new, "Checks", "Pools", "Services") {
		d.sayf("%s", f)
	}
	eachNamed(old.Checks, new.Checks, func(c config.Check) string { return c.Name },
		func(c config.Check) { d.sayf("check %s added", c.Name) },
		func(c config.Check) { d.sayf("check %s removed", c.Name) },
		func(a, b config.Check) {
			var keys []string // without values: headers may hold secrets
			for _, f := range differences(&a, &b) {
				keys = append(keys, f.key)
			}
			if len(keys) > 0 {
				d.sayf("check %s: other %s; until its first verdicts the old ones stand", b.Name, strings.Join(keys, ", "))
			}
		})
	eachNamed(old.Pools, new.Pools, func(p config.Pool) string { return p.Name },
		func(p config.Pool) {
			d.sayf("pool %s added: id %d, %d members", p.Name, p.ID, len(p.Members)+len(p.Names)+len(p.Nested))
			for _, m := range p.Members {
				d.remembered(p.Name, m)
			}
		},
		func(p config.Pool) {
			d.sayf("pool %s removed", p.Name)
			for _, m := range p.Members {
				d.leftOver(p.Name, m)
			}
		}, d.pool)
	eachNamed(old.Services, new.Services, func(s config.Service) string { return s.Name },
		func(s config.Service) {
			d.sayf("service %s added: %v %v, pool %s", s.Name, s.Addresses, s.Ports, s.Pool)
		},
		func(s config.Service) { d.sayf("service %s removed", s.Name) },
		func(a, b config.Service) {
			for _, f := range differences(&a, &b) {
				d.sayf("service %s: %s", b.Name, f)
			}
		})
	return d.sentences
}

// description collects sentences about what differs.
type description struct {
	overrideOf func(state.MemberID) state.Override
	sentences  []string
}

func (d *description) sayf(format string, args ...any) {
	d.sentences = append(d.sentences, fmt.Sprintf(format, args...))
}

// pool tells what differs between two pools of one name.
func (d *description) pool(a, b config.Pool) {
	for _, f := range differences(&a, &b, "Members", "Names", "Nested") {
		d.sayf("pool %s: %s", b.Name, f)
	}
	switch {
	case a.Stateless() != b.Stateless():
		d.sayf("pool %s: its open connections break, for in one of the modes the switch keeps them and in the other it does not", b.Name)
	case b.Stateless() && (a.ID != b.ID || a.Slots != b.Slots || a.Affinity != b.Affinity):
		d.sayf("pool %s: its open connections break, for in mode %s id, slots and affinity say where they belong", b.Name, b.Mode)
	}
	eachNamed(a.Nested, b.Nested, func(n config.Nested) string { return n.Pool },
		func(n config.Nested) { d.sayf("pool %s: pool %s is inside it", b.Name, n.Pool) },
		func(n config.Nested) { d.sayf("pool %s: pool %s is not inside it any more", b.Name, n.Pool) },
		func(was, is config.Nested) {
			for _, f := range differences(&was, &is) {
				d.sayf("pool %s: pool %s inside it: %s", b.Name, is.Pool, f)
			}
		})
	eachNamed(a.Names, b.Names, config.Name.String,
		func(n config.Name) {
			d.sayf("pool %s: member %s, %s, added: the addresses that DNS has of it", b.Name, n.Name, n)
		},
		func(n config.Name) { d.sayf("pool %s: member %s, %s, removed", b.Name, n.Name, n) },
		func(was, is config.Name) {
			for _, f := range differences(&was, &is) {
				d.sayf("pool %s: member %s: %s", b.Name, is.Name, f)
			}
		})
	eachNamed(a.Members, b.Members, config.Member.Key,
		func(m config.Member) {
			d.sayf("pool %s: member %s, %s, added", b.Name, m.Name, m.Key())
			d.remembered(b.Name, m)
		},
		func(m config.Member) {
			d.sayf("pool %s: member %s, %s, removed", b.Name, m.Name, m.Key())
			d.leftOver(b.Name, m)
		},
		func(was, is config.Member) {
			for _, f := range differences(&was, &is) {
				d.sayf("pool %s: member %s: %s", b.Name, is.Name, f)
			}
		})
}

// remembered tells what operators have decided, some time ago, about a member
// that comes back.
func (d *description) remembered(pool string, m config.Member) {
	if o := d.overrideOf(state.MemberID{Pool: pool, Key: m.Key()}); !o.IsNothing() {
		d.sayf("pool %s: member %s is %s, as was decided%s; brlb enable %s/%s takes it back", pool, m.Name, overrideText(o), by(o), pool, m.Name)
	}
}

// leftOver tells what operators have decided about a member that goes.
func (d *description) leftOver(pool string, m config.Member) {
	if o := d.overrideOf(state.MemberID{Pool: pool, Key: m.Key()}); !o.IsNothing() {
		d.sayf("pool %s: should member %s come back, it is %s; brlb overrides --clear %s/%s forgets that", pool, m.Name, overrideText(o), pool, m.Key())
	}
}

func overrideText(o state.Override) string {
	var parts []string
	if o.State != state.Enabled && o.State != "" {
		parts = append(parts, string(o.State))
	}
	if o.Weighting.To != "" {
		parts = append(parts, "of weight "+string(o.Weighting.To))
	}
	return strings.Join(parts, " and ")
}

// eachNamed compares two lists of what has names.
func eachNamed[T any](old, new []T, name func(T) string, added, removed func(T), both func(a, b T)) {
	before, now := map[string]T{}, map[string]bool{}
	for _, x := range old {
		before[name(x)] = x
	}
	for _, x := range new {
		now[name(x)] = true
		if was, known := before[name(x)]; known {
			both(was, x)
		} else {
			added(x)
		}
	}
	for _, x := range old {
		if !now[name(x)] {
			removed(x)
		}
	}
}

// difference is a setting that has another value.
type difference struct{ key, old, new string }

func (d difference) String() string { return fmt.Sprintf("%s %s instead of %s", d.key, d.new, d.old) }

// differences lists the settings of two structures that differ, as the file
// calls them, but for those left out.
func differences[T any](old, new *T, except ...string) []difference {
	return compareFields("", reflect.ValueOf(old).Elem(), reflect.ValueOf(new).Elem(), except)
}

func compareFields(path string, old, new reflect.Value, except []string) []difference {
	var list []difference
	for i := range old.NumField() {
		field := old.Type().Field(i)
		a, b := old.Field(i), new.Field(i)
		if !field.IsExported() || slices.Contains(except, field.Name) || reflect.DeepEqual(a.Interface(), b.Interface()) {
			continue
		}
		key := path + fileKey(field.Name)
		if _, plain := a.Interface().(fmt.Stringer); a.Kind() != reflect.Struct || plain {
			list = append(list, difference{key, valueText(a), valueText(b)})
			continue
		}
		if field.Anonymous {
			key = path
		} else {
			key += "."
		}
		list = append(list, compareFields(key, a, b, nil)...)
	}
	return list
}

// valueText is a value for people, cut where it is long.
func valueText(v reflect.Value) string {
	switch v.Kind() {
	case reflect.String, reflect.Slice, reflect.Array, reflect.Struct:
		if v.IsZero() {
			return "none"
		}
	}
	text := fmt.Sprint(v.Interface())
	const most = 80
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

// fileKey is the name of a field in the file: PanicBelow is panic_below there.
func fileKey(field string) string {
	var b strings.Builder
	runes := []rune(field)
	for i, r := range runes {
		begins := i > 0 && unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if begins {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
