// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"slices"
	"testing"
	"time"
)

// run books a pod of its own on a slot, binds it and tells what it asks for.
func run(t *testing.T, e *Engine, n int, gpus, slot uint32, priority int32) Key {
	t.Helper()
	pod := uid(n)
	request := Request{Gang: pod, MinMember: 1, GPUsDesired: uint64(gpus), OnlySlot: slot, Name: "ml/small", Priority: priority}
	members := []Member{{Pod: pod, GPUs: gpus, PinnedSlot: None}}
	plan, places, sentence, err := e.Plan(request, members, nil, nil)
	if err != nil || plan.Outcome != Placed {
		t.Fatal(sentence, err)
	}
	for _, err := range []error{e.Reserve(request, members, places), e.Confirm(pod), e.GangPut(request, nil)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return pod
}

func TestTopologies(t *testing.T) {
	e := engine(t)
	topology := Topology{GPUs: 4, NUMA: [GPUsMax]uint8{0, 0, 1, 1}}
	for _, link := range [][3]uint16{{0, 1, 50}, {0, 2, 25}, {1, 3, 25}, {2, 3, 50}} {
		topology.LinkGBps[link[0]][link[1]], topology.LinkGBps[link[1]][link[0]] = link[2], link[2]
	}
	id, err := e.TopologyPut(topology)
	if again, second := e.TopologyPut(topology); err != nil || second != nil || again != id {
		t.Fatalf("%d %v, %d %v", id, err, again, second)
	}
	if err := e.NodePut(Node{Slot: 4, GPUs: 4, Topology: id, Name: "box"}, nil); err != nil {
		t.Fatal(err)
	}
	request, members := gang(1, 4)
	request.OnlySlot = 4
	if plan, places, _, err := e.Plan(request, members, nil, nil); err != nil || plan.Outcome != Placed || places[0] != (Place{Slot: 4, GPUMask: 15, Ring: 0x2310}) {
		t.Errorf("the ring goes over links: %+v %v", places, err)
	}
	topology.LinkGBps[0][1] = 1
	if _, err := e.TopologyPut(topology); !IsCode(err, CodeBad) {
		t.Errorf("another speed in the other direction: %v", err)
	}
	check(t, e)
}

func TestAGangIsSeenAndExpires(t *testing.T) {
	e := engine(t)
	request, members := gang(2, 8)
	request.Priority, request.Deadline = -5, time.UnixMilli(1000)
	if err := e.GangPut(request, nil); !IsCode(err, CodeUnknown) {
		t.Errorf("it holds nothing yet: %v", err)
	}
	_, places, _, err := e.Plan(request, members, nil, nil)
	if err == nil {
		err = e.Reserve(request, members, places)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := e.GangPut(request, map[string]string{"topology.scheduler/recovery": "Perhaps"}); !IsCode(err, CodeBad) {
		t.Errorf("a policy that there is not: %v", err)
	}
	want := Gang{State: GangPlanned, MinMember: 2, Members: 2, Priority: -5, Deadline: time.UnixMilli(1000)}
	if got, err := e.Gang(request.Gang); err != nil || got != want {
		t.Errorf("got %+v, want %+v, %v", got, want, err)
	}
	if expired, err := e.Tick(time.UnixMilli(1000)); err != nil || len(expired) != 0 {
		t.Errorf("not yet: %v %v", expired, err)
	}
	if expired, err := e.Tick(time.UnixMilli(1001)); err != nil || !slices.Equal(expired, []Key{request.Gang}) {
		t.Errorf("now: %v %v", expired, err)
	}
	if _, err := e.Gang(request.Gang); !IsCode(err, CodeUnknown) {
		t.Errorf("it is forgotten: %v", err)
	}
	check(t, e)
}

func TestMoreGangsExpireThanOneCallTells(t *testing.T) {
	e, err := library(t).New(Limits{Nodes: 32, Pods: 256}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for slot := range uint32(32) {
		put(t, e, slot)
	}
	for n := range 2*listEntries + 1 {
		request := Request{Gang: uid(n), MinMember: 1, GPUsDesired: 1, OnlySlot: None, Deadline: time.UnixMilli(1)}
		members := []Member{{Pod: uid(n), GPUs: 1, PinnedSlot: None}}
		_, places, _, err := e.Plan(request, members, nil, nil)
		if err == nil {
			err = e.Reserve(request, members, places)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if expired, err := e.Tick(time.UnixMilli(2)); err != nil || len(expired) != 2*listEntries+1 {
		t.Errorf("%d expired, %v", len(expired), err)
	}
	check(t, e)
}

func TestWhatIf(t *testing.T) {
	e := engine(t)
	pod := run(t, e, 1, 8, 0, 0)
	before, err := e.Dump()
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Undo(); !IsCode(err, CodeUnknown) {
		t.Errorf("nothing to undo: %v", err)
	}
	if err := e.WhatIf(); err != nil {
		t.Fatal(err)
	}
	if err := e.Release(pod); err != nil {
		t.Fatal(err)
	}
	if err := e.NodeRemove(1); !IsCode(err, CodeBad) {
		t.Errorf("the cluster does not change in a what-if: %v", err)
	}
	if err := e.Undo(); err != nil {
		t.Fatal(err)
	}
	if after, err := e.Dump(); err != nil || after != before {
		t.Errorf("%s\n---\n%s", before, after)
	}
	check(t, e)
}

func TestRecoverMovesTheLostMember(t *testing.T) {
	e := engine(t)
	pod := run(t, e, 0, 8, 0, 0)
	if moves, list, _, err := e.Recover(pod, nil); err != nil || moves.Outcome != Placed || len(list) != 0 {
		t.Errorf("nothing is lost: %+v %+v %v", moves, list, err)
	}
	if err := e.NodePut(Node{Slot: 0, GPUs: 8, Topology: None, Flags: NodeDown, Name: "node-1"}, map[string]string{
		"fabric.topograph.run/tier-0": "leaf-1", "fabric.topograph.run/tier-1": "spine-1"}); err != nil {
		t.Fatal(err)
	}
	moves, list, sentence, err := e.Recover(pod, nil)
	if err != nil || moves.Outcome != Placed || moves.Count != 1 || moves.LowerBound != 1 || sentence == "" ||
		len(list) != 1 || list[0].Pod != pod || list[0].From != 0 || list[0].To == 0 || list[0].GPUMask != 255 {
		t.Errorf("%+v %+v %q %v", moves, list, sentence, err)
	}
	if _, _, _, err := e.Recover(uid(99), nil); !IsCode(err, CodeUnknown) {
		t.Errorf("an unknown gang: %v", err)
	}
	check(t, e)
}

func TestAWindowStartsWhenThoseInTheWayHaveEnded(t *testing.T) {
	e := engine(t)
	var ends []End
	for slot := range uint32(4) {
		pod := run(t, e, 10+int(slot), 4, slot, 0)
		ends = append(ends, End{Pod: pod, EndsInMillis: int64(60_000 * (1 + slot))})
	}
	request, members := gang(1, 8)
	window, places, sentence, err := e.Window(request, members, nil, nil, ends, nil)
	if err != nil || window.Outcome != Placed || window.StartMillis != 60_000 || window.Nodes != 1 || window.Free != 0 || window.Kept != 0 ||
		len(places) != 1 || places[0].Slot != 0 || sentence == "" {
		t.Errorf("node 0 is free first: %+v %+v %q %v", window, places, sentence, err)
	}
	if window, _, _, err := e.Window(request, members, nil, nil, ends, places); err != nil || window.Kept != 1 || window.StartMillis != 60_000 {
		t.Errorf("no other starts earlier: %+v %v", window, err)
	}
	if window, _, _, err := e.Window(request, members, nil, nil, nil, nil); err != nil || window.Outcome != Waits || window.StartMillis != WindowNever {
		t.Errorf("nobody ends: %+v %v", window, err)
	}
	for name, bad := range map[string]func() error{
		"twice": func() error {
			_, _, _, err := e.Window(request, members, nil, nil, append(ends[:1:1], ends[0]), nil)
			return err
		},
		"down": func() error {
			_, _, _, err := e.Window(request, members, nil, nil, []End{ends[1], ends[0]}, nil)
			return err
		},
		"past": func() error {
			_, _, _, err := e.Window(request, members, nil, nil, []End{{ends[0].Pod, -5}}, nil)
			return err
		},
		"held": func() error { _, _, _, err := e.Window(request, members, nil, nil, ends, make([]Place, 3)); return err },
	} {
		if err := bad(); !IsCode(err, CodeBad) || err.Error() == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhoMayUseKeptNodes(t *testing.T) {
	l := library(t)
	for name, c := range map[string]struct {
		question Backfill
		allowed  bool
	}{
		"ends before":      {Backfill{StartMillis: 60_000, EndsInMillis: 60_000}, true},
		"ends after":       {Backfill{StartMillis: 60_000, EndsInMillis: 60_001}, false},
		"nobody knows":     {Backfill{StartMillis: 60_000, EndsInMillis: WindowNever, WindowPreempts: true}, false},
		"could be evicted": {Backfill{StartMillis: 60_000, EndsInMillis: WindowNever, WindowPriority: 1, WindowPreempts: true}, true},
		"never preempts":   {Backfill{StartMillis: 60_000, EndsInMillis: WindowNever, WindowPriority: 1}, false},
	} {
		if allowed, sentence, err := l.Backfill(c.question); err != nil || allowed != c.allowed || sentence == "" {
			t.Errorf("%s: %v %q %v", name, allowed, sentence, err)
		}
	}
	if _, _, err := l.Backfill(Backfill{StartMillis: -1}); !IsCode(err, CodeBad) {
		t.Errorf("a window that never starts keeps nothing: %v", err)
	}
}

func TestDefragAndVictimsMakeRoom(t *testing.T) {
	e := engine(t)
	small := map[Key]bool{}
	for slot := range uint32(4) {
		small[run(t, e, 10+int(slot), 4, slot, int32(slot)-10)] = true
	}
	request, members := gang(1, 8)
	if plan, _, _, err := e.Plan(request, members, nil, nil); err != nil || plan.Outcome != Waits {
		t.Fatalf("%+v %v", plan, err)
	}
	moves, list, sentence, err := e.Defrag(request, members, nil, nil)
	if err != nil || moves.Outcome != Placed || moves.LowerBound != 1 || len(list) != 1 || !small[list[0].Pod] || sentence == "" {
		t.Errorf("%+v %+v %q %v", moves, list, sentence, err)
	}
	victims, pods, places, sentence, err := e.Victims(request, members, nil, nil)
	if err != nil || victims.Outcome != Placed || victims.Count != 1 || victims.GPUs != 4 || victims.Gangs != 1 || victims.Priority != -10 ||
		victims.Plan.Nodes != 1 || sentence == "" || !slices.Equal(pods, []Key{uid(10)}) || len(places) != 1 || places[0].Slot != 0 {
		t.Errorf("the pod of the lowest priority goes: %+v %v %+v %q %v", victims, pods, places, sentence, err)
	}
	request.Priority = -20
	if victims, pods, _, _, err := e.Victims(request, members, nil, nil); err != nil || victims.Outcome != Waits || len(pods) != 0 {
		t.Errorf("nobody is lower: %+v %v %v", victims, pods, err)
	}
	for name, err := range map[string]error{
		"nobody": func() error { _, _, _, err := e.Defrag(request, nil, nil, nil); return err }(),
		"many": func() error {
			_, _, _, _, err := e.Victims(request, make([]Member, MembersMax+1), nil, nil)
			return err
		}(),
	} {
		if !IsCode(err, CodeLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	check(t, e)
}
