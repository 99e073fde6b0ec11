// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// scores runs a single pod's cycle up to Score and returns what the nodes get that passed all filters.
func (b *bench) scores(pod *v1.Pod) map[string]int64 {
	b.t.Helper()
	state, _, status := b.preFilter(pod)
	if !status.IsSuccess() {
		b.t.Fatal(status)
	}
	var infos []fwk.NodeInfo
	for _, name := range b.feasible(state, pod) {
		info, err := b.snapshot.NodeInfos().Get(name)
		if err != nil {
			b.t.Fatal(err)
		}
		infos = append(infos, info)
	}
	if status := b.plugin.PreScore(ctx, state, pod, infos); !status.IsSuccess() {
		b.t.Fatal(status)
	}
	scores := map[string]int64{}
	for _, info := range infos {
		score, status := b.plugin.Score(ctx, state, pod, info)
		if !status.IsSuccess() {
			b.t.Fatal(status)
		}
		scores[info.Node().Name] = score
	}
	return scores
}

// run binds a pod to a node.
func (b *bench) run(pod *v1.Pod, node string) {
	pod.Spec.NodeName = node
	b.pods = append(b.pods, pod)
}

// flatten takes the fabric away.
func (b *bench) flatten() {
	for i, node := range b.nodes {
		b.nodes[i] = node.DeepCopy()
		b.nodes[i].Labels = map[string]string{"kubernetes.io/hostname": node.Name}
	}
}

func TestNodesThatFiltersRefuseTakeNoPlace(t *testing.T) {
	b := newBench(t)
	for i := range 150 {
		name := fmt.Sprintf("node-%d", i+5)
		b.node(name, "leaf-1") // one leaf: the order inside is that of names
		if i < 148 {
			b.run(pod("cpu-"+name, 0, 64), name)
		}
	}
	for i := range 4 {
		b.run(pod(fmt.Sprint("cpu-", i), 0, 64), b.nodes[i].Name)
	}
	b.look()
	one := pod("one", 1, 1)
	if got, want := b.scores(one), map[string]int64{"node-153": 100, "node-154": 99}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !b.called(" room 152 thrift none ") {
		t.Error("nobody is expected, so there is nothing to tell of CPU and memory")
	}
	b.check()
}

func TestPositionsStandWhereEveryNodePasses(t *testing.T) {
	b := newBench(t)
	if got, want := b.scores(pod("one", 8, 1)), map[string]int64{"node-1": 100, "node-2": 99, "node-3": 98, "node-4": 97}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if b.called(" room 16384 ") {
		t.Error("the engine was asked again for what it had said")
	}
}

func TestTheClaimsSelectorStillCountsInPreScore(t *testing.T) {
	b := newBench(t)
	kept, err := b.plugin.reader.Compact(object("gpu.scheduling/v1", "GpuClaim", "mine", "u", map[string]any{
		"devices": map[string]any{"count": int64(1)}, "selector": map[string]any{"matchLabels": map[string]any{"pool": "mine"}}}))
	if err != nil {
		t.Fatal(err)
	}
	o := &observer{cluster: b.plugin.cluster, logger: loggerFor(ctx)}
	o.objectSet(kept)
	b.nodes[2].Labels["pool"], b.nodes[3].Labels["pool"] = "mine", "mine"
	b.run(pod("cpu", 0, 64), "node-3")
	b.look()
	one := pod("one", 1, 1)
	one.Annotations[workload.ClaimAnnotation] = "mine"
	o.PodSeen(one)
	if got, want := b.scores(one), map[string]int64{"node-4": 100}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Two nodes with the same GPUs free; on the first the pod would leave GPUs without CPU for the pods that there are.
func TestThriftWithAndWithoutTopology(t *testing.T) {
	for _, test := range []struct {
		name  string
		flat  bool
		kinds int // pods that have been seen
		want  map[string]int64
	}{
		{"without topology", true, 3, map[string]int64{"node-1": 99, "node-2": 100}},
		{"with topology", false, 3, map[string]int64{"node-1": 99, "node-2": 100}},
		{"with topology, nobody has been seen", false, 0, map[string]int64{"node-1": 100, "node-2": 99}},
		{"nobody has been seen", true, 0, map[string]int64{"node-1": 100, "node-2": 99}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t)
			if test.flat {
				b.flatten()
			}
			b.run(pod("cpu", 0, 56), "node-1")
			b.run(pod("full-3", 8, 1), "node-3")
			b.run(pod("full-4", 8, 1), "node-4")
			b.look()
			o := &observer{cluster: b.plugin.cluster, logger: loggerFor(ctx)}
			for i := range test.kinds {
				seen := pod(fmt.Sprint("seen-", i), 1, 1)
				seen.Spec.SchedulerName = "somebody-else"
				o.PodSeen(seen)
			}
			if got := b.scores(pod("one", 1, 4)); !maps.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
			told := b.called(" thrift 16384 cpu_milli 4000 memory_mib 0 kinds 1 ") && b.called("\n kind cpu_milli 1000 memory_mib 0 gpus 1 pods 3\n left 8000/1048576 64000/1048576 0/0*16382\n")
			if told != (test.kinds > 0) {
				t.Errorf("the engine was told of CPU and memory: %v", told)
			}
			b.check()
		})
	}
}

func TestTheObserverLearnsKinds(t *testing.T) {
	b := newBench(t)
	o := &observer{cluster: b.plugin.cluster, logger: loggerFor(ctx)}
	mine, other, plain := pod("mine", 2, 1), pod("other", 2, 1), pod("plain", 0, 1)
	other.Spec.SchedulerName, other.Spec.NodeName = "default-scheduler", "node-1"
	for _, p := range []*v1.Pod{mine, other, plain} {
		o.PodSeen(p)
	}
	if got, want := b.plugin.demand.Kinds(), []shim.Kind{{CPUMilli: 1000, GPUs: 2, Pods: 2}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, p := range []*v1.Pod{mine, other, plain} {
		o.PodGone(p)
	}
	if got := b.plugin.demand.Kinds(); len(got) != 0 {
		t.Errorf("gone is gone: %v", got)
	}
}
