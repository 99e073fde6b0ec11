// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math"

	v1 "k8s.io/api/core/v1"
	resourcehelper "k8s.io/component-helpers/resource"
)

// counter counts GPUs.
type counter struct{ resources []v1.ResourceName }

// GPUs of a pod, as upstream counts resources: containers together, init containers one at a time.
func (c *counter) GPUs(pod *v1.Pod) uint32 {
	if !c.mentions(pod.Spec.Containers) && !c.mentions(pod.Spec.InitContainers) {
		return 0
	}
	return c.count(resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{}))
}

// NodeGPUs of a node: what it lets pods have.
func (c *counter) NodeGPUs(node *v1.Node) uint32 { return c.count(node.Status.Allocatable) }

// Resources are the names counted as GPUs.
func (c *counter) Resources() []v1.ResourceName { return c.resources }

// template is the GPUs of a pod made from a template. Nobody has filled in requests there, so limits stand for them.
func (c *counter) template(template *v1.PodTemplateSpec) uint32 {
	pod := &v1.Pod{Spec: v1.PodSpec{InitContainers: c.limits(template.Spec.InitContainers), Containers: c.limits(template.Spec.Containers)}}
	return c.GPUs(pod)
}

func (c *counter) limits(containers []v1.Container) []v1.Container {
	out := make([]v1.Container, len(containers))
	for i := range containers {
		requests := v1.ResourceList{}
		for _, name := range c.resources {
			if quantity, ok := containers[i].Resources.Requests[name]; ok {
				requests[name] = quantity
			}
			if quantity, ok := containers[i].Resources.Limits[name]; ok {
				requests[name] = quantity
			}
		}
		out[i] = v1.Container{RestartPolicy: containers[i].RestartPolicy, Resources: v1.ResourceRequirements{Requests: requests}}
	}
	return out
}

func (c *counter) count(list v1.ResourceList) uint32 {
	sum := uint64(0)
	for _, name := range c.resources {
		if quantity, ok := list[name]; ok {
			sum += uint64(max(quantity.Value(), 0))
		}
	}
	return uint32(min(sum, math.MaxUint32))
}

func (c *counter) mentions(containers []v1.Container) bool {
	for i := range containers {
		for _, name := range c.resources {
			if has(containers[i].Resources.Requests, name) || has(containers[i].Resources.Limits, name) {
				return true
			}
		}
	}
	return false
}
