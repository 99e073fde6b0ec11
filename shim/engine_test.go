// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const realLibrary = "../bin/libfrond.so"

// library is the real engine; `make engine` builds it.
func library(t *testing.T) *Library {
	t.Helper()
	if _, err := os.Stat(realLibrary); err != nil {
		t.Fatalf("%s is not built (make engine)", realLibrary)
	}
	l, err := Open(realLibrary)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// engine is a cluster of two leaves with two nodes of eight GPUs each.
func engine(t *testing.T) *Engine {
	t.Helper()
	e, err := library(t).New(Limits{Nodes: 8, Pods: 64}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	for slot := range uint32(4) {
		put(t, e, slot)
	}
	return e
}

func put(t *testing.T, e *Engine, slot uint32) {
	t.Helper()
	err := e.NodePut(Node{Slot: slot, GPUs: 8, Topology: None, Name: fmt.Sprintf("node-%d", slot+1)}, map[string]string{
		"fabric.topograph.run/tier-0": fmt.Sprintf("leaf-%d", slot/2+1), "fabric.topograph.run/tier-1": "spine-1", "zone": "a"})
	if err != nil {
		t.Fatal(err)
	}
}

func uid(n int) Key { return PodKey(fmt.Sprintf("00000000-0000-0000-0000-%012d", n+1)) }

func gang(n, gpus int) (Request, []Member) {
	members := make([]Member, n)
	for i := range members {
		members[i] = Member{Pod: uid(i), Rank: uint32(i), GPUs: uint32(gpus), PinnedSlot: None}
	}
	return Request{Gang: GangKey("Job", "ml", "train", "u"), MinMember: uint32(n), GPUsDesired: uint64(n * gpus), OnlySlot: None, Name: "ml/train"}, members
}

func check(t *testing.T, e *Engine) {
	t.Helper()
	if err := e.Check(); err != nil {
		t.Fatal(err)
	}
}

func TestArgs(t *testing.T) {
	l := library(t)
	args, err := l.Args(nil)
	if err != nil || args.PermitWait != time.Minute || !reflect.DeepEqual(args.Resources, []string{"nvidia.com/gpu", "amd.com/gpu"}) || args.FabricFile != "" {
		t.Errorf("defaults: %+v, %v", args, err)
	}
	long := "/" + strings.Repeat("x", 3000)
	args, err = l.Args([]byte(`{"permitWaitingTimeSeconds": 5, "gpuResources": ["example.com/gpu"], "topology": {"fabricFile": "` + long + `"}}`))
	if err != nil || args.PermitWait != 5*time.Second || !reflect.DeepEqual(args.Resources, []string{"example.com/gpu"}) || args.FabricFile != long {
		t.Errorf("%+v, %v", args, err)
	}
	for json, want := range map[string]string{
		`{"foo": 1}`: "args.foo", `{"scoringWeights": {"topologyAlignment": -3}}`: "args.scoringWeights.topologyAlignment: must be between 0 and 1, got -3",
		`{"permitWaitingTimeSeconds": "x"}`: "args.permitWaitingTimeSeconds", `{`: "args",
	} {
		if _, err := l.Args([]byte(json)); !IsCode(err, CodeBad) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want %q", json, err, want)
		}
	}
}

func TestFabricExpandGrowsItsBuffer(t *testing.T) {
	text, err := library(t).FabricExpand([]byte("spine:4 leaf:8 node:32 gpu:8"), true)
	if err != nil {
		t.Fatal(err)
	}
	var fabric struct {
		Nodes []struct{ Name, Leaf, Spine string }
	}
	if err := json.Unmarshal(text, &fabric); err != nil || len(fabric.Nodes) != 1024 || fabric.Nodes[1023].Spine != "spine-4" {
		t.Errorf("%d bytes, %d nodes, %v", len(text), len(fabric.Nodes), err)
	}
	if _, err := library(t).FabricExpand([]byte("spine:x"), true); !IsCode(err, CodeBad) {
		t.Errorf("got %v", err)
	}
}

func TestAGangFromPlanToRelease(t *testing.T) {
	e := engine(t)
	request, members := gang(2, 8)
	plan, places, sentence, err := e.Plan(request, members, map[string]string{"topology.scheduler/gpu-count": "16"}, nil)
	if err != nil || plan.Outcome != Placed || sentence == "" || len(places) != 2 || places[0].Slot/2 != places[1].Slot/2 {
		t.Fatalf("%+v %+v %q %v", plan, places, sentence, err)
	}
	if err := e.Reserve(request, members, places); err != nil {
		t.Fatal(err)
	}
	check(t, e)
	if err := e.Reserve(request, members, places); !IsCode(err, CodeStale) {
		t.Errorf("a second time: %v", err)
	}
	if verdict, err := e.Permit(members[0].Pod); verdict != Hold || err != nil {
		t.Errorf("%v %v", verdict, err)
	}
	if verdict, err := e.Permit(members[1].Pod); verdict != Go || err != nil {
		t.Errorf("%v %v", verdict, err)
	}
	place, annotations, err := e.Binding(members[1].Pod)
	if err != nil || annotations["topology.scheduler/rank"] != "1" || annotations["topology.scheduler/domain"] == "" ||
		place.GPUMask != 0xff || place.Ring != places[1].Ring || place.Slot != places[1].Slot {
		t.Errorf("%+v %v %v", place, annotations, err)
	}
	if err := e.Confirm(members[0].Pod); err != nil {
		t.Error(err)
	}
	stats, err := e.Stats()
	if err != nil || stats.Nodes != 4 || stats.Leaves != 2 || stats.GPUsBound != 8 || stats.GPUsReserved != 8 || stats.GPUsFree != 16 || stats.Gangs != 1 {
		t.Errorf("%+v %v", stats, err)
	}
	if pods, err := e.ReleaseGang(request.Gang); pods != 1 || err != nil {
		t.Errorf("the bound one stays: %d %v", pods, err)
	}
	if err := e.Release(members[0].Pod); err != nil {
		t.Error(err)
	}
	if err := e.Release(members[0].Pod); !IsCode(err, CodeUnknown) {
		t.Errorf("got %v", err)
	}
	check(t, e)
}

func TestAnswersAndRefusals(t *testing.T) {
	e := engine(t)
	for _, test := range []struct {
		name        string
		members     int
		annotations map[string]string
		outcome     Outcome
		sentence    string
	}{
		{"never", 5, nil, Never, "never fits"},
		{"contradiction", 2, map[string]string{"topology.scheduler/gpu-count": "15"}, Refused, "15"},
		{"bad annotation", 2, map[string]string{"topology.scheduler/placement-strategy": "tight"}, Refused, "tight"},
		{"256 KiB", 2, map[string]string{"topology.scheduler/preferred-domain": strings.Repeat("x", 256<<10)}, Refused, "preferred-domain"},
	} {
		request, members := gang(test.members, 8)
		plan, _, sentence, err := e.Plan(request, members, test.annotations, nil)
		if err != nil || plan.Outcome != test.outcome || !strings.Contains(sentence, test.sentence) {
			t.Errorf("%s: %v %q %v", test.name, plan.Outcome, sentence, err)
		}
	}
	request, members := gang(2, 8)
	room := []Room{{Slot: 0}, {Slot: 1}, {Slot: 2}, {Slot: 3}}
	if plan, _, _, err := e.Plan(request, members, nil, room); err != nil || plan.Outcome == Placed {
		t.Errorf("no room: %+v %v", plan, err)
	}
	if _, _, _, err := e.Plan(request, members, nil, []Room{{Slot: 1}, {Slot: 0}}); !IsCode(err, CodeBad) {
		t.Errorf("exceptions out of order: %v", err)
	}
	if _, _, _, err := e.Plan(request, members, nil, []Room{{Slot: 7}}); !IsCode(err, CodeUnknown) {
		t.Errorf("an exception for a node that is not there: %v", err)
	}
	if _, _, _, err := e.Plan(request, nil, nil, nil); !IsCode(err, CodeLimit) {
		t.Errorf("nobody: %v", err)
	}
	if _, _, _, err := e.Plan(request, make([]Member, MembersMax+1), nil, nil); !IsCode(err, CodeLimit) {
		t.Errorf("too many: %v", err)
	}
	if err := e.Reserve(request, members, nil); !IsCode(err, CodeBad) {
		t.Errorf("no places: %v", err)
	}
	check(t, e)
}

func TestOrderWithThrift(t *testing.T) {
	e, err := library(t).New(Limits{Nodes: 4, Pods: 4}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for slot := range uint32(2) {
		if err := e.NodePut(Node{Slot: slot, GPUs: 8, Topology: None, Name: fmt.Sprint("n-", slot)}, nil); err != nil {
			t.Fatal(err)
		}
	}
	request, members := gang(1, 1)
	thrift := &Thrift{Asks: Left{CPUMilli: 4000}, Kinds: []Kind{{CPUMilli: 1000, GPUs: 1, Pods: 3}}, Left: []Left{{CPUMilli: 8000}, {CPUMilli: 80000}, {}, {}}}
	for _, test := range []struct {
		name   string
		thrift *Thrift
		want   []uint16
	}{
		{"none", nil, []uint16{0, 1, NoPosition, NoPosition}},
		{"the first would keep GPUs without CPU", thrift, []uint16{1, 0, NoPosition, NoPosition}},
		{"nobody is expected", &Thrift{Asks: thrift.Asks, Left: thrift.Left}, []uint16{0, 1, NoPosition, NoPosition}},
	} {
		plan, position, _, err := e.Order(request, members[0], nil, nil, test.thrift)
		if err != nil || plan.Outcome != Placed || plan.Flags&PlanNoTopology == 0 || !slices.Equal(position, test.want) {
			t.Errorf("%s: %v, %+v %v", test.name, position, plan, err)
		}
	}
	check(t, e)
}

func TestOrder(t *testing.T) {
	e := engine(t)
	if err := e.PodPut(Pod{Key: uid(90), Slot: 1, GPUs: 8, Name: "other/pod", Rank: None}); err != nil {
		t.Fatal(err)
	}
	request, members := gang(1, 4)
	plan, position, _, err := e.Order(request, members[0], nil, nil, nil)
	if err != nil || plan.Outcome != Placed || len(position) != 8 {
		t.Fatalf("%+v %v", plan, err)
	}
	if position[1] != NoPosition || position[7] != NoPosition || position[0] == NoPosition {
		t.Errorf("got %v", position)
	}
	best := -1
	for slot, p := range position {
		if p == 0 {
			best = slot
		}
	}
	for _, test := range []struct {
		thrift Thrift
		want   string
	}{
		{Thrift{Left: make([]Left, 7)}, "thrift.left has 7 entries where the engine has 8 slots"},
		{Thrift{Left: make([]Left, 8), Kinds: make([]Kind, KindsMax+1)}, "thrift.kinds has 65 entries, at most 64 are possible"},
		{Thrift{Left: make([]Left, 8), Kinds: make([]Kind, 1)}, "kinds[0].gpus: must be 1 to 16, got 0"},
	} {
		if _, _, _, err := e.Order(request, members[0], nil, nil, &test.thrift); !IsCode(err, CodeBad) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %q", err, test.want)
		}
	}
	request.OnlySlot = uint32(best)
	if plan, places, _, err := e.Plan(request, members, nil, nil); err != nil || plan.Outcome != Placed || places[0].Slot != uint32(best) {
		t.Errorf("%+v %v", plan, err)
	}
}

func TestNodesAndPods(t *testing.T) {
	e := engine(t)
	if err := e.NodePut(Node{Slot: 4, GPUs: GPUsMax + 1, Topology: None, Name: "big"}, nil); err == nil {
		t.Error("too many GPUs")
	}
	if err := e.NodePut(Node{Slot: 8, GPUs: 1, Topology: None, Name: "beyond"}, nil); err == nil {
		t.Error("a slot beyond the limit")
	}
	if err := e.PodPut(Pod{Key: uid(1), Slot: 5, GPUs: 1, Rank: None}); !IsCode(err, CodeUnknown) {
		t.Errorf("an unknown node: %v", err)
	}
	if err := e.PodPut(Pod{Key: uid(1), Slot: 0, GPUs: 2, GPUMask: 0x18, Name: "a/b", Gang: GangKey("Job", "a", "b", "c"), Rank: 0}); err != nil {
		t.Error(err)
	}
	if held, err := e.Pod(uid(1)); err != nil || held != (Held{Gang: GangKey("Job", "a", "b", "c"), GPUs: 2, GPUMask: 0x18, State: HeldBound}) {
		t.Errorf("%+v %v", held, err)
	}
	for mask, want := range map[uint32]string{
		0x101: "pod.gpuMask: must be GPUs of node node-1, which has 8, got mask 101",
		0x7:   "pod.gpuMask: must be 0 or as many GPUs as pod.gpus, 2, got mask 7 with 3",
	} {
		if err := e.PodPut(Pod{Key: uid(2), Slot: 0, GPUs: 2, GPUMask: mask, Rank: None}); !IsCode(err, CodeBad) || err.Error() != want {
			t.Errorf("mask %x: %v", mask, err)
		}
	}
	if _, err := e.Pod(uid(2)); !IsCode(err, CodeUnknown) {
		t.Errorf("refused, and there: %v", err)
	}
	if err := e.NodeRemove(0); err != nil {
		t.Error(err)
	}
	if err := e.NodeRemove(0); !IsCode(err, CodeUnknown) {
		t.Errorf("twice: %v", err)
	}
	if err := e.Release(uid(1)); !IsCode(err, CodeUnknown) {
		t.Errorf("the pod went with its node: %v", err)
	}
	// A leaf with two parents is a problem that is told, not an error.
	if err := e.NodePut(Node{Slot: 5, GPUs: 8, Topology: None, Name: "stray"}, map[string]string{"fabric.topograph.run/tier-0": "leaf-2", "fabric.topograph.run/tier-1": "spine-9"}); err != nil {
		t.Fatal(err)
	}
	if problems := e.Problems(); len(problems) == 0 || !strings.Contains(strings.Join(problems, " "), "leaf-2") {
		t.Errorf("got %q", problems)
	}
	check(t, e)
	for name, draw := range map[string]func() (string, error){"map": func() (string, error) { return e.Map(false) }, "dump": e.Dump} {
		if text, err := draw(); err != nil || !strings.Contains(text, "node") {
			t.Errorf("%s: %q %v", name, text, err)
		}
	}
}

func TestTheSameStateGivesTheSameBytes(t *testing.T) {
	var dumps []string
	for range 5 { // Go's maps have another order each time
		e := engine(t)
		text, err := e.Dump()
		if err != nil {
			t.Fatal(err)
		}
		dumps = append(dumps, text)
	}
	for _, text := range dumps[1:] {
		if text != dumps[0] {
			t.Fatalf("%s\n---\n%s", dumps[0], text)
		}
	}
}

func TestLimits(t *testing.T) {
	l := library(t)
	for _, limits := range []Limits{{}, {Nodes: NodesMax + 1, Pods: 1}} {
		if _, err := l.New(limits, nil, nil); !IsCode(err, CodeLimit) {
			t.Errorf("%+v: %v", limits, err)
		}
	}
	if _, err := l.New(Limits{Nodes: 4, Pods: 4}, []byte(`{"foo":1}`), nil); !IsCode(err, CodeBad) {
		t.Errorf("bad args: %v", err)
	}
	if _, err := l.New(Limits{Nodes: 4, Pods: 4}, nil, []byte("spines: 3")); !IsCode(err, CodeBad) {
		t.Errorf("bad fabric: %v", err)
	}
}

func TestAClosedEngineAnswers(t *testing.T) {
	e := engine(t)
	e.Close()
	e.Close()
	request, members := gang(1, 1)
	if _, _, _, err := e.Plan(request, members, nil, nil); err == nil || err.Error() != "the engine is closed" {
		t.Errorf("got %v", err)
	}
	if err := e.Check(); err == nil {
		t.Error("checked")
	}
}

func TestManyGoroutines(t *testing.T) {
	e := engine(t)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := range 200 {
				pod := uid(worker*1000 + i)
				request := Request{Gang: pod, MinMember: 1, GPUsDesired: 2, OnlySlot: None, Name: "ml/one"}
				members := []Member{{Pod: pod, GPUs: 2, PinnedSlot: None}}
				plan, places, _, err := e.Plan(request, members, map[string]string{"topology.scheduler/topology-mode": "Preferred"}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if plan.Outcome != Placed || e.Reserve(request, members, places) != nil {
					continue
				}
				if _, err := e.Permit(pod); err != nil {
					t.Error(err)
				}
				if place, annotations, err := e.Binding(pod); err != nil || len(annotations) == 0 || place.GPUMask == 0 {
					t.Error(place, annotations, err)
				}
				if i%3 == 0 {
					if err := e.Confirm(pod); err != nil {
						t.Error(err)
					}
				}
				if err := e.Release(pod); err != nil {
					t.Error(err)
				}
				if i%50 == 0 {
					if err := e.Check(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
	check(t, e)
	if stats, _ := e.Stats(); stats.GPUsFree != 32 || stats.Pods != 0 {
		t.Errorf("%+v", stats)
	}
}

// Two pods exchange GPUs and a third takes over what a key held, in one call.
func TestSwap(t *testing.T) {
	e := engine(t)
	pod := func(n int, mask, gpus uint32) Pod {
		return Pod{Key: uid(n), Slot: 0, GPUs: gpus, GPUMask: mask, Name: "a/b", Rank: None}
	}
	for _, err := range e.Swap(nil, []Pod{pod(1, 1, 1), pod(2, 2, 1), pod(3, 4, 1)}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	errs := e.Swap([]Key{uid(3), uid(99)}, []Pod{pod(1, 0, 0), pod(2, 0, 0), pod(1, 2, 1), pod(2, 1, 1),
		pod(4, 4, 1), {Key: uid(5), Slot: 7, GPUs: 1, Rank: None}})
	for i, err := range errs {
		if i < 5 && err != nil || i == 5 && !IsCode(err, CodeUnknown) {
			t.Errorf("%d: %v", i, err)
		}
	}
	check(t, e)
	for n, want := range map[int]uint32{1: 2, 2: 1, 4: 4} {
		if got, err := e.Pod(uid(n)); err != nil || got.GPUMask != want || got.GPUs != 1 || got.State != HeldBound {
			t.Errorf("%d: %v %v", n, got, err)
		}
	}
	if _, err := e.Pod(uid(3)); !IsCode(err, CodeUnknown) {
		t.Errorf("given back: %v", err)
	}
	if stats, err := e.Stats(); err != nil || stats.Conflicts != 0 {
		t.Errorf("%+v, %v", stats, err)
	}
	e.Close()
	if errs := e.Swap([]Key{uid(1)}, []Pod{pod(1, 0, 1)}); len(errs) != 1 || errs[0] == nil {
		t.Errorf("closed: %v", errs)
	}
}
