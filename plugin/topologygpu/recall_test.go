// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"fmt"
	"regexp"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/frond-scheduler/frond/plugin/gangs"
	"github.com/frond-scheduler/frond/plugin/workload"
)

// What was bound by a scheduler before this one is in the ledger, with all that repair and preemption go by.
func TestWhatRunsIsKnownAfterARestart(t *testing.T) {
	const urgent = 1000
	ask := func(pod *v1.Pod) *v1.Pod {
		pod.Spec.Priority = new(int32(urgent))
		pod.Annotations[workload.Prefix+"recovery"] = "Wait"
		return pod
	}
	b := newBench(t)
	o := &observer{cluster: b.plugin.cluster, logger: loggerFor(ctx)}
	bound := func(pod *v1.Pod, node int) {
		pod.Spec.NodeName, pod.Annotations[workload.Rank] = b.nodes[node].Name, fmt.Sprint(node)
		o.PodSeen(pod)
		if err := b.plugin.mirror.SetPod(pod); err != nil {
			t.Fatal(err)
		}
	}
	b.plugin.table.Step(gangs.SpecSet{ID: groupGang, Spec: workload.Spec{MinMember: 2}})
	for i, name := range []string{"w-0", "w-1", "w-2"} {
		member := ask(pod(name, 8, 1))
		member.Labels[workload.PodGroupLabel] = group
		bound(member, i)
	}
	key := workload.GangKey(groupGang)
	if gang, err := b.plugin.engine.Gang(key); err != nil || gang.Bound != 3 || gang.Priority == urgent {
		t.Fatalf("before it is told the engine says %+v %v", gang, err)
	}
	b.plugin.recall(loggerFor(ctx))
	if gang, err := b.plugin.engine.Gang(key); err != nil || gang.Priority != urgent || gang.MinMember != 2 {
		t.Errorf("the engine says %+v %v", gang, err)
	}
	// The dump writes recovery as the third of the terms; a gang that has been told nothing has the default.
	if told := wait.FindAllString(b.dump(), -1); len(told) != 3 {
		t.Errorf("%d of 3 wait for their nodes to come back:\n%s", len(told), b.dump())
	}
	if held := b.plugin.table.Held(); len(held) != 0 {
		t.Errorf("%v is told again although nothing has changed", held)
	}
	b.plugin.table.Step(gangs.SpecSet{ID: groupGang, Spec: workload.Spec{MinMember: 3}})
	b.plugin.recall(loggerFor(ctx))
	if gang, err := b.plugin.engine.Gang(key); err != nil || gang.MinMember != 3 {
		t.Errorf("the group has changed, and the engine says %+v %v", gang, err)
	}
	b.check()
}

var wait = regexp.MustCompile(` priority 1000 deadline -?[0-9]+ terms [0-9]+ [0-9]+ 2 `)

func (b *bench) dump() string {
	b.t.Helper()
	text, err := b.plugin.engine.Dump()
	if err != nil {
		b.t.Fatal(err)
	}
	return text
}
