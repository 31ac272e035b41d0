package crush

import "fmt"

// MSR rules (multi-step retry) place several devices into each failure domain
// and, when one cannot be placed, go back to the root. A block "take root,
// choosemsr 3 host, choosemsr 2 osd, emit" divides its 6 positions into 3
// strides of 2: no host serves two strides, though one stride may end up with
// more than one host. Each descent fills what positions it can; those whose
// device is out wait for the next descent, which draws anew.

// msrBlock is one block of an MSR rule under way.
type msrBlock struct {
	*placement
	kind  RuleType
	steps []Step
	// used holds, for each step, what was chosen for each position: a stride
	// collects its distinct items from its first position on.
	used           [][]int32
	collisionTries int
	descent        int
	result         []int32
	placed         int
}

// doMSR runs an MSR rule.
func (p *placement) doMSR(dst []int32, rule Rule) ([]int32, error) {
	descents, collisionTries := p.tunables.MSRDescents, p.tunables.MSRCollisionTries
	steps := rule.Steps
	for ; len(steps) > 0; steps = steps[1:] {
		if steps[0].Op == SetMSRDescents {
			descents = int(steps[0].Arg1)
		} else if steps[0].Op == SetMSRCollision {
			collisionTries = int(steps[0].Arg1)
		} else {
			break
		}
	}
	start := len(dst)
	for range p.size {
		dst = append(dst, None)
	}
	b := msrBlock{placement: p, kind: rule.Type, collisionTries: collisionTries, result: dst[start:]}
	position := 0
	for len(steps) > 0 {
		length, width, err := p.checkBlock(steps)
		if err != nil {
			return dst[:start], err
		}
		end := min(position+width, p.size)
		if root := steps[0].Arg1; root >= 0 {
			if position < end {
				b.emit(position, root)
			}
		} else {
			b.steps = steps[1 : length-1]
			b.run(p.bucket(root), width, position, end, descents)
		}
		position = end
		steps = steps[length:]
	}
	if rule.Type == MSRFirstn {
		return dst[:start+b.placed], nil
	}
	return dst, nil
}

// checkBlock returns the number of steps of the block at the start of steps,
// and how many positions it fills if the result is large enough.
func (p *placement) checkBlock(steps []Step) (length, width int, err error) {
	if steps[0].Op != Take {
		return 0, 0, fmt.Errorf("crush MSR rule: a block starts with op %d, not with take", steps[0].Op)
	}
	width = 1
	for i, step := range steps[1:] {
		switch step.Op {
		case Emit:
			if steps[0].Arg1 >= 0 && i > 0 {
				return 0, 0, fmt.Errorf("crush MSR rule: nothing can be chosen below device %d", steps[0].Arg1)
			}
			if steps[0].Arg1 < 0 && (i == 0 || steps[i].Arg2 != 0) {
				return 0, 0, fmt.Errorf("crush MSR rule: a block must end by choosing devices")
			}
			return i + 2, width, nil
		case ChooseMSR:
			if i > 0 && steps[i].Arg2 == 0 {
				return 0, 0, fmt.Errorf("crush MSR rule: nothing can be chosen below devices")
			}
			if width *= p.strides(step); width > MaxSize*MaxSize {
				return 0, 0, fmt.Errorf("crush MSR rule: a block for more than %d devices", MaxSize*MaxSize)
			}
		default:
			return 0, 0, fmt.Errorf("crush MSR rule: op %d within a block", step.Op)
		}
	}
	return 0, 0, fmt.Errorf("crush MSR rule: a block without emit")
}

// strides is into how many parts a step divides its positions.
func (p *placement) strides(step Step) int {
	if step.Arg1 == 0 {
		return p.size
	}
	return int(step.Arg1)
}

// run fills the positions from start to end below root.
func (b *msrBlock) run(root *node, width, start, end, descents int) {
	for len(b.msr) < len(b.steps) {
		b.msr = append(b.msr, make([]int32, MaxSize))
	}
	b.used = b.msr[:len(b.steps)]
	for _, used := range b.used {
		for i := range used {
			used[i] = undefined
		}
	}
	full := b.placed + end - start
	for b.descent = 0; b.descent < descents && b.placed < full; b.descent++ {
		b.choose(root, 0, width, start, end)
	}
}

// choose chooses, by the given step, for the positions from start to end below
// a bucket; width is how many there would be if the result were large enough.
// It returns how many devices it placed.
func (b *msrBlock) choose(in *node, step, width, start, end int) int {
	strides := b.strides(b.steps[step])
	length := width / strides
	placed := 0
	var barren []int // starts of strides whose item led to no device
	for stride, at := 0, start; at < end; stride, at = stride+1, at+length {
		stop := min(at+length, end)
		if b.filled(at, stop) {
			continue
		}
		item, ok := b.candidate(in, step, stride, start, end, at, stop)
		if !ok {
			continue
		}
		if b.steps[step].Arg2 == 0 {
			if !b.isOut(item) {
				b.push(step, at, stop, item)
				b.emit(at, item)
				placed++
			}
			continue
		}
		below := b.choose(b.bucket(item), step+1, length, at, stop)
		placed += below
		if fresh := b.push(step, at, stop, item); fresh && below == 0 {
			barren = append(barren, at)
		}
	}
	// Such items are forgotten only now: the other strides must not have them
	// in this descent, so that an out device disturbs as few as possible.
	for _, at := range barren {
		b.pop(step, at, min(at+length, end))
	}
	return placed
}

// candidate looks for an item for the stride from at to stop that no other
// stride between start and end has.
func (b *msrBlock) candidate(in *node, step, stride, start, end, at, stop int) (int32, bool) {
	used := b.used[step]
	for try := range b.collisionTries {
		item, ok := b.descend(in, b.steps[step].Arg2, stride, try)
		if !ok {
			return None, false
		}
		free := true
		for i := start; i < end; i++ {
			if used[i] == item {
				free = i >= at && i < stop
				break
			}
		}
		if free {
			return item, true
		}
	}
	return None, false
}

// descend walks down from a bucket to an item of the given type, or to a
// device. It fails where the walk ends without an item of that type.
func (b *msrBlock) descend(in *node, kind int32, stride, try int) (int32, bool) {
	r := uint32(b.descent*b.size+stride)<<16 + uint32(try)
	for {
		if len(in.Items) == 0 {
			return None, false
		}
		item := b.Mapper.choose(in, b.x, r, stride)
		if b.typeOf(item) == kind {
			return item, true
		}
		if in = b.bucket(item); in == nil {
			return None, false
		}
	}
}

// filled reports whether all positions from start to end have a device.
func (b *msrBlock) filled(start, end int) bool {
	for _, item := range b.used[len(b.steps)-1][start:end] {
		if item == undefined {
			return false
		}
	}
	return true
}

// push notes that a stride uses an item, and reports whether that is new.
func (b *msrBlock) push(step, start, end int, item int32) bool {
	used := b.used[step]
	for i := start; i < end; i++ {
		if used[i] == item {
			return false
		}
		if used[i] == undefined {
			used[i] = item
			return true
		}
	}
	return false
}

// pop forgets what push noted last.
func (b *msrBlock) pop(step, start, end int) {
	used := b.used[step]
	for i := end - 1; i >= start; i-- {
		if used[i] != undefined {
			used[i] = undefined
			return
		}
	}
}

// emit puts a device into the result: at its position, or behind those that
// are there already.
func (b *msrBlock) emit(position int, device int32) {
	if b.kind == MSRFirstn {
		position = b.placed
	}
	b.result[position] = device
	b.placed++
}
