// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"testing"
	"time"
)

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
