package state

import (
	"net/netip"
	"testing"
	"time"

	"brlb/controller/config"
)

const withSpares = `
pools:
  web: {id: 1, slots: 64, members: {be1: 10.30.0.11:80}}
  spare: {id: 2, slots: 64, members: {sp1: 10.30.0.21:80}}
  sorry: {id: 3, slots: 64, members: {so1: 10.30.0.31:80}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web, backup: [spare, sorry], return_after: 10s}
`

// The members of the three pools.
var (
	front1 = netip.MustParseAddrPort("10.30.0.11:80")
	front2 = netip.MustParseAddrPort("10.30.0.21:80")
	front3 = netip.MustParseAddrPort("10.30.0.31:80")
)

// TestBackup: which pool serves, as pools fail and come back.
func TestBackup(t *testing.T) {
	s := serving(t, withSpares)
	for _, step := range []struct {
		second  int
		verdict Health
		of      netip.AddrPort
		want    string
	}{
		{0, Up, front1, "web"},
		{1, Down, front2, "web"},
		{2, Down, front1, "sorry"}, // the first that works
		{3, Up, front2, "sorry"},   // it must work for a while before it takes over
		{12, Up, front2, "sorry"},
		{13, Up, front2, "spare"},
		{20, Up, front1, "spare"},
		{29, Down, front2, "web"}, // at once, since nothing else serves better
		{30, Up, front2, "web"},
		{31, Down, front1, "spare"},
		{32, Down, front3, "spare"},
		{33, Down, front2, "web"}, // none works: it is the first one's traffic
		{34, Up, front3, "sorry"},
		{35, Up, front1, "sorry"},
		{45, Up, front1, "web"},
	} {
		now := after(time.Duration(step.second) * time.Second)
		s.SetVerdict(byTCP(step.of), Verdict{Health: step.verdict}, now)
		s.Tick(now)
		service := s.Snapshot().Services[0]
		if service.Pool != step.want || service.Primary != "web" || service.PoolID != s.Snapshot().Pool(step.want).ID {
			t.Errorf("at %ds: %+v, want %s", step.second, service, step.want)
		}
	}
}

// TestBackupThroughARestart: a brlb that starts finds that a backup serves, and
// leaves it so until it knows better.
func TestBackupThroughARestart(t *testing.T) {
	s := connected(t, withSpares)
	s.AdoptFronts([]Front{{Address: netip.MustParseAddr("10.20.0.100"), Proto: config.ProtoTCP, Port: 80, PoolID: 2}, {Address: netip.MustParseAddr("10.20.0.101"), Proto: config.ProtoTCP, Port: 80, PoolID: 3}})
	look := func(want string) {
		t.Helper()
		if got := s.Snapshot().Services[0].Pool; got != want {
			t.Errorf("%s serves, want %s", got, want)
		}
	}
	look("spare")
	judge(s, Up, byTCP(front2), byTCP(front3))
	look("spare")
	judge(s, Down, byTCP(front1))
	look("spare")

	// A copy that is asked what would be changes nothing here.
	c := s.Clone()
	judge(c, Down, byTCP(front2))
	if got := c.Snapshot().Services[0].Pool; got != "sorry" {
		t.Errorf("%s serves, want sorry", got)
	}
	look("spare")
}
