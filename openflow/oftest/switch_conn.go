package oftest

import (
	"net"
	"slices"
	"sync"

	"brlb/openflow"
)

// maxWaiting is how many octets of replies may wait before the switch stops
// reading the connection, as Open vSwitch does (at 100 replies).
const maxWaiting = 64 << 10

// switchConn is one connection to a Switch. Switch.mu guards all but conn.
type switchConn struct {
	sw   *Switch
	conn net.Conn

	out     []byte // waits for writeLoop
	outMore sync.Cond
	ended   bool

	async    bool // gets asynchronous messages
	role     openflow.Role
	config   openflow.SwitchConfig
	bundles  map[uint32]*stagedBundle
	monitors []openflow.FlowMonitor
}

// stagedBundle is a bundle that is open.
type stagedBundle struct {
	flags    openflow.BundleFlags
	closed   bool
	messages []openflow.Message
	requests []Received // the ADDs, for errors
}

func newSwitchConn(sw *Switch, conn net.Conn) *switchConn {
	c := &switchConn{
		sw: sw, conn: conn, async: !sw.opts.Service, role: openflow.RoleEqual,
		bundles: map[uint32]*stagedBundle{},
	}
	if !sw.opts.Service {
		c.config.MissSendLen = 128
	}
	c.outMore.L = &sw.mu
	return c
}

// readLoop greets and then does what it is asked, message by message.
func (c *switchConn) readLoop() {
	sw := c.sw
	defer sw.serving.Done()
	defer c.end()
	sw.mu.Lock()
	c.send(0, hello())
	sw.mu.Unlock()
	for {
		r, err := ReadMessage(c.conn)
		sw.mu.Lock()
		sw.waitThawLocked()
		switch {
		case len(r.Octets) == 0 || sw.closed:
			sw.mu.Unlock()
			return
		case err != nil:
			c.refuse(r, openflow.BadRequestBadLen)
		default:
			c.handle(r)
		}
		for len(c.out) > maxWaiting && !c.ended {
			c.outMore.Wait()
		}
		sw.mu.Unlock()
	}
}

// writeLoop writes what waits, so that nothing done under Switch.mu waits for
// the peer.
func (c *switchConn) writeLoop() {
	sw := c.sw
	defer sw.serving.Done()
	for {
		sw.mu.Lock()
		sw.waitThawLocked()
		for len(c.out) == 0 && !c.ended {
			c.outMore.Wait()
		}
		out := c.out
		c.out = nil
		ended := c.ended
		sw.mu.Unlock()
		if ended {
			return
		}
		c.outMore.Broadcast()
		if _, err := c.conn.Write(out); err != nil {
			c.end()
			return
		}
	}
}

// end forgets the connection, and with it its bundles and monitors.
func (c *switchConn) end() {
	c.conn.Close()
	c.sw.mu.Lock()
	c.ended = true
	c.sw.conns = slices.DeleteFunc(c.sw.conns, func(other *switchConn) bool { return other == c })
	c.sw.mu.Unlock()
	c.outMore.Broadcast()
}

// send queues a message. A message that cannot be encoded is the test's mistake.
func (c *switchConn) send(xid uint32, m openflow.Message) {
	out, err := openflow.Append(c.out, xid, m)
	if err != nil {
		panic("oftest: " + err.Error())
	}
	c.out = out
	c.outMore.Broadcast()
}

func (c *switchConn) reply(r Received, m openflow.Message) { c.send(r.Header.Xid, m) }

// refuse answers with an error that holds the whole request, as Open vSwitch
// does, as far as it fits.
func (c *switchConn) refuse(r Received, code openflow.ErrorCode) {
	const errorHeader = 12
	data := r.Octets[:min(len(r.Octets), openflow.MaxMessageLen-errorHeader)]
	c.reply(r, &openflow.Error{Code: code, Data: data})
}

// handle does what one message asks.
func (c *switchConn) handle(r Received) {
	sw := c.sw
	sw.received[r.Header.Type]++
	switch m := r.Message.(type) {
	case *openflow.Hello, *openflow.EchoReply, *openflow.Error:
	case *openflow.EchoRequest:
		c.reply(r, &openflow.EchoReply{Data: m.Data})
	case *openflow.FeaturesRequest:
		c.reply(r, defaultFeatures())
	case *openflow.GetConfigRequest:
		c.reply(r, &openflow.GetConfigReply{SwitchConfig: c.config})
	case *openflow.SetConfig:
		c.config = m.SwitchConfig
		c.async = !sw.opts.Service || m.MissSendLen != 0
	case *openflow.SetAsync:
	case *openflow.BarrierRequest:
		c.reply(r, &openflow.BarrierReply{})
	case *openflow.MultipartRequest:
		c.multipart(r, m)
	case *openflow.RoleRequest:
		c.setRole(r, m)
	case *openflow.FlowMod, *openflow.PacketOut, *openflow.GroupMod, *openflow.MeterMod:
		c.change(r)
	case *openflow.BundleControl:
		c.bundleControl(r, m)
	case *openflow.BundleAdd:
		c.bundleAdd(r, m)
	case *openflow.CTFlush, *openflow.CTFlushZone:
		if c.role == openflow.RoleSlave {
			c.refuse(r, openflow.BadRequestIsSlave)
		}
	default:
		c.refuse(r, openflow.BadRequestBadType)
	}
}

// change does a flow-mod or packet-out that is in no bundle.
func (c *switchConn) change(r Received) {
	sw := c.sw
	if _, ok := r.Message.(*openflow.FlowMod); ok {
		sw.flowMods++
	}
	if code := c.admit(r.Message); code != 0 {
		c.refuse(r, code)
		return
	}
	changes, _, code := sw.tables.applyAll([]openflow.Message{r.Message}, sw.refuseEnd)
	if code != 0 {
		c.refuse(r, code)
		return
	}
	sw.doneLocked(c, r.Header.Xid, []openflow.Message{r.Message}, changes)
}

// admit says what is wrong with a message that changes the switch, before the
// flows are looked at.
func (c *switchConn) admit(m openflow.Message) openflow.ErrorCode {
	if c.role == openflow.RoleSlave {
		return openflow.BadRequestIsSlave
	}
	if c.sw.refuseAdd != nil {
		if code := c.sw.refuseAdd(m); code != 0 {
			return code
		}
	}
	if m, ok := m.(*openflow.MeterMod); ok && c.sw.opts.NoMeters && m.Command != openflow.MeterDelete {
		return openflow.MeterModFailedOutOfBands
	}
	return checkMessage(m)
}

// doneLocked notes what messages of c have done and tells of it.
func (sw *Switch) doneLocked(c *switchConn, xid uint32, messages []openflow.Message, changes []change) {
	for _, m := range messages {
		if out, ok := m.(*openflow.PacketOut); ok {
			sw.packetOuts = append(sw.packetOuts, out)
		}
	}
	sw.tellLocked(c, xid, changes)
}

// setRole does a role request.
func (c *switchConn) setRole(r Received, m *openflow.RoleRequest) {
	sw := c.sw
	switch m.Role {
	case openflow.RoleNoChange, openflow.RoleEqual:
	case openflow.RoleMaster, openflow.RoleSlave:
		if sw.generated && int64(m.GenerationID-sw.generation) < 0 {
			c.refuse(r, openflow.RoleRequestFailedStale)
			return
		}
		sw.generation, sw.generated = m.GenerationID, true
	default:
		c.refuse(r, openflow.RoleRequestFailedBadRole)
		return
	}
	if m.Role == openflow.RoleMaster {
		for _, other := range sw.conns {
			if other != c && other.role == openflow.RoleMaster {
				other.role = openflow.RoleSlave
				other.send(0, &openflow.RoleStatus{
					RoleBody: openflow.RoleBody{Role: openflow.RoleSlave, GenerationID: sw.generation},
					Reason:   openflow.RoleMasterRequest,
				})
			}
		}
	}
	if m.Role != openflow.RoleNoChange {
		c.role = m.Role
	}
	generation := sw.generation
	if !sw.generated {
		generation = ^uint64(0)
	}
	c.reply(r, &openflow.RoleReply{RoleBody: openflow.RoleBody{Role: c.role, GenerationID: generation}})
}
