// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/frond-scheduler/frond/plugin/apis"
)

// idleNodes are the first so many: nothing happens to their machines.
const idleNodes = 8

// writes of idle agents while the other tests run, counted at the API server. Conditions are the scheduler's and do not count:
// they leave the heartbeat as it is.
type writes struct {
	begin time.Time
	err   error

	mu       sync.Mutex
	last     map[string]string // by node: the heartbeat, or gns-NODE: the renewTime
	reports  map[string]int    // by node
	renewals map[string]int
	old      map[string]bool // a report was so old that only the Lease can have kept it fresh
	stale    map[string]bool // the scheduler said that it was not
}

var counted = &writes{last: map[string]string{}, reports: map[string]int{}, renewals: map[string]int{}, old: map[string]bool{}, stale: map[string]bool{}}

// patience is how old a heartbeat in a report may be where there is no Lease; times in reports have no fractions.
const patience = 91 * time.Second

// count until the process ends.
func (w *writes) count(ctx context.Context) {
	w.begin = time.Now()
	reports, err := objects.Resource(apis.GpuNodeStatuses).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		w.err = fmt.Errorf("watch reports: %w", err)
		return
	}
	leases, err := lab.Client.CoordinationV1().Leases(apis.HeartbeatNamespace).Watch(ctx, metav1.ListOptions{LabelSelector: apis.HeartbeatLabel})
	if err != nil {
		w.err = fmt.Errorf("watch Leases: %w", err)
		return
	}
	for _, stream := range []watch.Interface{reports, leases} {
		go func() {
			for event := range stream.ResultChan() {
				w.see(event)
			}
		}()
	}
}

func (w *writes) see(event watch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var name, said string
	counts := w.reports
	switch object := event.Object.(type) {
	case *unstructured.Unstructured:
		name = object.GetName()
		said, _, _ = unstructured.NestedString(object.Object, "status", "heartbeat")
		if status, err := apis.Status[apis.NodeReport](object); err == nil {
			w.stale[name] = w.stale[name] || meta.IsStatusConditionFalse(status.Conditions, apis.ConditionFresh)
			before, err := time.Parse(time.RFC3339, w.last[name])
			w.old[name] = w.old[name] || err == nil && status.Heartbeat.Sub(before) > patience
		}
	case *coordinationv1.Lease:
		name, counts = object.Name, w.renewals
		if object.Spec.RenewTime != nil {
			said = object.Spec.RenewTime.String()
		}
	}
	before, known := w.last[name]
	w.last[name] = said
	if known && said != before && event.Type == watch.Modified {
		counts[name]++
	}
}

// An agent that has nothing to say renews its Lease two or three times a minute and writes a report every five to five and a half
// minutes; the scheduler goes by the Lease. FROND_FULL counts for longer.
func TestIdleAgentsWriteLittle(t *testing.T) {
	if counted.err != nil {
		t.Fatal(counted.err)
	}
	least := 100 * time.Second
	if os.Getenv("FROND_FULL") != "" {
		least = 11 * time.Minute
	}
	time.Sleep(time.Until(counted.begin.Add(least)))
	counted.mu.Lock()
	defer counted.mu.Unlock()
	lasted := time.Since(counted.begin)
	mostReports := 1 + int(lasted/(5*time.Minute))
	leastBeats, mostBeats := int(lasted/(32*time.Second)), 1+int(lasted/(27*time.Second))
	reports, renewals, old := 0, 0, 0
	for i := range idleNodes {
		node := nodeName(i)
		wrote, renewed := counted.reports[node], counted.renewals[apis.HeartbeatPrefix+node]
		if wrote > mostReports || renewed < leastBeats || renewed > mostBeats {
			t.Errorf("%s: %d reports and %d renewals in %s", node, wrote, renewed, lasted.Round(time.Second))
		}
		reports, renewals = reports+wrote, renewals+renewed
		status := report(t, node)
		if counted.stale[node] || !meta.IsStatusConditionTrue(status.Conditions, apis.ConditionFresh) {
			t.Errorf("%s: is or was called stale; conditions %+v", node, status.Conditions)
		}
		if counted.old[node] || time.Since(status.Heartbeat.Time) > patience {
			old++
		}
		lease, err := lab.Client.CoordinationV1().Leases(apis.HeartbeatNamespace).Get(t.Context(), apis.HeartbeatPrefix+node, metav1.GetOptions{})
		if err != nil || len(lease.OwnerReferences) != 1 || lease.OwnerReferences[0].Kind != "Node" || lease.OwnerReferences[0].Name != node {
			t.Errorf("%s: Lease %+v, %v", node, lease, err)
		}
	}
	if old == 0 {
		t.Error("no report is so old that only the Lease can have kept it fresh")
	}
	hours := lasted.Hours() * idleNodes
	t.Logf("an idle agent: %.1f reports and %.1f renewals an hour (%d agents, %s)", float64(reports)/hours, float64(renewals)/hours, idleNodes, lasted.Round(time.Second))
}
