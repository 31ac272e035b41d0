package mapfile

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"brlb/maglev/crush"
)

// choosing are the operations of "choose firstn 3 type host" and the like.
var choosing = map[string]crush.Op{
	"choose firstn": crush.ChooseFirstn, "choose indep": crush.ChooseIndep,
	"chooseleaf firstn": crush.ChooseleafFirstn, "chooseleaf indep": crush.ChooseleafIndep,
}

// settings are the operations of "set_choose_tries 100" and the like.
var settings = map[string]crush.Op{
	"set_choose_tries": crush.SetChooseTries, "set_chooseleaf_tries": crush.SetChooseleafTries,
	"set_choose_local_tries": crush.SetLocalTries, "set_choose_local_fallback_tries": crush.SetFallbackTries,
	"set_chooseleaf_vary_r": crush.SetVaryR, "set_chooseleaf_stable": crush.SetStable,
	"set_msr_descents": crush.SetMSRDescents, "set_msr_collision_tries": crush.SetMSRCollision,
}

// ruleTypes are the kinds of rules.
var ruleTypes = map[string]crush.RuleType{
	"replicated": crush.Replicated, "erasure": crush.Erasure, "msr_firstn": crush.MSRFirstn, "msr_indep": crush.MSRIndep,
}

// step reads a step of a rule, in crushtool's words.
func (r *reader) step(text string) (crush.Step, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return crush.Step{}, fmt.Errorf("it is empty")
	}
	if op, ok := settings[words[0]]; ok && len(words) == 2 {
		value, err := number(words[1])
		return crush.Step{Op: op, Arg1: value}, err
	}
	switch {
	case words[0] == "emit" && len(words) == 1:
		return crush.Step{Op: crush.Emit}, nil
	case words[0] == "take":
		return r.take(words[1:])
	case words[0] == "choosemsr" && len(words) == 4 && words[2] == "type":
		return r.choose(crush.ChooseMSR, words[1], words[3])
	case len(words) == 5 && words[3] == "type":
		if op, ok := choosing[words[0]+" "+words[1]]; ok {
			return r.choose(op, words[2], words[4])
		}
	}
	return crush.Step{}, fmt.Errorf("it is none of take NAME [class CLASS], choose|chooseleaf firstn|indep N type TYPE, choosemsr N type TYPE, emit, %s N",
		strings.Join(sortedSettings(), "|"))
}

func (r *reader) choose(op crush.Op, count, kind string) (crush.Step, error) {
	id, known := r.types[kind]
	if !known {
		return crush.Step{}, fmt.Errorf("type %.40q is not known", kind)
	}
	n, err := number(count)
	return crush.Step{Op: op, Arg1: n, Arg2: id}, err
}

// take reads NAME, or NAME class CLASS.
func (r *reader) take(words []string) (crush.Step, error) {
	if len(words) != 1 && (len(words) != 3 || words[1] != "class") {
		return crush.Step{}, fmt.Errorf("write take NAME, or take NAME class CLASS")
	}
	id, err := r.named(words[0])
	if err == nil && len(words) == 3 {
		id, err = r.shadow(id, words[2])
	}
	return crush.Step{Op: crush.Take, Arg1: id}, err
}

// shadow returns the id of a bucket's shadow tree, which has only the devices of
// a class.
func (r *reader) shadow(bucket int32, class string) (int32, error) {
	names, known := r.file.Classes[class]
	if !known {
		return 0, fmt.Errorf("there is no class %.40q", class)
	}
	key := fmt.Sprint(bucket, " ", class)
	if id, made := r.shadows[key]; made {
		return id, nil
	}
	var devices []int32
	for _, name := range names {
		id, err := r.named(name)
		if err != nil {
			return 0, err
		}
		devices = append(devices, id)
	}
	if r.m.ChooseArgs == nil {
		r.m.ChooseArgs = map[int32]crush.ChooseArg{}
	}
	id, err := crush.AddShadow(&r.m.Map, bucket, func(device int32) bool { return slices.Contains(devices, device) }, map[int32]int32{})
	if err == nil {
		r.shadows[key] = id
	}
	return id, err
}

func number(text string) (int32, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%.40q is not a whole number", text)
	}
	return int32(n), nil
}

func sortedSettings() []string {
	var names []string
	for name := range settings {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
