package oftest

import "brlb/openflow"

// bundleControl does what Open vSwitch does with bundles, its surprises
// included.
func (c *switchConn) bundleControl(r Received, m *openflow.BundleControl) {
	b := c.bundles[m.ID]
	answer := func(kind openflow.BundleControlType) {
		c.reply(r, &openflow.BundleControl{ID: m.ID, Kind: kind})
	}
	if c.role == openflow.RoleSlave {
		c.refuse(r, openflow.BadRequestIsSlave)
		return
	}
	switch m.Kind {
	case openflow.BundleOpenRequest:
		if b != nil { // the old one is lost too
			delete(c.bundles, m.ID)
			c.refuse(r, openflow.BundleFailedBadID)
			return
		}
		c.bundles[m.ID] = &stagedBundle{flags: m.Flags}
		answer(openflow.BundleOpenReply)
	case openflow.BundleCloseRequest:
		switch {
		case b == nil:
			c.refuse(r, openflow.BundleFailedBadID)
		case b.closed:
			delete(c.bundles, m.ID)
			c.refuse(r, openflow.BundleFailedBundleClosed)
		case b.flags != m.Flags:
			delete(c.bundles, m.ID)
			c.refuse(r, openflow.BundleFailedBadFlags)
		default:
			b.closed = true
			answer(openflow.BundleCloseReply)
		}
	case openflow.BundleCommitRequest:
		switch {
		case b == nil:
			c.refuse(r, openflow.BundleFailedBadID)
		case b.flags != m.Flags:
			delete(c.bundles, m.ID)
			c.refuse(r, openflow.BundleFailedBadFlags)
		default:
			delete(c.bundles, m.ID)
			if c.commit(r, b) {
				answer(openflow.BundleCommitReply)
			}
		}
	case openflow.BundleDiscardRequest:
		if b == nil {
			c.refuse(r, openflow.BundleFailedBadID)
			return
		}
		delete(c.bundles, m.ID)
		answer(openflow.BundleDiscardReply)
	default:
		c.refuse(r, openflow.BundleFailedBadType)
	}
}

// bundleAdd stages a message. A refused one leaves the bundle as it was; an
// unknown bundle is opened.
func (c *switchConn) bundleAdd(r Received, m *openflow.BundleAdd) {
	switch m.Message.(type) {
	case *openflow.FlowMod:
		c.sw.flowMods++
	case *openflow.PacketOut, *openflow.GroupMod:
	default:
		c.refuse(r, openflow.BundleFailedMsgUnsup)
		return
	}
	if code := c.admit(m.Message); code != 0 {
		c.refuse(r, code)
		return
	}
	b := c.bundles[m.ID]
	switch {
	case b == nil:
		b = &stagedBundle{flags: m.Flags}
		c.bundles[m.ID] = b
	case b.closed:
		delete(c.bundles, m.ID)
		c.refuse(r, openflow.BundleFailedBundleClosed)
		return
	case b.flags != m.Flags:
		delete(c.bundles, m.ID)
		c.refuse(r, openflow.BundleFailedBadFlags)
		return
	}
	b.messages = append(b.messages, m.Message)
	b.requests = append(b.requests, r)
}

// commit applies a bundle, all of it or nothing, and says whether that is to be
// confirmed.
func (c *switchConn) commit(r Received, b *stagedBundle) bool {
	sw := c.sw
	cut := sw.cut
	sw.cut = noCut
	if cut == cutBeforeCommit {
		c.conn.Close()
		return false
	}
	tables := sw.tables.clone()
	changes, failed, code := tables.applyAll(b.messages, sw.refuseEnd)
	if code != 0 { // first the cause, then that the bundle failed
		c.refuse(b.requests[failed], code)
		c.refuse(r, openflow.BundleFailedMsgFailed)
		return false
	}
	sw.tables = tables
	xid := r.Header.Xid
	if len(b.requests) > 0 {
		xid = b.requests[0].Header.Xid
	}
	if cut == cutAfterCommit {
		c.conn.Close()
	}
	sw.doneLocked(c, xid, b.messages, changes)
	return cut == noCut
}
