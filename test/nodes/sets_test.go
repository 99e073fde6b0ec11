// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/test/harness"
	referee "github.com/frond-scheduler/frond/test/judge"
)

func seed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("FROND_SEED")
	if text == "" {
		return rand.Uint64N(1 << 31)
	}
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("FROND_SEED: %v", err)
	}
	return number
}

// rounds is how often something is done; proofs do it more often.
func rounds(t *testing.T) int {
	t.Helper()
	text := os.Getenv("FROND_NODES_ROUNDS")
	if text == "" {
		return 3
	}
	number, err := strconv.Atoi(text)
	if err != nil || number < 1 {
		t.Fatalf("FROND_NODES_ROUNDS: must be a whole number from 1 on, got %q", text)
	}
	return number
}

// create makes a pod that fits on that node only.
func create(t *testing.T, ns, name, node string, gpus int) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: harness.PodSpec(harness.Profile, int64(gpus))}
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	made, err := lab.Client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create pod %s: %v", name, err)
	}
	return made
}

// bound waits for a pod's node and returns the indices of its GPUs, in the order in which they are written.
func bound(t *testing.T, ns, name string) (pod *corev1.Pod, indices []int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var err error
		if pod, err = lab.Client.CoreV1().Pods(ns).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Fatal(err)
		}
		if pod.Spec.NodeName != "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not bound; %s", name, lab.Reasons(t.Context(), ns))
		}
	}
	return pod, indicesOf(t, pod)
}

// indicesOf a bound pod's GPUs, by what the report of its node calls them.
func indicesOf(t *testing.T, pod *corev1.Pod) (indices []int) {
	t.Helper()
	known := map[string]int{}
	for _, device := range report(t, pod.Spec.NodeName).Devices {
		known[device.ID] = int(device.Index)
	}
	for id := range strings.SplitSeq(pod.Annotations["gpu.scheduling/allocated"], ",") {
		index, found := known[id]
		if !found {
			t.Fatalf("%s has GPU %q, which the report of %s does not know", pod.Name, id, pod.Spec.NodeName)
		}
		indices = append(indices, index)
	}
	return indices
}

func report(t *testing.T, node string) *apis.NodeReport {
	t.Helper()
	object, err := objects.Resource(apis.GpuNodeStatuses).Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	status, err := apis.Status[apis.NodeReport](object)
	if err != nil {
		t.Fatal(err)
	}
	return status
}

// remove deletes pods and waits until their locks are gone as well: only then does the scheduler count their GPUs as free.
func remove(t *testing.T, ns, node string, pods ...*corev1.Pod) {
	t.Helper()
	now := int64(0)
	for _, pod := range pods {
		if err := lab.Client.CoreV1().Pods(ns).Delete(t.Context(), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
			t.Fatal(err)
		}
	}
	harness.Eventually(t, 20*time.Second, func(ctx context.Context) error {
		lease, err := lab.Client.CoordinationV1().Leases("frond-system").Get(ctx, node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, pod := range pods {
			if strings.Contains(lease.Annotations["gpu.scheduling/owners"], string(pod.UID)) {
				return fmt.Errorf("%s is still locked for", pod.Name)
			}
		}
		return nil
	})
	time.Sleep(50 * time.Millisecond) // a watch is not instant
}

// Every machine, every size: alone on the node, and beside what others hold. The judge watches that no GPU is given twice,
// that all belong to their nodes, and that locks and pods agree.
func TestPodsGetTheBestGPUs(t *testing.T) {
	start := seed(t)
	t.Logf("seed %d", start)
	watching, err := referee.Watch(t.Context(), lab.Client, referee.Rules{Profiles: []string{harness.Profile}, Locks: true, Devices: devices(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Run("on", func(t *testing.T) {
		for i, kind := range kinds[:10] {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				placeOn(t, nodeName(i), rand.New(rand.NewPCG(start, uint64(i))))
			})
		}
	})
	for _, violation := range watching.Verdict(30 * time.Second) {
		t.Error(violation)
	}
	t.Logf("the judge saw %d changes", watching.Events())
}

// devices are the ids that each node has, as they are reported.
func devices(t *testing.T) func(node string) []string {
	t.Helper()
	list, err := objects.Resource(apis.GpuNodeStatuses).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ids := map[string][]string{}
	for i := range list.Items {
		status, err := apis.Status[apis.NodeReport](&list.Items[i])
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range status.Devices {
			ids[list.Items[i].GetName()] = append(ids[list.Items[i].GetName()], d.ID)
		}
	}
	return func(node string) []string { return ids[node] }
}

// Nodes without an agent are reported by the lab, as the probe finds their machines, and their heartbeats go on.
func TestTheLabSpeaksForOtherNodes(t *testing.T) {
	for i := firstOfLab; i < len(kinds); i++ {
		node := nodeName(i)
		first := report(t, node)
		checkReport(t, node, readMachine(t, node))
		if device(first, 0).ID == device(report(t, nodeName(slices.Index(kinds, kinds[i]))), 0).ID {
			t.Errorf("%s has the UUIDs of another node", node)
		}
		harness.Eventually(t, 40*time.Second, func(context.Context) error {
			if now := report(t, node); !now.Heartbeat.After(first.Heartbeat.Time) || len(now.Devices) != len(first.Devices) {
				return errNotYet
			}
			return nil
		})
	}
	list, err := objects.Resource(apis.GpuNodeStatuses).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) > len(kinds) {
		t.Errorf("%d reports of %d machines, %v", len(list.Items), len(kinds), err)
	}
}

type held struct {
	pod  *corev1.Pod
	gpus []int
}

func placeOn(t *testing.T, node string, dice *rand.Rand) {
	ns := lab.Namespace(t)
	m := readMachine(t, node)
	checkReport(t, node, m)
	j := newJudge(m)
	var holders []held
	placed := 0
	place := func(k int) {
		taken := map[int]bool{}
		for _, h := range holders {
			for _, gpu := range h.gpus {
				taken[gpu] = true
			}
		}
		free := m.free(taken)
		want := j.best(free, k)
		name := fmt.Sprintf("p-%d", placed)
		create(t, ns, name, node, k)
		pod, got := bound(t, ns, name)
		placed++
		if !slices.Equal(got, want) {
			t.Errorf("%d of the free GPUs %v: got %v, the best are %v", k, free, got, want)
		}
		holders = append(holders, held{pod, got})
	}
	drop := func(from, to int) {
		var pods []*corev1.Pod
		for _, h := range holders[from:to] {
			pods = append(pods, h.pod)
		}
		remove(t, ns, node, pods...)
		holders = slices.Delete(holders, from, to)
	}
	left := func() int {
		taken := 0
		for _, h := range holders {
			taken += len(h.gpus)
		}
		return len(m.free(nil)) - taken
	}
	for k := 1; k <= min(8, left()); k++ {
		place(k)
		drop(0, 1)
	}
	for range rounds(t) {
		for left() > 0 && len(holders) < 6 {
			place(1 + dice.IntN(min(8, left(), 4)))
		}
		at := dice.IntN(len(holders))
		drop(at, at+1)
		place(1 + dice.IntN(min(8, left())))
		drop(0, len(holders))
	}
	t.Logf("%d placements", placed)
}

// checkReport: what the API server has is what the description says.
func checkReport(t *testing.T, node string, m *machine) {
	t.Helper()
	r := report(t, node)
	if len(r.Devices) != m.gpus {
		t.Fatalf("the report has %d devices, the machine %d", len(r.Devices), m.gpus)
	}
	for _, device := range r.Devices {
		i := int(device.Index)
		if usable := device.Health == apis.Healthy && !device.MIGMode; usable == m.out[i] {
			t.Errorf("GPU %d: health %s (%s), MIG mode %v, %d slices; the machine says out: %v", i, device.Health, device.Reason, device.MIGMode, len(device.MIG), m.out[i])
		}
		if (device.Health == apis.Healthy) != (device.Reason == "") {
			t.Errorf("GPU %d: health %s for the reason %q", i, device.Health, device.Reason)
		}
		if device.Health == apis.Healthy && (device.NUMANode == nil || int(*device.NUMANode) != m.numa[i]) {
			t.Errorf("GPU %d: NUMA node %v, want %d", i, device.NUMANode, m.numa[i])
		}
		row := make([]int, m.gpus)
		for _, link := range device.Links {
			row[link.Peer] = int(link.BandwidthGBps)
		}
		if device.Health == apis.Healthy && !slices.Equal(row, lessOut(m, i, r)) {
			t.Errorf("GPU %d: links %v, want %v", i, row, lessOut(m, i, r))
		}
	}
}

// lessOut is a row of the matrix without links to GPUs that no longer answer.
func lessOut(m *machine, i int, r *apis.NodeReport) []int {
	row := slices.Clone(m.gbps[i])
	for _, device := range r.Devices {
		if strings.Contains(device.Reason, "lost") {
			row[device.Index] = 0
		}
	}
	return row
}
