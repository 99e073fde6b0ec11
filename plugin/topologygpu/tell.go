// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
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

// outcomeHeld is the kind of reason of a gang that cannot be planned yet, beside those that the engine has.
const outcomeHeld = ^shim.Outcome(0)

type toldReason struct {
	outcome  shim.Outcome
	sentence string
	at       time.Time
}

// retell notes what a gang's lead is told, and returns it. The first sentence reaches its event through upstream's
// FailedScheduling; a later one that differs gets an event of its own.
func (c *cluster) retell(pod *v1.Pod, outcome shim.Outcome, sentence string) string {
	now := c.now()
	if before, known := c.told.Load(pod.UID); known {
		before := before.(toldReason)
		if before.sentence == sentence || before.outcome == outcome && now.Sub(before.at) < tellPause {
			return before.sentence
		}
		c.recorder.Event(pod, v1.EventTypeWarning, reasonGangWaits, sentence)
	}
	c.told.Store(pod.UID, toldReason{outcome, sentence, now})
	return sentence
}
