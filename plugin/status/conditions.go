// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/frond-scheduler/frond/plugin/apis"
)

// verdict is one condition without its history.
type verdict struct {
	name   string
	status metav1.ConditionStatus
}

// conditions are the verdicts, all for the same reason, each with the time since when it is so. Others that were there
// are left out: nobody but us writes here.
func conditions(was []metav1.Condition, now time.Time, generation int64, reason, message string, verdicts ...verdict) []metav1.Condition {
	list := make([]metav1.Condition, 0, len(verdicts))
	for _, v := range verdicts {
		since := metav1.NewTime(now)
		if old := meta.FindStatusCondition(was, v.name); old != nil && old.Status == v.status && !old.LastTransitionTime.IsZero() {
			since = old.LastTransitionTime
		}
		list = append(list, metav1.Condition{
			Type: v.name, Status: v.status, ObservedGeneration: generation, LastTransitionTime: since, Reason: reason, Message: clip(message),
		})
	}
	return list
}

func truth(is bool) metav1.ConditionStatus {
	if is {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// clip keeps a message within what the definitions allow.
func clip(message string) string {
	if len(message) <= apis.MessageMax {
		return message
	}
	const dots = "…"
	end := apis.MessageMax - len(dots)
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + dots
}

// before is the status that the object has. One that cannot be read was not written by us and has no history.
func before[T any](object *unstructured.Unstructured) *T {
	status, err := apis.Status[T](object)
	if err != nil {
		return new(T)
	}
	return status
}

// or is the first that says something.
func or(text, fallback string) string {
	if text != "" {
		return text
	}
	return fallback
}
