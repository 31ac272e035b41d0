package session

import (
	"context"
	"errors"
	"fmt"

	"brlb/openflow"
)

// Outcome is what became of a bundle.
type Outcome uint8

// The outcomes.
const (
	// Applied: the switch confirmed the commit; every message took effect.
	Applied Outcome = iota + 1
	// Rejected: nothing took effect.
	Rejected
	// Unknown: the commit was sent and its answer never came. Read the switch
	// before anything else is sent.
	Unknown
)

// String returns "applied", "rejected" or "unknown".
func (o Outcome) String() string {
	switch o {
	case Applied:
		return "applied"
	case Rejected:
		return "rejected"
	case Unknown:
		return "unknown"
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// BundleResult is what became of a bundle, and why.
type BundleResult struct {
	Outcome Outcome
	// Errors is all that the switch refused, the cause first. It is empty if
	// the bundle was applied, and if it failed for another reason.
	Errors RejectedError
	// Err is nil if the bundle was applied. Else it is Errors, or what ended
	// the call early: a *ClosedError, the context's error, or a message that
	// a bundle may not carry.
	Err error
}

// bundleFlags are the flags of every bundle: the switch applies the messages in
// order, and all or none (OF1.4 section 7.3.9.4).
const bundleFlags = openflow.BundleAtomic | openflow.BundleOrdered

// Bundle has the switch apply all messages or none, and waits until it has. It
// sends OPEN, one ADD each, a BARRIER, and when the barrier was answered COMMIT;
// or DISCARD, if the switch refused anything before, because Open vSwitch would
// commit the rest.
//
// A bundle carries FlowMod, GroupMod and PacketOut. Any other message is refused
// before anything is sent. An empty bundle sends nothing and is applied.
//
// Open vSwitch drops a bundle that gets no message for 10 s, which is rejected.
func (s *Session) Bundle(ctx context.Context, messages []openflow.Message) BundleResult {
	if len(messages) == 0 {
		return BundleResult{Outcome: Applied}
	}
	if err := bundlable(messages); err != nil {
		return BundleResult{Outcome: Rejected, Err: fmt.Errorf("openflow session with %s: %w", s.opts.Peer, err)}
	}
	ctx, cancel := s.bound(ctx)
	defer cancel()
	b := bundle{s: s, in: s.newInbox(), id: s.nextBundle(), messages: messages}
	return b.run(ctx)
}

// bundlable refuses what Open vSwitch would (17,10), and PORT_MOD, which it
// takes and then fails the commit for.
func bundlable(messages []openflow.Message) error {
	for i, m := range messages {
		switch m.Type() {
		case openflow.TypeFlowMod, openflow.TypeGroupMod, openflow.TypePacketOut:
		default:
			return fmt.Errorf("message %d of a bundle is %v; a bundle carries flow-mods, group-mods and packet-outs", i, m.Type())
		}
	}
	return nil
}

// nextBundle returns a bundle id that this session has not used: opening an id
// that exists destroys it.
func (s *Session) nextBundle() uint32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bundle++
	return s.bundle
}

// bundle is one bundle on its way. The transaction ids are places in its inbox:
// 0 is OPEN, then come the ADDs, then the three below.
type bundle struct {
	s        *Session
	in       *inbox
	id       uint32
	messages []openflow.Message
	errors   RejectedError
}

func (b *bundle) barrier() int { return len(b.messages) + 1 }
func (b *bundle) commit() int  { return len(b.messages) + 2 }
func (b *bundle) discard() int { return len(b.messages) + 3 }

func (b *bundle) run(ctx context.Context) BundleResult {
	err := b.s.enqueue(ctx, b.in, b.discard()+1, 1, func(int) openflow.Message { return b.control(openflow.BundleOpenRequest) })
	if err != nil {
		return BundleResult{Outcome: Rejected, Err: err}
	}
	defer b.in.close()

	var add openflow.BundleAdd
	err = b.in.sendAll(ctx, 1, len(b.messages)+1, func(i int) openflow.Message {
		if i == len(b.messages) {
			return &openflow.BarrierRequest{}
		}
		add = openflow.BundleAdd{ID: b.id, Flags: bundleFlags, Message: b.messages[i]}
		return &add
	})
	if err == nil {
		err = b.prepare(ctx)
	}
	if err != nil {
		b.abandon(ctx)
		return b.rejected(err)
	}
	if err := b.in.send(ctx, b.commit(), b.control(openflow.BundleCommitRequest)); err != nil {
		b.abandon(ctx)
		return b.rejected(err)
	}
	return b.await(ctx)
}

// prepare waits for the barrier. Its error says why the bundle must not be
// committed.
func (b *bundle) prepare(ctx context.Context) error {
	opened := false
	for {
		place, m, err := b.in.next(ctx)
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *openflow.Error:
			b.note(place, m)
			if place == b.barrier() {
				return b.errors
			}
		case *openflow.BundleControl:
			if place == 0 && m.Kind == openflow.BundleOpenReply && m.ID == b.id && !opened {
				opened = true
				continue
			}
			b.s.countUnknown(1)
		case *openflow.BarrierReply:
			if place != b.barrier() {
				b.s.countUnknown(1)
				continue
			}
			switch {
			case len(b.errors) > 0:
				return b.errors
			case !opened:
				return errors.New("the switch did not say that it opened the bundle")
			}
			return nil
		default:
			b.s.countUnknown(1)
		}
	}
}

// await waits for the answer to the commit. What it does not know it says.
func (b *bundle) await(ctx context.Context) BundleResult {
	for {
		place, m, err := b.in.next(ctx)
		if err != nil {
			return BundleResult{Outcome: Unknown, Errors: b.errors, Err: err}
		}
		switch m := m.(type) {
		case *openflow.Error:
			b.note(place, m)
			if place == b.commit() {
				return b.rejected(b.errors)
			}
		case *openflow.BundleControl:
			if place != b.commit() || m.Kind != openflow.BundleCommitReply || m.ID != b.id {
				b.s.countUnknown(1)
				continue
			}
			if len(b.errors) > 0 {
				return BundleResult{Outcome: Unknown, Errors: b.errors,
					Err: fmt.Errorf("the switch confirmed the commit after it had reported an error: %w", b.errors)}
			}
			return BundleResult{Outcome: Applied}
		default:
			b.s.countUnknown(1)
		}
	}
}

// abandon discards the bundle and waits until that is done, so that the next
// call finds the switch in order. The answer does not matter: after some errors
// the switch has no such bundle any more. If ctx is over nobody waits.
func (b *bundle) abandon(ctx context.Context) {
	if b.in.sendNow(b.discard(), b.control(openflow.BundleDiscardRequest)) != nil {
		return
	}
	for {
		place, m, err := b.in.next(ctx)
		if err != nil || place == b.discard() {
			return
		}
		if e, ok := m.(*openflow.Error); ok {
			b.note(place, e)
		}
	}
}

func (b *bundle) control(kind openflow.BundleControlType) openflow.Message {
	return &openflow.BundleControl{ID: b.id, Kind: kind, Flags: bundleFlags}
}

func (b *bundle) rejected(err error) BundleResult {
	return BundleResult{Outcome: Rejected, Errors: b.errors, Err: err}
}

// note keeps an error of the switch under the index of the message it names.
func (b *bundle) note(place int, e *openflow.Error) {
	index := -1
	if place >= 1 && place <= len(b.messages) {
		index = place - 1
	}
	b.errors = append(b.errors, &MessageError{Index: index, Err: e})
}
