// SPDX-License-Identifier: Apache-2.0

// Package shim loads libfrond.so and speaks its ABI. It is the only package with C in it: everything above sees Go
// types, everything below sees frond.h. One mutex an engine serialises calls, which take microseconds; nothing of Go's
// memory is kept by C after a call returns.
package shim

/*
#cgo CFLAGS: -I${SRCDIR}/../csrc/include -std=gnu11 -Wall -Wextra -Werror
#cgo LDFLAGS: -ldl
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"
)

// sentenceBytes is where every text buffer starts: it holds any sentence of the engine's.
const sentenceBytes = C.FROND_TEXT_MAX

// Library is libfrond.so, loaded and checked. It stays loaded for the life of the process.
type Library struct {
	abi *C.struct_frond_abi
}

// Open loads the engine library: corePath when given, else libfrond.so beside the running program, else the system's
// search path. The error is one sentence that says what is wrong with it.
func Open(corePath string) (*Library, error) {
	if strings.ContainsRune(corePath, 0) {
		return nil, errors.New("engine library: the path contains a NUL byte")
	}
	path := C.CString(corePath)
	defer C.free(unsafe.Pointer(path))
	text := make([]byte, C.SHIM_TEXT_MAX)
	abi := C.shim_open(path, (*C.char)(unsafe.Pointer(&text[0])), C.size_t(len(text)))
	if abi == nil {
		return nil, errors.New(cString(text))
	}
	return &Library{abi: abi}, nil
}

// Args decodes TopologyGPUArgs strictly and returns what the host needs of them.
func (l *Library) Args(json []byte) (Args, error) {
	if err := checkLength("args", json); err != nil {
		return Args{}, err
	}
	var out C.struct_frond_args
	text, err := l.text(sentenceBytes, func(text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
		return C.shim_args(l.abi, chars(json), C.uint32_t(len(json)), &out, text, size, length)
	})
	if err != nil {
		return Args{}, err
	}
	args := Args{
		PermitWait: time.Duration(out.permit_wait_s) * time.Second,
		FabricFile: cut(text, out.fabric_file),
	}
	for _, name := range out.resources[:min(out.resource_count, C.FROND_RESOURCES_MAX)] {
		args.Resources = append(args.Resources, cut(text, name))
	}
	return args, nil
}

// FabricExpand turns a fabric file, or a line such as "spine:2 leaf:4 node:4 gpu:8", into JSON with one entry a node.
func (l *Library) FabricExpand(text []byte, line bool) ([]byte, error) {
	if err := checkLength("fabric", text); err != nil {
		return nil, err
	}
	out, err := l.text(64<<10, func(buffer *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
		return C.shim_fabric_expand(l.abi, chars(text), C.uint32_t(len(text)), flag(line), buffer, size, length)
	})
	return []byte(out), err
}

// New makes an engine. args and fabric may be empty. Close gives its memory back.
func (l *Library) New(limits Limits, args, fabric []byte) (*Engine, error) {
	if err := errors.Join(checkLength("args", args), checkLength("fabric", fabric)); err != nil {
		return nil, err
	}
	in := C.struct_frond_limits{nodes: C.uint32_t(limits.Nodes), pods: C.uint32_t(limits.Pods),
		text_bytes: C.uint32_t(limits.TextBytes)}
	size := C.shim_size_of(l.abi, &in)
	if size == 0 {
		return nil, &Error{Code: CodeLimit, Text: fmt.Sprintf("no engine can have %d nodes and %d pods", limits.Nodes, limits.Pods)}
	}
	mem := C.shim_alloc(size)
	if mem == nil {
		return nil, &Error{Code: CodeLimit, Text: fmt.Sprintf("no memory for an engine of %d bytes", uint64(size))}
	}
	var engine *C.frond_engine
	_, err := l.text(sentenceBytes, func(text *C.char, textSize C.uint32_t, length *C.uint32_t) C.int32_t {
		return C.shim_create(l.abi, mem, size, &in, chars(args), C.uint32_t(len(args)), chars(fabric),
			C.uint32_t(len(fabric)), &engine, text, textSize, length)
	})
	if err != nil {
		C.shim_free(mem)
		return nil, err
	}
	return &Engine{library: l, limits: limits, mem: mem, engine: engine, bytes: uint64(size)}, nil
}

// Engine is one scheduling engine. Its methods may be called from any goroutine; each takes the engine's one lock.
type Engine struct {
	library *Library
	limits  Limits
	bytes   uint64

	mu     sync.Mutex
	mem    unsafe.Pointer // nil once closed
	engine *C.frond_engine
	input  texts // scratch for strings on their way in
}

// Limits are those the engine was made with.
func (e *Engine) Limits() Limits { return e.limits }

// Bytes is the memory that the engine lives in.
func (e *Engine) Bytes() uint64 { return e.bytes }

// Close gives the engine's memory back. Later calls answer that it is closed.
func (e *Engine) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	C.shim_free(e.mem)
	e.mem, e.engine = nil, nil
}

// NodePut enters a node, or changes the one with the same slot.
func (e *Engine) NodePut(node Node, labels map[string]string) error {
	return e.locked(func(abi *C.struct_frond_abi) error {
		e.input.reset()
		record := C.struct_frond_node{
			slot: C.uint32_t(node.Slot), gpus: C.uint32_t(node.GPUs), unhealthy_mask: C.uint32_t(node.UnhealthyMask),
			flags: C.uint32_t(node.Flags), uplink_gbps: C.uint32_t(node.UplinkGbps), name: e.input.add(node.Name),
		}
		pairs := e.input.pairs(labels)
		in, inLen, err := e.input.done()
		if err != nil {
			return err
		}
		_, err = e.library.text(sentenceBytes, func(text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
			return C.shim_node_put(abi, e.engine, &record, first(pairs), C.uint32_t(len(pairs)), in, inLen, text, size, length)
		})
		return err
	})
}

// NodeRemove forgets a node.
func (e *Engine) NodeRemove(slot uint32) error {
	return e.locked(func(abi *C.struct_frond_abi) error {
		return e.library.fail(C.shim_node_remove(abi, e.engine, C.uint32_t(slot)), "")
	})
}

// PodPut enters a bound pod that holds GPUs; one that was reserved becomes bound.
func (e *Engine) PodPut(pod Pod) error {
	return e.locked(func(abi *C.struct_frond_abi) error {
		e.input.reset()
		record := C.struct_frond_pod{pod: key(pod.Key), slot: C.uint32_t(pod.Slot), gpus: C.uint32_t(pod.GPUs),
			allocated: e.input.add(pod.Allocated), name: e.input.add(pod.Name), gang: key(pod.Gang)}
		in, inLen, err := e.input.done()
		if err != nil {
			return err
		}
		_, err = e.library.text(sentenceBytes, func(text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
			return C.shim_pod_put(abi, e.engine, &record, in, inLen, text, size, length)
		})
		return err
	})
}

// Plan places members jointly and changes nothing. members stand by ascending rank; room is indexed by slot and may be
// nil. The sentence says why here, or what stands in the way; places are parallel to members when it was placed.
func (e *Engine) Plan(request Request, members []Member, annotations map[string]string, room []Room) (plan Plan, places []Place, sentence string, err error) {
	if len(members) == 0 || len(members) > MembersMax {
		return plan, nil, "", &Error{Code: CodeLimit, Text: fmt.Sprintf("a gang has 1 to %d members, got %d", MembersMax, len(members))}
	}
	if err := e.checkRoom(room); err != nil {
		return plan, nil, "", err
	}
	places = make([]Place, len(members))
	err = e.locked(func(abi *C.struct_frond_abi) error {
		record, pairs, in, inLen, err := e.request(request, len(members), annotations)
		if err != nil {
			return err
		}
		var out C.struct_frond_plan
		sentence, err = e.library.text(sentenceBytes, func(text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
			return C.shim_plan(abi, e.engine, &record, cMembers(members), first(pairs), in, inLen, cRoom(room), &out,
				cPlaces(places), text, size, length)
		})
		plan = goPlan(&out)
		return err
	})
	if err != nil {
		return Plan{}, nil, "", err
	}
	return plan, places, sentence, nil
}

// Order gives every node its position for one pod, by slot: 0 is best, NoPosition where it does not fit.
func (e *Engine) Order(request Request, member Member, annotations map[string]string, room []Room) (plan Plan, position []uint16, sentence string, err error) {
	if err := e.checkRoom(room); err != nil {
		return plan, nil, "", err
	}
	position = make([]uint16, e.limits.Nodes)
	err = e.locked(func(abi *C.struct_frond_abi) error {
		record, pairs, in, inLen, err := e.request(request, 1, annotations)
		if err != nil {
			return err
		}
		var out C.struct_frond_plan
		sentence, err = e.library.text(sentenceBytes, func(text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
			return C.shim_order(abi, e.engine, &record, cMembers([]Member{member}), first(pairs), in, inLen, cRoom(room),
				&out, (*C.uint16_t)(unsafe.Pointer(&position[0])), text, size, length)
		})
		plan = goPlan(&out)
		return err
	})
	if err != nil {
		return Plan{}, nil, "", err
	}
	return plan, position, sentence, nil
}

// Reserve books a plan, all of it or nothing. An Error with CodeStale: plan again.
func (e *Engine) Reserve(request Request, members []Member, places []Place) error {
	if len(members) == 0 || len(members) != len(places) {
		return &Error{Code: CodeBad, Text: fmt.Sprintf("%d members do not match %d places", len(members), len(places))}
	}
	return e.locked(func(abi *C.struct_frond_abi) error {
		e.input.reset()
		record := requestRecord(request, len(members), 0)
		return e.library.fail(C.shim_reserve(abi, e.engine, &record, cMembers(members), cPlaces(places)), "")
	})
}

// Permit says that a reserved member has reached Permit, and whether its whole gang has.
func (e *Engine) Permit(pod Key) (Verdict, error) {
	var verdict C.uint32_t
	err := e.onPod(pod, func(abi *C.struct_frond_abi, pod *C.struct_frond_key) C.int32_t {
		return C.shim_permit(abi, e.engine, pod, &verdict)
	})
	return Verdict(verdict), err
}

// Confirm says that a reserved member is bound.
func (e *Engine) Confirm(pod Key) error {
	return e.onPod(pod, func(abi *C.struct_frond_abi, pod *C.struct_frond_key) C.int32_t {
		return C.shim_confirm(abi, e.engine, pod)
	})
}

// Release gives back what a pod holds. CodeUnknown when it holds nothing.
func (e *Engine) Release(pod Key) error {
	return e.onPod(pod, func(abi *C.struct_frond_abi, pod *C.struct_frond_key) C.int32_t {
		return C.shim_release(abi, e.engine, pod)
	})
}

// ReleaseGang gives back what members of a gang hold that are not bound, and says how many did.
func (e *Engine) ReleaseGang(gang Key) (int, error) {
	var pods C.uint32_t
	err := e.onPod(gang, func(abi *C.struct_frond_abi, gang *C.struct_frond_key) C.int32_t {
		return C.shim_release_gang(abi, e.engine, gang, &pods)
	})
	return int(pods), err
}

// Binding returns the annotations that the pod's Binding carries.
func (e *Engine) Binding(pod Key) (map[string]string, error) {
	record := key(pod)
	text, err := e.read(4096, func(abi *C.struct_frond_abi, text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
		return C.shim_binding(abi, e.engine, &record, text, size, length)
	})
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !found {
			return nil, &Error{Code: CodeBroken, Text: fmt.Sprintf("the engine wrote the annotation line %q", line)}
		}
		annotations[name] = value
	}
	return annotations, nil
}

// Stats are the engine's counters.
func (e *Engine) Stats() (Stats, error) {
	var out C.struct_frond_stats
	err := e.locked(func(abi *C.struct_frond_abi) error {
		return e.library.fail(C.shim_stats(abi, e.engine, &out), "")
	})
	return *(*Stats)(unsafe.Pointer(&out)), err
}

// Problems are what is wrong with the fabric, a sentence each.
func (e *Engine) Problems() []string {
	text, err := e.read(4096, func(abi *C.struct_frond_abi, text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
		return C.shim_problems(abi, e.engine, text, size, length)
	})
	if err != nil {
		return []string{err.Error()}
	}
	return slices.Collect(func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && !yield(line) {
				return
			}
		}
	})
}

// Map draws the fabric as text.
func (e *Engine) Map(color bool) (string, error) {
	return e.read(64<<10, func(abi *C.struct_frond_abi, text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
		return C.shim_map(abi, e.engine, flag(color), text, size, length)
	})
}

// Dump is the canonical text of the whole state.
func (e *Engine) Dump() (string, error) {
	return e.read(64<<10, func(abi *C.struct_frond_abi, text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
		return C.shim_dump(abi, e.engine, text, size, length)
	})
}

// Check runs the invariant checker; the error names the invariant that does not hold.
func (e *Engine) Check() error {
	_, err := e.read(sentenceBytes, func(abi *C.struct_frond_abi, text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
		return C.shim_check(abi, e.engine, text, size, length)
	})
	return err
}

// ---- how calls are made --------------------------------------------------------------------------------------------

// locked runs one call under the engine's lock.
func (e *Engine) locked(call func(abi *C.struct_frond_abi) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.engine == nil {
		return &Error{Code: CodeUnknown, Text: "the engine is closed"}
	}
	return call(e.library.abi)
}

func (e *Engine) onPod(pod Key, call func(*C.struct_frond_abi, *C.struct_frond_key) C.int32_t) error {
	record := key(pod)
	return e.locked(func(abi *C.struct_frond_abi) error {
		return e.library.fail(call(abi, &record), "")
	})
}

func (e *Engine) read(size int, call func(*C.struct_frond_abi, *C.char, C.uint32_t, *C.uint32_t) C.int32_t) (text string, err error) {
	err = e.locked(func(abi *C.struct_frond_abi) error {
		text, err = e.library.text(size, func(buffer *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
			return call(abi, buffer, size, length)
		})
		return err
	})
	return text, err
}

// text makes a call that writes text, again with a larger buffer when the first was too small.
func (l *Library) text(size int, call func(text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t) (string, error) {
	for {
		buffer := make([]byte, size)
		var length C.uint32_t
		code := call((*C.char)(unsafe.Pointer(&buffer[0])), C.uint32_t(size), &length)
		switch {
		case code == C.FROND_SMALL && int(length) > size:
			size = int(length)
		case code != C.FROND_OK:
			return "", l.fail(code, string(buffer[:min(int(length), size)]))
		case int(length) > size:
			return "", &Error{Code: CodeBroken, Text: fmt.Sprintf("the engine wrote %d bytes into %d", length, size)}
		default:
			return string(buffer[:length]), nil
		}
	}
}

// fail is nil for success, else an *Error with the engine's sentence, or the text of the code when it had none.
func (l *Library) fail(code C.int32_t, sentence string) error {
	if code == C.FROND_OK {
		return nil
	}
	if sentence = strings.TrimRight(sentence, "\x00"); sentence == "" {
		sentence = C.GoString(C.shim_code_text(l.abi, code))
	}
	return &Error{Code: Code(code), Text: sentence}
}

func (e *Engine) checkRoom(room []Room) error {
	if room != nil && len(room) != int(e.limits.Nodes) {
		return &Error{Code: CodeBad, Text: fmt.Sprintf("room has %d entries where the engine has %d slots", len(room), e.limits.Nodes)}
	}
	return nil
}

// request builds what plan and order read; the lock is held.
func (e *Engine) request(request Request, members int, annotations map[string]string) (record C.struct_frond_request, pairs []C.struct_frond_pair, in *C.char, inLen C.uint32_t, err error) {
	e.input.reset()
	record = requestRecord(request, members, len(annotations))
	record.name = e.input.add(request.Name)
	pairs = e.input.pairs(annotations)
	in, inLen, err = e.input.done()
	return record, pairs, in, inLen, err
}

func requestRecord(request Request, members, annotations int) C.struct_frond_request {
	return C.struct_frond_request{
		gang: key(request.Gang), members: C.uint32_t(members), min_member: C.uint32_t(request.MinMember),
		gpus_desired: C.uint64_t(request.GPUsDesired), age_ms: C.int64_t(request.Age.Milliseconds()),
		only_slot: C.uint32_t(request.OnlySlot), annotations: C.uint32_t(annotations),
	}
}

func goPlan(out *C.struct_frond_plan) Plan { return *(*Plan)(unsafe.Pointer(out)) }

// texts gathers the strings of one call in one buffer, as spans.
type texts struct {
	buffer []byte
	list   []C.struct_frond_pair
	keys   []string
	over   bool
}

func (t *texts) reset() {
	// One huge label set must not stay allocated for ever.
	if cap(t.buffer) > 1<<20 {
		t.buffer = nil
	}
	t.buffer, t.list, t.keys, t.over = t.buffer[:0], t.list[:0], t.keys[:0], false
}

func (t *texts) add(text string) C.struct_frond_span {
	if len(t.buffer)+len(text) > math.MaxInt32 {
		t.over = true
		return C.struct_frond_span{}
	}
	span := C.struct_frond_span{off: C.uint32_t(len(t.buffer)), len: C.uint32_t(len(text))}
	t.buffer = append(t.buffer, text...)
	return span
}

// pairs are sorted by key, so that the engine sees the same bytes for the same map.
func (t *texts) pairs(values map[string]string) []C.struct_frond_pair {
	for name := range values {
		t.keys = append(t.keys, name)
	}
	slices.Sort(t.keys)
	for _, name := range t.keys {
		t.list = append(t.list, C.struct_frond_pair{key: t.add(name), value: t.add(values[name])})
	}
	return t.list
}

func (t *texts) done() (*C.char, C.uint32_t, error) {
	if t.over {
		return nil, 0, &Error{Code: CodeLimit, Text: "more than 2 GiB of text in one call"}
	}
	return chars(t.buffer), C.uint32_t(len(t.buffer)), nil
}

func checkLength(what string, text []byte) error {
	if len(text) > math.MaxInt32 {
		return &Error{Code: CodeLimit, Text: what + ": more than 2 GiB of text"}
	}
	return nil
}

func key(k Key) C.struct_frond_key {
	return C.struct_frond_key{hi: C.uint64_t(k.Hi), lo: C.uint64_t(k.Lo)}
}

func flag(on bool) C.uint32_t {
	if on {
		return 1
	}
	return 0
}

// chars points at bytes for the length of one call. An empty slice still gives an address, so that C never sees NULL.
func chars(text []byte) *C.char {
	if len(text) == 0 {
		return (*C.char)(unsafe.Pointer(new(byte)))
	}
	return (*C.char)(unsafe.Pointer(unsafe.SliceData(text)))
}

func first(pairs []C.struct_frond_pair) *C.struct_frond_pair { return unsafe.SliceData(pairs) }

func cMembers(members []Member) *C.struct_frond_member {
	return (*C.struct_frond_member)(unsafe.Pointer(unsafe.SliceData(members)))
}

func cPlaces(places []Place) *C.struct_frond_place {
	return (*C.struct_frond_place)(unsafe.Pointer(unsafe.SliceData(places)))
}

func cRoom(room []Room) *C.struct_frond_room {
	return (*C.struct_frond_room)(unsafe.Pointer(unsafe.SliceData(room)))
}

func cut(text string, span C.struct_frond_span) string {
	end := uint64(span.off) + uint64(span.len)
	if end > uint64(len(text)) {
		return ""
	}
	return text[span.off:end]
}

func cString(text []byte) string {
	before, _, _ := bytes.Cut(text, []byte{0})
	return string(before)
}

// layout lists C's idea of the records that cross without a copy, for the layout test: cgo cannot be used in tests.
func layout() map[string]uintptr {
	var (
		member C.struct_frond_member
		place  C.struct_frond_place
		room   C.struct_frond_room
		plan   C.struct_frond_plan
		stats  C.struct_frond_stats
		key    C.struct_frond_key
	)
	return map[string]uintptr{
		"Key": unsafe.Sizeof(key), "Key.Hi": unsafe.Offsetof(key.hi), "Key.Lo": unsafe.Offsetof(key.lo),
		"Member": unsafe.Sizeof(member), "Member.Pod": unsafe.Offsetof(member.pod),
		"Member.Rank": unsafe.Offsetof(member.rank), "Member.GPUs": unsafe.Offsetof(member.gpus),
		"Member.PinnedSlot": unsafe.Offsetof(member.pinned_slot), "Member.reserved": unsafe.Offsetof(member.reserved),
		"Place": unsafe.Sizeof(place), "Place.Slot": unsafe.Offsetof(place.slot),
		"Place.GPUMask": unsafe.Offsetof(place.gpu_mask),
		"Room":          unsafe.Sizeof(room), "Room.Today": unsafe.Offsetof(room.today), "Room.Ever": unsafe.Offsetof(room.ever),
		"Plan": unsafe.Sizeof(plan), "Plan.Generation": unsafe.Offsetof(plan.generation),
		"Plan.Outcome": unsafe.Offsetof(plan.outcome), "Plan.Rule": unsafe.Offsetof(plan.rule),
		"Plan.Flags": unsafe.Offsetof(plan.flags), "Plan.Spines": unsafe.Offsetof(plan.spines),
		"Plan.Leaves": unsafe.Offsetof(plan.leaves), "Plan.Runs": unsafe.Offsetof(plan.runs),
		"Plan.Nodes": unsafe.Offsetof(plan.nodes), "Plan.WaitMillis": unsafe.Offsetof(plan.wait_ms),
		"Stats": unsafe.Sizeof(stats), "Stats.Generation": unsafe.Offsetof(stats.generation),
		"Stats.Nodes": unsafe.Offsetof(stats.nodes), "Stats.NodesWithoutLeaf": unsafe.Offsetof(stats.nodes_without_leaf),
		"Stats.Leaves": unsafe.Offsetof(stats.leaves), "Stats.Spines": unsafe.Offsetof(stats.spines),
		"Stats.GPUs": unsafe.Offsetof(stats.gpus), "Stats.GPUsUnhealthy": unsafe.Offsetof(stats.gpus_unhealthy),
		"Stats.GPUsReserved": unsafe.Offsetof(stats.gpus_reserved), "Stats.GPUsBound": unsafe.Offsetof(stats.gpus_bound),
		"Stats.GPUsByCount": unsafe.Offsetof(stats.gpus_by_count), "Stats.GPUsFree": unsafe.Offsetof(stats.gpus_free),
		"Stats.Pods": unsafe.Offsetof(stats.pods), "Stats.Gangs": unsafe.Offsetof(stats.gangs),
		"Stats.Plans": unsafe.Offsetof(stats.plans), "Stats.Placed": unsafe.Offsetof(stats.placed),
		"Stats.Waiting": unsafe.Offsetof(stats.waiting), "Stats.Refused": unsafe.Offsetof(stats.refused),
		"Stats.Relaxed": unsafe.Offsetof(stats.relaxed), "Stats.Inexact": unsafe.Offsetof(stats.inexact),
		"Stats.Conflicts": unsafe.Offsetof(stats.conflicts),
	}
}

// A record whose size differs between the two languages does not compile.
var (
	_ [unsafe.Sizeof(Member{})]byte = [C.sizeof_struct_frond_member]byte{}
	_ [unsafe.Sizeof(Place{})]byte  = [C.sizeof_struct_frond_place]byte{}
	_ [unsafe.Sizeof(Room{})]byte   = [C.sizeof_struct_frond_room]byte{}
	_ [unsafe.Sizeof(Plan{})]byte   = [C.sizeof_struct_frond_plan]byte{}
	_ [unsafe.Sizeof(Stats{})]byte  = [C.sizeof_struct_frond_stats]byte{}
)

// Limits of the ABI, as its header names them.
const (
	GPUsMax    = C.FROND_GPUS_MAX
	NodesMax   = C.FROND_NODES_MAX
	MembersMax = C.FROND_MEMBERS_MAX
)
