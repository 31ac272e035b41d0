package session_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"

	"brlb/openflow"
	"brlb/openflow/oftest"
	"brlb/openflow/session"
)

// Over TLS and TCP, with the switch dialling: probes that time out must not
// break the connection.
func TestSwitchDialsWithTLS(t *testing.T) {
	cert := selfSigned(t)
	pool := x509.NewCertPool()
	pool.AddCert(cert.Leaf)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	sw := oftest.NewSwitch(oftest.SwitchOptions{})
	defer sw.Close()
	dialled := make(chan error, 1)
	go func() {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err == nil {
			sw.Go(tls.Client(conn, &tls.Config{RootCAs: pool, ServerName: "controller"}))
		}
		dialled <- err
	}()
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := <-dialled; err != nil {
		t.Fatal(err)
	}
	s, err := session.Open(context.Background(), conn, session.Options{Idle: 1500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for s.Counters().Probes == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	if r := s.Bundle(context.Background(), slots(300)); r.Err != nil {
		t.Fatal(r.Err)
	}
	flows, err := s.Flows(context.Background(), openflow.FlowStatsRequest(openflow.AllFlows()))
	if err != nil || len(flows) != 300 {
		t.Errorf("%d flows, %v", len(flows), err)
	}
}

// selfSigned makes a certificate for the name "controller".
func selfSigned(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"controller"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}
