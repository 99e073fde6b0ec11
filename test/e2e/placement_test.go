// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/frond-scheduler/frond/test/harness"
)

// checkPlacement re-checks a bound gang from the API alone: distinct GPUs of the right nodes, domain and rank
// annotations, ranks in fabric order, and exactly the wanted number of adjacent leaves under one spine.
func checkPlacement(t *testing.T, pods []corev1.Pod, gpus, wantLeaves int) {
	t.Helper()
	var leaves []int
	spines := map[string]bool{}
	last := 0
	for rank, pod := range pods {
		if got := pod.Annotations["topology.scheduler/rank"]; got != fmt.Sprint(rank) {
			t.Errorf("%s: rank annotation %q, want %d", pod.Name, got, rank)
		}
		node := harness.Number(pod.Spec.NodeName)
		if node < last {
			t.Errorf("rank %d is on node-%d, before node-%d of the rank before it", rank, node, last)
		}
		last = node
		leaf := (node-1)/harness.NodesPerLeaf + 1
		spine := (leaf-1)/harness.LeavesPerSpine + 1
		if want := fmt.Sprintf("spine-%d/leaf-%d", spine, leaf); pod.Annotations["topology.scheduler/domain"] != want {
			t.Errorf("%s on node-%d: domain %q, want %q", pod.Name, node, pod.Annotations["topology.scheduler/domain"], want)
		}
		ids := strings.Split(pod.Annotations["gpu.scheduling/allocated"], ",")
		if len(ids) != gpus {
			t.Errorf("%s: %d GPUs allocated, want %d: %v", pod.Name, len(ids), gpus, ids)
		}
		for _, id := range ids {
			if !strings.HasPrefix(id, pod.Spec.NodeName+"-gpu-") {
				t.Errorf("%s on %s has the foreign GPU %q", pod.Name, pod.Spec.NodeName, id)
			}
		}
		if !slices.Contains(leaves, leaf) {
			leaves = append(leaves, leaf)
		}
		spines[fmt.Sprint(spine)] = true
	}
	if len(spines) != 1 || len(leaves) != wantLeaves || leaves[len(leaves)-1]-leaves[0] != wantLeaves-1 {
		t.Errorf("on leaves %v under %d spines, want %d adjacent leaves under one", leaves, len(spines), wantLeaves)
	}
}

func TestJobsLandOnAdjacentLeavesInRankOrder(t *testing.T) {
	ns := lab.Namespace(t)
	for _, c := range []struct {
		pods   int32
		leaves int
	}{{2, 1}, {4, 1}, {8, 2}, {16, 4}} {
		g := harness.Gang{Name: fmt.Sprintf("train-%d", c.pods), Pods: c.pods, GPUs: 8}
		lab.Submit(t, ns, g)
		checkPlacement(t, lab.Bound(t, ns, g), 8, c.leaves)
	}
}

func TestMembersSmallerThanANodeShareNodes(t *testing.T) {
	ns := lab.Namespace(t)
	g := harness.Gang{Name: "small", Pods: 6, GPUs: 2} // 12 GPUs: two nodes of one leaf
	lab.Submit(t, ns, g)
	pods := lab.Bound(t, ns, g)
	checkPlacement(t, pods, 2, 1)
	seen := map[string]string{}
	for _, pod := range pods {
		for id := range strings.SplitSeq(pod.Annotations["gpu.scheduling/allocated"], ",") {
			if other, taken := seen[id]; taken {
				t.Errorf("%s and %s both have %s", other, pod.Name, id)
			}
			seen[id] = pod.Name
		}
	}
}
