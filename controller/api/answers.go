package api

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// answerTime is how long a request may take, beside the time that it asked to
// wait. It is longer than any exchange with the switch.
const answerTime = 30 * time.Second

// maxWait bounds ChangeRequest.WaitSeconds.
const maxWait = 600

func (s *Server) status(_ http.ResponseWriter, r *http.Request) (any, error) {
	if _, err := query(r); err != nil {
		return nil, err
	}
	return s.backend.Status(), nil
}

func (s *Server) slots(_ http.ResponseWriter, r *http.Request) (any, error) {
	q, err := query(r, "pool")
	if err != nil {
		return nil, err
	}
	return s.backend.Slots(q.text("pool"))
}

func (s *Server) plan(_ http.ResponseWriter, r *http.Request) (any, error) {
	q, err := query(r, "op", "pool", "member", "address", "weight", "layout", "compare")
	if err != nil {
		return nil, err
	}
	req := PlanRequest{
		Operation: q.choice("op", "", "drain", "enable", "disable", "weight", "remove", "add", "rebase", "layout"),
		Pool:      q.text("pool"),
		Compare:   q.flag("compare"),
	}
	switch req.Operation {
	case "rebase":
	case "layout":
		req.Layout = q.required("layout")
	default:
		req.Member = q.required("member")
	}
	if req.Operation == "weight" || req.Operation == "add" {
		q.required("weight")
		req.Weight = uint32(q.number("weight", 16))
	}
	if req.Operation == "add" {
		req.Address = q.required("address")
	}
	if q.err != nil {
		return nil, q.err
	}
	return s.backend.Plan(r.Context(), req)
}

func (s *Server) flows(_ http.ResponseWriter, r *http.Request) (any, error) {
	q, err := query(r, "set")
	if err != nil {
		return nil, err
	}
	set := q.choice("set", "desired", "desired", "actual", "diff")
	if q.err != nil {
		return nil, q.err
	}
	return s.backend.Flows(r.Context(), set)
}

func (s *Server) trace(_ http.ResponseWriter, r *http.Request) (any, error) {
	q, err := query(r, "src", "sport", "dst", "dport", "proto", "in_port", "vlan", "fragment")
	if err != nil {
		return nil, err
	}
	req := TraceRequest{
		Src:      q.address("src", true),
		SrcPort:  q.port("sport", true),
		Dst:      q.address("dst", false),
		DstPort:  q.port("dport", false),
		Proto:    q.choice("proto", "tcp", "tcp", "udp", "sctp"),
		InPort:   q.text("in_port"),
		VLAN:     q.vlan("vlan"),
		Fragment: q.flag("fragment"),
	}
	if q.err != nil {
		return nil, q.err
	}
	return s.backend.Trace(r.Context(), req)
}

func (s *Server) verify(_ http.ResponseWriter, r *http.Request) (any, error) {
	if _, err := query(r); err != nil {
		return nil, err
	}
	return s.backend.Verify(r.Context())
}

// change answers the paths that carry out an operation on members.
func (s *Server) change(operation string) answerFunc {
	return func(w http.ResponseWriter, r *http.Request) (any, error) {
		return carryOut(w, r, operation, func(ctx context.Context, req ChangeRequest) (*Change, error) {
			return s.backend.Change(ctx, operation, req)
		})
	}
}

func (s *Server) clear(w http.ResponseWriter, r *http.Request) (any, error) {
	return carryOut(w, r, "clear", s.backend.Clear)
}

func (s *Server) overrides(_ http.ResponseWriter, r *http.Request) (any, error) {
	if _, err := query(r); err != nil {
		return nil, err
	}
	return s.backend.Overrides(r.Context())
}

func carryOut(w http.ResponseWriter, r *http.Request, operation string, do func(context.Context, ChangeRequest) (*Change, error)) (any, error) {
	var req ChangeRequest
	if err := body(w, r, &req); err != nil {
		return nil, err
	}
	if err := req.check(operation); err != nil {
		return nil, err
	}
	ctx, cancel := patience(w, r, time.Duration(req.WaitSeconds*float64(time.Second))+answerTime)
	defer cancel()
	return do(ctx, req)
}

// maxDeadline bounds ChangeRequest.DeadlineSeconds: a year.
const maxDeadline = 365 * 24 * 3600

// check says what is wrong with a request for an operation.
func (req *ChangeRequest) check(operation string) error {
	switch {
	case strings.TrimSpace(req.Member) == "" && (strings.TrimSpace(req.Pool) == "" || operation == "clear"):
		return mistake(`"member" is missing: name one, as in {"member": "be1"}`)
	case operation == "weight" && req.Weight == "":
		return mistake(`"weight" is missing: give a number, or a percentage of the configured weight, as in {"weight": "50%"}`)
	case operation != "weight" && req.Weight != "":
		return mistake(fmt.Sprintf(`"weight" means nothing to %s`, operation))
	case operation != "drain" && req.DeadlineSeconds != 0:
		return mistake(fmt.Sprintf(`"deadline_seconds" means nothing to %s`, operation))
	case !(req.DeadlineSeconds >= 0 && req.DeadlineSeconds <= maxDeadline):
		return mistake(fmt.Sprintf(`"deadline_seconds" is %v: it must be from 0 to %d`, req.DeadlineSeconds, maxDeadline))
	case max(len(req.Member), len(req.Pool), len(req.Weight), len(req.Who), len(req.Why)) > maxText:
		return mistake(fmt.Sprintf(`"member", "who", "why" and other texts may have %d bytes each`, maxText))
	}
	return checkWait(req.WaitSeconds)
}

func (s *Server) rebase(w http.ResponseWriter, r *http.Request) (any, error) {
	var req RebaseRequest
	if err := body(w, r, &req); err != nil {
		return nil, err
	}
	if err := checkWait(req.WaitSeconds); err != nil {
		return nil, err
	}
	if max(len(req.Pool), len(req.Who), len(req.Why)) > maxText {
		return nil, mistake(fmt.Sprintf(`"pool", "who" and "why" may have %d bytes each`, maxText))
	}
	ctx, cancel := patience(w, r, time.Duration(req.WaitSeconds*float64(time.Second))+answerTime)
	defer cancel()
	return s.backend.Rebase(ctx, req)
}

func checkWait(seconds float64) error {
	if !(seconds >= 0 && seconds <= maxWait) {
		return mistake(fmt.Sprintf(`"wait_seconds" is %v: it must be from 0 to %d`, seconds, maxWait))
	}
	return nil
}

func (s *Server) reapply(w http.ResponseWriter, r *http.Request) (any, error) {
	if err := body(w, r, &struct{}{}); err != nil {
		return nil, err
	}
	return s.backend.Reapply(r.Context())
}

func (s *Server) reload(w http.ResponseWriter, r *http.Request) (any, error) {
	var req ReloadRequest
	if err := bodyOf(w, r, &req, maxReload); err != nil {
		return nil, err
	}
	if req.Config != "" && !req.DryRun {
		return nil, mistake(`"config" is only looked at: set "dry_run", or write it to brlb's file`)
	}
	return s.backend.Reload(r.Context(), req)
}

// patience gives a request that much time, instead of what the HTTP server
// gives to all.
func patience(w http.ResponseWriter, r *http.Request, limit time.Duration) (context.Context, context.CancelFunc) {
	c := http.NewResponseController(w)
	// Neither can fail on a connection of net/http, and in a test without a
	// connection there is no deadline to move.
	c.SetReadDeadline(time.Time{})
	c.SetWriteDeadline(time.Now().Add(limit + ioTime))
	return context.WithTimeout(r.Context(), limit)
}

func (s *Server) healthy(http.ResponseWriter, *http.Request) (any, error) {
	return struct {
		Healthy bool `json:"healthy"`
	}{true}, nil
}

func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	readiness := s.backend.Ready()
	if readiness.Ready {
		s.send(w, r, http.StatusOK, readiness)
		return
	}
	s.send(w, r, http.StatusServiceUnavailable, struct {
		Readiness
		Error
	}{readiness, Error{"not ready: " + strings.Join(readiness.Missing, "; ")}})
}
