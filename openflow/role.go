package openflow

// Role of a controller towards a switch (OF1.4 section 6.3.5).
type Role uint32

// The roles. One master at most; the switch refuses writes of slaves.
const (
	RoleNoChange Role = 0 // only ask
	RoleEqual    Role = 1
	RoleMaster   Role = 2
	RoleSlave    Role = 3
)

// String returns the role's name in lower case.
func (r Role) String() string {
	switch r {
	case RoleNoChange:
		return "nochange"
	case RoleEqual:
		return "equal"
	case RoleMaster:
		return "master"
	case RoleSlave:
		return "slave"
	}
	return "unknown"
}

// RoleBody is what the role messages have in common.
type RoleBody struct {
	Role Role
	// GenerationID orders the claims of masters: one that is before the last
	// is refused (RoleRequestFailedStale). In a reply, all ones if there was none yet.
	GenerationID uint64
}

// RoleRequest asks for a role (OF1.4 section 7.3.8).
type RoleRequest struct{ RoleBody }

// RoleReply tells the role.
type RoleReply struct{ RoleBody }

// RoleStatus tells that the switch changed the role (OF1.4 section 7.4.4).
type RoleStatus struct {
	RoleBody
	Reason     RoleReason
	Properties []RawProperty
}

// RoleReason says why the switch changed the role.
type RoleReason uint8

// The reasons.
const (
	RoleMasterRequest RoleReason = 0 // another controller became master
	RoleConfig        RoleReason = 1
	RoleExperimenter  RoleReason = 2
)

// Type returns TypeRoleRequest.
func (*RoleRequest) Type() Type { return TypeRoleRequest }

// Type returns TypeRoleReply.
func (*RoleReply) Type() Type { return TypeRoleReply }

// Type returns TypeRoleStatus.
func (*RoleStatus) Type() Type { return TypeRoleStatus }

func (m *RoleBody) appendBody(b []byte) ([]byte, error) {
	return append64(append(append32(b, uint32(m.Role)), 0, 0, 0, 0), m.GenerationID), nil
}

func (m *RoleStatus) appendBody(b []byte) ([]byte, error) {
	b = append(append32(b, uint32(m.Role)), byte(m.Reason), 0, 0, 0)
	return appendRawProperties(append64(b, m.GenerationID), m.Properties)
}

func parseRoleBody(d *decoder) (r RoleBody) {
	r.Role = Role(d.u32())
	d.skip(4)
	r.GenerationID = d.u64()
	return r
}

func parseRoleStatus(d *decoder) *RoleStatus {
	m := &RoleStatus{RoleBody: RoleBody{Role: Role(d.u32())}, Reason: RoleReason(d.u8())}
	d.skip(3)
	m.GenerationID = d.u64()
	m.Properties = parseRawProperties(d, "role property")
	return m
}
