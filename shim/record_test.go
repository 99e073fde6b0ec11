// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

const replayMain = `#include "sim/replay.h"
#include <stdlib.h>
int main(int argc, char **argv)
{
	struct complaint complaint;
	FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
	char *text = malloc(64 << 20);
	if (file == NULL || text == NULL)
		return 3;
	uint32_t len = (uint32_t)fread(text, 1, 64 << 20, file);
	int32_t code = replay_run(text, len, stdout, &complaint);
	if (code != FROND_OK)
		fprintf(stderr, "%u: %s\n", complaint.line, complaint.text);
	return code == FROND_OK ? 0 : 2;
}
`

// replayer compiles frond-sim's replay around the same engine library that the shim has loaded.
func replayer(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.c"), filepath.Join(dir, "replay")
	if err := os.WriteFile(source, []byte(replayMain), 0o600); err != nil {
		t.Fatal(err)
	}
	library(t)
	command := exec.Command("gcc", "-std=c11", "-D_POSIX_C_SOURCE=200809L", "-O1", "-g", "-I../csrc", "-I../csrc/include",
		"-o", program, source, "../csrc/sim/replay.c", "../csrc/text/words.c", "../csrc/text/utf8.c",
		realLibrary, "-Wl,-rpath,"+filepath.Dir(absolute(t, realLibrary)))
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("compiling replay: %v\n%s", err, out)
	}
	return program
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// replay runs a recording and returns what it writes, says and ends with.
func replay(t *testing.T, program string, recording []byte) (out []byte, says string, code int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "recording")
	if err := os.WriteFile(path, recording, 0o600); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	command := exec.Command(program, path)
	command.Stderr = &stderr
	out, err := command.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out, stderr.String(), command.ProcessState.ExitCode()
}

// recorded is an engine that writes a recording, and the recording's path.
func recorded(t *testing.T, limits Limits, args, fabric string) (*Engine, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "recording")
	e, err := library(t).New(limits, []byte(args), []byte(fabric), Record(path, func(err error) { t.Error(err) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e, path
}

func contents(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Texts that a careless writer or reader would mangle.
var awkward = []string{"", "plain", `"quoted" and \back`, "two\nlines\r\n", "tab\t nul\x00 bell\a del\x7f", "Blätter 葉 🌿",
	"\u0080\u009f", "bad \xff\xfe utf-8 \xc3", "\xed\xa0\x80", `\u0041 is not A`, " = OK", "none"}

// session drives the engine at random through every call that there is.
type session struct {
	*Engine
	t      *testing.T
	random *rand.Rand
	nodes  uint32
	pods   int
	table  uint32
	live   []Key // pods that may hold something
	gangs  []Key
}

func (s *session) text() string { return awkward[s.random.IntN(len(awkward))] }

func (s *session) pick(keys []Key) Key {
	if len(keys) == 0 || s.random.IntN(20) == 0 {
		return uid(s.random.IntN(1000)) // most likely unknown
	}
	return keys[s.random.IntN(len(keys))]
}

func (s *session) room() []Room {
	if s.random.IntN(3) > 0 {
		return nil
	}
	var room []Room // nodes that are not there any more make the engine refuse: that is recorded, too
	for slot := range s.nodes {
		if s.random.IntN(2) == 0 {
			room = append(room, Room{Slot: uint32(slot), Today: uint16(s.random.IntN(3)), Ever: uint16(2 + s.random.IntN(2)*65533)})
		}
	}
	return room
}

func (s *session) thrift() *Thrift {
	if s.random.IntN(3) == 0 {
		return nil
	}
	thrift := &Thrift{Asks: Left{CPUMilli: s.random.Uint32(), MemoryMiB: 1}, Left: make([]Left, s.nodes), Kinds: make([]Kind, s.random.IntN(4))}
	for i := range thrift.Left {
		thrift.Left[i] = Left{CPUMilli: uint32(s.random.IntN(2)), MemoryMiB: uint32(s.random.IntN(2)) * math.MaxUint32}
	}
	for i := range thrift.Kinds {
		thrift.Kinds[i] = Kind{CPUMilli: s.random.Uint32(), GPUs: uint32(s.random.IntN(GPUsMax + 2)), Pods: 1}
	}
	return thrift
}

func (s *session) job() (Request, []Member, map[string]string) {
	gpus := []int{1, 2, 4, 8, 17}[s.random.IntN(5)]
	request, members := gang(1+s.random.IntN(5), gpus)
	for i := range members {
		s.pods++
		members[i].Pod = uid(10000 + s.pods)
	}
	request.Gang = GangKey("Job", "ml", fmt.Sprint(s.pods), s.text())
	request.Name, request.Priority = "ml/"+s.text(), int32(s.random.IntN(5)-2)
	request.Age = time.Duration(s.random.IntN(1000)) * time.Second
	if s.random.IntN(3) == 0 {
		request.Deadline = time.UnixMilli(int64(1 + s.random.IntN(1000)))
	}
	if s.random.IntN(3) == 0 {
		request.Claim = []string{`{"devices": {"policy": "spread"}}`, `{"devices": {"policy": "` + s.text() + `"}}`, s.text()}[s.random.IntN(3)]
	}
	if s.random.IntN(4) == 0 {
		request.Claim = `{"devices": {"policy": "preferIds", "preferIds": ["GPU-1", "GPU-2", 3]}}`
		for slot := range uint32(s.random.IntN(4)) {
			request.Named = append(request.Named, Named{Slot: slot, GPUMask: s.mask(1 << slot)})
		}
	}
	annotations := map[string]string{}
	for range s.random.IntN(3) {
		annotations["topology.scheduler/"+[]string{"placement-strategy", "topology-mode", "preferred-domain", "recovery"}[s.random.IntN(4)]] =
			[]string{"distributed", "Preferred", "leaf-1", "MoveGang", s.text()}[s.random.IntN(5)]
	}
	annotations[s.text()+"/other"] = s.text()
	return request, members, annotations
}

func (s *session) node() {
	slot := uint32(s.random.IntN(int(s.nodes) + 1)) // one beyond the limit
	node := Node{Slot: slot, GPUs: 8, Topology: None, Name: fmt.Sprintf("node-%d", slot+1), Flags: NodeFlag(s.random.IntN(40)),
		UplinkGbps: uint32(s.random.IntN(2) * 400)}
	if node.Flags > 3 {
		node.Flags = 0
	}
	switch s.random.IntN(8) {
	case 0:
		node.Topology = s.table
	case 1:
		node.Model = "DGX-1V"
	case 2:
		node.Model, node.UnhealthyMask = s.text(), 1<<s.random.IntN(8)
	case 3:
		node.Name = s.text()
	}
	_ = s.NodePut(node, map[string]string{"fabric.topograph.run/tier-0": fmt.Sprintf("leaf-%d", slot/4+1),
		"fabric.topograph.run/tier-1": "spine-1", "zone": s.text(), "a" + s.text(): s.text()})
}

func (s *session) topology() {
	topology := Topology{GPUs: 8, NUMA: [GPUsMax]uint8{4: 1, 1, 1, 1}}
	for i := range 8 {
		for j := range i {
			link := uint16(25 * s.random.IntN(3))
			topology.LinkGBps[i][j], topology.LinkGBps[j][i] = link, link
		}
	}
	if s.random.IntN(4) == 0 {
		topology.LinkGBps[3][12] = 65535
	}
	if id, err := s.TopologyPut(topology); err == nil {
		s.table = id
	}
}

func (s *session) place() {
	request, members, annotations := s.job()
	if len(members) == 1 && s.random.IntN(2) == 0 {
		_, _, _, _ = s.Order(request, members[0], annotations, s.room(), s.thrift())
	}
	plan, places, _, err := s.Plan(request, members, annotations, s.room())
	if err != nil || plan.Outcome != Placed {
		return
	}
	_ = s.Reserve(request, members, places)
	s.gangs = append(s.gangs, request.Gang)
	for i, member := range members {
		s.live = append(s.live, member.Pod)
		if s.random.IntN(3) > 0 {
			_, _ = s.Permit(member.Pod)
		}
		if s.random.IntN(2) == 0 {
			_ = s.Confirm(member.Pod)
		}
		if s.random.IntN(4) == 0 {
			_ = s.PodPut(Pod{Key: member.Pod, Slot: places[i].Slot, GPUs: member.GPUs, GPUMask: s.mask(places[i].GPUMask), Name: s.text(),
				Gang: request.Gang, Rank: member.Rank, Flags: PodFlag(s.random.IntN(2))})
		}
	}
	_ = s.GangPut(request, annotations)
	_ = s.Reserve(request, members, places) // stale
}

// hold keeps GPUs for a few ranks, and lets the pods of some come.
func (s *session) hold() {
	s.pods++
	gang := GangKey("Job", "ml", fmt.Sprint(s.pods), s.text())
	if s.random.IntN(2) == 0 {
		gang = s.pick(s.gangs)
	}
	var holds []GangHold
	for rank := range uint32(s.random.IntN(4)) {
		holds = append(holds, GangHold{Gang: gang, Rank: rank, Slot: uint32(s.random.IntN(int(s.nodes))), GPUMask: s.mask(3 << s.random.IntN(7)),
			DeadlineMillis: int64(s.random.IntN(2000) - 1)})
	}
	_ = s.HoldPut(holds)
	s.gangs = append(s.gangs, gang)
	for rank := range uint32(2) {
		s.pods++
		if s.HoldTake(gang, rank, uid(10000+s.pods)) == nil {
			s.live = append(s.live, uid(10000+s.pods))
		}
	}
	_, _ = s.HoldList(Key{})
	_, _ = s.HoldList(gang)
	_, _ = s.HoldDrop(s.pick(s.gangs), []uint32{0, 1, None}[s.random.IntN(3)])
}

// mask of GPUs, now and then not theirs.
func (s *session) mask(mask uint32) uint32 {
	switch s.random.IntN(8) {
	case 0:
		return 0
	case 1:
		return mask ^ 1<<s.random.IntN(17)
	default:
		return mask
	}
}

// window asks twice, the second time with what was answered; now and then ends do not ascend, or are of nobody.
func (s *session) window(request Request, members []Member, annotations map[string]string) {
	var ends []End
	for _, pod := range s.live {
		if s.random.IntN(2) == 0 && !slices.ContainsFunc(ends, func(end End) bool { return end.Pod == pod }) {
			ends = append(ends, End{Pod: pod, EndsInMillis: int64(1000 * len(ends) / 2)})
		}
	}
	if s.random.IntN(8) == 0 {
		ends = append(ends, End{Pod: s.pick(s.live), EndsInMillis: -1})
	}
	window, places, _, err := s.Window(request, members, annotations, s.room(), ends, nil)
	if err == nil && window.Outcome == Placed {
		_, _, _, _ = s.Window(request, members, annotations, nil, ends, places)
	}
}

func (s *session) step() {
	switch s.random.IntN(23) {
	case 0:
		s.node()
	case 1:
		s.topology()
	case 2:
		_ = s.NodeRemove(uint32(s.random.IntN(int(s.nodes))))
	case 3:
		_ = s.PodPut(Pod{Key: s.pick(s.live), Slot: uint32(s.random.IntN(int(s.nodes))), GPUs: uint32(s.random.IntN(4)), Name: s.text(), Rank: None})
	case 4, 5:
		_ = s.Release(s.pick(s.live))
	case 6:
		_, _ = s.ReleaseGang(s.pick(s.gangs))
	case 7:
		_, _ = s.Tick(time.UnixMilli(int64(s.random.IntN(1000))))
	case 8:
		_ = s.WhatIf()
		_ = s.Release(s.pick(s.live))
		_ = s.Undo()
	case 9:
		_, _, _, _ = s.Recover(s.pick(s.gangs), s.room())
	case 10:
		request, members, annotations := s.job()
		_, _, _, _ = s.Defrag(request, members, annotations, s.room())
	case 11:
		request, members, annotations := s.job()
		_, _, _, _, _ = s.Victims(request, members, annotations, s.room())
		s.window(request, members, annotations)
	case 12:
		_, _, _ = s.Binding(s.pick(s.live))
		_, _ = s.Pod(s.pick(s.live))
		_, _ = s.Gang(s.pick(s.gangs))
	case 13:
		_, _ = s.Stats()
		_ = s.Problems()
	case 14:
		_ = s.ConfigPut([]byte([]string{`{"scoringPreset": "agents"}`, `{"topologyConstraints": {"maxNodesPerLeaf": 1}}`, "{}", s.text()}[s.random.IntN(4)]))
	case 15:
		_, _ = s.Map(s.random.IntN(2) == 0)
		_, _ = s.Dump()
	case 16, 17:
		s.hold()
	default:
		s.place()
	}
	if err := s.Check(); err != nil {
		s.t.Fatal(err)
	}
}

// kinds are the calls of an engine, as the table names them.
var kinds = []string{"create", "config_put", "node_put", "topology_put", "node_remove", "pod_put", "pod_get", "plan", "order", "reserve", "gang_put",
	"gang_get", "permit", "confirm", "release", "release_gang", "hold_put", "hold_take", "hold_drop", "hold_list", "tick", "what_if", "undo", "recover", "defrag", "victims", "window",
	"binding", "stats", "problems", "map", "dump", "check"}

func TestARandomSessionReplaysToTheSameBytes(t *testing.T) {
	program := replayer(t)
	var all []byte
	for seed := range uint64(8) {
		e, path := recorded(t, Limits{Nodes: 16, Pods: 200, Holds: 40}, `{"defaultTopologyMode": "Preferred"}`, "")
		s := &session{Engine: e, t: t, random: rand.New(rand.NewPCG(seed, 1)), nodes: 16, table: None}
		for range 16 {
			s.node()
		}
		for range 150 {
			s.step()
		}
		e.Close()
		recording := contents(t, path)
		out, says, code := replay(t, program, recording)
		if code != 0 || says != "" || !bytes.Equal(out, recording) {
			t.Fatalf("seed %d: exit %d, %q\n%s", seed, code, says, difference(recording, out))
		}
		all = append(all, recording...)
	}
	for _, kind := range kinds {
		if !bytes.Contains(all, []byte("\n"+kind+" ")) && !bytes.Contains(all, []byte("\n"+kind+"\n")) {
			t.Errorf("no session called %s", kind)
		}
	}
	for _, code := range []string{"OK", "BAD", "UNKNOWN", "STALE"} {
		if !bytes.Contains(all, []byte("\n= "+code)) {
			t.Errorf("no call answered %s", code)
		}
	}
}

// The shim asks again when its buffer was too small; both calls are recorded.
func TestABufferThatWasTooSmall(t *testing.T) {
	e, path := recorded(t, Limits{Nodes: 4, Pods: 4}, "", "")
	if err := e.NodePut(Node{GPUs: 16, Topology: None, Model: "DGX-2", Name: strings.Repeat("n", 253)},
		map[string]string{"fabric.topograph.run/tier-0": strings.Repeat("l", 253), "fabric.topograph.run/tier-1": strings.Repeat("s", 253)}); err != nil {
		t.Fatal(err)
	}
	request, members := gang(1, 16)
	_, places, _, err := e.Plan(request, members, nil, nil)
	if err == nil {
		err = e.Reserve(request, members, places)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.Binding(members[0].Pod); err != nil {
		t.Fatal(err)
	}
	e.Close()
	recording := contents(t, path)
	if !bytes.Contains(recording, []byte("cap 512\n= SMALL len 5")) {
		t.Errorf("got %s", recording)
	}
	if out, says, code := replay(t, replayer(t), recording); code != 0 || says != "" || !bytes.Equal(out, recording) {
		t.Errorf("%d %q %s", code, says, difference(recording, out))
	}
}

// difference is the first line that differs.
func difference(want, got []byte) string {
	a, b := strings.Split(string(want), "\n"), strings.Split(string(got), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("line %d\nwant %s\n got %s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, %d lines", len(a), len(b))
}

func TestARefusedEngineIsRecordedToo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recording")
	if _, err := library(t).New(Limits{Nodes: 4, Pods: 4}, []byte("{\"f\u00f6o\": \"\n\"}"), nil, Record(path, nil)); !IsCode(err, CodeBad) {
		t.Fatal(err)
	}
	recording := contents(t, path)
	if !bytes.Contains(recording, []byte(`args "{\"föo\": \"\n\"}"`)) || !bytes.Contains(recording, []byte("\n= BAD text \"")) {
		t.Errorf("got %s", recording)
	}
	if out, says, code := replay(t, replayer(t), recording); code != 0 || says != "" || !bytes.Equal(out, recording) {
		t.Errorf("%d %q %s", code, says, difference(recording, out))
	}
}

func TestTheAnswerIsComputedAndNotCopied(t *testing.T) {
	e, path := recorded(t, Limits{Nodes: 4, Pods: 4}, "", "")
	put(t, e, 0)
	e.Close()
	recording := contents(t, path)
	forged := bytes.ReplaceAll(recording, []byte("= OK"), []byte("= BAD"))
	if out, says, code := replay(t, replayer(t), forged); code != 0 || says != "" || !bytes.Equal(out, recording) {
		t.Errorf("%d %q %s", code, says, difference(recording, out))
	}
}

func TestACrashLeavesAUsableRecording(t *testing.T) {
	e, path := recorded(t, Limits{Nodes: 4, Pods: 4}, "", "")
	put(t, e, 0)
	put(t, e, 1)
	recording := contents(t, path) // not closed: what a crash would leave
	program := replayer(t)
	lines := bytes.SplitAfter(recording, []byte("\n"))
	const unanswered, half = "the recording ends before this call was answered", "the recording ends in the middle of a call, which is left out"
	blocks := bytes.Count(recording, []byte("\n= "))
	for size := len(lines[0]); size <= len(recording); size++ {
		out, says, code := replay(t, program, recording[:size])
		answered, whole := bytes.Count(out, []byte("\n= ")), bytes.Count(recording[:size], []byte("\n= "))
		if code != 0 || !bytes.HasPrefix(recording, out) || answered < whole || answered > blocks {
			t.Fatalf("%d bytes: exit %d, %q, %s", size, code, says, difference(recording, out))
		}
		if says != "" && !strings.Contains(says, unanswered) && !strings.Contains(says, half) || strings.Count(says, "\n") > 1 {
			t.Fatalf("%d bytes: %q", size, says)
		}
		if (says == "") != bytes.HasPrefix(out, recording[:size]) && !strings.Contains(says, unanswered) {
			t.Fatalf("%d bytes: %q for\n%s", size, says, out)
		}
	}
}

func TestReplaySaysWhatIsAllowed(t *testing.T) {
	program := replayer(t)
	const header = "frond-recording 1 abi 6\n"
	const create = header + "create nodes 4 pods 4 text_bytes 0 table_bytes 0 holds 0 args \"\" fabric \"\" cap 512\n= OK text \"\"\n"
	const order = "order gang 00000000000000000000000000000001 members 1 min_member 1 gpus_desired 1 age_ms 0 only_slot none annotations 0 name \"\" deadline_ms 0 priority 0 named_count 0 claim \"\" room 0 thrift "
	for _, test := range []struct{ name, text, want string }{
		{"empty", "", "1: recording: expected a first line frond-recording 1 abi 6"},
		{"something else", "kind: Fabric\n", "1: recording: expected frond-recording, got \"kind: Fabric\""},
		{"another format", "frond-recording 2 abi 6\n", "1: recording: format 2 of ABI 6, this program reads format 1 of ABI 6"},
		{"another ABI", "frond-recording 1 abi 1\n", "1: recording: format 1 of ABI 1, this program reads format 1 of ABI 6"},
		{"no engine", header + "stats\n", "2: stats: expected create first"},
		{"two engines", create + create[len(header):], "4: create: there is an engine already, a recording has one"},
		{"no such call", create + "fly\n", "4: recording: expected a call or its answer, got \"fly\""},
		{"an empty line", create + "\n", "4: recording: expected a call or its answer, got \"\""},
		{"a field missing", create + "node_remove\n", "4: node_remove.slot: expected this name and a value, got \"\""},
		{"not a number", create + "node_remove slot x\n", "4: node_remove.slot: must be a number from 0 to 4294967295, got \"x\""},
		{"too large", create + "node_remove slot 4294967296\n", "4: node_remove.slot: must be a number from 0 to 4294967295, got \"4294967296\""},
		{"a leading zero", create + "node_remove slot 01\n", "4: node_remove.slot: must be a number from 0 to 4294967295, got \"01\""},
		{"more than the call takes", create + "node_remove slot 1 2\n", "4: node_remove: expected the end of the line, got \" 2\""},
		{"a short key", create + "release pod 00ff\n", "4: release.pod: must be hexadecimal digits"},
		{"a cap beyond reason", create + "dump cap 67108865\n", "4: dump.cap: must be a number from 0 to 67108864"},
		{"too many exceptions", create + "recover gang 00000000000000000000000000000001 room 1048577 list_cap 1 cap 1\n", "4: recover.room: must be a number from 0 to 1048576"},
		{"an exception out of range", create + "recover gang 00000000000000000000000000000001 room 1 list_cap 1 cap 1\n room slot 0 pod_template 65536 today 1 ever 1 unavailable 0\n", "5: recover.pod_template: must be a number from 0 to 65535"},
		{"a run too long", header + "create nodes 4 pods 4 text_bytes 0 table_bytes 0 holds 0 args \"\" fabric \"\" cap 1\n" + order + "4 cpu_milli 1 memory_mib 1 kinds 0 cap 1\n member pod 00000000000000000000000000000001 rank 0 gpus 1 pinned_slot none pod_template 0\n left 1/1*5\n", "5: order.left: must be a number from 0 to 4"},
		{"a text without end", create + "pod_put pod 00000000000000000000000000000001 slot 0 gpus 1 gpu_mask 0 rank none name \"x\n", "4: pod_put.name: must be a text in quotes"},
		{"a bad escape", create + "pod_put pod 00000000000000000000000000000001 slot 0 gpus 1 gpu_mask 0 rank none name \"\\x\"\n", "4: pod_put.name: must be a text in quotes"},
		{"too few nodes for thrift", create + order + "3 cpu_milli 1 memory_mib 1 kinds 0 cap 512\n", "4: order.thrift: must be none or the number of nodes"},
		{"thrift without kinds", create + order + "4 cpu_milli 1 memory_mib 1 cap 512\n", "4: order.kinds: expected this name and a value"},
		{"kinds beyond reason", create + order + "4 cpu_milli 1 memory_mib 1 kinds 65537 cap 512\n member pod 00000000000000000000000000000001 rank 0 gpus 1 pinned_slot none pod_template 0\n", "5: order.kinds: at most 65536 are possible, got 65537"},
		{"a kind missing", create + order + "4 cpu_milli 1 memory_mib 1 kinds 1 cap 512\n member pod 00000000000000000000000000000001 rank 0 gpus 1 pinned_slot none pod_template 0\n left 1/1*4\n", "6: order.kind: expected a line that begins with a blank and this name"},
		{"half of what is left", create + order + "4 cpu_milli 1 memory_mib 1 kinds 0 cap 512\n member pod 00000000000000000000000000000001 rank 0 gpus 1 pinned_slot none pod_template 0\n left 1*4\n", "6: order.left: expected CPU/MEMORY"},
		{"too many members", create + "reserve gang 00000000000000000000000000000001 members 16385 min_member 1 gpus_desired 0 age_ms 0 only_slot none annotations 0 name \"\" deadline_ms 0 priority 0 named_count 0 claim \"\"\n", "4: reserve.members: at most 16384 are possible, got 16385"},
		{"no such engine", header + "create nodes 131073 pods 1 text_bytes 0 table_bytes 0 holds 0 args \"\" fabric \"\" cap 512\n", "2: create: an engine of 131073 nodes and 1 pods is not possible"},
		{"an engine without bounds", header + "create nodes 131072 pods 1048575 text_bytes 1073741824 table_bytes 0 holds 0 args \"\" fabric \"\" cap 512\n", "2: create: an engine of 131072 nodes and 1048575 pods is not possible, or needs more than 512 MiB"},
		{"calls after a refusal", header + "create nodes 4 pods 4 text_bytes 0 table_bytes 0 holds 0 args \"{\" fabric \"\" cap 512\nstats\n", "3: stats: there is no engine, create was refused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, says, code := replay(t, program, []byte(test.text))
			if code != 2 || !strings.HasPrefix(says, test.want) || strings.Count(says, "\n") != 1 {
				t.Errorf("exit %d, got %q, want %q", code, says, test.want)
			}
		})
	}
}

func TestARecordingThatCannotBeMadeIsOneWarning(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, path, want string }{
		{"a folder that is missing", filepath.Join(dir, "nowhere", "r"), "cannot be written: No such file or directory"},
		{"a folder", dir, "cannot be written: Is a directory"},
		{"a pipe", pipe, "cannot be written: "},
		{"a device", "/dev/null", "is not a regular file"},
		{"a NUL in the path", "a\x00b", "NUL byte"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var warnings []string
			e, err := library(t).New(Limits{Nodes: 4, Pods: 4}, nil, nil, Record(test.path, func(err error) { warnings = append(warnings, err.Error()) }))
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			put(t, e, 0)
			if len(warnings) != 1 || !strings.Contains(warnings[0], test.want) {
				t.Errorf("got %q, want one with %q", warnings, test.want)
			}
		})
	}
}

// A full disk, played by a limit on the size of files.
func TestARecordingThatBreaksOffIsOneWarning(t *testing.T) {
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	path, warnings := filepath.Join(t.TempDir(), "recording"), []string{}
	e, err := library(t).New(Limits{Nodes: 8, Pods: 64}, nil, nil, Record(path, func(err error) { warnings = append(warnings, err.Error()) }))
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1000, Max: before.Max}); err != nil {
		t.Fatal(err)
	}
	for slot := range uint32(8) {
		if err = e.NodePut(Node{Slot: slot, GPUs: 8, Topology: None, Name: fmt.Sprintf("node-%d", slot)}, nil); err != nil {
			break
		}
	}
	if err := errors.Join(err, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &before)); err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], path+" has ended: file too large") {
		t.Errorf("got %q", warnings)
	}
	check(t, e)
	recording := contents(t, path)
	if _, says, code := replay(t, replayer(t), recording); code != 0 || !strings.Contains(says, "the recording ends") {
		t.Errorf("%d %q", code, says)
	}
}

func TestAnOlderRecordingIsKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recording")
	for range 2 {
		e, err := library(t).New(Limits{Nodes: 4, Pods: 4}, nil, nil, Record(path, func(err error) { t.Error(err) }))
		if err != nil {
			t.Fatal(err)
		}
		e.Close()
	}
	if !bytes.Equal(contents(t, path), contents(t, path+".old")) {
		t.Error("the first recording is gone")
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// The library of an older build: calls that it does not have are refused by name.
func TestCallsThatALibraryDoesNotHave(t *testing.T) {
	l, err := Open(fake(t, `#include "frond.h"
static uint64_t size_of(const struct frond_limits *limits) { return 64; }
static int32_t create(void *mem, uint64_t bytes, const struct frond_limits *limits, const char *args, uint32_t args_len,
	const char *fabric, uint32_t fabric_len, frond_engine **out, char *text, uint32_t cap, uint32_t *len)
{ *out = mem; return 0; }
static const struct frond_abi abi = {.version = FROND_ABI_VERSION, .size = sizeof abi, .size_of = size_of, .create = create};
const struct frond_abi *frond_abi_get(void) { return &abi; }
`))
	if err != nil {
		t.Fatal(err)
	}
	e, err := l.New(Limits{Nodes: 4, Pods: 4}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	request, members := gang(1, 1)
	for name, call := range map[string]func() error{
		"recover":  func() error { _, _, _, err := e.Recover(request.Gang, nil); return err },
		"defrag":   func() error { _, _, _, err := e.Defrag(request, members, nil, nil); return err },
		"victims":  func() error { _, _, _, _, err := e.Victims(request, members, nil, nil); return err },
		"window":   func() error { _, _, _, err := e.Window(request, members, nil, nil, nil, nil); return err },
		"the call": e.WhatIf,
	} {
		if err := call(); !IsCode(err, CodeMissing) || err.Error() != "this engine library does not have "+name {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
