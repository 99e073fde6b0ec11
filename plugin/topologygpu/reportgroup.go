// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"cmp"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/plugin/gangs"
	"github.com/frond-scheduler/frond/plugin/status"
	"github.com/frond-scheduler/frond/plugin/workload"
)

// Sentences of a PodGroup's condition Scheduled.
const (
	messageNoPods    = "no pod belongs to it yet"
	messageSome      = "%d of %d pods are there"
	messageSearching = "a place is looked for"
	messageReserved  = "places are reserved; %d of %d pods are bound"
	messageHalf      = "%d of %d pods are bound"
	messageScheduled = "%d pods are bound, %d are needed"
	messageRunning   = "%d pods run, %d are needed"
	messageFinished  = "%d pods have ended well, %d were needed"
	messageFailed    = "%d pods have failed and %d of %d are left"
	messageLost      = "%d of %d pods are left"
)

// toldGroup is what a group was told last.
type toldGroup struct {
	uid   types.UID
	phase apis.GroupPhase
	start time.Time // of the first attempt, if this process has seen it
}

// groupFacts are what a group's phase follows from.
type groupFacts struct {
	spec                                  workload.Spec
	gang                                  gangs.State
	scheduled, running, succeeded, failed int // running ones are scheduled, too; those that have ended are not
	last                                  apis.GroupPhase
}

// tellGroup derives a PodGroup's state.
func (r *reporter) tellGroup(id workload.GangID) {
	r.mu.Lock()
	group := r.groups[id]
	facts := groupFacts{}
	first, ours := reported{}, len(r.members[id]) > 0
	for _, p := range r.members[id] {
		facts.count(p.phase)
		if p.owner != "" && (first.name == "" || workload.NaturalCompare(p.name, first.name) < 0) {
			first = *p
		}
	}
	r.mu.Unlock()
	if group == nil {
		delete(r.toldGroups, id)
		return
	}
	if !ours && group.Phase != "" && r.foreign(id.Namespace, func(pod *v1.Pod) bool {
		return pod.Labels[workload.PodGroupLabel] == id.Name || pod.Labels[workload.OldPodGroupLabel] == id.Name
	}) {
		return
	}
	last, known := r.toldGroups[id]
	if !known || last.uid != group.UID {
		last = toldGroup{uid: group.UID, phase: group.Phase}
	}
	facts.spec, facts.gang, facts.last = group.Spec, r.cluster.table.State(id), last.phase
	phase, message := facts.phase()
	if phase == "" {
		return // its pods are gone, and what became of it stands there
	}
	now := toldGroup{uid: group.UID, phase: phase, start: last.start}
	if unplaced(last.phase) && !unplaced(phase) {
		now.start = r.cluster.now()
	}
	r.toldGroups[id] = now
	r.out.Group(status.GroupState{
		Namespace: group.Namespace, Name: group.Name, UID: group.UID, Phase: phase, Message: message,
		Scheduled: int32(facts.scheduled), Running: int32(facts.running), Succeeded: int32(facts.succeeded), Failed: int32(facts.failed),
		OccupiedBy: first.owner, Start: now.start,
	})
}

func (f *groupFacts) count(phase podPhase) {
	switch phase {
	case podBound:
		f.scheduled++
	case podRunning:
		f.scheduled++
		f.running++
	case podSucceeded:
		f.succeeded++
	case podFailed:
		f.failed++
	}
}

// phase is the first that holds. Pods that have ended well count as if they ran: nothing is lost with them.
func (f *groupFacts) phase() (phase apis.GroupPhase, message string) {
	least, there := f.spec.MinMember, f.gang.Pods+f.succeeded
	switch {
	case f.spec.Problem != "":
		return apis.GroupPending, f.spec.Problem
	case f.gang.Pods == 0 && f.succeeded+f.failed == 0 && (f.last == apis.GroupFinished || f.last == apis.GroupFailed):
		return "", ""
	case f.gang.Pods == 0 && f.succeeded >= least:
		return apis.GroupFinished, fmt.Sprintf(messageFinished, f.succeeded, least)
	case f.failed > 0 && there < least:
		return apis.GroupFailed, fmt.Sprintf(messageFailed, f.failed, f.gang.Pods, least)
	case f.running+f.succeeded >= least:
		return apis.GroupRunning, fmt.Sprintf(messageRunning, f.running, least)
	case f.scheduled+f.succeeded >= least:
		return apis.GroupScheduled, fmt.Sprintf(messageScheduled, f.scheduled, least)
	case f.scheduled > 0 && (f.gang.Whole || wasWhole(f.last)):
		return apis.GroupUnknown, join(fmt.Sprintf(messageLost, f.scheduled, least), f.gang.Reason)
	case f.gang.Planned:
		return apis.GroupScheduling, fmt.Sprintf(messageReserved, f.scheduled, least)
	case f.scheduled > 0 || f.gang.Bound > 0:
		return apis.GroupScheduling, join(fmt.Sprintf(messageHalf, f.scheduled, least), f.gang.Reason)
	case there >= least:
		return apis.GroupPreScheduling, cmp.Or(f.gang.Reason, messageSearching)
	case f.gang.Pods == 0:
		return apis.GroupPending, messageNoPods
	default:
		return apis.GroupPending, fmt.Sprintf(messageSome, f.gang.Pods, least)
	}
}

// wasWhole: minMember were bound when a group was told this.
func wasWhole(phase apis.GroupPhase) bool {
	switch phase {
	case apis.GroupScheduled, apis.GroupRunning, apis.GroupUnknown:
		return true
	}
	return false
}

// unplaced: no attempt to place the group has been told of, or the last one is over.
func unplaced(phase apis.GroupPhase) bool {
	switch phase {
	case "", apis.GroupPending, apis.GroupFinished, apis.GroupFailed:
		return true
	}
	return false
}

func join(message, reason string) string {
	if reason == "" {
		return message
	}
	return message + "; " + reason
}
