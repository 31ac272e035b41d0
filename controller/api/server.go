package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

const (
	// maxFollowers bounds the open event streams.
	maxFollowers = 64
	// maxAsking bounds the requests that make the switch work at one time; the
	// others wait their turn.
	maxAsking = 4
)

// Server answers HTTP for one Backend. It has two faces: Full for the unix
// socket, whose file mode says who may change things, and ReadOnly for TCP.
type Server struct {
	backend   Backend
	log       *slog.Logger
	routes    map[string]route
	followers chan struct{} // holds a token for each open event stream
	asking    chan struct{} // holds a token for each request that asks the switch
}

// route is what one path does.
type route struct {
	method string // GET or POST
	handle http.HandlerFunc
}

// NewServer returns a server of the backend's documents. metrics answers GET
// /metrics. Errors that are the controller's fault are logged; nil logs nothing.
func NewServer(backend Backend, metrics http.Handler, logger *slog.Logger) *Server {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		backend:   backend,
		log:       logger,
		followers: make(chan struct{}, maxFollowers),
		asking:    make(chan struct{}, maxAsking),
	}
	get := func(answer answerFunc) route { return route{http.MethodGet, s.document(answer)} }
	post := func(answer answerFunc) route { return route{http.MethodPost, s.document(answer)} }
	s.routes = map[string]route{
		"/v1/status":  get(s.status),
		"/v1/slots":   get(s.slots),
		"/v1/history": get(s.history),
		"/v1/explain": get(s.explain),
		"/v1/events":  {http.MethodGet, s.events},
		"/v1/plan":    get(s.plan),
		"/v1/flows":   get(s.asks(s.flows)),
		"/v1/trace":   get(s.asks(s.trace)),
		"/v1/verify":  get(s.asks(s.verify)),

		"/v1/members/drain":   post(s.change("drain")),
		"/v1/members/enable":  post(s.change("enable")),
		"/v1/members/disable": post(s.change("disable")),
		"/v1/members/weight":  post(s.change("weight")),
		"/v1/overrides":       get(s.overrides),
		"/v1/overrides/clear": post(s.clear),
		"/v1/pools/rebase":    post(s.rebase),
		"/v1/reapply":         post(s.asks(s.reapply)),
		"/v1/reload":          post(s.asks(s.reload)),

		"/metrics":   {http.MethodGet, metrics.ServeHTTP},
		"/-/healthy": get(s.healthy),
		"/-/ready":   {http.MethodGet, s.ready},
		"/":          {http.MethodGet, servePage("page/index.html", "text/html; charset=utf-8")},
		"/page.css":  {http.MethodGet, servePage("page/page.css", "text/css; charset=utf-8")},
		"/page.js":   {http.MethodGet, servePage("page/page.js", "text/javascript; charset=utf-8")},
	}
	return s
}

// Full answers reads and changes.
func (s *Server) Full() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, true) })
}

// ReadOnly answers reads and refuses changes.
func (s *Server) ReadOnly() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, false) })
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, changes bool) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	target, known := s.routes[r.URL.Path]
	switch {
	case !changes && method != http.MethodGet:
		s.fail(w, r, &RequestError{http.StatusForbidden,
			"this address is read-only: changes are accepted on brlb's unix socket alone (use the brlb command on that machine)"})
	case !known:
		s.fail(w, r, &RequestError{http.StatusNotFound,
			fmt.Sprintf("no such path: %s; there is %s", quote(r.URL.Path), strings.Join(s.paths(), " "))})
	case method != target.method:
		w.Header().Set("Allow", target.method)
		s.fail(w, r, &RequestError{http.StatusMethodNotAllowed,
			fmt.Sprintf("%s answers %s, not %s", r.URL.Path, target.method, quote(r.Method))})
	default:
		target.handle(w, r)
	}
}

func (s *Server) paths() []string {
	var paths []string
	for path := range s.routes {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	return paths
}

// answerFunc makes the document that answers a request.
type answerFunc func(w http.ResponseWriter, r *http.Request) (any, error)

// document sends what answer returns as JSON.
func (s *Server) document(answer answerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		doc, err := answer(w, r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		s.send(w, r, http.StatusOK, doc)
	}
}

// asks gives a request answerTime, and holds it back while too many others make
// the switch work.
func (s *Server) asks(answer answerFunc) answerFunc {
	return func(w http.ResponseWriter, r *http.Request) (any, error) {
		ctx, cancel := patience(w, r, answerTime)
		defer cancel()
		select {
		case s.asking <- struct{}{}:
			defer func() { <-s.asking }()
			return answer(w, r.WithContext(ctx))
		case <-ctx.Done():
			return nil, &RequestError{http.StatusTooManyRequests,
				fmt.Sprintf("%d other requests have kept the switch busy for %v: try again", maxAsking, answerTime)}
		}
	}
}

func (s *Server) send(w http.ResponseWriter, r *http.Request, status int, doc any) {
	body, err := json.Marshal(doc)
	if err != nil {
		s.log.Error("a document could not be written as JSON", "path", r.URL.Path, "err", err)
		status, body = http.StatusInternalServerError, []byte(`{"error":"the answer could not be written as JSON"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(append(body, '\n')) // an error means that the client has gone
}

// fail answers with an Error. The caller's mistakes are the caller's to log.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	status := http.StatusInternalServerError
	var mistake *RequestError
	switch {
	case errors.As(err, &mistake):
		status = mistake.Status
		if status < 400 || status > 499 {
			status = http.StatusBadRequest
		}
	case errors.Is(err, context.DeadlineExceeded):
		status = http.StatusGatewayTimeout
	case r.Context().Err() != nil:
		return // the client has gone, or brlb is being stopped
	}
	if mistake == nil {
		s.log.Warn("a request failed", "path", r.URL.Path, "err", err)
	}
	s.send(w, r, status, Error{Message: err.Error()})
}
