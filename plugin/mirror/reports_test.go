// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	v1 "k8s.io/api/core/v1"

	"github.com/frond-scheduler/frond/plugin/nodereport"
	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

func TestAReportReplacesTheFallback(t *testing.T) {
	w := newWorld(t)
	w.node("a", 8)
	w.node("b", 8)
	w.wantsNode("a", "gpus 8 topology 1 unhealthy 0")
	sick := reportOf("a", 8, 450)
	sick.Unhealthy = 0b100
	if !w.report(sick) || !w.report(reportOf("b", 8, 450)) {
		t.Error("a report is news")
	}
	w.wantsNode("a", "gpus 8 topology 2 unhealthy 4") // seven healthy GPUs, and eight are allocatable: the report came first
	w.wantsNode("b", "gpus 8 topology 2 unhealthy 0") // equal links share a table
	again := reportOf("b", 8, 450)
	again.Heartbeat = again.Heartbeat.Add(time.Minute)
	if w.report(again) {
		t.Error("a heartbeat is no news")
	}
	w.DropReport("a")
	w.wantsNode("a", "gpus 8 topology 1 unhealthy 0")
	w.DropReport("a")
	w.DropReport("nobody")
	w.wantsTold()
}

func TestAReportBeforeItsNode(t *testing.T) {
	w := newWorld(t)
	if w.report(reportOf("a", 8, 100)) {
		t.Error("there is no node yet")
	}
	w.node("a", 8)
	w.wantsNode("a", "gpus 8 topology 1 unhealthy 0")
	w.DropNode("a")
	w.node("a", 8)
	w.wantsNode("a", "gpus 8 topology 1 unhealthy 0")
}

func TestAReportThatLosesGPUsIsRefusedUntilTheNodeAgrees(t *testing.T) {
	w := newWorld(t)
	w.node("a", 8)
	w.report(reportOf("a", 7, 100))
	w.wantsNode("a", "gpus 8 topology 1") // nothing better is known
	w.wantsTold("ReportRefused a: status.devices: must be at least as many as the node lets pods have, 8, got 7")

	w.report(reportOf("a", 8, 100))
	w.pod(allocated(podOf("p", "a", 1), uuid("a", 7)))
	w.wants("uid-p", "mask 80 count 0")
	w.report(reportOf("a", 7, 100))
	w.report(reportOf("a", 7, 100))
	w.wantsNode("a", "gpus 8 topology 2") // the last good one stays
	w.wants("uid-p", "mask 80 count 0")
	w.wantsTold("ReportRefused a: status.devices: must be at least as many")
	w.report(reportOf("a", 8, 100))
	w.wantsNode("a", "gpus 8 topology 2")
	w.wantsTold()

	w.report(reportOf("a", 7, 100))
	w.told = nil
	w.node("a", 7) // it has really gone
	w.wantsNode("a", "gpus 7 topology 3")
	w.wants("uid-p", "mask 0 count 1")
	w.wantsTold(`UnknownGPU p: it carries GPU "GPU-a-7", which node a does not have`)
	w.node("a", 8) // a new one; the report follows
	w.wantsNode("a", "gpus 7 topology 3")
	w.wantsTold("ReportRefused a")
	w.report(reportOf("a", 8, 100))
	w.wantsNode("a", "gpus 8 topology 2")
	w.wants("uid-p", "mask 80 count 0")
	w.wantsTold()
}

func TestGPUsThatTheNodeKeepsBackAreHeldByCount(t *testing.T) {
	w := newWorld(t)
	w.node("a", 7)
	w.report(reportOf("a", 8, 100))
	w.wantsNode("a", "gpus 8 topology 2 unhealthy 0 unavailable 0 flags 0 uplink 0 held 0 count 1")
	sick := reportOf("a", 8, 100)
	sick.Unhealthy = 1 << 3 // now it is known which
	w.report(sick)
	w.wantsNode("a", "unhealthy 8 unavailable 0 flags 0 uplink 0 held 0 count 0")
	w.node("a", 0)
	w.wantsNode("a", "count 7")
	w.DropReport("a")
	w.wantsNode("a", "gpus 0 topology 0 unhealthy 0 unavailable 0 flags 0 uplink 0 held 0 count 0")
}

func TestMoreLinkTablesThanTheEngineHolds(t *testing.T) {
	w := newWorldOf(t, shim.Limits{Nodes: 64, Pods: 256, TableBytes: 1 << 14})
	for i := range 30 {
		name := fmt.Sprint("n", i)
		w.node(name, 2)
		w.report(reportOf(name, 2, uint16(i+1)))
		if len(w.told) > 0 {
			break
		}
	}
	w.check()
	last := fmt.Sprint("n", len(w.nodes)-1)
	w.wantsTold("ReportRefused " + last + ": its links are not used: no room for further link tables of nodes")
	w.wantsNode(last, "gpus 2 topology 1") // as without a report
	w.pod(allocated(podOf("p", last, 1), uuid(last, 1)))
	w.wants("uid-p", "mask 2 count 0")
	w.DropNode("n1") // its table is nobody's now
	w.node(last, 1)  // whatever makes us look at the node again
	w.node(last, 2)
	w.wantsNode(last, "gpus 2 topology 3")
	if got := w.Verdicts()[slices.IndexFunc(w.Verdicts(), func(v Verdict) bool { return v.Node == last })].Refused; got != "" {
		t.Errorf("its links are used now: %q", got)
	}
}

// Links fail one after the other for as long as a cluster runs; tables that no node has make room.
func TestAnyNumberOfLinkTablesOneAfterTheOther(t *testing.T) {
	w := newWorld(t)
	w.node("a", 2)
	for gbps := range uint16(1000) {
		w.SetReport(reportOf("a", 2, gbps+1))
	}
	w.wantsTold()
	w.wantsNode("a", "gpus 2 topology")
	if w.reports["a"].topology == shim.None {
		t.Error("the links are not used")
	}
}

func TestWhatCannotBeIsToldOnce(t *testing.T) {
	w := newWorld(t)
	w.node("a", 8)
	w.report(reportOf("a", 8, 100))
	for range 3 {
		w.RefuseReport("a", "gns-a", errors.New("status.total: must be the number of devices, 8, got 9"))
	}
	w.RefuseReport("unknown", "gns-u", errors.New("bad"))
	w.wantsTold("ReportRefused a: status.total: must be the number of devices, 8, got 9; the report is refused", "ReportRefused unknown: bad")
	w.wantsNode("a", "gpus 8 topology 2")
}

func TestSilentAgents(t *testing.T) {
	w := newWorld(t)
	w.node("a", 8)
	sick := reportOf("a", 8, 100)
	sick.Unhealthy = 1
	w.report(sick)
	w.report(reportOf("elsewhere", 8, 100))
	at := func(after time.Duration) {
		w.CheckReports(sick.Heartbeat.Add(after))
	}
	at(nodereport.Patience)
	if w.Stale() != 0 {
		t.Error("not yet")
	}
	at(nodereport.Patience + time.Second)
	at(time.Hour)
	if w.Stale() != 1 {
		t.Errorf("got %d", w.Stale())
	}
	w.wantsTold("StaleReport a: status.heartbeat: must not be older than 1m30s, got 1970-01-01T00:16:40Z; what it said last stays")
	w.wantsNode("a", "unhealthy 1")
	beats := *sick
	beats.Heartbeat = sick.Heartbeat.Add(time.Hour)
	w.report(&beats)
	at(time.Hour)
	if w.Stale() != 0 {
		t.Error("it is back")
	}
	w.wantsTold()
	at(2 * time.Hour)
	w.wantsTold("StaleReport a")
	w.DropReport("a")
	at(2 * time.Hour)
	if w.Stale() != 0 {
		t.Error("it is gone")
	}
}

func TestNodesOfSilentAgentsTakeNoPods(t *testing.T) {
	w := newWorld(t)
	reports := map[string]*nodereport.Report{}
	for _, name := range []string{"a", "b", "c", "d"} {
		w.node(name, 8)
		reports[name] = reportOf(name, 8, 100)
		w.report(reports[name])
	}
	begin := reports["a"].Heartbeat
	beat := func(after time.Duration, names ...string) {
		for _, name := range names {
			next := *reports[name]
			next.Heartbeat = begin.Add(after)
			reports[name] = &next
			w.report(&next)
		}
	}
	check := func(after time.Duration, wantChanged, wantHeld string) {
		t.Helper()
		if got := strings.Join(w.CheckReports(begin.Add(after)), ""); got != wantChanged {
			t.Errorf("after %s: changed %q, want %q", after, got, wantChanged)
		}
		held := ""
		for _, v := range w.Verdicts() {
			if v.Held {
				held += v.Node
			}
			flags := "flags 0"
			if v.Held {
				flags = fmt.Sprintf("flags %d", shim.NodeCordoned)
			}
			w.wantsNode(v.Node, flags)
		}
		if held != wantHeld {
			t.Errorf("after %s: held %q, want %q", after, held, wantHeld)
		}
	}
	check(time.Minute, "", "")
	beat(time.Minute, "b", "c", "d")
	check(2*time.Minute, "a", "a")
	check(2*time.Minute, "", "a") // told once
	beat(3*time.Minute, "c", "d")
	check(3*time.Minute, "b", "ab") // half of them
	check(5*time.Minute, "ab", "")  // all of them: it is not the nodes
	beat(5*time.Minute, "b", "c", "d")
	check(5*time.Minute, "a", "a")
	beat(5*time.Minute, "a")
	check(5*time.Minute, "a", "")
	check(7*time.Minute, "", "")
	beat(7*time.Minute, "b", "c", "d")
	check(7*time.Minute, "a", "a")
	w.DropReport("a") // as without a report: there is none that could be wrong
	check(7*time.Minute, "", "")
}

func TestVerdicts(t *testing.T) {
	w := newWorld(t)
	w.node("a", 8)
	good := reportOf("a", 8, 100)
	w.report(good)
	verdict := func() string {
		all := w.Verdicts()
		if len(all) != 1 || all[0].Node != "a" || all[0].UID == "" {
			t.Fatalf("got %+v", all)
		}
		return all[0].Refused
	}
	if got := verdict(); got != "" {
		t.Errorf("a good one: %q", got)
	}
	w.RefuseReport("a", good.UID, errors.New("odd"))
	if got := verdict(); got != "odd; the report is refused" {
		t.Errorf("a bad one: %q", got)
	}
	w.report(good)
	if got := verdict(); got != "" {
		t.Errorf("the same as before the bad one: %q", got)
	}
	w.report(reportOf("a", 7, 100))
	if got := verdict(); !strings.Contains(got, "refused until the node agrees") {
		t.Errorf("one that lacks a GPU: %q", got)
	}
	w.report(reportOf("a", 8, 100))
	if got := verdict(); got != "" {
		t.Errorf("all are back: %q", got)
	}
	w.node("a", 32) // slices of time: the report knows the devices
	if got := verdict(); got != "" {
		t.Errorf("replicas: %q", got)
	}
	w.node("a", 9)
	if got := verdict(); !strings.Contains(got, "refused until the node agrees") {
		t.Errorf("more than there are devices: %q", got)
	}
	w.node("a", 8)
	if got := verdict(); got != "" {
		t.Errorf("the node agrees again: %q", got)
	}
	w.DropReport("a")
	if got := w.Verdicts(); len(got) != 0 {
		t.Errorf("gone: %+v", got)
	}
}

// Five nodes, three of them down with their agents: the one whose agent alone is silent is held back.
func TestNodesThatAreDownAreNoSilentAgents(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		object := nodeOf(name, 8)
		if name > "b" {
			object.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionFalse}}
		}
		if _, err := w.SetNode(object); err != nil {
			t.Fatal(err)
		}
		w.report(reportOf(name, 8, 100))
	}
	late := reportOf("a", 8, 100).Heartbeat.Add(time.Hour)
	alive := *reportOf("b", 8, 100)
	alive.Heartbeat = late
	w.report(&alive)
	w.CheckReports(late)
	for _, v := range w.Verdicts() {
		if want := v.Node != "b"; v.Held != want || (v.Stale != "") != want {
			t.Errorf("%+v", v)
		}
	}
}

// What it says cannot be, but it says it: what stays is the last good report, and the node takes pods.
func TestAnAgentThatWritesNonsenseIsNotSilent(t *testing.T) {
	w := newWorld(t)
	w.node("a", 8)
	w.node("b", 8)
	good := reportOf("a", 8, 100)
	w.report(good)
	held := func(after time.Duration) bool {
		other := reportOf("b", 8, 100)
		other.Heartbeat = good.Heartbeat.Add(after)
		w.report(other)
		w.CheckReports(other.Heartbeat)
		return w.Verdicts()[0].Held
	}
	w.RefuseReport("a", good.UID, errors.New("odd"))
	if held(time.Hour) || held(time.Hour+nodereport.Patience) {
		t.Error("it is alive")
	}
	if !held(time.Hour + nodereport.Patience + time.Second) {
		t.Error("now it is silent")
	}
}

func TestAllocated(t *testing.T) {
	w := newWorld(t)
	w.node("a", 8)
	place := func(ring ...uint64) (place shim.Place) {
		for i, index := range ring {
			place.GPUMask |= 1 << index
			place.Ring |= index << (4 * i)
		}
		return place
	}
	wants := func(node string, place shim.Place, want string) {
		t.Helper()
		if got := w.Allocated(node, place); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	wants("a", place(1, 0), "a-gpu-1,a-gpu-0")
	w.report(reportOf("a", 8, 100))
	wants("a", place(7, 0, 3), uuids("a", 7, 0, 3))
	wants("a", place(), "")
	wants("a", place(8, 1), "a-gpu-8,a-gpu-1") // beyond what the report knows
	wants("b", place(0), "b-gpu-0")
	w.DropReport("a") // pods carry the ids still, and Leases
	wants("a", place(7), uuid("a", 7))
	w.DropNode("a")
	w.node("a", 8)
	wants("a", place(7), "a-gpu-7")
}

// GPUs are found by the id that users know, as long as their node is there.
func TestGPUsAreFoundByTheirIDs(t *testing.T) {
	w := newWorld(t)
	wants := func(id, node string, index int) {
		t.Helper()
		got, found := w.GPU(id)
		slot, _ := w.Slot(node)
		if node == "" && found || node != "" && (!found || got != shim.Named{Slot: slot, GPUMask: 1 << index}) {
			t.Errorf("%s: got %+v, %v", id, got, found)
		}
	}
	wants(uuid("b", 3), "", 0)
	w.report(reportOf("b", 8, 100)) // the node comes later
	wants(uuid("b", 3), "", 0)
	w.node("a", 4)
	w.node("b", 8)
	wants(uuid("b", 3), "b", 3)
	wants("b-gpu-3", "b", 3)
	wants("a-gpu-3", "a", 3)
	for _, id := range []string{"", "a-gpu-4", "a-gpu-03", "c-gpu-0", "-gpu-0", "a", uuid("a", 0), uuid("b", 8)} {
		wants(id, "", 0)
	}
	replaced := reportOf("b", 8, 100)
	replaced.Devices[3].ID = "GPU-new"
	w.report(replaced)
	wants(uuid("b", 3), "", 0)
	wants("GPU-new", "b", 3)
	moved := reportOf("a", 4, 100)
	moved.Devices[1].ID = "GPU-new" // a card that was put into another machine, whose agent spoke last
	w.report(moved)
	wants("GPU-new", "a", 1)
	w.DropNode("a")
	w.DropNode("b")
	wants("GPU-new", "", 0)
	if len(w.ids) != 0 {
		t.Errorf("left behind: %v", w.ids)
	}
}

func TestANodeThatComesBackMayBeAnotherMachine(t *testing.T) {
	w := newWorld(t)
	w.node("a", 4)
	w.report(reportOf("a", 4, 100))
	w.DropNode("a")
	w.node("a", 8)
	w.wantsTold("ReportRefused a: status.devices: must be at least as many as the node lets pods have, 8, got 4")
	w.wantsNode("a", "gpus 8")
	if got := w.Allocated("a", shim.Place{GPUMask: 1}); got != "a-gpu-0" {
		t.Errorf("got %q", got)
	}
}

func TestIdsOfBoundPods(t *testing.T) {
	w := newWorld(t)
	w.node("a", 8)
	w.pod(allocated(podOf("plain", "a", 2), "a-gpu-6,a-gpu-5"))
	w.pod(allocated(podOf("uuid", "a", 2), uuids("a", 1, 0)))
	w.wants("uid-plain", "mask 60 count 0")
	w.wants("uid-uuid", "mask 0 count 2")
	w.wantsTold() // a report may yet come
	w.report(reportOf("a", 8, 100))
	w.wants("uid-plain", "mask 60 count 0")
	w.wants("uid-uuid", "mask 3 count 0")
	w.DropReport("a")
	w.wants("uid-uuid", "mask 3 count 0") // they are where they were
	w.wantsNoConflict()

	w.report(reportOf("a", 8, 100))
	for _, test := range []struct{ name, ids, told string }{
		{"other", "GPU-of-another", `UnknownGPU other: it carries GPU "GPU-of-another", which node a does not have`},
		{"fewer", uuids("a", 2, 3), "UnknownGPU fewer: it has 1 GPUs and carries another number of them"},
		{"high", "a-gpu-8", "UnknownGPU high"},
	} {
		w.pod(allocated(podOf(test.name, "a", 1), test.ids))
		w.wants("uid-"+test.name, "mask 0 count 1")
		w.wantsTold(test.told)
		w.pod(with(allocated(podOf(test.name, "a", 1), test.ids), workload.Rank, "1"))
		w.wantsTold()
		w.DropPod("uid-" + types.UID(test.name))
	}
	w.pod(allocated(podOf("twice", "a", 2), uuids("a", 2, 2)))
	w.wants("uid-twice", "mask 0 count 2")
	w.wantsTold("UnknownGPU twice")
}

func TestPodsExchangeGPUsWhenDevicesAreRenumbered(t *testing.T) {
	w := newWorld(t)
	w.node("a", 4)
	w.report(reportOf("a", 4, 100))
	w.pod(with(allocated(grouped(podOf("p", "a", 2), "g"), uuids("a", 0, 1)), workload.Rank, "0"))
	w.pod(with(allocated(grouped(podOf("q", "a", 2), "g"), uuids("a", 2, 3)), workload.Rank, "1"))
	gang := workload.GangKey(workload.GangID{Kind: workload.KindPodGroup, Namespace: "ml", Name: "g"})
	if err := w.engine.GangPut(shim.Request{Gang: gang, MinMember: 2, Priority: 7, OnlySlot: shim.None, Name: "ml/g"}, nil); err != nil {
		t.Fatal(err)
	}
	turned := reportOf("a", 4, 100)
	for i := range turned.Devices {
		turned.Devices[i].ID = uuid("a", 3-i)
	}
	w.report(turned)
	w.wants("uid-p", "mask c count 0")
	w.wants("uid-q", "mask 3 count 0")
	w.wantsNoConflict()
	if got, err := w.engine.Gang(gang); err != nil || got.Priority != 7 || got.MinMember != 2 || got.Bound != 2 {
		t.Errorf("the gang is what it was: %+v, %v", got, err)
	}
	replaced := reportOf("a", 4, 100)
	replaced.Devices[3].ID = "GPU-new"
	w.report(replaced)
	w.wants("uid-p", "mask 3 count 0")
	w.wants("uid-q", "mask 0 count 2")
	w.wantsTold(`UnknownGPU q: it carries GPU "GPU-a-3"`)
	if got, err := w.engine.Gang(gang); err != nil || got.Bound != 2 {
		t.Errorf("nobody has left: %+v, %v", got, err)
	}
}

func TestAReservationBecomesBoundUnderItsUUIDs(t *testing.T) {
	w := newWorld(t)
	w.node("a", 8)
	w.report(reportOf("a", 8, 100))
	request, member := reserve(t, w, "uid-p", 4)
	place, _, err := w.engine.Binding(member.Pod)
	if err != nil {
		t.Fatal(err)
	}
	visible := w.Allocated("a", place)
	if visible != uuids("a", 0, 1, 2, 3) {
		t.Errorf("got %q", visible)
	}
	w.pod(allocated(podOf("p", "a", 4), visible))
	w.wants("uid-p", "mask f count 0")
	w.wantsNoConflict()
	if gang, err := w.engine.Gang(request.Gang); err != nil || gang.Bound != 1 {
		t.Errorf("%+v, %v", gang, err)
	}
}

// reserve books GPUs for a single pod, wherever the engine puts it.
func reserve(t *testing.T, w *world, uid string, gpus uint32) (shim.Request, shim.Member) {
	t.Helper()
	member := shim.Member{Pod: shim.PodKey(uid), GPUs: gpus, PinnedSlot: shim.None}
	request := shim.Request{Gang: member.Pod, MinMember: 1, GPUsDesired: uint64(gpus), OnlySlot: shim.None, Name: "ml/" + uid}
	plan, places, sentence, err := w.engine.Plan(request, []shim.Member{member}, nil, nil)
	if err != nil || plan.Outcome != shim.Placed {
		t.Fatalf("%v %s", err, sentence)
	}
	if err := w.engine.Reserve(request, []shim.Member{member}, places); err != nil {
		t.Fatal(err)
	}
	return request, member
}

func TestForeignPods(t *testing.T) {
	w := newWorld(t)
	w.node("a", 8)
	w.pod(podOf("foreign", "a", 2))
	w.wants("uid-foreign", "mask 0 count 2")
	knows := func(users ...string) *nodereport.Report {
		r := reportOf("a", 8, 100)
		for i, user := range users {
			if user != "" {
				r.Devices[i].InUseBy = []string{user}
			}
		}
		return r
	}
	for _, test := range []struct {
		name   string
		report *nodereport.Report
		want   string
	}{
		{"not named", knows(), "mask 0 count 2"},
		{"by uid", knows("", "uid-foreign", "uid-foreign"), "mask 6 count 0"},
		{"elsewhere", knows("uid-foreign", "", "", "uid-foreign"), "mask 9 count 0"},
		{"by name", knows("ml/foreign", "ml/foreign"), "mask 3 count 0"},
		{"both ways", knows("ml/foreign", "", "uid-foreign"), "mask 5 count 0"},
		{"too few", knows("ml/foreign"), "mask 0 count 2"},
		{"too many", knows("ml/foreign", "ml/foreign", "ml/foreign"), "mask 0 count 2"},
		{"of another namespace", knows("x/foreign", "x/foreign"), "mask 0 count 2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w.t = t
			w.report(test.report)
			w.wants("uid-foreign", test.want)
		})
	}
	w.t = t
	w.report(knows("ml/foreign", "ml/foreign"))
	w.pod(allocated(podOf("ours", "a", 1), uuid("a", 0))) // written on it: that counts more than what the agent saw
	w.wants("uid-ours", "mask 1 count 0")
	w.wants("uid-foreign", "mask 0 count 2")
	w.wantsTold("GPUConflict foreign: it has a-gpu-0,a-gpu-1, of which another pod on the node has some")
	w.DropPod("uid-ours")
	w.wants("uid-foreign", "mask 3 count 0")
	w.wantsNoConflict()
}

func TestTheOlderPodHasTheGPU(t *testing.T) {
	w := newWorld(t)
	w.node("a", 8)
	young, old := allocated(podOf("a-young", "a", 1), "a-gpu-0"), allocated(podOf("z-old", "a", 1), "a-gpu-0")
	young.CreationTimestamp.Time = time.Unix(2000, 0)
	old.CreationTimestamp.Time = time.Unix(1000, 0)
	w.pod(young)
	w.pod(old)
	w.wants("uid-z-old", "mask 1 count 0")
	w.wants("uid-a-young", "mask 0 count 1")
	w.wantsTold("GPUConflict a-young")
	w.DropPod("uid-z-old")
	w.wants("uid-a-young", "mask 1 count 0")
	w.wantsNoConflict()
}

// A node with replicas of shared GPUs has the devices that its agent reports, and no others. Without a report nobody knows
// how many there are, if they are more than a machine can have.
func TestReplicasAreNotDevices(t *testing.T) {
	w := newWorld(t)
	told := func(want string) {
		t.Helper()
		got := strings.Join(w.engine.Problems(), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	w.node("a", 64)
	w.wantsNode("a", "gpus 0")
	told("node a lets pods have more than 16 GPUs and no report names its devices")
	if names := w.named(w.engine.Problems()[0]); !slices.Equal(names, []string{"a"}) {
		t.Errorf("the sentence is about %v", names)
	}
	w.report(reportOf("a", 4, 100))
	w.wantsNode("a", "gpus 4")
	told("node a lets pods have more GPUs than its 4 devices")
	w.wantsTold()
	w.node("a", 16) // no more than a machine can have, and still not devices
	w.wantsNode("a", "gpus 4")
	told("node a lets pods have more GPUs than its 4 devices")
	w.pod(podOf("p", "a", 3)) // of another scheduler: three replicas are at most three devices
	w.wants("uid-p", "mask 0 count 3")
	w.node("a", 4) // sharing is turned off
	w.wantsNode("a", "gpus 4")
	told("")
	w.node("a", 8) // turned on again
	w.wantsNode("a", "gpus 4")
	told("node a lets pods have more GPUs than its 4 devices")
	w.wantsTold()
	w.node("a", 5) // that is no sharing: the report may have lost one; what it said stays
	w.wantsNode("a", "gpus 4")
	w.wantsTold("ReportRefused a: status.devices: must be at least as many as the node lets pods have, 5, got 4")
	w.DropReport("a")
	w.wantsNode("a", "gpus 5")
	told("")
}

// A report that has lost half of the devices is no sign of sharing where one that had all of them is known.
func TestHalfOfTheDevicesIsNoSharing(t *testing.T) {
	w := newWorld(t)
	w.node("a", 8)
	w.report(reportOf("a", 8, 100))
	w.report(reportOf("a", 4, 100))
	w.wantsNode("a", "gpus 8")
	w.wantsTold("ReportRefused a: status.devices: must be at least as many as the node lets pods have, 8, got 4")
	w.report(reportOf("a", 8, 100))
	w.wantsNode("a", "gpus 8")
}
