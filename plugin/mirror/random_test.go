// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/nodereport"
	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// facts are a cluster as the API has it; a mirror of them must not depend on how they came about.
type facts struct {
	nodes   map[string]*v1.Node
	reports map[string]*nodereport.Report
	pods    map[types.UID]*v1.Pod
	owners  map[string]owners
}

const (
	randomNodes = 3
	randomPods  = 12
	randomSteps = 250
	randomGPUs  = 8
)

var linkTables = []uint16{100, 200}

type random struct {
	*rand.Rand
	*world
	facts
	made int
}

func (r *random) name() string { return fmt.Sprintf("node-%d", r.IntN(randomNodes)+1) }

func (r *random) someNode() *v1.Node {
	node := nodeOf(r.name(), int64(randomGPUs-r.IntN(3)))
	node.Labels = map[string]string{"fabric.topograph.run/tier-0": fmt.Sprintf("leaf-%d", r.IntN(2)+1), "fabric.topograph.run/tier-1": "spine-1"}
	node.Spec.Unschedulable = r.IntN(4) == 0
	return node
}

func (r *random) someReport() *nodereport.Report {
	name := r.name()
	report := reportOf(name, randomGPUs, linkTables[r.IntN(len(linkTables))])
	report.Unhealthy = uint32(r.IntN(1<<randomGPUs) & r.IntN(1<<randomGPUs))
	if r.IntN(3) == 0 { // renumbered
		r.Shuffle(randomGPUs, func(i, j int) {
			report.Devices[i], report.Devices[j] = report.Devices[j], report.Devices[i]
		})
	}
	if r.IntN(4) == 0 { // a board was replaced
		report.Devices[r.IntN(randomGPUs)].ID = "GPU-new"
	}
	for _, uid := range slices.Sorted(maps.Keys(r.pods)) {
		if pod := r.pods[uid]; pod.Spec.NodeName == name && pod.Annotations[workload.Allocated] == "" && r.IntN(2) == 0 {
			for range r.IntN(4) {
				at := r.IntN(randomGPUs)
				report.Devices[at].InUseBy = append(report.Devices[at].InUseBy, []string{string(uid), "ml/" + pod.Name}[r.IntN(2)])
			}
		}
	}
	return report
}

func (r *random) somePod() *v1.Pod {
	gpus, node := 1+r.IntN(3), r.name()
	r.made++
	pod := podOf(fmt.Sprintf("p%d", r.made), node, int64(gpus))
	pod.CreationTimestamp.Time = time.Unix(int64(r.IntN(5)), 0)
	if r.IntN(3) == 0 {
		grouped(pod, fmt.Sprintf("g%d", r.IntN(2)))
	}
	if r.IntN(2) == 0 {
		with(pod, workload.Rank, fmt.Sprint(r.made))
	}
	var ids []string
	for _, index := range r.Perm(randomGPUs)[:gpus] {
		ids = append(ids, []string{uuid(node, index), fmt.Sprintf("%s-gpu-%d", node, index), "GPU-new"}[min(r.IntN(7)/3, 2)])
	}
	if r.IntN(3) > 0 {
		allocated(pod, strings.Join(ids, ","))
	}
	return pod
}

func (r *random) someOwners(node string) owners {
	list := owners{}
	for _, index := range r.Perm(randomGPUs)[:r.IntN(randomGPUs)] {
		uid := types.UID(fmt.Sprintf("uid-pending-%d", r.IntN(4)))
		if r.made > 0 && r.IntN(3) == 0 {
			uid = types.UID(fmt.Sprintf("uid-p%d", 1+r.IntN(r.made))) // bound, gone, or soon bound
		}
		list[[]string{uuid(node, index), fmt.Sprintf("%s-gpu-%d", node, index), "GPU-of-another"}[min(r.IntN(7)/3, 2)]] = uid
	}
	return list
}

// step lets one thing happen, in the API and in the mirror.
func (r *random) step() {
	switch r.IntN(12) {
	case 0, 1:
		node := r.someNode()
		r.nodes[node.Name] = node
		if _, err := r.SetNode(node); err != nil {
			r.t.Fatal(err)
		}
	case 2:
		name := r.name()
		delete(r.nodes, name)
		r.DropNode(name)
	case 3, 4:
		report := r.someReport()
		r.reports[report.Node] = report
		r.SetReport(report)
	case 5:
		name := r.name()
		delete(r.reports, name)
		r.DropReport(name)
	case 6, 7, 8:
		if len(r.pods) < randomPods {
			pod := r.somePod()
			r.pods[pod.UID] = pod
			r.pod(pod)
		}
	case 9:
		if uids := slices.Sorted(maps.Keys(r.pods)); len(uids) > 0 {
			uid := uids[r.IntN(len(uids))]
			delete(r.pods, uid)
			r.DropPod(uid)
		}
	case 10:
		name := r.name()
		r.owners[name] = r.someOwners(name)
		r.SetOwners(name, r.owners[name])
	case 11:
		uid := types.UID(fmt.Sprintf("uid-pending-%d", r.IntN(4)))
		if r.IntN(2) == 0 {
			r.Yield(uid)
		} else {
			r.Unyield(uid)
		}
	}
	r.check()
}

// rest ends what only history knows: pods that have yielded, Leases that name pods which were deleted, and ids of reports
// that were taken back.
func (r *random) rest() {
	r.Unyield("uid-pending-0", "uid-pending-1", "uid-pending-2", "uid-pending-3")
	for name, list := range r.owners {
		maps.DeleteFunc(list, func(_ string, uid types.UID) bool {
			return r.pods[uid] == nil && !strings.HasPrefix(string(uid), "uid-pending-")
		})
		r.SetOwners(name, list)
	}
	for name, node := range r.nodes {
		if r.reports[name] == nil {
			r.DropNode(name)
			if _, err := r.SetNode(node); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	r.check()
}

// enter is a mirror of the facts, entered one after the other.
func (f *facts) enter(t *testing.T) *world {
	w := newWorld(t)
	for _, name := range slices.Sorted(maps.Keys(f.nodes)) {
		if _, err := w.SetNode(f.nodes[name]); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.reports)) {
		w.SetReport(f.reports[name])
	}
	for _, uid := range slices.Sorted(maps.Keys(f.pods)) {
		w.pod(f.pods[uid])
	}
	for _, name := range slices.Sorted(maps.Keys(f.owners)) {
		w.SetOwners(name, f.owners[name])
	}
	w.check()
	return w
}

func tables(t *testing.T, w *world) map[uint32]string {
	t.Helper()
	names := map[uint32]string{}
	for _, gbps := range linkTables {
		id, err := w.engine.TopologyPut(reportOf("x", randomGPUs, gbps).Topology)
		if err != nil {
			t.Fatal(err)
		}
		names[id] = fmt.Sprint(gbps)
	}
	return names
}

func TestTheOrderOfEventsDoesNotMatter(t *testing.T) {
	seeds := uint64(40)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := &random{Rand: rand.New(rand.NewPCG(seed, 5)), world: newWorld(t), facts: facts{nodes: map[string]*v1.Node{},
				reports: map[string]*nodereport.Report{}, pods: map[types.UID]*v1.Pod{}, owners: map[string]owners{}}}
			for range randomSteps {
				r.step()
			}
			r.rest()
			r.wantsNoConflict()
			fresh := r.enter(t)
			if got, want := r.normal(tables(t, r.world)), fresh.normal(tables(t, fresh)); got != want {
				t.Errorf("after %d events:\n%s\nentered in order:\n%s", randomSteps, got, want)
			}
		})
	}
}

// Informers, the scheduler's cycle and the Lease watch call at the same time.
func TestCallsFromEverywhere(t *testing.T) {
	w := newWorld(t)
	var group sync.WaitGroup
	for worker := range uint64(4) {
		group.Go(func() {
			random := rand.New(rand.NewPCG(worker, 1))
			for i := range 300 {
				name := fmt.Sprintf("node-%d", random.IntN(2))
				uid := fmt.Sprintf("%d-%d", worker, i%5)
				switch random.IntN(8) {
				case 0:
					_, _ = w.SetNode(nodeOf(name, 8))
				case 1:
					w.SetReport(reportOf(name, 8, 100))
				case 2:
					w.DropReport(name)
				case 3:
					_ = w.SetPod(allocated(podOf(uid, name, 1), uuid(name, i%8)))
				case 4:
					w.DropPod(types.UID("uid-" + uid))
				case 5:
					w.SetOwners(name, owners{uuid(name, i%8): types.UID("uid-" + uid)})
				case 6:
					w.Yield(types.UID("uid-" + uid))
					w.Unyield(types.UID("uid-" + uid))
				case 7:
					w.CheckReports(time.Unix(5000, 0))
					_, _ = w.Allocated(name, shim.Place{GPUMask: 1}), w.Stale()
					_, _ = w.GPU(name + "-gpu-0")
				}
			}
		})
	}
	group.Wait()
	w.check()
}
