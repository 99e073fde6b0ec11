// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
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
	w.wantsNode("a", "gpus 8 topology 2 unhealthy 0 flags 0 uplink 0 held 0 count 1")
	sick := reportOf("a", 8, 100)
	sick.Unhealthy = 1 << 3 // now it is known which
	w.report(sick)
	w.wantsNode("a", "unhealthy 8 flags 0 uplink 0 held 0 count 0")
	w.node("a", 0)
	w.wantsNode("a", "count 7")
	w.DropReport("a")
	w.wantsNode("a", "gpus 0 topology 0 unhealthy 0 flags 0 uplink 0 held 0 count 0")
}

func TestMoreLinkTablesThanTheEngineHolds(t *testing.T) {
	w := newWorld(t)
	w.node("a", 2)
	for gbps := range uint16(300) {
		w.SetReport(reportOf("a", 2, gbps+1))
	}
	w.wantsTold("ReportRefused a: its links are not used: no room for further link tables of nodes")
	w.wantsNode("a", "gpus 2 topology 1") // as without a report
	w.pod(allocated(podOf("p", "a", 1), uuid("a", 1)))
	w.wants("uid-p", "mask 2 count 0")
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
	w.node("a", 32) // slices of time
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

func TestVisible(t *testing.T) {
	w := newWorld(t)
	w.node("a", 8)
	same := func(node, text string) {
		t.Helper()
		if got := w.Visible(node, text); got != text {
			t.Errorf("%s: got %q", text, got)
		}
	}
	same("a", "a-gpu-1,a-gpu-0")
	w.report(reportOf("a", 8, 100))
	if got, want := w.Visible("a", "a-gpu-7,a-gpu-0,a-gpu-3"), uuids("a", 7, 0, 3); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, text := range []string{"", "a-gpu-8", "a-gpu-01", "a-gpu-0,", "b-gpu-0", "a-gpu-0,x", "a-gpu--1"} {
		same("a", text)
	}
	same("b", "b-gpu-0")
	w.DropReport("a") // pods carry the ids still, and Leases
	if got := w.Visible("a", "a-gpu-7"); got != uuid("a", 7) {
		t.Errorf("got %q", got)
	}
	w.DropNode("a")
	w.node("a", 8)
	same("a", "a-gpu-7")
}

func TestANodeThatComesBackMayBeAnotherMachine(t *testing.T) {
	w := newWorld(t)
	w.node("a", 4)
	w.report(reportOf("a", 4, 100))
	w.DropNode("a")
	w.node("a", 8)
	w.wantsTold("ReportRefused a: status.devices: must be at least as many as the node lets pods have, 8, got 4")
	w.wantsNode("a", "gpus 8")
	if got := w.Visible("a", "a-gpu-0"); got != "a-gpu-0" {
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
	w.pod(allocated(grouped(podOf("p", "a", 2), "g"), uuids("a", 0, 1)))
	w.pod(allocated(grouped(podOf("q", "a", 2), "g"), uuids("a", 2, 3)))
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
	annotations, err := w.engine.Binding(member.Pod)
	if err != nil {
		t.Fatal(err)
	}
	visible := w.Visible("a", annotations[workload.Allocated])
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
