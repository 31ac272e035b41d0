package controller

import "testing"

func TestEmpties(t *testing.T) {
	for _, c := range []struct {
		members string
		want    bool
	}{
		{"be1: 10.30.0.11:80, be2: 10.30.0.12:80", false},
		{"be1: 10.30.0.11:80", true},
		{"be1: 10.30.0.11:80, be2: {address: 10.30.0.12:80, weight: 0}", true},
		{"be1: {address: 10.30.0.11:80, weight: 0}, be2: {address: 10.30.0.12:80, weight: 0}", false},
	} {
		before, after, _ := drained(t, c.members, "10.30.0.11:80")
		if got := empties(before, after); got != c.want {
			t.Errorf("draining be1 of %s empties the pool: %v", c.members, got)
		}
	}
}
