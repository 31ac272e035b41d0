package lab

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// The environment of a child process that serves as an echo server.
const (
	echoNameEnv = "BRLB_LAB_ECHO_NAME"
	echoAddrEnv = "BRLB_LAB_ECHO_ADDR"
)

// Main serves as a lab server if this process was started as one, and then
// returns true when it is done. The lab runs the current binary again for its
// servers, so a main function or a TestMain that uses the lab must begin with
//
//	if lab.Main() {
//		return
//	}
func Main() bool {
	name, addr := os.Getenv(echoNameEnv), os.Getenv(echoAddrEnv)
	if name == "" || addr == "" {
		return false
	}
	if err := serveEcho(name, addr); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return true
}

// echo is the server inside the child process.
type echo struct {
	name   string
	health atomic.Int64 // HTTP status of /healthz
}

// serveEcho serves until standard input ends, which also happens when the
// process that started it is gone. Each line of standard input is a command
// and is answered by one line.
func serveEcho(name, addr string) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return fmt.Errorf("lab server %s: %w", name, err)
	}
	datagrams, err := net.ListenPacket("udp", addr)
	if err != nil {
		return fmt.Errorf("lab server %s: %w", name, err)
	}
	defer datagrams.Close()
	go serveDatagrams(datagrams, name)
	if HasSCTP() {
		associations, err := listenSCTP(addr)
		if err != nil {
			return fmt.Errorf("lab server %s: %w", name, err)
		}
		defer associations.Close()
		go serveSCTP(associations, name)
	}
	e := &echo{name: name}
	e.health.Store(http.StatusOK)
	mux := http.NewServeMux()
	mux.HandleFunc("/", e.serveName)
	mux.HandleFunc("/healthz", e.serveHealth)
	mux.HandleFunc("/stream", e.serveStream)
	server := &http.Server{Handler: mux}
	go server.Serve(listener) // until Close below
	defer server.Close()
	fmt.Println("ready")
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		fmt.Println(e.command(commands.Text()))
	}
	return commands.Err()
}

// command carries one out: "health STATUS" sets what /healthz answers.
func (e *echo) command(line string) string {
	text, found := strings.CutPrefix(line, "health ")
	status, err := strconv.Atoi(text)
	if !found || err != nil || status < 100 || status > 999 {
		return fmt.Sprintf("unknown command %q", line)
	}
	e.health.Store(int64(status))
	return "ok"
}

func (e *echo) serveName(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Client", r.RemoteAddr)
	e.answer(w, http.StatusOK)
}

func (e *echo) serveHealth(w http.ResponseWriter, _ *http.Request) {
	e.answer(w, int(e.health.Load()))
}

func (e *echo) answer(w http.ResponseWriter, status int) {
	w.Header().Set("Server", e.name)
	w.Header().Set("Content-Length", strconv.Itoa(len(e.name)))
	w.WriteHeader(status)
	w.Write([]byte(e.name)) // the client may be gone: its own business
}

// serveStream writes one byte every `ms` milliseconds (default 10) until the
// client leaves.
func (e *echo) serveStream(w http.ResponseWriter, r *http.Request) {
	every, err := strconv.Atoi(r.FormValue("ms"))
	if err != nil || every < 1 {
		every = 10
	}
	w.Header().Set("Server", e.name)
	control := http.NewResponseController(w)
	ticker := time.NewTicker(time.Duration(every) * time.Millisecond)
	defer ticker.Stop()
	for {
		if _, err := w.Write([]byte(".")); err != nil {
			return
		}
		if err := control.Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		}
	}
}
