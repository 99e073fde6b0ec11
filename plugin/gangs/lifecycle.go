// SPDX-License-Identifier: Apache-2.0

// Package gangs is the lifecycle of gangs: which pods belong together, who leads, what was planned, how far the plan has
// come, and who waits for what.
//
// Machine is the whole of it and pure: Step takes an event and the time, changes the state and returns effects, which are
// data. It knows no lock, no clock, no engine and no scheduler. Table is the machine behind one lock, for callers on many
// goroutines, and Run the one executor that performs the effects, in their order, outside every lock of ours.
//
// A gang without a plan is in one of these stages:
//
//	stage      means                                               leaves it by
//	Gathering  it cannot be planned: pods, or the object that       its pods and objects change; the time of a
//	           makes it a gang, are missing or contradict           gathering is over
//	Asked      its lead has been activated                          the lead's scheduling cycle: Trying
//	Trying     its lead plans                                       a plan is reserved: Planned; no place: Waiting
//	Waiting    the last attempt found no place                      room for it, the end of topology-wait, a change: Asked
//	Backoff    the last plan ended before its time                  the time of the next attempt: Asked
//	Planned    it has a plan                                        the plan is done or released
//	Settled    no member is pending                                 a member comes
//
// Waiting costs nothing: when room appears, a round begins. Gangs that wait are taken one after the other, by priority and then by
// the time at which each became complete, the executor asks the engine whether that one fits now, and only then its lead is
// activated; the next one's turn comes when its attempt has ended. A gang that is refused for what it asks for is in no round,
// one that can never fit only when the nodes have changed.
//
// A plan goes through these states, and nothing but the events named here moves it:
//
//	state      entered by                     what may happen                                  goes on by
//	Reserved   the lead has booked it         members are activated and come to Permit         the last has come: Permitted
//	Permitted  all are let through            each runs its PreBind and comes to Bind          the last has come: Locking
//	Locking    every member stands at Bind    the executor takes the locks                     they are had: Binding
//	Binding    the locks are had              Bindings are sent; who fails sends again         the last is bound: done
//	Ended      see below                      the engine gives the places back                 it has: no plan
//
// Until Binding a plan ends, for all of its members and with a Cause, when a member leaves, fails or is refused by its node,
// when a node of it changes, when the gang's object goes, when time runs out, or when a lock is not to be had: nobody of it
// is bound then. From Binding on it ends only when its locks are lost or a half-bound gang is released; a member that fails
// keeps its place and tries again, one that its node refuses gives its own place back. A plan ends in one place (end), and
// its gang is not planned anew before the executor has given its places back: the engine knows a gang's places by the gang,
// not by the plan.
package gangs

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// Stage of a gang.
type Stage uint8

const (
	Gathering Stage = iota
	Asked
	Trying
	Waiting
	Backoff
	Planned
	Settled
)

var stageNames = [...]string{"Gathering", "Asked", "Trying", "Waiting", "Backoff", "Planned", "Settled"}

func (s Stage) String() string { return stageNames[s] }

// PlanState is how far a plan has come.
type PlanState uint8

const (
	Reserved PlanState = iota
	Permitted
	Locking
	Binding
	Ended
)

var planStateNames = [...]string{"Reserved", "Permitted", "Locking", "Binding", "Ended"}

func (s PlanState) String() string { return planStateNames[s] }

// Lack is what a gang without a place lacks.
type Lack uint8

const (
	LackRoom Lack = iota // today
	LackEver             // on any day, as the nodes are
	LackWish             // nothing would help: it is refused for what it asks for
)

// Cause is why a plan ended before all of its members were bound. Its members are told the sentence.
type Cause string

const (
	CauseLeft        Cause = "a pod of the gang went away before all were bound"
	CauseElsewhere   Cause = "another scheduler has bound a pod of the gang elsewhere"
	CauseFailed      Cause = "a pod of the gang failed before any was bound"
	CauseNodeRefused Cause = "a pod of the gang could not be scheduled on its node"
	CauseNodeChanged Cause = "a node of the gang's plan changed or went away before any pod was bound"
	CauseObjectGone  Cause = "the object that makes the gang went away before any pod was bound"
	CauseExpired     Cause = "the gang's plan was given back: not all members reached Permit in time"
	CauseLocks       Cause = "the GPUs of the gang's plan could not be locked"
	CauseLocksLost   Cause = "another scheduler has taken over the gang"
	CauseReleased    Cause = "the gang could not be completed, so its bound pods are deleted and it starts anew"
)

// Event is something that happened: to a pod, to an object, to a plan, or time has passed.
type Event interface{ event() }

// What the informers say.
type (
	// PodSet: a pod of ours was created or has changed.
	PodSet struct {
		Pod   *v1.Pod
		Class workload.Class
	}
	// PodGone: a pod is deleted or has ended.
	PodGone struct{ UID types.UID }
	// SpecSet is what the API says of a gang.
	SpecSet struct {
		ID   workload.GangID
		Spec workload.Spec
	}
	// SpecGone: the object that makes the gang is gone.
	SpecGone struct{ ID workload.GangID }
	// WishChanged: what a pod's gang, or the pod itself, asks for may have changed.
	WishChanged struct{ UID types.UID }
	// RoomAppeared: there may be room that was not there before; Nodes: because nodes came or changed, not only because pods
	// left them.
	RoomAppeared struct{ Nodes bool }
	// NodeChanged: a node's labels, GPUs, health, or whether it takes pods, or it is gone.
	NodeChanged struct{ Node string }
	// LockFound: a lock was found for a pod that is not bound, so members of its gang may have been bound by a scheduler
	// before this one.
	LockFound struct{ UID types.UID }
)

// What a scheduling or binding cycle says.
type (
	// ReasonTold: the lead of a gang that cannot be planned has taken the reason to its event.
	ReasonTold struct {
		UID    types.UID
		Reason string
	}
	// AttemptBegun: the lead begins to plan.
	AttemptBegun struct{ UID types.UID }
	// NoPlace: the attempt found no place.
	NoPlace struct {
		ID           workload.GangID
		Epoch        uint64 // of the attempt's Turn
		Reason       string
		Lack         Lack
		TopologyWait time.Duration // until its rule is relaxed; 0: never
	}
	// RoomAnswered: whether the gang that Ask names would find a place now.
	RoomAnswered struct {
		ID     workload.GangID
		Fits   bool
		Reason string // why not; "": as before
	}
	// PlanReserved: the engine has booked places for these members, around those that are bound.
	PlanReserved struct {
		ID     workload.GangID
		Key    shim.Key
		Places []Place
		Around []types.UID
	}
	// MemberArrived: a member has come to Permit.
	MemberArrived struct {
		UID  types.UID
		Plan uint64
	}
	// MemberReady: a member has come to Bind; its PreBind is done.
	MemberReady struct {
		UID  types.UID
		Plan uint64
	}
	// MemberBound: a member's Binding was carried out.
	MemberBound struct {
		UID  types.UID
		Node string
	}
	// MemberFailed: a member's cycle came to nothing.
	MemberFailed struct {
		UID  types.UID
		Plan uint64
	}
	// MemberRefused: a member cannot be scheduled where the plan puts it, for a reason of the node's.
	MemberRefused struct{ UID types.UID }
)

// What the executor, the clean-up of half-bound gangs and the clock say.
type (
	// LocksTaken: the attempt to lock a plan has ended; Err is nil if all are had.
	LocksTaken struct {
		Plan   uint64
		Places []Placed // that were to be locked
		Err    error
	}
	// LocksLost: another scheduler has the gang.
	LocksLost struct {
		UID  types.UID
		Plan uint64
	}
	// PlacesReleased: the engine has given an ended plan's places back.
	PlacesReleased struct{ Plan uint64 }
	// HalfSeen: the API server itself has confirmed a half-bound gang (its time runs from the first time on, and anew when
	// others are bound), or could not be asked (its time starts anew: meanwhile nothing can be finished either).
	HalfSeen struct {
		ID        workload.GangID
		Confirmed bool
	}
	// HalfAbandoned: a half-bound gang that has had its time is released: its bound members are going to be deleted.
	HalfAbandoned struct{ ID workload.GangID }
	// Tick: time has passed.
	Tick struct{}
)

func (PodSet) event()         {}
func (PodGone) event()        {}
func (SpecSet) event()        {}
func (SpecGone) event()       {}
func (WishChanged) event()    {}
func (RoomAppeared) event()   {}
func (NodeChanged) event()    {}
func (LockFound) event()      {}
func (ReasonTold) event()     {}
func (AttemptBegun) event()   {}
func (NoPlace) event()        {}
func (RoomAnswered) event()   {}
func (PlanReserved) event()   {}
func (MemberArrived) event()  {}
func (MemberReady) event()    {}
func (MemberBound) event()    {}
func (MemberFailed) event()   {}
func (MemberRefused) event()  {}
func (LocksTaken) event()     {}
func (LocksLost) event()      {}
func (PlacesReleased) event() {}
func (HalfSeen) event()       {}
func (HalfAbandoned) event()  {}
func (Tick) event()           {}

// Effect is something to be done to the scheduler, the engine or the API, as data.
type Effect interface{ effect() }

type (
	// Activate moves pods to the scheduling queue.
	Activate struct{ Pods []*v1.Pod }
	// Ask has the engine asked whether a gang that waits would find a place now; answered by RoomAnswered.
	Ask struct{ ID workload.GangID }
	// Allow lets members go that wait in Permit.
	Allow struct{ Members []types.UID }
	// Reject ends the waiting of a plan's members and frees the nodes that were kept for them.
	Reject struct {
		Members []types.UID
		Message string
	}
	// Lock takes the locks of a plan; answered by LocksTaken.
	Lock struct {
		Plan   uint64
		ID     workload.GangID
		Places []Placed
		Around []types.UID // members that were bound when the plan was made
	}
	// Unlock gives locks back that an attempt may have taken.
	Unlock struct{ Places []Placed }
	// OpenGate lets a plan's members send their Bindings, or tells them that they may not.
	OpenGate struct {
		Plan uint64
		Err  error
	}
	// Release has the engine give an ended plan's places back; answered by PlacesReleased.
	Release struct {
		Plan uint64
		Key  shim.Key
	}
	// ReleasePod has the engine give one member's place back.
	ReleasePod struct{ UID types.UID }
	// Forget drops what is kept of a gang that is gone.
	Forget struct{ ID workload.GangID }
	// ClearNominations takes nominations back that are left over in the API.
	ClearNominations struct{ Pods []*v1.Pod }
)

func (Activate) effect()         {}
func (Ask) effect()              {}
func (Allow) effect()            {}
func (Reject) effect()           {}
func (Lock) effect()             {}
func (Unlock) effect()           {}
func (OpenGate) effect()         {}
func (Release) effect()          {}
func (ReleasePod) effect()       {}
func (Forget) effect()           {}
func (ClearNominations) effect() {}

// Place is where a plan puts a pod.
type Place struct {
	UID  types.UID
	Node string // "": anywhere, a member without GPUs
}

// Placed is a pod and where a plan puts it.
type Placed struct {
	Pod  *v1.Pod
	Node string // "": anywhere
}

// EndedError is what a plan's members get that stand at Bind when the plan ends.
type EndedError struct {
	Cause  Cause
	Detail error // nil: the cause says it all
}

func (e *EndedError) Error() string {
	if e.Detail == nil {
		return string(e.Cause)
	}
	return string(e.Cause) + ": " + e.Detail.Error()
}

func (e *EndedError) Unwrap() error { return e.Detail }
