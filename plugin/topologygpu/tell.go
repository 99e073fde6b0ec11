// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	typedv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	fwk "k8s.io/kube-scheduler/framework"
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

// retell notes what a gang's lead is told. The first sentence reaches its event through upstream's FailedScheduling;
// a later one that differs gets an event of its own.
func (c *cluster) retell(pod *v1.Pod, sentence string) {
	if before, known := c.told.Swap(pod.UID, sentence); known && before != sentence {
		c.recorder.Event(pod, v1.EventTypeWarning, reasonGangWaits, sentence)
	}
}
