package api

import (
	"net/http"
	"time"
)

// History is the answer of GET /v1/history?member=be1: the last probes.
type History struct {
	Pool    string        `json:"pool"`
	Member  string        `json:"member"`
	Address string        `json:"address"` // of the member
	Probed  string        `json:"probed"`  // where its probes go; empty if it is not probed
	Check   string        `json:"check"`
	Health  string        `json:"health"` // up, down, unknown
	Since   time.Time     `json:"since,omitzero"`
	Results []ProbeResult `json:"results"` // oldest first
}

// ProbeResult is one probe.
type ProbeResult struct {
	At              time.Time `json:"at"`
	Code            string    `json:"code"`    // L4OK, L7STS, ...
	Outcome         string    `json:"outcome"` // pass, fail, inconclusive (it counts for nothing)
	Text            string    `json:"text"`    // what was seen
	DurationSeconds float64   `json:"duration_seconds"`
	Agent           string    `json:"agent,omitempty"` // what the member says of itself, such as "drain 75%"
}

// Explanation is the answer of GET /v1/explain?member=be1: why a member has
// the slots that it has.
type Explanation struct {
	Pool     string        `json:"pool"`
	Member   Member        `json:"member"`
	Facts    []Fact        `json:"facts"`    // everything that has a say, in the order in which it is asked
	Remedies []string      `json:"remedies"` // what would bring the member back; empty when it is active
	Weight   WeightStory   `json:"weight"`
	Slots    SlotsStory    `json:"slots"`
	Results  []ProbeResult `json:"results"` // of the last probes, oldest first
}

// Fact is one thing that decides about a member.
type Fact struct {
	Name string `json:"name"` // admin, check, next hop, port, ...
	OK   bool   `json:"ok"`   // it does not keep the member from owning slots
	Text string `json:"text"`
}

// WeightStory says where a member's weight comes from.
type WeightStory struct {
	Configured uint32  `json:"configured"` // by the file, or by OVSDB
	Effective  float64 `json:"effective"`  // after what operators, and the member itself, say
}

// SlotsStory compares what should be with what is.
type SlotsStory struct {
	Wanted    int  `json:"wanted"`    // by the newest table
	Installed int  `json:"installed"` // rows on the switch that name the member
	Known     bool `json:"known"`     // the switch has been read; else Installed is 0
	InSync    bool `json:"in_sync"`   // the switch has confirmed the newest table
}

func (s *Server) history(_ http.ResponseWriter, r *http.Request) (any, error) {
	member, err := memberOf(r)
	if err != nil {
		return nil, err
	}
	return s.backend.History(member)
}

func (s *Server) explain(_ http.ResponseWriter, r *http.Request) (any, error) {
	member, err := memberOf(r)
	if err != nil {
		return nil, err
	}
	return s.backend.Explain(r.Context(), member)
}

func memberOf(r *http.Request) (string, error) {
	q, err := query(r, "member")
	if err != nil {
		return "", err
	}
	member := q.required("member")
	return member, q.err
}
