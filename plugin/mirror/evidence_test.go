// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// wantsHoldings compares what Leases will be compared with: "POD: IDS", by UID of the pod.
func (w *world) wantsHoldings(want ...string) {
	w.t.Helper()
	var got []string
	for _, h := range w.Holdings() {
		got = append(got, h.Node+"/"+h.Name+": "+strings.Join(h.GPUs, ","))
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("holdings are %q, want %q", got, want)
	}
}

func plain(node string, indices ...int) string {
	ids := make([]string, len(indices))
	for i, index := range indices {
		ids[i] = fmt.Sprintf("%s-gpu-%d", node, index)
	}
	return strings.Join(ids, ",")
}

// Whoever runs a pod with a node of its own choice may have written anything on it.
func TestWhatIsOnlyWrittenOnAPodEntersNoLease(t *testing.T) {
	for _, test := range []struct {
		name, text string
		reported   bool
	}{
		{"all of the node", plain("a", 0, 1, 2, 3, 4, 5, 6, 7), false},
		{"all of a node with a report", uuids("a", 0, 1, 2, 3, 4, 5, 6, 7), true},
		{"of another node", plain("b", 0), false},
		{"of another node with a report", uuid("b", 0), true},
		{"beyond the node", plain("a", 8), false},
		{"nonsense", "all of them!", false},
		{"nothing", ",", false},
		{"a comma too many", plain("a", 0) + ",", false},
		{"another's", plain("a", 7), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.node("a", 8)
			w.node("b", 8)
			if test.reported {
				w.report(reportOf("a", 8, 100))
				w.report(reportOf("b", 8, 100))
			}
			genuine := allocated(podOf("genuine", "a", 1), plain("a", 7))
			forged := allocated(podOf("forged", "a", 1), test.text)
			forged.CreationTimestamp.Time = time.Unix(1000, 0)
			w.pod(genuine)
			w.pod(forged)
			w.wants("uid-genuine", "mask 80 count 0")
			w.wants("uid-forged", "mask 0 count 1")
			w.wantsHoldings("a/genuine: a-gpu-7")
			w.wantsNode("a", "held 80 count 1") // the other six are to be had
		})
	}
}

func TestWhatIsWrittenOnABoundPodLaterDoesNotCount(t *testing.T) {
	for _, test := range []struct{ name, first, later, want, holdings string }{
		{"another GPU", plain("a", 3), plain("a", 5), "mask 8 count 0", "a/p: a-gpu-3"},
		{"one of another node", plain("a", 3), plain("b", 3), "mask 8 count 0", "a/p: a-gpu-3"},
		{"all of the node", plain("a", 3), plain("a", 0, 1, 2, 3, 4, 5, 6, 7), "mask 8 count 0", "a/p: a-gpu-3"},
		{"nothing", plain("a", 3), "", "mask 8 count 0", "a/p: a-gpu-3"},
		{"a GPU, where there was none", "", plain("a", 5), "mask 0 count 1", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.node("a", 8)
			w.pod(allocated(podOf("p", "a", 1), test.first))
			for range 2 {
				w.pod(allocated(podOf("p", "a", 1), test.later))
				w.wants("uid-p", test.want)
			}
			if test.holdings == "" {
				w.wantsHoldings()
				w.wantsTold()
				return
			}
			w.wantsHoldings(test.holdings)
			w.wantsTold("GPUsRewritten p: its annotation gpu.scheduling/allocated was changed after it was bound; it still has a-gpu-3")
			w.pod(allocated(podOf("p", "a", 1), test.first))
			w.wantsTold()
			w.DropPod("uid-p")
			w.wantsNode("a", "held 0 count 0")
		})
	}
}

// A scheduler that starts sees a pod as it is written by then; what it was bound with is in its node's Lease.
func TestTheLeaseRemembersWhatAPodWasBoundWith(t *testing.T) {
	for _, test := range []struct {
		name     string
		text     string
		lease    []int
		want     string
		holdings []string
	}{
		{"as it was", plain("a", 3), []int{3}, "mask 8 count 0", []string{"a/p: a-gpu-3"}},
		{"another GPU", plain("a", 5), []int{3}, "mask 8 count 0", []string{"a/p: a-gpu-3"}},
		{"nonsense", "x", []int{3}, "mask 8 count 0", []string{"a/p: a-gpu-3"}},
		{"removed", "", []int{3}, "mask 8 count 0", []string{"a/p: a-gpu-3"}},
		{"and what an earlier plan had", plain("a", 5), []int{3, 5}, "mask 20 count 0", []string{"a/p: a-gpu-5"}},
		{"no Lease", plain("a", 5), nil, "mask 20 count 0", []string{"a/p: a-gpu-5"}},
		{"a Lease that believed too much", plain("a", 0, 1, 2, 3), []int{0, 1, 2, 3}, "mask 0 count 1", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, leaseFirst := range []bool{false, true} {
				w := newWorld(t)
				w.node("a", 8)
				lease := owners{}
				for _, index := range test.lease {
					lease[plain("a", index)] = "uid-p"
				}
				if leaseFirst {
					w.own("a", lease)
				}
				w.pod(allocated(podOf("p", "a", 1), test.text))
				if !leaseFirst {
					w.own("a", lease)
				}
				w.wants("uid-p", test.want)
				w.wantsHoldings(test.holdings...)
				w.wantsNoConflict()
			}
		})
	}
}

// An older pod that only says so does not take a GPU from the one that has it.
func TestWhomTheLeaseKnowsHasTheGPU(t *testing.T) {
	w := newWorld(t)
	w.node("a", 8)
	forged, genuine := allocated(podOf("forged", "a", 1), plain("a", 3)), allocated(podOf("genuine", "a", 1), plain("a", 3))
	forged.CreationTimestamp.Time, genuine.CreationTimestamp.Time = time.Unix(1000, 0), time.Unix(2000, 0)
	w.own("a", owners{plain("a", 3): "uid-genuine"})
	w.pod(forged)
	w.pod(genuine)
	w.wants("uid-genuine", "mask 8 count 0")
	w.wants("uid-forged", "mask 0 count 1")
	w.wantsHoldings("a/genuine: a-gpu-3")
	w.wantsTold("GPUConflict forged")
}

// The watch of pods may be ahead of that of Leases, which still has what an earlier plan of the pod had locked.
func TestWhatThisProcessHasReservedNeedsNoLease(t *testing.T) {
	w := newWorld(t)
	w.node("a", 8)
	w.own("a", owners{plain("a", 5): "uid-p"})
	w.Yield("uid-p")
	_, member := reserve(t, w, "uid-p", 1)
	place, _, err := w.engine.Binding(member.Pod)
	if err != nil || place.GPUMask != 1 {
		t.Fatalf("%+v, %v", place, err)
	}
	w.pod(allocated(podOf("p", "a", 1), plain("a", 0)))
	w.wants("uid-p", "mask 1 count 0")
	w.wantsHoldings("a/p: a-gpu-0")
	w.wantsTold()
}

// In the engine a gang is whom Frond has bound for it, whatever others say of themselves.
func TestPodsThatComeWithANodeAreInNoGang(t *testing.T) {
	w := newWorld(t)
	w.node("a", 8)
	w.pod(allocated(grouped(podOf("foreign", "a", 1), "g"), plain("a", 0)))
	gang := workload.GangKey(workload.GangID{Kind: workload.KindPodGroup, Namespace: "ml", Name: "g"})
	if got, err := w.engine.Gang(gang); !shim.IsCode(err, shim.CodeUnknown) {
		t.Errorf("%+v, %v", got, err)
	}
	w.pod(with(allocated(grouped(podOf("member", "a", 1), "g"), plain("a", 1)), workload.Rank, "0"))
	if got, err := w.engine.Gang(gang); err != nil || got.Bound != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	w.wantsNode("a", "held 3 count 0")
}

// A bound pod's GPUs that our engine has reserved for another are held by count, and enter no Lease meanwhile.
func TestHoldingsAreWhatTheEngineHolds(t *testing.T) {
	w := newWorld(t)
	w.node("a", 8)
	reserve(t, w, "uid-ours", 2)
	w.pod(allocated(podOf("theirs", "a", 1), plain("a", 0)))
	w.wants("uid-theirs", "mask 0 count 1")
	w.wantsHoldings()
	w.pod(allocated(podOf("lost", "gone", 1), plain("gone", 0))) // its node is not known
	for _, h := range w.Holdings() {
		if h.Pod == types.UID("uid-lost") {
			t.Error("nobody holds it")
		}
	}
}
