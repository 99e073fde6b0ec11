// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/shim"
)

// Group is what is kept of a PodGroup, ours or the native one.
type Group struct {
	metav1.ObjectMeta
	Gang
	Phase apis.GroupPhase // that a scheduler wrote last; of ours only
}

// newPodGroup reads a PodGroup of scheduling.x-k8s.io.
func newPodGroup(object *unstructured.Unstructured) *Group {
	group := newGroup(object, KindPodGroup)
	if status, err := apis.Status[apis.PodGroupStatus](object); err == nil { // else nobody of ours wrote it
		group.Phase = status.Phase
	}
	path := fmt.Sprintf("PodGroup %s: spec", group.ID)
	fields, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		group.Spec.Problem = path + " is no object"
		return group
	}
	group.Spec.MinMember, group.Spec.Problem = groupSize(path+".minMember", fields, "minMember")
	if group.Spec.Problem == "" {
		group.Spec.MinResources, group.Spec.ScheduleTimeout, group.Spec.Problem = groupWishes(path, fields)
	}
	return group
}

// newNativeGroup reads a PodGroup of scheduling.k8s.io. The basic policy asks for no gang: its pods are planned together
// and may go one by one.
func newNativeGroup(object *unstructured.Unstructured) *Group {
	group := newGroup(object, KindNativeGroup)
	path := fmt.Sprintf("PodGroup %s: spec.schedulingPolicy", group.ID)
	gang, found, err := unstructured.NestedMap(object.Object, "spec", "schedulingPolicy", "gang")
	switch {
	case err != nil:
		group.Spec.Problem = path + ".gang is no object"
	case found:
		group.Spec.MinMember, group.Spec.Problem = groupSize(path+".gang.minCount", gang, "minCount")
	default:
		group.Spec.MinMember = 1
	}
	return group
}

func newGroup(object *unstructured.Unstructured, kind string) *Group {
	meta := compactMeta(object)
	meta.Annotations, meta.OwnerReferences = nil, nil
	return &Group{ObjectMeta: meta, Gang: Gang{
		ID: GangID{Kind: kind, Namespace: meta.Namespace, Name: meta.Name}, Spec: Spec{UID: meta.UID},
	}}
}

func groupSize(path string, fields map[string]any, field string) (size int, problem string) {
	number, found, err := unstructured.NestedInt64(fields, field)
	switch {
	case err != nil:
		return 0, path + " is not a number"
	case !found:
		return 0, path + " is missing"
	case number < 1 || number > shim.MembersMax:
		return 0, fmt.Sprintf("%s must be between 1 and %d, got %d", path, shim.MembersMax, number)
	}
	return int(number), ""
}

// groupWishes reads minResources and scheduleTimeoutSeconds, which PodGroups and Kubeflow's policies have in common.
func groupWishes(path string, fields map[string]any) (list v1.ResourceList, timeout time.Duration, problem string) {
	raw, found, err := unstructured.NestedMap(fields, "minResources")
	if err != nil {
		return nil, 0, path + ".minResources must be an object of resource names and quantities"
	}
	if found && len(raw) > 0 {
		list = make(v1.ResourceList, len(raw))
	}
	names := make([]string, 0, len(raw))
	for name := range raw {
		names = append(names, name)
	}
	slices.Sort(names) // the same object gives the same sentence
	for _, name := range names {
		quantity, err := resource.ParseQuantity(fmt.Sprint(raw[name]))
		if err != nil || quantity.Sign() < 0 {
			return nil, 0, fmt.Sprintf("%s.minResources.%s must be a quantity of 0 or more, such as \"8\" or \"64Gi\", got %q", path, shorten(name), shorten(fmt.Sprint(raw[name])))
		}
		list[v1.ResourceName(name)] = quantity
	}
	seconds, found, err := unstructured.NestedInt64(fields, "scheduleTimeoutSeconds")
	if err != nil {
		return nil, 0, path + ".scheduleTimeoutSeconds is not a number"
	}
	if found && (seconds < 1 || seconds > math.MaxInt32) {
		return nil, 0, fmt.Sprintf("%s.scheduleTimeoutSeconds must be between 1 and %d, got %d", path, math.MaxInt32, seconds)
	}
	return list, time.Duration(seconds) * time.Second, ""
}
