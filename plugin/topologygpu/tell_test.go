// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/frond-scheduler/frond/shim"
)

// A reason of the same kind is told again when the pause is over, and only so many of all gangs; one of another kind at once.
func TestReasonsAreToldAtABoundedRate(t *testing.T) {
	clock := time.Unix(1_000_000, 0)
	recorder := record.NewFakeRecorder(1000)
	c := &cluster{recorder: recorder, now: func() time.Time { return clock }}
	one := pod("one", 8, 1)
	if got := c.retell(one, shim.Waits, "needs 2, has 1"); got != "needs 2, has 1" || len(recorder.Events) != 0 {
		t.Errorf("the first is upstream's to tell: %q", got)
	}
	if got := c.retell(one, shim.Waits, "needs 2, has 0"); got != "needs 2, has 1" || len(recorder.Events) != 0 {
		t.Errorf("too soon: %q", got)
	}
	if got := c.retell(one, shim.Never, "never fits"); got != "never fits" || len(recorder.Events) != 1 {
		t.Errorf("another kind is told at once: %q", got)
	}
	clock = clock.Add(tellPause)
	if got := c.retell(one, shim.Never, "never fits, by 3"); got != "never fits, by 3" || len(recorder.Events) != 2 {
		t.Errorf("after the pause: %q", got)
	}
	var pods []*v1.Pod
	for i := range 10 * tellBurst {
		pods = append(pods, pod(fmt.Sprint("many-", i), 8, 1))
		c.retell(pods[i], shim.Waits, "has 1")
	}
	clock = clock.Add(tellPause)
	before := len(recorder.Events)
	for _, other := range pods {
		c.retell(other, shim.Waits, "has 0")
	}
	if told := len(recorder.Events) - before; told == 0 || told > 2*tellBurst {
		t.Errorf("%d of %d are told at once", told, len(pods))
	}
	c.told.forget(one.UID)
	c.tellNext(one)
	if got := c.retell(one, shim.Waits, "anew"); got != "anew" {
		t.Errorf("a pod that is gone is forgotten: %q", got)
	}
}
