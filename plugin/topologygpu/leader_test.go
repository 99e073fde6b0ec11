// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"testing"
	"time"
)

// The question is answered by what the election has told, whatever the metrics are doing: a collector may ask it.
func TestALeaderIsToldByItsElections(t *testing.T) {
	l := &Leader{leases: map[string]bool{}}
	wants := func(leading, elected bool) {
		t.Helper()
		if gotLeading, gotElected := l.Leading(); gotLeading != leading || gotElected != elected {
			t.Errorf("got leading %v, elected %v", gotLeading, gotElected)
		}
	}
	wants(false, false)
	one, other := l.NewLeaderMetric(), l.NewLeaderMetric()
	wants(false, false)
	one.Off("one")
	wants(false, true)
	one.On("one")
	other.Off("other")
	one.SlowpathExercised("one")
	wants(true, true)
	one.Off("one")
	wants(false, true)
	other.On("other")
	wants(true, true)
}

func TestAProcessWithoutAnElectionLeadsOnceThatIsCertain(t *testing.T) {
	b := newBench(t)
	clock := time.Unix(1000, 0)
	c := &cluster{now: func() time.Time { return clock }}
	if c.leadsAlone() {
		t.Error("nothing has been seen: an election may still come")
	}
	seen := false
	c.synced = func() bool { return seen }
	clock = clock.Add(time.Hour)
	if c.leadsAlone() {
		t.Error("a large cluster takes long to be seen, and upstream elects only after that")
	}
	seen = true
	if c.leadsAlone() {
		t.Error("upstream needs a moment to begin with its election")
	}
	clock = clock.Add(unelected + time.Second)
	if !c.leadsAlone() {
		t.Error("everything has long been seen and nobody is elected: there is no election")
	}

	for _, test := range []struct{ leading, elected, caughtUp, want bool }{
		{true, true, false, true}, {false, true, true, false}, {false, false, false, false}, {false, false, true, true},
	} {
		host := &Host{Leading: func() (bool, bool) { return test.leading, test.elected }}
		b.build(host, profile(t, "gpu", arguments(withLibrary), true))
		host.shared.caughtUp.Store(test.caughtUp)
		if got := host.shared.leading(); got != test.want {
			t.Errorf("%+v: got %v", test, got)
		}
	}
}
