package crush

import "fmt"

// Op is what a step of a rule does, with Ceph's numbers.
type Op uint8

// The steps. Arg1 and Arg2 are a step's arguments.
const (
	Take               Op = 1  // start from the device or bucket Arg1
	ChooseFirstn       Op = 2  // Arg1 items of type Arg2 below each one so far
	ChooseIndep        Op = 3  // the same, each position for itself
	Emit               Op = 4  // add what was chosen to the result
	ChooseleafFirstn   Op = 6  // items of type Arg2, and a device below each
	ChooseleafIndep    Op = 7  // the same, each position for itself
	SetChooseTries     Op = 8  // Arg1 in place of total_tries+1
	SetChooseleafTries Op = 9  // Arg1 tries for the device below an item
	SetLocalTries      Op = 10 // Arg1 in place of the tunable
	SetFallbackTries   Op = 11
	SetVaryR           Op = 12
	SetStable          Op = 13
	SetMSRDescents     Op = 14
	SetMSRCollision    Op = 15
	ChooseMSR          Op = 16 // Arg1 items of type Arg2, retried from the root
)

// Step is one step of a rule. For the choose steps, an Arg1 of 0 or less counts
// from the size of the result (for ChooseMSR only 0).
type Step struct {
	Op         Op
	Arg1, Arg2 int32
}

// RuleType tells the families of rules apart, with Ceph's numbers.
type RuleType uint8

// MSR rules consist of MSR settings and then of Take, ChooseMSR..., Emit; the
// others of all other steps.
const (
	Replicated RuleType = 1
	Erasure    RuleType = 3
	MSRFirstn  RuleType = 4
	MSRIndep   RuleType = 5
)

// Rule is a way to walk the hierarchy.
type Rule struct {
	Type  RuleType
	Steps []Step
}

// Limits of rules and results.
const (
	MaxSize  = 256 // positions of a result
	maxSteps = 64
	maxTries = 10000
	maxVaryR = 31
)

// check refuses rules that are malformed or would run too long.
func (m *Mapper) check(rule Rule, size int) error {
	if size < 1 || size > MaxSize {
		return fmt.Errorf("crush result of size %d: use 1 to %d", size, MaxSize)
	}
	if len(rule.Steps) > maxSteps {
		return fmt.Errorf("crush rule of %d steps: at most %d are possible", len(rule.Steps), maxSteps)
	}
	isMSR := rule.Type == MSRFirstn || rule.Type == MSRIndep
	for i, step := range rule.Steps {
		valid, msr := true, isMSR
		switch step.Op {
		case Take:
			valid = m.bucket(step.Arg1) != nil || step.Arg1 >= 0 && step.Arg1 < m.devices
		case Emit:
		case ChooseFirstn, ChooseIndep, ChooseleafFirstn, ChooseleafIndep:
			valid, msr = step.Arg1 <= MaxSize && step.Arg2 >= 0, false
		case SetChooseTries, SetChooseleafTries, SetLocalTries, SetFallbackTries, SetStable:
			valid, msr = step.Arg1 <= maxTries, false
		case SetVaryR:
			valid, msr = step.Arg1 <= maxVaryR, false
		case SetMSRDescents, SetMSRCollision:
			valid, msr = step.Arg1 >= 0 && step.Arg1 <= maxTries, true
		case ChooseMSR:
			valid, msr = step.Arg1 >= 0 && step.Arg1 <= MaxSize && step.Arg2 >= 0, true
		default:
			valid = false
		}
		if !valid {
			return fmt.Errorf("crush rule step %d, op %d with arguments %d and %d, is not possible on this map", i, step.Op, step.Arg1, step.Arg2)
		}
		if msr != isMSR {
			return fmt.Errorf("crush rule step %d, op %d, does not belong into a rule of type %d", i, step.Op, rule.Type)
		}
	}
	return nil
}

// Do appends to dst the devices (or buckets, if the rule ends at some) that a
// rule gives for input x: at most size ones. Rules of the indep kind mark
// positions that they could not fill with [None].
//
// reweight holds, for each device, the 16.16 probability that it is in; devices
// beyond its end are out. With a nil slice all devices are in.
func (m *Mapper) Do(dst []int32, rule Rule, x uint32, size int, reweight []uint32) ([]int32, error) {
	if err := m.check(rule, size); err != nil {
		return dst, err
	}
	p := placement{Mapper: m, x: x, size: size, reweight: reweight}
	if rule.Type == MSRFirstn || rule.Type == MSRIndep {
		return p.doMSR(dst, rule)
	}
	return p.do(dst, rule), nil
}

// placement is one run of a rule.
type placement struct {
	*Mapper
	x        uint32
	size     int
	reweight []uint32
}

// isOut reports whether a device is to be passed over.
func (p *placement) isOut(device int32) bool {
	if p.reweight == nil {
		return false
	}
	if int(device) >= len(p.reweight) {
		return true
	}
	weight := p.reweight[device]
	return weight < One && Hash2(p.x, uint32(device))&0xffff >= weight
}

// tries are the limits that hold at one point of a rule.
type tries struct {
	total, leaf, local, fallback int
	varyR                        int
	stable                       bool
}

// do runs a rule that is not MSR.
func (p *placement) do(dst []int32, rule Rule) []int32 {
	for i := range p.scratch {
		if len(p.scratch[i]) < p.size {
			p.scratch[i] = make([]int32, MaxSize)
		}
	}
	from, to, leaves := p.scratch[0], p.scratch[1], p.scratch[2]
	count := 0 // items in from
	limit := tries{
		total: p.tunables.TotalTries + 1, local: p.tunables.LocalTries, fallback: p.tunables.LocalFallbackTries,
		varyR: p.tunables.VaryR, stable: p.tunables.Stable,
	}
	start := len(dst)
	for _, step := range rule.Steps {
		switch step.Op {
		case Take:
			from[0], count = step.Arg1, 1
		case SetChooseTries:
			setPositive(&limit.total, step.Arg1)
		case SetChooseleafTries:
			setPositive(&limit.leaf, step.Arg1)
		case SetLocalTries:
			setNatural(&limit.local, step.Arg1)
		case SetFallbackTries:
			setNatural(&limit.fallback, step.Arg1)
		case SetVaryR:
			setNatural(&limit.varyR, step.Arg1)
		case SetStable:
			if step.Arg1 >= 0 {
				limit.stable = step.Arg1 > 0
			}
		case ChooseFirstn, ChooseIndep, ChooseleafFirstn, ChooseleafIndep:
			if count > 0 {
				count = p.step(step, limit, from[:count], to[:p.size], leaves[:p.size])
				if step.Op == ChooseleafFirstn || step.Op == ChooseleafIndep {
					copy(to, leaves[:count])
				}
				from, to = to, from
			}
		case Emit:
			dst = append(dst, from[:min(count, p.size-(len(dst)-start))]...)
			count = 0
		}
	}
	return dst
}

func setPositive(v *int, n int32) {
	if n > 0 {
		*v = int(n)
	}
}

func setNatural(v *int, n int32) {
	if n >= 0 {
		*v = int(n)
	}
}

// step runs a choose step for each of the items so far. It returns how many
// were chosen.
func (p *placement) step(step Step, limit tries, from, to, leaves []int32) int {
	chosen := 0
	for _, item := range from {
		replicas := int(step.Arg1)
		if replicas <= 0 {
			replicas += p.size
		}
		b := p.bucket(item)
		if replicas <= 0 || b == nil {
			continue
		}
		c := choice{placement: p, tries: limit, kind: step.Arg2, replicas: replicas,
			out: to[chosen:], leaf: step.Op == ChooseleafFirstn || step.Op == ChooseleafIndep}
		if c.leaf {
			c.leaves = leaves[chosen:]
		}
		if step.Op == ChooseFirstn || step.Op == ChooseleafFirstn {
			if c.tries.leaf == 0 {
				c.tries.leaf = limit.total
				if p.tunables.DescendOnce {
					c.tries.leaf = 1
				}
			}
			chosen += c.firstn(b, 0, len(c.out), 0)
		} else {
			c.tries.leaf = max(1, c.tries.leaf)
			left := min(replicas, len(c.out))
			c.indep(b, 0, left, 0)
			chosen += left
		}
	}
	return chosen
}
