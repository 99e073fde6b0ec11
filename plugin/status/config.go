// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/apis"
)

// ConfigState is what is to be said of a SchedulerConfig or TopologySchedulerConfig.
type ConfigState struct {
	Resource        schema.GroupVersionResource
	Name            string
	UID             types.UID
	Generation      int64 // that was applied or refused
	Applied         bool
	Reason, Message string
}

// Config has the state written.
func (w *Writer) Config(s ConfigState) {
	w.put(key{resource: s.Resource, name: s.Name, uid: s.UID}, s)
}

func (s ConfigState) render(object *unstructured.Unstructured, now time.Time) (any, error) {
	was := before[apis.ConfigStatus](object)
	return &apis.ConfigStatus{
		ObservedGeneration: s.Generation,
		Conditions:         conditions(was.Conditions, now, s.Generation, s.Reason, s.Message, verdict{apis.ConditionApplied, truth(s.Applied)}),
	}, nil
}
