// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	v1 "k8s.io/api/core/v1"
)

func TestGPUsAreCountedAsUpstreamDoes(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	sidecar := container("nvidia.com/gpu", 1)
	sidecar.RestartPolicy = &always
	both := pod("both", 2)
	both.Spec.Containers = append(both.Spec.Containers, container("amd.com/gpu", 3), container("example.com/fpga", 9))
	initial := pod("init", 2)
	initial.Spec.InitContainers = []v1.Container{container("nvidia.com/gpu", 4)}
	side := pod("side", 2)
	side.Spec.InitContainers = []v1.Container{sidecar}
	r := reader(t)
	for _, test := range []struct {
		pod  *v1.Pod
		want uint32
	}{{both, 5}, {initial, 4}, {side, 3}, {pod("zero", 0), 0}, {pod("none"), 0}, {pod("huge", 1<<40), 1<<32 - 1}} {
		if got := r.GPUs(test.pod); got != test.want {
			t.Errorf("%s: got %d, want %d", test.pod.Name, got, test.want)
		}
	}
}

// A template has not been through the API server: its limits stand for its requests.
func TestTemplatesAreCountedByLimits(t *testing.T) {
	limited := v1.Container{Resources: v1.ResourceRequirements{Limits: container("nvidia.com/gpu", 4).Resources.Limits}}
	both := container("nvidia.com/gpu", 2)
	both.Resources.Limits = container("nvidia.com/gpu", 3).Resources.Limits
	for _, test := range []struct {
		name string
		spec v1.PodSpec
		want uint32
	}{
		{"limits alone", v1.PodSpec{Containers: []v1.Container{limited, limited}}, 8},
		{"limits win", v1.PodSpec{Containers: []v1.Container{both}}, 3},
		{"init containers one at a time", v1.PodSpec{Containers: []v1.Container{both}, InitContainers: []v1.Container{limited, limited}}, 4},
		{"none", v1.PodSpec{Containers: []v1.Container{{}}}, 0},
	} {
		if got := reader(t).template(&v1.PodTemplateSpec{Spec: test.spec}); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}
