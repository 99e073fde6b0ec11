// SPDX-License-Identifier: Apache-2.0

package apis

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PodGroupStatus is the status of a PodGroup as sig-scheduling defines it, and a condition of ours.
type PodGroupStatus struct {
	Phase             GroupPhase         `json:"phase,omitempty"`
	OccupiedBy        string             `json:"occupiedBy,omitempty"`
	Scheduled         int32              `json:"scheduled,omitempty"`
	Running           int32              `json:"running,omitempty"`
	Succeeded         int32              `json:"succeeded,omitempty"`
	Failed            int32              `json:"failed,omitempty"`
	ScheduleStartTime *metav1.Time       `json:"scheduleStartTime,omitempty"`
	Conditions        []metav1.Condition `json:"conditions,omitempty"`
}

// GroupPhase is how far a group has come, in the words of sig-scheduling.
type GroupPhase string

const (
	GroupPending       GroupPhase = "Pending"       // fewer than minMember are there
	GroupPreScheduling GroupPhase = "PreScheduling" // all members are there; a place is looked for
	GroupScheduling    GroupPhase = "Scheduling"    // places are reserved and being bound
	GroupScheduled     GroupPhase = "Scheduled"     // minMember or more have a node
	GroupRunning       GroupPhase = "Running"       // minMember or more run
	GroupUnknown       GroupPhase = "Unknown"       // some have a node, fewer than minMember, and it was whole before
	GroupFinished      GroupPhase = "Finished"      // all have ended, minMember or more of them well
	GroupFailed        GroupPhase = "Failed"        // pods have failed, and fewer than minMember are left
)

// ConditionScheduled of a PodGroup.
const ConditionScheduled = "Scheduled"
