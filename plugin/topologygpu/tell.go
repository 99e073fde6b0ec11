// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/frond-scheduler/frond/shim"
)

// reasonGangWaits is the event of a gang's lead when what it waits for has changed.
const reasonGangWaits = "GangWaits"

// newRecorder makes a recorder of our own. Upstream's folds events of one object and reason into a series and keeps the
// first text for as long as they keep coming, so a second sentence would never be seen; this one tells texts apart.
func newRecorder(ctx context.Context, handle fwk.Handle) record.EventRecorder {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedv1.EventSinkImpl{Interface: handle.ClientSet().CoreV1().Events("")})
	return broadcaster.NewRecorder(scheme.Scheme, v1.EventSource{Component: handle.ProfileName()})
}

// tellPause is how long a gang's lead is told the same, unless the kind of its reason changes: numbers in the sentence change with
// every pod that comes or goes, and each change is a write to the pod and an event.
const tellPause = 10 * time.Second

// So many changed reasons are told in a second, of all gangs together: hundreds of them may change with one pod, and each is a
// write to the API server, which others need for their Bindings.
const (
	tellQPS   = 5
	tellBurst = 20
)

// outcomeHeld is the kind of reason of a gang that cannot be planned yet, beside those that the engine has.
const outcomeHeld = ^shim.Outcome(0)

// toldReasons is what the leads of gangs were told last.
type toldReasons struct {
	mu    sync.Mutex
	told  map[types.UID]*toldReason
	limit flowcontrol.PassiveRateLimiter
}

type toldReason struct {
	outcome  shim.Outcome
	sentence string
	at       time.Time
	next     string // to be told when the pause is over; "": nothing
}

// forget: the pod is gone, or its gang has a place.
func (t *toldReasons) forget(pod types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.told, pod)
}

// settle keeps the pod from being told what has passed: its gang has a place.
func (t *toldReasons) settle(pod types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if told := t.told[pod]; told != nil {
		told.next = ""
	}
}

// retell notes why a gang's lead has no place, and returns what it is told now. The first sentence reaches its event through
// upstream's FailedScheduling; a later one that differs gets an event of its own, at once if it is of another kind, else when
// the pause is over.
func (c *cluster) retell(pod *v1.Pod, outcome shim.Outcome, sentence string) string {
	t := &c.told
	t.mu.Lock()
	defer t.mu.Unlock()
	now, before := c.now(), t.told[pod.UID]
	switch {
	case before == nil:
		if t.told == nil {
			t.told, t.limit = map[types.UID]*toldReason{}, flowcontrol.NewTokenBucketPassiveRateLimiter(tellQPS, tellBurst)
		}
		t.told[pod.UID] = &toldReason{outcome: outcome, sentence: sentence, at: now}
		return sentence
	case before.sentence == sentence:
		before.next = ""
		return sentence
	case before.outcome == outcome && (now.Sub(before.at) < tellPause || !t.limit.TryAccept()):
		if before.next == "" {
			time.AfterFunc(max(tellPause-now.Sub(before.at), tellPause/10), func() { c.tellNext(pod) })
		}
		before.next = sentence
		return before.sentence
	}
	*before = toldReason{outcome: outcome, sentence: sentence, at: now}
	c.recorder.Event(pod, v1.EventTypeWarning, reasonGangWaits, sentence)
	return sentence
}

// tellNext tells what has waited for the end of the pause.
func (c *cluster) tellNext(pod *v1.Pod) {
	t := &c.told
	t.mu.Lock()
	defer t.mu.Unlock()
	if told := t.told[pod.UID]; told != nil && told.next != "" {
		if !t.limit.TryAccept() {
			time.AfterFunc(tellPause, func() { c.tellNext(pod) })
			return
		}
		told.sentence, told.next, told.at = told.next, "", c.now()
		c.recorder.Event(pod, v1.EventTypeWarning, reasonGangWaits, told.sentence)
	}
}
