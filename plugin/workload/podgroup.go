// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/frond-scheduler/frond/shim"
)

// PodGroupResource is the PodGroup of scheduling.x-k8s.io. Its CRD may not be installed.
func PodGroupResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}
}

// PodGroupSpec reads a PodGroup.
func PodGroupSpec(group *unstructured.Unstructured) Spec {
	spec := Spec{}
	name := group.GetNamespace() + "/" + group.GetName()
	minMember, found, err := unstructured.NestedInt64(group.Object, "spec", "minMember")
	switch {
	case err != nil:
		spec.Problem = fmt.Sprintf("PodGroup %s: spec.minMember is not a number", name)
	case !found:
		spec.Problem = fmt.Sprintf("PodGroup %s: spec.minMember is missing", name)
	default:
		spec.Problem = sizeProblem(minMember, func(n int64) string {
			return fmt.Sprintf("PodGroup %s: spec.minMember must be between 1 and %d, got %d", name, shim.MembersMax, n)
		})
	}
	if spec.Problem == "" {
		spec.MinMember = int(minMember)
	}
	return spec
}
