// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/apis"
)

// GroupState is what is to be said of a PodGroup.
type GroupState struct {
	Namespace, Name                       string
	UID                                   types.UID
	Phase                                 apis.GroupPhase
	Scheduled, Running, Succeeded, Failed int32
	Message                               string    // why it is not scheduled, or how it is
	OccupiedBy                            string    // namespace/name of the workload; "": as before
	Start                                 time.Time // of the first attempt; zero: as before, for a scheduler that was not there
}

// Group has the state written.
func (w *Writer) Group(s GroupState) {
	w.put(key{resource: apis.PodGroups, namespace: s.Namespace, name: s.Name, uid: s.UID}, s)
}

func (s GroupState) render(object *unstructured.Unstructured, now time.Time) (any, error) {
	was := before[apis.PodGroupStatus](object)
	status := &apis.PodGroupStatus{
		Phase: s.Phase, OccupiedBy: or(s.OccupiedBy, was.OccupiedBy), ScheduleStartTime: was.ScheduleStartTime,
		Scheduled: s.Scheduled, Running: s.Running, Succeeded: s.Succeeded, Failed: s.Failed,
	}
	if !s.Start.IsZero() {
		start := metav1.NewTime(s.Start)
		status.ScheduleStartTime = &start
	}
	scheduled := metav1.ConditionFalse
	switch s.Phase {
	case apis.GroupScheduled, apis.GroupRunning, apis.GroupFinished:
		scheduled = metav1.ConditionTrue
	case apis.GroupUnknown:
		scheduled = metav1.ConditionUnknown
	}
	status.Conditions = conditions(was.Conditions, now, object.GetGeneration(), string(s.Phase), s.Message, verdict{apis.ConditionScheduled, scheduled})
	return status, nil
}
