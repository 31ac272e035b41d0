package controller

import (
	"slices"
	"testing"

	"brlb/controller/pipeline"
	"brlb/controller/state"
)

// drained returns the pool of a configuration, and its rows, before and after
// its members of these keys were drained.
func drained(t *testing.T, members string, keys ...string) (before, after *state.Pool, rows []pipeline.Row) {
	t.Helper()
	s := allUp(t, `
mac: 02:00:5e:00:01:02
pools:
  web: {id: 1, slots: 64, members: {`+members+`}}
services:
  web: {address: 10.20.0.100, ports: [80/tcp], pool: web}
`)
	snapshot := s.Snapshot()
	set, _, err := pipeline.NewRenderer().Render(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if slots := set[pipeline.GroupID{Kind: pipeline.KindSlot, Pool: 1}]; slots != nil {
		rows = slots.Rows
	}
	for _, key := range keys {
		s.SetOverride(state.MemberID{Pool: "web", Key: key}, state.Override{State: state.Draining, At: noon})
	}
	return snapshot.Pool("web"), s.Snapshot().Pool("web"), rows
}

func TestVerifyNamesEachStrangerOnce(t *testing.T) {
	_, pool, rows := drained(t, "be1: 10.30.0.11:80, be2: 10.30.0.12:80, be3: 10.30.0.13:80", "10.30.0.11:80", "10.30.0.12:80")
	_, strangers := (&checker{}).owners(pool, rows)
	slices.Sort(strangers)
	if want := []string{"be1 owns slots and is not active", "be2 owns slots and is not active"}; !slices.Equal(strangers, want) {
		t.Errorf("strangers %q, want %q", strangers, want)
	}
}
