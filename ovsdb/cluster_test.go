package ovsdb_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"brlb/ovsdb"
	"brlb/ovsdb/ovsdbtest"
)

func TestCluster(t *testing.T) {
	servers := ovsdbtest.StartCluster(t, 3)
	var endpoints []string
	for _, s := range servers {
		endpoints = append(endpoints, s.Endpoint())
	}
	c, err := ovsdb.Dial(t.Context(), ovsdb.Config{Endpoints: endpoints, LeaderOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	rep, err := c.Monitor(t.Context(), bridgeSpec)
	if err != nil {
		t.Fatal(err)
	}
	sub := rep.Subscribe(0)
	next(t, sub)
	lock, err := c.Lock("brlb")
	if err != nil {
		t.Fatal(err)
	}
	transact(t, c, addBridge("br0")...)
	next(t, sub)

	leader := func() *ovsdbtest.Server {
		st, _ := c.State()
		for _, s := range servers {
			if s.Endpoint() == st.Endpoint {
				return s
			}
		}
		t.Fatalf("connected to %s", st.Endpoint)
		return nil
	}
	old := leader()
	if !old.Leader() {
		t.Error("not connected to the leader")
	}
	old.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	for {
		if err := c.Ready(ctx); err != nil {
			t.Fatal(err)
		}
		_, err := c.Transact(ctx, append(addBridge("br1"), lock.Assert())...)
		if err == nil {
			break
		}
		t.Logf("%v: %v", ovsdb.OutcomeOf(err), err)
		if ovsdb.OutcomeOf(err) == ovsdb.Unknown {
			t.Fatal("the outcome is open; the test would have to read first")
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-time.After(20 * time.Millisecond):
		}
	}
	if now := leader(); now == old || !now.Leader() {
		t.Errorf("connected to %s after the leader's end", now.Endpoint())
	}
	// Nothing has changed but what was changed: no row vanished and came back.
	for rows := 0; rows < 3; {
		b := next(t, sub)
		for _, ch := range b.Changes {
			if ch.Table == "Bridge" || ch.Table == "Port" {
				if ch.Old != nil {
					t.Errorf("unexpected: %+v", ch)
				}
			} else if !ch.Changed("bridges") {
				t.Errorf("unexpected: %+v", ch)
			}
			rows++
		}
	}
	if got := c.Stats(); got != (ovsdb.Stats{}) {
		t.Errorf("stats: %+v", got)
	}

	// The others follow a client that does not insist on the leader.
	old.Start()
	other, err := ovsdb.Dial(t.Context(), ovsdb.Config{Endpoints: []string{old.Endpoint()}})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	follower, err := other.Monitor(t.Context(), bridgeSpec)
	if err != nil {
		t.Fatal(err)
	}
	err = follower.Wait(ctx, func(s *ovsdb.Snapshot) bool { return s.Len("Bridge") == 2 })
	if err != nil {
		t.Fatal(err)
	}
	// Without a majority a server is of no use.
	for _, s := range servers {
		if s != old {
			s.Kill()
		}
	}
	for {
		st, changed := other.State()
		if !st.Connected {
			if !strings.Contains(st.Reason.Error(), "lost its cluster") {
				t.Error(st.Reason)
			}
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatal("still connected")
		}
	}
}

func TestConvertLiveDatabase(t *testing.T) {
	srv := ovsdbtest.StartServer(t)
	c := dial(t, srv)
	spec := bridgeSpec
	spec.Tables = append([]ovsdb.TableSpec(nil), spec.Tables...)
	spec.Tables[1].OptionalColumns = []string{"color"}
	colored, err := c.Monitor(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := c.Monitor(t.Context(), bridgeSpec)
	if err != nil {
		t.Fatal(err)
	}
	transact(t, c, addBridge("br0")...)
	sub, quiet := colored.Subscribe(0), plain.Subscribe(0)
	next(t, sub)
	next(t, quiet)
	if colored.Snapshot().Has("Bridge", "color") {
		t.Fatal("the column is there already")
	}

	text, err := os.ReadFile(ovsdbtest.SchemaFile)
	if err != nil {
		t.Fatal(err)
	}
	converted := strings.Replace(string(text), `"Bridge": {
     "columns": {`, `"Bridge": {
     "columns": {"color": {"type": "string"},`, 1)
	file := filepath.Join(srv.Dir, "new.ovsschema")
	if err := os.WriteFile(file, []byte(converted), 0o600); err != nil {
		t.Fatal(err)
	}
	srv.Client("convert", srv.Endpoint(), file)

	b := next(t, sub)
	if len(b.Changes) != 1 || !b.Changes[0].Changed("color") || b.Changes[0].Changed("name") || !b.Snapshot.Has("Bridge", "color") {
		t.Errorf("after the conversion: %+v", b)
	}
	transact(t, c, ovsdb.Update{Table: "Bridge", Row: ovsdb.Columns{"color": ovsdb.String("blue")}})
	if v, _ := next(t, sub).Changes[0].New.Get("color").AsString(); v != "blue" {
		t.Errorf("color is %q", v)
	}
	transact(t, c, addBridge("br1")...)
	if b := next(t, quiet); len(b.Changes) != 3 || b.Changes[0].Old != nil && b.Changes[0].Table == "Bridge" {
		t.Errorf("rows that were not changed: %+v", b)
	}
	if got := c.Stats(); got.MonitorRestarts != 2 || got.Resyncs != 0 || got.StrayUpdates != 0 {
		t.Errorf("stats: %+v", got)
	}
	if st, _ := c.State(); st.Sessions != 1 {
		t.Errorf("the connection did not last: %+v", st)
	}
}

// certificate writes a certificate for 127.0.0.1, its key, and itself as CA.
func certificate(t *testing.T, dir string) (certFile, keyFile string, pool *x509.CertPool, pair tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	certFile, keyFile = write("cert.pem", "CERTIFICATE", der), write("key.pem", "EC PRIVATE KEY", keyDER)
	if pair, err = tls.LoadX509KeyPair(certFile, keyFile); err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(pair.Leaf)
	return certFile, keyFile, pool, pair
}

func TestTCPAndTLS(t *testing.T) {
	freePort := func() int {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		return ln.Addr().(*net.TCPAddr).Port
	}
	certFile, keyFile, pool, pair := certificate(t, t.TempDir())
	plain, secure := freePort(), freePort()
	ovsdbtest.StartServer(t, fmt.Sprintf("--remote=ptcp:%d:127.0.0.1", plain), fmt.Sprintf("--remote=pssl:%d:127.0.0.1", secure),
		"--private-key="+keyFile, "--certificate="+certFile, "--ca-cert="+certFile)
	for _, tt := range []struct {
		endpoint string
		config   *tls.Config
		err      string
	}{
		{fmt.Sprintf("tcp:127.0.0.1:%d", plain), nil, ""},
		{fmt.Sprintf("ssl:127.0.0.1:%d", secure), &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}}, ""},
		{fmt.Sprintf("ssl:127.0.0.1:%d", secure), &tls.Config{Certificates: []tls.Certificate{pair}}, "certificate"},
		{fmt.Sprintf("ssl:127.0.0.1:%d", secure), &tls.Config{RootCAs: pool, ServerName: "elsewhere", Certificates: []tls.Certificate{pair}}, "elsewhere"},
		{fmt.Sprintf("ssl:127.0.0.1:%d", plain), &tls.Config{RootCAs: pool}, "connect to ssl:"},
	} {
		c, err := ovsdb.Start(ovsdb.Config{Endpoints: []string{tt.endpoint}, TLS: tt.config})
		if err != nil {
			t.Fatal(err)
		}
		st, changed := c.State()
		for !st.Connected && st.Reason == nil {
			<-changed
			st, changed = c.State()
		}
		if tt.err != "" {
			if st.Connected || !strings.Contains(st.Reason.Error(), tt.err) {
				t.Errorf("%s: %+v", tt.endpoint, st)
			}
			c.Close()
			continue
		}
		if st.Reason != nil {
			t.Fatal(st.Reason)
		}
		transact(t, c, addBridge("br"+tt.endpoint[:3])...)
		c.Close()
	}
}

func TestLimitsAreChecked(t *testing.T) {
	here := []string{"unix:/x"}
	for _, cfg := range []ovsdb.Config{
		{}, {Endpoints: here, DialTimeout: -1}, {Endpoints: here, ProbeInterval: -1}, {Endpoints: here, MinBackoff: -1},
		{Endpoints: here, MaxBackoff: -1}, {Endpoints: here, MaxMessage: -1}, {Endpoints: here, MinBackoff: 2, MaxBackoff: 1},
	} {
		if c, err := ovsdb.Start(cfg); err == nil {
			c.Close()
			t.Errorf("%+v was accepted", cfg)
		}
	}
}

func TestRelay(t *testing.T) {
	source := ovsdbtest.StartServer(t)
	relay := ovsdbtest.StartRelay(t, source)
	c := dial(t, relay)
	rep, err := c.Monitor(t.Context(), bridgeSpec)
	if err != nil {
		t.Fatal(err)
	}
	transact(t, c, addBridge("br0")...)
	if rep.Snapshot().Len("Bridge") != 1 {
		t.Errorf("%d bridges", rep.Snapshot().Len("Bridge"))
	}
}

// ovsdb-server 3.1 gives its source up after 30 s, so a script says the rest.
func TestRelayLosesItsSource(t *testing.T) {
	script := ovsdbtest.NewScript(t)
	c := startScripted(t, script)
	accept := func(connected string) *ovsdbtest.Peer {
		p := script.Accept()
		p.Reply(p.Expect("list_dbs"), `["db","_Server"]`)
		p.Fail(p.Expect("get_server_id"), `"unknown method"`)
		p.Reply(p.Expect("set_db_change_aware"), `{}`)
		p.Reply(p.Expect("get_schema"), `{"name":"_Server","version":"1.2.0","tables":{"Database":{"columns":{
			"name":{"type":"string"},"model":{"type":"string"},"connected":{"type":"boolean"},"leader":{"type":"boolean"}}}}}`)
		p.Reply(p.Expect("monitor_cond_since"), `[false,"`+u0+`",{"Database":{"`+u1+`":{"initial":{"name":"db","model":"relay","connected":`+connected+`}}}}]`)
		return p
	}
	p := accept("true")
	p.Reply(p.Expect("get_schema"), tinySchema)
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.Notify("update3", `[1,"`+u0+`",{"Database":{"`+u1+`":{"modify":{"connected":false}}}}]`)
	p.ExpectGone()
	accept("false").ExpectGone()
	p = accept("true")
	if st, _ := c.State(); st.Connected || !strings.Contains(st.Reason.Error(), "or the server that it relays") {
		t.Errorf("state: %+v", st)
	}
	p.Reply(p.Expect("get_schema"), tinySchema)
	if err := c.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestEndpoints(t *testing.T) {
	for _, s := range []string{"", "unix", "unix:", "tcp:", "udp:1.2.3.4:1", "unix:" + strings.Repeat("x", 200), "tcp:[::1"} {
		if c, err := ovsdb.Start(ovsdb.Config{Endpoints: []string{s}}); err == nil {
			c.Close()
			t.Errorf("%q was accepted", s)
		}
	}
	for endpoint, want := range map[string]string{
		"tcp:10.0.0.1": "tcp 10.0.0.1:6640", "tcp:10.0.0.1:1": "tcp 10.0.0.1:1", "tcp:[::1]": "tcp [::1]:6640", "tcp:::1": "tcp [::1]:6640",
		"tcp:[::1]:5": "tcp [::1]:5", "ssl:host": "tcp host:6640", "unix:/a:b": "unix /a:b",
	} {
		got := make(chan string, 1)
		c, err := ovsdb.Start(ovsdb.Config{Endpoints: []string{endpoint}, Dial: func(_ context.Context, network, address string) (net.Conn, error) {
			select {
			case got <- network + " " + address:
			default:
			}
			return nil, os.ErrNotExist
		}})
		if err != nil {
			t.Errorf("%s: %v", endpoint, err)
			continue
		}
		if g := <-got; g != want {
			t.Errorf("%s: dials %s, want %s", endpoint, g, want)
		}
		c.Close()
	}
}
