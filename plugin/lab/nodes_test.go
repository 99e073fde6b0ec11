// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const fabricJSON = `{"nodes":[
 {"name":"node-1","spine":"spine-1","leaf":"leaf-1","gpus":8,"model":"H100-SXM","uplinkGbps":400,"usedGpus":[],"unhealthyGpus":[],"cordoned":false,"labels":{}},
 {"name":"node-2","spine":"spine-1","leaf":"leaf-1","gpus":4,"model":"box-4","usedGpus":[0,1],"unhealthyGpus":[3],"cordoned":true,"labels":{"zone":"a"}},
 {"name":"node-3","spine":"spine-1","leaf":"leaf-2","gpus":8,"model":"MI300X"},
 {"name":"node-4","spine":"spine-1","leaf":"leaf-2","gpus":0,"model":""}]}`

func TestNodesStandForTheFabric(t *testing.T) {
	nodes, err := parseFabric([]byte(fabricJSON))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct {
		labels                map[string]string
		resource              v1.ResourceName
		capacity, allocatable int64
		cordoned              bool
	}{
		{map[string]string{leafLabel: "leaf-1", spineLabel: "spine-1", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
			"nvidia.com/gpu.count": "8", "kubernetes.io/hostname": "node-1"}, nvidiaResource, 8, 8, false},
		{map[string]string{"nvidia.com/gpu.product": "box-4", "zone": "a"}, nvidiaResource, 4, 3, true},
		{map[string]string{"amd.com/gpu.product": "AMD-Instinct-MI300X-OAM", "amd.com/gpu.count": "8"}, amdResource, 8, 8, false},
		{map[string]string{leafLabel: "leaf-2", "nvidia.com/gpu.count": ""}, nvidiaResource, 0, 0, false},
	} {
		node := nodes[i].object(i)
		for key, value := range want.labels {
			if node.Labels[key] != value {
				t.Errorf("%s: label %s is %q, want %q", node.Name, key, node.Labels[key], value)
			}
		}
		capacity, allocatable := node.Status.Capacity[want.resource], node.Status.Allocatable[want.resource]
		if capacity.Value() != want.capacity || allocatable.Value() != want.allocatable {
			t.Errorf("%s: %d GPUs, %d allocatable, want %d and %d", node.Name, capacity.Value(), allocatable.Value(),
				want.capacity, want.allocatable)
		}
		if node.Spec.Unschedulable != want.cordoned || len(node.Spec.Taints) > 0 {
			t.Errorf("%s: unschedulable %v, taints %v", node.Name, node.Spec.Unschedulable, node.Spec.Taints)
		}
		if node.Annotations[kwokAnnotation] != kwokAnnotationValue {
			t.Errorf("%s is not KWOK's", node.Name)
		}
	}
}

func TestUsedGPUsAreHeldByAPlaceholder(t *testing.T) {
	nodes, err := parseFabric([]byte(fabricJSON))
	if err != nil {
		t.Fatal(err)
	}
	if pod := nodes[0].placeholder(); pod != nil {
		t.Errorf("node-1 has nothing in use but got pod %s", pod.Name)
	}
	pod := nodes[1].placeholder()
	if pod == nil || pod.Spec.NodeName != "node-2" {
		t.Fatalf("node-2 got %v", pod)
	}
	if gpus := gpusOf(pod); gpus != 2 {
		t.Errorf("the placeholder holds %d GPUs, want 2", gpus)
	}
}

func TestAFabricWithoutNodesIsRefused(t *testing.T) {
	for _, text := range []string{`{"nodes":[]}`, `{}`, `nonsense`} {
		if _, err := parseFabric([]byte(text)); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}

func TestEveryNodeHasItsOwnAddress(t *testing.T) {
	seen := map[string]int{}
	for i := range 131072 { // FROND_NODES_MAX
		if other, taken := seen[nodeIP(i)]; taken {
			t.Fatalf("nodes %d and %d share %s", other, i, nodeIP(i))
		}
		seen[nodeIP(i)] = i
	}
}

func TestReadyMeansThatPodsCanStart(t *testing.T) {
	ready := func(status v1.ConditionStatus, taints ...string) v1.Node {
		node := v1.Node{Status: v1.NodeStatus{Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: status}}}}
		for _, key := range taints {
			node.Spec.Taints = append(node.Spec.Taints, v1.Taint{Key: key})
		}
		return node
	}
	nodes := []v1.Node{
		ready(v1.ConditionTrue),
		ready(v1.ConditionTrue, v1.TaintNodeUnschedulable), // cordoned by the fabric, but up
		ready(v1.ConditionTrue, v1.TaintNodeNotReady),
		ready(v1.ConditionFalse),
		ready(v1.ConditionUnknown, v1.TaintNodeUnreachable),
		{ObjectMeta: metav1.ObjectMeta{Name: "new"}},
	}
	if got := readyNodes(nodes); got != 2 {
		t.Errorf("%d nodes are ready, want 2", got)
	}
}

func TestInParallelDoesAllOrNamesTheFirstError(t *testing.T) {
	var done [100]atomic.Bool
	if err := inParallel(context.Background(), len(done), 7, func(_ context.Context, i int) error {
		done[i].Store(true)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for i := range done {
		if !done[i].Load() {
			t.Errorf("%d was left out", i)
		}
	}
	bad := errors.New("no")
	if err := inParallel(context.Background(), 100, 7, func(_ context.Context, i int) error {
		if i == 50 {
			return bad
		}
		return nil
	}); !errors.Is(err, bad) {
		t.Errorf("inParallel() = %v, want %v", err, bad)
	}
	if err := inParallel(context.Background(), 0, 7, nil); err != nil {
		t.Errorf("nothing to do gave %v", err)
	}
}
