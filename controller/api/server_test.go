package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"brlb/controller/api"
	"brlb/controller/api/apitest"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newServer() (*api.Server, *apitest.Backend) {
	backend := apitest.New(noon)
	metrics := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "brlb_in_sync 1\n") })
	return api.NewServer(backend, metrics, nil), backend
}

func request(h http.Handler, method, target, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, target, strings.NewReader(body)))
	return w
}

func TestAnswers(t *testing.T) {
	tests := []struct {
		method, target, body string
		status               int
		want                 string // part of the answer
	}{
		{"GET", "/v1/status", "", 200, `"bridge":"br-lb"`},
		{"HEAD", "/v1/status", "", 200, ""},
		{"GET", "/v1/status?x=1", "", 400, `unknown parameter \"x\": /v1/status takes none`},
		{"GET", "/v1/slots", "", 200, `"pool":"web"`},
		{"GET", "/v1/slots?pool=web", "", 200, `"owner":[0,1,2,0,`},
		{"GET", "/v1/slots?pool=ftp", "", 404, `there is no pool \"ftp\"`},
		{"GET", "/v1/slots?pol=web", "", 400, `unknown parameter \"pol\": /v1/slots takes pool`},
		{"GET", "/v1/slots?pool=web&pool=ftp", "", 400, `pool is given 2 times`},
		{"GET", "/v1/slots?pool=%ff", "", 400, `pool is not a text`},
		{"GET", "/v1/slots?pool=" + strings.Repeat("a", 2000), "", 400, `pool is not a text of at most 1024 bytes`},
		{"GET", "/v1/slots?pool=%zz", "", 400, `the query could not be read`},
		{"GET", "/v1/events", "", 200, `"seq":1`},
		{"GET", "/v1/events?after=1", "", 200, `{"events":[]}`},
		{"GET", "/v1/events?after=-1", "", 400, `after is \"-1\": it must be a number from 0 to 18446744073709551615`},
		{"GET", "/v1/events?follow=yes", "", 400, `follow is \"yes\": it must be 0, 1`},
		{"GET", "/v1/plan?op=drain&member=be1", "", 200, `"collateral":`},
		{"GET", "/v1/plan?op=drop&member=be1", "", 400, `op is \"drop\": it must be drain, enable, disable`},
		{"GET", "/v1/plan?op=weight&member=be1&weight=3&compare=1", "", 200, `"max_share":`},
		{"GET", "/v1/plan?op=weight&member=be1", "", 400, `weight is missing`},
		{"GET", "/v1/plan?op=weight&member=be1&weight=65536", "", 400, `weight is \"65536\": it must be a number from 0 to 65535`},
		{"GET", "/v1/plan?op=add&member=be5&weight=1", "", 400, `address is missing`},
		{"GET", "/v1/plan?op=layout", "", 400, `layout is missing`},
		{"GET", "/v1/plan?op=rebase", "", 200, `"collateral":`},
		{"POST", "/v1/pools/rebase", `{"pool": "web"}`, 409, `only layout v2 has an anchor`},
		{"POST", "/v1/pools/rebase", `{"wait_seconds": -1}`, 400, `\"wait_seconds\" is -1`},
		{"POST", "/v1/pools/rebase", `{"pool": "` + strings.Repeat("x", 2000) + `"}`, 400, `1024 bytes each`},
		{"GET", "/v1/pools/rebase", "", 405, `answers POST`},
		{"GET", "/v1/plan?op=drain", "", 400, `member is missing`},
		{"GET", "/v1/plan?op=drain&member=be9", "", 404, `there is no member \"be9\"`},
		{"GET", "/v1/flows", "", 200, `"set":"desired"`},
		{"GET", "/v1/flows?set=diff", "", 200, `{"set":"diff","flows":[]}`},
		{"GET", "/v1/flows?set=all", "", 400, `set is \"all\": it must be desired, actual, diff`},
		{"GET", "/v1/trace?src=10.20.0.10&sport=40000", "", 200, `"hash":"0x00009c40"`},
		{"GET", "/v1/trace?src=::ffff:10.20.0.10&sport=40000", "", 200, `"flow":"tcp 10.20.0.10:40000 -> 10.20.0.100:80"`},
		{"GET", "/v1/trace?sport=40000", "", 400, `src is \"\": it must be an IP address`},
		{"GET", "/v1/trace?src=host&sport=1", "", 400, `src is \"host\": it must be an IP address`},
		{"GET", "/v1/trace?src=10.20.0.10&sport=0", "", 400, `sport is \"0\": it must be a port from 1 to 65535`},
		{"GET", "/v1/trace?src=10.20.0.10&sport=65536", "", 400, `sport is \"65536\": it must be`},
		{"GET", "/v1/trace?src=10.20.0.10&sport=1&dport=0", "", 400, `dport is \"0\": it must be a port`},
		{"GET", "/v1/verify", "", 200, `"ok":true`},
		{"POST", "/v1/members/drain", `{"member":"be1","who":"root","wait_seconds":1}`, 200, `"confirmed":true`},
		{"POST", "/v1/members/enable", `{"member":"web/be1"}`, 200, `"confirmed":false`},
		{"POST", "/v1/members/disable", `{"member":"10.30.0.11:8080","dry_run":true}`, 200, `"slots_after":0`},
		{"POST", "/v1/members/drain", ``, 400, `\"member\" is missing`},
		{"POST", "/v1/members/drain", `{"membre":"be1"}`, 400, `unknown object member name`},
		{"POST", "/v1/members/drain", `{"member":"be1","member":"be2"}`, 400, `duplicate object member name`},
		{"POST", "/v1/members/drain", `{"member":"be1"} {}`, 400, `the body is not the JSON document`},
		{"POST", "/v1/members/drain", `{"member":1}`, 400, `the body is not the JSON document`},
		{"POST", "/v1/members/drain", `[`, 400, `the body is not the JSON document`},
		{"POST", "/v1/members/drain", `{"member":"be1","wait_seconds":-1}`, 400, `it must be from 0 to 600`},
		{"POST", "/v1/members/drain", `{"member":"be1","wait_seconds":1e9}`, 400, `it must be from 0 to 600`},
		{"POST", "/v1/members/drain", `{"member":"be1","why":"` + strings.Repeat("a", 1025) + `"}`, 400, `1024 bytes each`},
		{"POST", "/v1/members/drain", strings.Repeat(" ", 70000), 413, `larger than 65536 bytes`},
		{"POST", "/v1/members/drain?member=be1", `{}`, 400, `unknown parameter`},
		{"POST", "/v1/reapply", ``, 200, `"flow_mods":0`},
		{"POST", "/v1/reapply", `{"force":true}`, 400, `unknown object member name`},
		{"POST", "/v1/reload", `{}`, 200, `{"changed":false,"changes":[],"pools":[],"revision":`},
		{"POST", "/v1/reload", ``, 200, `{"changed":false`},
		{"POST", "/v1/reload", `{"dry_run":true,"config":"pools: {}"}`, 200, `"refused":"it removes 3 of 4 members"`},
		{"POST", "/v1/reload", `{"dry_run":true,"allow_shrink":true,"config":"pools: {}"}`, 200, `"slots_after":1024`},
		{"POST", "/v1/reload", `{"config":"pools: {}"}`, 400, `\"config\" is only looked at`},
		{"POST", "/v1/reload", `{"shrink":true}`, 400, `unknown object member name`},
		{"POST", "/v1/reload", `{"config":"` + strings.Repeat("#", 5<<20) + `"}`, 413, `larger than 4194304 bytes`},
		{"GET", "/v1/reload", ``, 405, `/v1/reload answers POST, not \"GET\"`},
		{"DELETE", "/v1/status", ``, 405, `/v1/status answers GET, not \"DELETE\"`},
		{"GET", "/v2/status", ``, 404, `no such path: \"/v2/status\"; there is / /-/healthy`},
		{"GET", "/metrics", ``, 200, `brlb_in_sync 1`},
		{"GET", "/-/healthy", ``, 200, `{"healthy":true}`},
		{"GET", "/-/ready", ``, 200, `{"ready":true,"missing":[]}`},
		{"GET", "/", ``, 200, ``},
		{"GET", "/page.js", ``, 200, ``},
	}
	for _, test := range tests {
		name := test.method + " " + test.target + " " + test.body
		t.Run(name[:min(len(name), 60)], func(t *testing.T) {
			server, _ := newServer()
			w := request(server.Full(), test.method, test.target, test.body)
			if w.Code != test.status || !strings.Contains(w.Body.String(), test.want) {
				t.Errorf("status %d, want %d; the answer\n%.400s\nshould hold\n%s", w.Code, test.status, w.Body, test.want)
			}
			if test.status >= 400 && !strings.HasPrefix(w.Body.String(), `{"error":"`) {
				t.Errorf("an error must be {\"error\": ...}, is %s", w.Body)
			}
		})
	}
}

func TestReadOnlyRefusesChanges(t *testing.T) {
	server, backend := newServer()
	for _, path := range []string{"drain", "enable", "disable"} {
		w := request(server.ReadOnly(), "POST", "/v1/members/"+path, `{"member":"be1"}`)
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "read-only") {
			t.Errorf("%s: status %d, %s", path, w.Code, w.Body)
		}
	}
	if revision := backend.Status().Revision; revision != 12 {
		t.Errorf("the revision is %d: something was changed", revision)
	}
	if w := request(server.ReadOnly(), "GET", "/v1/status", ""); w.Code != http.StatusOK {
		t.Errorf("status %d", w.Code)
	}
}

func TestNotReady(t *testing.T) {
	server, backend := newServer()
	backend.Adjust(func(s *api.Status) { s.Switch.Connected = false })
	w := request(server.ReadOnly(), "GET", "/-/ready", "")
	want := `{"ready":false,"missing":["the switch br-lb is not connected"],"error":"not ready: the switch br-lb is not connected"}`
	if w.Code != http.StatusServiceUnavailable || strings.TrimSpace(w.Body.String()) != want {
		t.Errorf("status %d, %s", w.Code, w.Body)
	}
}

// failing is a backend whose controller is at fault.
type failing struct {
	*apitest.Backend
	err error
}

func (f failing) Verify(context.Context) (*api.Verify, error) { return nil, f.err }

func TestControllerErrors(t *testing.T) {
	tests := []struct {
		err    error
		status int
	}{
		{errors.New("the switch is not connected"), 500},
		{fmt.Errorf("ask the switch: %w", context.DeadlineExceeded), 504},
		{&api.RequestError{Status: 409, Message: "no"}, 409},
		{fmt.Errorf("verify: %w", &api.RequestError{Status: 700, Message: "no"}), 400},
	}
	for _, test := range tests {
		server := api.NewServer(failing{apitest.New(noon), test.err}, http.NotFoundHandler(), nil)
		w := request(server.Full(), "GET", "/v1/verify", "")
		if w.Code != test.status || !strings.Contains(w.Body.String(), test.err.Error()) {
			t.Errorf("%v: status %d, %s", test.err, w.Code, w.Body)
		}
	}
}

func FuzzRequest(f *testing.F) {
	f.Add("POST", "/v1/members/drain", "", []byte(`{"member":"be1"}`))
	f.Add("GET", "/v1/trace", "src=10.20.0.10&sport=40000&dst=&dport=80", []byte(nil))
	f.Add("GET", "/v1/events", "after=18446744073709551615", []byte(nil))
	f.Add("GET", "/v1/slots", "pool=%00", []byte(nil))
	server, _ := newServer()
	f.Fuzz(func(t *testing.T, method, path, query string, body []byte) {
		r := httptest.NewRequest("GET", "/", strings.NewReader(string(body)))
		r.Method, r.URL.Path, r.URL.RawQuery = method, path, query
		if strings.Contains(query, "follow") {
			return // an open stream doesn't end
		}
		w := httptest.NewRecorder()
		server.Full().ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("status %d for a request that is the caller's fault: %s", w.Code, w.Body)
		}
		if w.Code >= 400 && !strings.HasPrefix(w.Body.String(), `{"error":"`) {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
	})
}
