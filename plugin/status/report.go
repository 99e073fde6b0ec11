// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/apis"
)

// ReportState is what is to be said of a node's report. Sentences are empty when all is well.
type ReportState struct {
	Name    string
	UID     types.UID
	Refused string // why it is not used, or not all of it
	Stale   string // why nobody knows whether it is still true
	Held    bool   // no new pods go to the node because of that
}

// Report has the state written, as conditions: the rest of the status is the agent's.
func (w *Writer) Report(s ReportState) {
	w.put(key{resource: apis.GpuNodeStatuses, name: s.Name, uid: s.UID}, s)
}

// reportConditions is the part of a report's status that is ours.
type reportConditions struct {
	Conditions []metav1.Condition `json:"conditions"`
}

func (ReportState) part() string { return "conditions" }

func (s ReportState) render(object *unstructured.Unstructured, now time.Time) (any, error) {
	was := before[reportConditions](object).Conditions
	accepted := conditions(was, now, 0, "Believed", "", verdict{apis.ConditionAccepted, truth(true)})
	if s.Refused != "" {
		accepted = conditions(was, now, 0, "ReportRefused", s.Refused, verdict{apis.ConditionAccepted, truth(false)})
	}
	fresh := conditions(was, now, 0, "Heartbeat", "", verdict{apis.ConditionFresh, truth(true)})
	switch {
	case s.Held:
		fresh = conditions(was, now, 0, "StaleReport", s.Stale+"; what it said last stays, and no new pods go there", verdict{apis.ConditionFresh, truth(false)})
	case s.Stale != "":
		fresh = conditions(was, now, 0, "StaleReport", s.Stale+"; what it said last stays", verdict{apis.ConditionFresh, truth(false)})
	}
	return &reportConditions{Conditions: append(accepted, fresh...)}, nil
}
