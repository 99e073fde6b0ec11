// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/frond-scheduler/frond/test/harness"
)

// Annotations that change where a gang goes, each where another value would give another answer.

func wish(name, value string) map[string]string {
	return map[string]string{"topology.scheduler/" + name: value}
}

func nodesOf(pods []corev1.Pod) map[string]int {
	nodes := map[string]int{}
	for _, pod := range pods {
		nodes[pod.Spec.NodeName]++
	}
	return nodes
}

func TestStrategiesPackOrSpread(t *testing.T) {
	for strategy, want := range map[string]int{"consolidated": 1, "balanced": 1, "distributed": 4} {
		t.Run(strategy, func(t *testing.T) {
			ns := lab.Namespace(t)
			g := harness.Gang{Name: strategy, Pods: 4, GPUs: 2, Annotations: wish("placement-strategy", strategy)}
			lab.Submit(t, ns, g)
			pods := lab.Bound(t, ns, g)
			checkPlacement(t, pods, 2, 1)
			if nodes := nodesOf(pods); len(nodes) != want {
				t.Errorf("on %v, want %d nodes", nodes, want)
			}
		})
	}
}

// leaveInEachLeaf cordons all but so many nodes of every leaf.
func leaveInEachLeaf(t *testing.T, open int) {
	t.Helper()
	for first := 1; first <= harness.Nodes; first += harness.NodesPerLeaf {
		lab.Cordon(t, first+open, first+harness.NodesPerLeaf-1)
	}
}

// A gang of four whole nodes makes a complete leaf, and no leaf has four nodes today.
func TestTopologyModeSaysWhetherTheRuleMayBreak(t *testing.T) {
	leaveInEachLeaf(t, 3)
	for _, mode := range []string{"Preferred", "Ignore"} {
		ns := lab.Namespace(t)
		g := harness.Gang{Name: "train", Pods: 4, GPUs: 8, Annotations: wish("topology-mode", mode)}
		lab.Submit(t, ns, g)
		if nodes := nodesOf(lab.Bound(t, ns, g)); len(nodes) != 4 {
			t.Errorf("%s: on %v, want four nodes", mode, nodes)
		}
	}
	ns := lab.Namespace(t)
	lab.Submit(t, ns, harness.Gang{Name: "train", Pods: 4, GPUs: 8, Annotations: wish("topology-mode", "Required")})
	lab.WaitReason(t, ns, "needs 4 nodes", "has 3 free")
}

func TestTopologyWaitEndsTheInsisting(t *testing.T) {
	const wait = 4 * time.Second
	leaveInEachLeaf(t, 3)
	ns := lab.Namespace(t)
	g := harness.Gang{Name: "train", Pods: 4, GPUs: 8, Annotations: wish("topology-wait", wait.String())}
	begin := time.Now()
	lab.Submit(t, ns, g)
	lab.WaitReason(t, ns, "needs 4 nodes", "has 3 free")
	lab.Bound(t, ns, g)
	// Creation times are whole seconds, so the wait may look one second shorter than it is.
	if took := time.Since(begin); took < wait-time.Second {
		t.Errorf("bound after %s, want %s of insisting first", took, wait)
	}
}

// Two whole nodes, one open node in every leaf: a gang that is sensitive to latency takes nothing wider than a leaf, even
// when it only prefers its rule.
func TestLatencySensitiveTakesNothingWider(t *testing.T) {
	leaveInEachLeaf(t, 1)
	ns := lab.Namespace(t)
	easy := harness.Gang{Name: "easy", Pods: 2, GPUs: 8, Annotations: wish("topology-mode", "Preferred")}
	lab.Submit(t, ns, easy)
	if nodes := nodesOf(lab.Bound(t, ns, easy)); len(nodes) != 2 {
		t.Errorf("on %v, want two nodes", nodes)
	}
	ns = lab.Namespace(t)
	strict := wish("topology-mode", "Preferred")
	strict["topology.scheduler/latency-sensitive"] = "true"
	lab.Submit(t, ns, harness.Gang{Name: "strict", Pods: 2, GPUs: 8, Annotations: strict})
	lab.WaitReason(t, ns, "needs 2 nodes in one leaf", "has 1 free")
}
