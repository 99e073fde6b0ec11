// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/apis"
)

// Reasons of a claim's conditions, when its state gives none.
const (
	ReasonUnused   = "Unused"
	ReasonWaiting  = "Waiting"
	ReasonReserved = "Reserved"
	ReasonBound    = "PodBound"
	ReasonReleased = "PodEnded"
	ReasonRefused  = "Refused"
)

// MessageUnused is what a claim says that no pod names.
const MessageUnused = "no pod uses it"

// ClaimState is what is to be said of a GpuClaim. Reason and Message may be empty: the phase has words of its own.
type ClaimState struct {
	Namespace, Name string
	UID             types.UID
	Generation      int64 // of the spec that was decided on; 0: the one that is there when this is written
	Phase           apis.ClaimPhase
	Node            string   // of a Reserved or Bound claim, unless it serves a gang
	GPUs            []string // in ring order, likewise
	Pod             types.NamespacedName
	PodUID          types.UID
	Reason, Message string
}

// Claim has the state written. GPUs must not change afterwards.
func (w *Writer) Claim(s ClaimState) {
	w.put(key{resource: apis.GpuClaims, namespace: s.Namespace, name: s.Name, uid: s.UID}, s)
}

func (s ClaimState) render(object *unstructured.Unstructured, now time.Time) (any, error) {
	generation := s.Generation
	if generation == 0 {
		generation = object.GetGeneration()
	}
	reason, message, err := s.words()
	if err != nil {
		return nil, err
	}
	status := &apis.GpuClaimStatus{Phase: s.Phase, ObservedGeneration: generation}
	if s.Pod.Name != "" {
		status.Pod = &apis.ClaimPod{Name: s.Pod.Name, UID: s.PodUID}
	}
	holds := s.Phase == apis.ClaimReserved || s.Phase == apis.ClaimBound
	if holds { // others have given back what they held
		status.NodeName, status.GPUIDs = s.Node, s.GPUs
	}
	status.Conditions = conditions(before[apis.GpuClaimStatus](object).Conditions, now, generation, or(s.Reason, reason), or(s.Message, message),
		verdict{apis.ConditionReserved, truth(holds)},
		verdict{apis.ConditionBound, truth(s.Phase == apis.ClaimBound)},
		verdict{apis.ConditionFailed, truth(s.Phase == apis.ClaimFailed)})
	return status, nil
}

// words of the phase itself.
func (s ClaimState) words() (reason, message string, err error) {
	pod := s.Pod.Name
	switch {
	case s.Phase == apis.ClaimPending && pod == "":
		return ReasonUnused, MessageUnused, nil
	case s.Phase == apis.ClaimPending:
		return ReasonWaiting, fmt.Sprintf("pod %s waits for a place", pod), nil
	case s.Phase == apis.ClaimReserved:
		return ReasonReserved, "GPUs are reserved" + forPod(pod), nil
	case s.Phase == apis.ClaimBound:
		return ReasonBound, "GPUs are bound" + forPod(pod), nil
	case s.Phase == apis.ClaimReleased:
		return ReasonReleased, "its pod has ended; the claim may be used again", nil
	case s.Phase == apis.ClaimFailed:
		return ReasonRefused, "what it asks for is refused", nil
	}
	return "", "", fmt.Errorf("GpuClaim %s/%s: %q is not a phase", s.Namespace, s.Name, s.Phase)
}

func forPod(name string) string {
	if name == "" {
		return ""
	}
	return " for pod " + name
}
