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
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"syscall"
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
		PermitWait:       time.Duration(out.permit_wait_s) * time.Second,
		FabricFile:       cut(text, out.fabric_file),
		UnavailableAfter: time.Duration(out.unavailable_after_ms) * time.Millisecond,
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

// Option changes how an engine is made.
type Option func(*options)

type options struct {
	record string
	warn   func(error)
}

// Record writes every call of the engine to the file, with what went in and what came out, for `frond-sim replay`
// (docs/recording.md). A file that is there already is kept as PATH.old. A recording that cannot be made, or breaks off,
// costs one warning and nothing else; warn is called under the engine's lock. An empty path records nothing.
func Record(path string, warn func(error)) Option {
	return func(o *options) { o.record, o.warn = path, warn }
}

// New makes an engine. args and fabric may be empty. Close gives its memory back.
func (l *Library) New(limits Limits, args, fabric []byte, how ...Option) (*Engine, error) {
	if err := errors.Join(checkLength("args", args), checkLength("fabric", fabric)); err != nil {
		return nil, err
	}
	in := C.struct_frond_limits{nodes: C.uint32_t(limits.Nodes), pods: C.uint32_t(limits.Pods),
		text_bytes: C.uint32_t(limits.TextBytes), table_bytes: C.uint32_t(limits.TableBytes), holds: C.uint32_t(limits.Holds)}
	size := C.shim_size_of(l.abi, &in)
	if size == 0 {
		return nil, &Error{Code: CodeLimit, Text: fmt.Sprintf("no engine can have %d nodes and %d pods", limits.Nodes, limits.Pods)}
	}
	mem, shim := C.shim_alloc(size), (*C.struct_shim)(C.shim_alloc(C.sizeof_struct_shim))
	if mem == nil || shim == nil {
		C.shim_free(mem)
		C.shim_free(unsafe.Pointer(shim))
		return nil, &Error{Code: CodeLimit, Text: fmt.Sprintf("no memory for an engine of %d bytes", uint64(size))}
	}
	shim.abi = l.abi
	e := &Engine{library: l, limits: limits, mem: mem, bytes: uint64(size), shim: shim}
	for _, set := range how {
		set(&e.options)
	}
	e.record()
	_, err := l.text(sentenceBytes, func(text *C.char, textSize C.uint32_t, length *C.uint32_t) C.int32_t {
		return C.shim_create(shim, mem, size, &in, chars(args), C.uint32_t(len(args)), chars(fabric),
			C.uint32_t(len(fabric)), text, textSize, length)
	})
	e.recorded()
	if err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// Engine is one scheduling engine. Its methods may be called from any goroutine; each takes the engine's one lock.
type Engine struct {
	library *Library
	limits  Limits
	bytes   uint64
	options options

	mu    sync.Mutex
	mem   unsafe.Pointer
	shim  *C.struct_shim // in C's memory; nil once closed
	input texts          // scratch for strings on their way in
}

// Limits are those the engine was made with.
func (e *Engine) Limits() Limits { return e.limits }

// Bytes is the memory that the engine lives in.
func (e *Engine) Bytes() uint64 { return e.bytes }

// Close gives the engine's memory back. Later calls answer that it is closed.
func (e *Engine) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.shim == nil {
		return
	}
	C.shim_record_end(e.shim.recorder)
	C.shim_free(unsafe.Pointer(e.shim))
	C.shim_free(e.mem)
	e.mem, e.shim = nil, nil
}

// record begins the recording that was asked for, if any.
func (e *Engine) record() {
	if e.options.record == "" {
		return
	}
	if strings.ContainsRune(e.options.record, 0) {
		e.options.warn(errors.New("recording: the path contains a NUL byte"))
		return
	}
	path := C.CString(e.options.record)
	defer C.free(unsafe.Pointer(path))
	text := make([]byte, C.SHIM_TEXT_MAX)
	if e.shim.recorder = C.shim_record(path, (*C.char)(unsafe.Pointer(&text[0])), C.size_t(len(text))); e.shim.recorder == nil {
		e.options.warn(errors.New(cString(text)))
	}
}

// recorded warns once when the recording has broken off; the lock is held, or the engine is not yet shared.
func (e *Engine) recorded() {
	if e.shim.recorder == nil {
		return
	}
	if lost := C.shim_record_lost(e.shim.recorder); lost != 0 {
		e.options.warn(fmt.Errorf("recording %s has ended: %w", e.options.record, syscall.Errno(lost)))
	}
}

// ConfigPut tunes the living engine: scoringPreset, scoringWeights and topologyConstraints, as in TopologyGPUArgs. What the
// JSON does not name is again what New was given. The error names the path, which begins with "spec". Not inside a what-if.
func (e *Engine) ConfigPut(json []byte) error {
	if err := checkLength("spec", json); err != nil {
		return err
	}
	_, err := e.read(sentenceBytes, func(shim *C.struct_shim, text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
		return C.shim_config_put(shim, chars(json), C.uint32_t(len(json)), text, size, length)
	})
	return err
}

// NodePut enters a node, or changes the one with the same slot.
func (e *Engine) NodePut(node Node, labels map[string]string) error {
	return e.locked(func(shim *C.struct_shim) error {
		e.input.reset()
		record := C.struct_frond_node{
			slot: C.uint32_t(node.Slot), gpus: C.uint32_t(node.GPUs), unhealthy_mask: C.uint32_t(node.UnhealthyMask),
			flags: C.uint32_t(node.Flags), uplink_gbps: C.uint32_t(node.UplinkGbps), topology: C.uint32_t(node.Topology),
			name: e.input.add(node.Name), model: e.input.add(node.Model), unavailable_mask: C.uint32_t(node.UnavailableMask),
		}
		pairs := e.input.pairs(labels)
		in, inLen, err := e.input.done()
		if err != nil {
			return err
		}
		_, err = e.library.text(sentenceBytes, func(text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
			return C.shim_node_put(shim, &record, first(pairs), C.uint32_t(len(pairs)), in, inLen, text, size, length)
		})
		return err
	})
}

// TopologyPut enters a link table as a node report gives it. Equal tables share one id, for Node.Topology.
func (e *Engine) TopologyPut(topology Topology) (uint32, error) {
	var id C.uint32_t
	_, err := e.read(sentenceBytes, func(shim *C.struct_shim, text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
		return C.shim_topology_put(shim, (*C.struct_frond_topology)(unsafe.Pointer(&topology)), &id, text, size, length)
	})
	return uint32(id), err
}

// NodeRemove forgets a node.
func (e *Engine) NodeRemove(slot uint32) error {
	return e.locked(func(shim *C.struct_shim) error {
		return e.library.fail(C.shim_node_remove(shim, C.uint32_t(slot)), "")
	})
}

// PodPut enters a bound pod that holds GPUs; one that was reserved becomes bound.
func (e *Engine) PodPut(pod Pod) error {
	return e.locked(func(shim *C.struct_shim) error { return e.podPut(shim, pod) })
}

// Swap gives back what the keys hold and enters the pods, in order, while nobody can plan in between. Keys that hold
// nothing are no error. Errors are parallel to in.
func (e *Engine) Swap(out []Key, in []Pod) []error {
	errs := make([]error, len(in))
	closed := e.locked(func(shim *C.struct_shim) error {
		for _, pod := range out {
			record := key(pod)
			C.shim_release(shim, &record)
		}
		for i, pod := range in {
			errs[i] = e.podPut(shim, pod)
		}
		return nil
	})
	for i := range errs {
		errs[i] = cmp.Or(errs[i], closed)
	}
	return errs
}

func (e *Engine) podPut(shim *C.struct_shim, pod Pod) error {
	e.input.reset()
	record := C.struct_frond_pod{pod: key(pod.Key), slot: C.uint32_t(pod.Slot), gpus: C.uint32_t(pod.GPUs),
		gpu_mask: C.uint32_t(pod.GPUMask), rank: C.uint32_t(pod.Rank), name: e.input.add(pod.Name), gang: key(pod.Gang),
		flags: C.uint32_t(pod.Flags)}
	in, inLen, err := e.input.done()
	if err != nil {
		return err
	}
	_, err = e.library.text(sentenceBytes, func(text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
		return C.shim_pod_put(shim, &record, in, inLen, text, size, length)
	})
	return err
}

// Pod is what a pod holds. CodeUnknown when it holds nothing.
func (e *Engine) Pod(pod Key) (Held, error) {
	var out C.struct_frond_held
	err := e.onPod(pod, func(shim *C.struct_shim, pod *C.struct_frond_key) C.int32_t {
		return C.shim_pod_get(shim, pod, &out)
	})
	return *(*Held)(unsafe.Pointer(&out)), err
}

// Plan places members jointly and changes nothing. members stand by ascending rank; room lists
// exceptions and may be nil. The sentence says why here, or what stands in the way; places are parallel to members when it was placed.
func (e *Engine) Plan(request Request, members []Member, annotations map[string]string, room []Room) (plan Plan, places []Place, sentence string, err error) {
	if err := checkMembers(members); err != nil {
		return plan, nil, "", err
	}
	places = make([]Place, len(members))
	err = e.locked(func(shim *C.struct_shim) error {
		record, pairs, in, inLen, err := e.request(request, len(members), annotations)
		if err != nil {
			return err
		}
		var out C.struct_frond_plan
		sentence, err = e.library.text(sentenceBytes, func(text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
			return C.shim_plan(shim, &record, cMembers(members), first(pairs), in, inLen, cRoom(room), C.uint32_t(len(room)), &out,
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

// Order gives every node its position for one pod, by slot: 0 is best, NoPosition where it does not fit. A nil thrift is
// none.
func (e *Engine) Order(request Request, member Member, annotations map[string]string, room []Room, thrift *Thrift) (plan Plan, position []uint16, sentence string, err error) {
	if err := e.checkThrift(thrift); err != nil {
		return plan, nil, "", err
	}
	var asks *C.struct_frond_thrift
	var kinds []Kind
	var left []Left
	if thrift != nil {
		asks = &C.struct_frond_thrift{cpu_milli: C.uint32_t(thrift.Asks.CPUMilli), memory_mib: C.uint32_t(thrift.Asks.MemoryMiB),
			kinds: C.uint32_t(len(thrift.Kinds))}
		kinds, left = thrift.Kinds, thrift.Left
	}
	position = make([]uint16, e.limits.Nodes)
	err = e.locked(func(shim *C.struct_shim) error {
		record, pairs, in, inLen, err := e.request(request, 1, annotations)
		if err != nil {
			return err
		}
		var out C.struct_frond_plan
		sentence, err = e.library.text(sentenceBytes, func(text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
			return C.shim_order(shim, &record, cMembers([]Member{member}), first(pairs), in, inLen, cRoom(room), C.uint32_t(len(room)),
				asks, cKinds(kinds), cLeft(left), &out, (*C.uint16_t)(unsafe.Pointer(&position[0])), text, size, length)
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
	if err := checkNamed(request.Named); err != nil {
		return err
	}
	return e.locked(func(shim *C.struct_shim) error {
		e.input.reset()
		record := requestRecord(request, len(members), 0)
		return e.library.fail(C.shim_reserve(shim, &record, cMembers(members), cPlaces(places)), "")
	})
}

// Permit says that a reserved member has reached Permit, and whether its whole gang has.
func (e *Engine) Permit(pod Key) (Verdict, error) {
	var verdict C.uint32_t
	err := e.onPod(pod, func(shim *C.struct_shim, pod *C.struct_frond_key) C.int32_t {
		return C.shim_permit(shim, pod, &verdict)
	})
	return Verdict(verdict), err
}

// Confirm says that a reserved member is bound.
func (e *Engine) Confirm(pod Key) error {
	return e.onPod(pod, func(shim *C.struct_shim, pod *C.struct_frond_key) C.int32_t {
		return C.shim_confirm(shim, pod)
	})
}

// Release gives back what a pod holds. CodeUnknown when it holds nothing.
func (e *Engine) Release(pod Key) error {
	return e.onPod(pod, func(shim *C.struct_shim, pod *C.struct_frond_key) C.int32_t {
		return C.shim_release(shim, pod)
	})
}

// ReleaseGang gives back what members of a gang hold that are not bound, and says how many did.
func (e *Engine) ReleaseGang(gang Key) (int, error) {
	var pods C.uint32_t
	err := e.onPod(gang, func(shim *C.struct_shim, gang *C.struct_frond_key) C.int32_t {
		return C.shim_release_gang(shim, gang, &pods)
	})
	return int(pods), err
}

// GangPut tells what a gang that holds something asks for: annotations, claim, MinMember, Priority. Recover, Victims and
// Defrag go by it. CodeUnknown when nobody of it holds anything.
func (e *Engine) GangPut(request Request, annotations map[string]string) error {
	return e.locked(func(shim *C.struct_shim) error {
		record, pairs, in, inLen, err := e.request(request, 0, annotations)
		if err != nil {
			return err
		}
		_, err = e.library.text(sentenceBytes, func(text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
			return C.shim_gang_put(shim, &record, first(pairs), in, inLen, text, size, length)
		})
		return err
	})
}

// Gang is how far a gang has come. CodeUnknown when nobody of it holds anything.
func (e *Engine) Gang(gang Key) (Gang, error) {
	var out C.struct_frond_gang
	err := e.onPod(gang, func(shim *C.struct_shim, gang *C.struct_frond_key) C.int32_t {
		return C.shim_gang_get(shim, gang, &out)
	})
	return goGang(&out), err
}

// HoldPut adds holds, all of them or none; the error names the first that cannot be added. Not inside a what-if.
func (e *Engine) HoldPut(holds []GangHold) error {
	_, err := e.read(sentenceBytes, func(shim *C.struct_shim, text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
		return C.shim_hold_put(shim, cHolds(holds), C.uint32_t(len(holds)), text, size, length)
	})
	return err
}

// HoldTake books the pod of a gang's rank on the GPUs of its hold, which ends. CodeUnknown: there is no such hold.
// CodeStale: its GPUs are in use, unhealthy or gone, its node takes nothing new, or the pod holds something already.
func (e *Engine) HoldTake(gang Key, rank uint32, pod Key) error {
	taker := key(pod)
	return e.onPod(gang, func(shim *C.struct_shim, gang *C.struct_frond_key) C.int32_t {
		return C.shim_hold_take(shim, gang, C.uint32_t(rank), &taker)
	})
}

// HoldDrop ends the hold of a gang's rank, or all of them (None), and says how many. Not inside a what-if.
func (e *Engine) HoldDrop(gang Key, rank uint32) (int, error) {
	var count C.uint32_t
	err := e.onPod(gang, func(shim *C.struct_shim, gang *C.struct_frond_key) C.int32_t {
		return C.shim_hold_drop(shim, gang, C.uint32_t(rank), &count)
	})
	return int(count), err
}

// HoldList returns the holds of a gang, or of all (the zero Key), by gang and rank.
func (e *Engine) HoldList(gang Key) (holds []GangHold, err error) {
	record := key(gang)
	of := &record
	if gang == (Key{}) {
		of = nil
	}
	var count C.uint32_t
	err = e.locked(func(shim *C.struct_shim) error {
		holds, _, err = listed(e.library, &count, func(list []GangHold, _ *C.char, _ C.uint32_t, _ *C.uint32_t) C.int32_t {
			return C.shim_hold_list(shim, of, cHolds(list), C.uint32_t(len(list)), &count)
		})
		return err
	})
	return holds, err
}

// Tick says that time has come to now: gangs whose deadline has passed before all of them were bound give their unbound
// places back, and holds whose deadline has passed end. Returns those gangs. Not inside a what-if.
func (e *Engine) Tick(now time.Time) ([]Key, error) {
	var all []Key
	expired := make([]Key, listEntries)
	for {
		var count C.uint32_t
		err := e.locked(func(shim *C.struct_shim) error {
			return e.library.fail(C.shim_tick(shim, C.int64_t(now.UnixMilli()), cKeys(expired), C.uint32_t(len(expired)), &count), "")
		})
		if err != nil {
			return all, err
		}
		all = append(all, expired[:min(int(count), len(expired))]...)
		if int(count) < len(expired) {
			return all, nil
		}
	}
}

// WhatIf begins a trial: what Reserve, HoldTake, Permit, Confirm, Release and ReleaseGang do from here on is taken back by Undo, to
// any depth. The lock is not held in between, so the caller keeps others away from the engine until then.
func (e *Engine) WhatIf() error {
	return e.locked(func(shim *C.struct_shim) error { return e.library.fail(C.shim_what_if(shim), "") })
}

// Undo ends the innermost trial.
func (e *Engine) Undo() error {
	return e.locked(func(shim *C.struct_shim) error { return e.library.fail(C.shim_undo(shim), "") })
}

// Recover says which members of a gang have to move after a failure, and where to; nothing is booked.
func (e *Engine) Recover(gang Key, room []Room) (moves Moves, list []Move, sentence string, err error) {
	record := key(gang)
	var out C.struct_frond_moves
	err = e.locked(func(shim *C.struct_shim) error {
		list, sentence, err = listed(e.library, &out.count, func(list []Move, text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
			return C.shim_recover(shim, &record, cRoom(room), C.uint32_t(len(room)), &out, cMoves(list), C.uint32_t(len(list)), text, size, length)
		})
		return err
	})
	if err != nil {
		return Moves{}, nil, "", err
	}
	return goMoves(&out), list, sentence, nil
}

// Defrag says which members of other gangs have to move so that this one fits; nothing is booked.
func (e *Engine) Defrag(request Request, members []Member, annotations map[string]string, room []Room) (moves Moves, list []Move, sentence string, err error) {
	if err := checkMembers(members); err != nil {
		return moves, nil, "", err
	}
	var out C.struct_frond_moves
	err = e.locked(func(shim *C.struct_shim) error {
		record, pairs, in, inLen, err := e.request(request, len(members), annotations)
		if err != nil {
			return err
		}
		list, sentence, err = listed(e.library, &out.count, func(list []Move, text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
			return C.shim_defrag(shim, &record, cMembers(members), first(pairs), in, inLen, cRoom(room), C.uint32_t(len(room)), &out,
				cMoves(list), C.uint32_t(len(list)), text, size, length)
		})
		return err
	})
	if err != nil {
		return Moves{}, nil, "", err
	}
	return goMoves(&out), list, sentence, nil
}

// Victims says which pods of lower priority have to go so that the gang fits, and where it goes then; nothing is booked.
// places are parallel to members when it was placed.
func (e *Engine) Victims(request Request, members []Member, annotations map[string]string, room []Room) (victims Victims, pods []Key, places []Place, sentence string, err error) {
	if err := checkMembers(members); err != nil {
		return victims, nil, nil, "", err
	}
	places = make([]Place, len(members))
	var out C.struct_frond_victims
	err = e.locked(func(shim *C.struct_shim) error {
		record, pairs, in, inLen, err := e.request(request, len(members), annotations)
		if err != nil {
			return err
		}
		pods, sentence, err = listed(e.library, &out.count, func(pods []Key, text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
			return C.shim_victims(shim, &record, cMembers(members), first(pairs), in, inLen, cRoom(room), C.uint32_t(len(room)), &out,
				cPlaces(places), cKeys(pods), C.uint32_t(len(pods)), text, size, length)
		})
		return err
	})
	if err != nil {
		return Victims{}, nil, nil, "", err
	}
	return goVictims(&out), pods, places, sentence, nil
}

// Window says where and when a gang that waits will find room, if the pods of ends leave as expected; nothing is kept. ends
// ascend; held is the window that the gang has, parallel to members, or nil. places are parallel to members when placed.
func (e *Engine) Window(request Request, members []Member, annotations map[string]string, room []Room, ends []End, held []Place) (window Window, places []Place, sentence string, err error) {
	if err := checkMembers(members); err != nil {
		return window, nil, "", err
	}
	if held != nil && len(held) != len(members) {
		return window, nil, "", &Error{Code: CodeBad, Text: fmt.Sprintf("the window that the gang has must have a place for each of %d members, got %d", len(members), len(held))}
	}
	places = make([]Place, len(members))
	var out C.struct_frond_window
	err = e.locked(func(shim *C.struct_shim) error {
		record, pairs, in, inLen, err := e.request(request, len(members), annotations)
		if err != nil {
			return err
		}
		sentence, err = e.library.text(sentenceBytes, func(text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
			return C.shim_window(shim, &record, cMembers(members), first(pairs), in, inLen, cRoom(room), C.uint32_t(len(room)),
				(*C.struct_frond_end)(unsafe.Pointer(unsafe.SliceData(ends))), C.uint32_t(len(ends)), cPlaces(held), &out, cPlaces(places), text, size, length)
		})
		return err
	})
	if err != nil {
		return Window{}, nil, "", err
	}
	return *(*Window)(unsafe.Pointer(&out)), places, sentence, nil
}

// Backfill says whether a pod may use nodes that a window keeps, and why.
func (l *Library) Backfill(question Backfill) (allowed bool, sentence string, err error) {
	record := C.struct_frond_backfill{
		start_ms: C.int64_t(question.StartMillis), ends_in_ms: C.int64_t(question.EndsInMillis),
		window_priority: C.int32_t(question.WindowPriority), pod_priority: C.int32_t(question.PodPriority),
		window_preempts: flag(question.WindowPreempts),
	}
	var answer C.uint32_t
	sentence, err = l.text(sentenceBytes, func(text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
		return C.shim_backfill(l.abi, &record, &answer, text, size, length)
	})
	return answer == 1, sentence, err
}

// Binding returns what the pod's Binding carries: its GPUs in ring order, for the caller to write their ids, and the other
// annotations. A place without GPUs: none are held by device.
func (e *Engine) Binding(pod Key) (place Place, annotations map[string]string, err error) {
	record := key(pod)
	var out C.struct_frond_place
	text, err := e.read(sentenceBytes, func(shim *C.struct_shim, text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
		return C.shim_binding(shim, &record, &out, text, size, length)
	})
	if err != nil {
		return Place{Slot: None}, nil, err
	}
	annotations = map[string]string{}
	for line := range strings.Lines(text) {
		name, value, found := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !found {
			return Place{Slot: None}, nil, &Error{Code: CodeBroken, Text: fmt.Sprintf("the engine wrote the annotation line %q", line)}
		}
		annotations[name] = value
	}
	return *(*Place)(unsafe.Pointer(&out)), annotations, nil
}

// Stats are the engine's counters.
func (e *Engine) Stats() (Stats, error) {
	var out C.struct_frond_stats
	err := e.locked(func(shim *C.struct_shim) error {
		return e.library.fail(C.shim_stats(shim, &out), "")
	})
	return *(*Stats)(unsafe.Pointer(&out)), err
}

// Problems are what is wrong with the fabric, a sentence each.
func (e *Engine) Problems() []string {
	text, err := e.read(4096, func(shim *C.struct_shim, text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
		return C.shim_problems(shim, text, size, length)
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
	return e.read(64<<10, func(shim *C.struct_shim, text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
		return C.shim_map(shim, flag(color), text, size, length)
	})
}

// Dump is the canonical text of the whole state.
func (e *Engine) Dump() (string, error) {
	return e.read(64<<10, func(shim *C.struct_shim, text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
		return C.shim_dump(shim, text, size, length)
	})
}

// Check runs the invariant checker; the error names the invariant that does not hold.
func (e *Engine) Check() error {
	_, err := e.read(sentenceBytes, func(shim *C.struct_shim, text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
		return C.shim_check(shim, text, size, length)
	})
	return err
}

// ---- how calls are made --------------------------------------------------------------------------------------------

// locked runs one call under the engine's lock.
func (e *Engine) locked(call func(*C.struct_shim) error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.shim == nil {
		return &Error{Code: CodeUnknown, Text: "the engine is closed"}
	}
	defer e.recorded()
	return call(e.shim)
}

func (e *Engine) onPod(pod Key, call func(*C.struct_shim, *C.struct_frond_key) C.int32_t) error {
	record := key(pod)
	return e.locked(func(shim *C.struct_shim) error {
		return e.library.fail(call(shim, &record), "")
	})
}

func (e *Engine) read(size int, call func(*C.struct_shim, *C.char, C.uint32_t, *C.uint32_t) C.int32_t) (text string, err error) {
	err = e.locked(func(shim *C.struct_shim) error {
		text, err = e.library.text(size, func(buffer *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t {
			return call(shim, buffer, size, length)
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

// listEntries is where every list that the engine fills starts.
const listEntries = 64

// listed makes a call that writes a list and text, again with more room while either was too small. count is what the
// call says of the list's length.
func listed[T any](l *Library, count *C.uint32_t, call func(list []T, text *C.char, size C.uint32_t, length *C.uint32_t) C.int32_t) ([]T, string, error) {
	entries, size := listEntries, int(sentenceBytes)
	for {
		list, buffer := make([]T, entries), make([]byte, size)
		var length C.uint32_t
		*count = 0
		code := call(list, (*C.char)(unsafe.Pointer(&buffer[0])), C.uint32_t(size), &length)
		longer, wider := int(*count) > entries, int(length) > size
		switch {
		case code == C.FROND_SMALL && (longer || wider):
			entries, size = max(entries, int(*count)), max(size, int(length))
		case code != C.FROND_OK:
			return nil, "", l.fail(code, string(buffer[:min(int(length), size)]))
		case longer || wider:
			return nil, "", &Error{Code: CodeBroken, Text: fmt.Sprintf("the engine wrote %d entries into %d, %d bytes into %d", *count, entries, length, size)}
		default:
			return list[:*count], string(buffer[:length]), nil
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

func checkMembers(members []Member) error {
	if len(members) == 0 || len(members) > MembersMax {
		return &Error{Code: CodeLimit, Text: fmt.Sprintf("a gang has 1 to %d members, got %d", MembersMax, len(members))}
	}
	return nil
}

func (e *Engine) checkThrift(thrift *Thrift) error {
	switch {
	case thrift == nil:
		return nil
	case len(thrift.Left) != int(e.limits.Nodes):
		return &Error{Code: CodeBad, Text: fmt.Sprintf("thrift.left has %d entries where the engine has %d slots", len(thrift.Left), e.limits.Nodes)}
	case len(thrift.Kinds) > KindsMax:
		return &Error{Code: CodeBad, Text: fmt.Sprintf("thrift.kinds has %d entries, at most %d are possible", len(thrift.Kinds), KindsMax)}
	}
	return nil
}

// request builds what plan and order read; the lock is held.
func (e *Engine) request(request Request, members int, annotations map[string]string) (record C.struct_frond_request, pairs []C.struct_frond_pair, in *C.char, inLen C.uint32_t, err error) {
	e.input.reset()
	if err := checkNamed(request.Named); err != nil {
		return record, nil, nil, 0, err
	}
	record = requestRecord(request, members, len(annotations))
	record.name = e.input.add(request.Name)
	record.claim = e.input.add(request.Claim)
	pairs = e.input.pairs(annotations)
	in, inLen, err = e.input.done()
	return record, pairs, in, inLen, err
}

func requestRecord(request Request, members, annotations int) C.struct_frond_request {
	record := C.struct_frond_request{
		gang: key(request.Gang), members: C.uint32_t(members), min_member: C.uint32_t(request.MinMember),
		gpus_desired: C.uint64_t(request.GPUsDesired), age_ms: C.int64_t(request.Age.Milliseconds()),
		only_slot: C.uint32_t(request.OnlySlot), annotations: C.uint32_t(annotations),
		deadline_ms: millis(request.Deadline), priority: C.int32_t(request.Priority),
		named_count: C.uint32_t(len(request.Named)),
	}
	for i, named := range request.Named[:min(len(request.Named), GPUsMax)] {
		record.named[i] = C.struct_frond_named{slot: C.uint32_t(named.Slot), gpu_mask: C.uint32_t(named.GPUMask)}
	}
	return record
}

// checkNamed: the record has no room for more, and the engine would speak of entries that it did not get.
func checkNamed(named []Named) error {
	if len(named) > GPUsMax {
		return &Error{Code: CodeLimit, Text: fmt.Sprintf("a request names GPUs of at most %d nodes, got %d", GPUsMax, len(named))}
	}
	return nil
}

// millis is 0, no deadline, for the zero time.
func millis(at time.Time) C.int64_t {
	if at.IsZero() {
		return 0
	}
	return C.int64_t(at.UnixMilli())
}

func goPlan(out *C.struct_frond_plan) Plan { return *(*Plan)(unsafe.Pointer(out)) }

func goMoves(out *C.struct_frond_moves) Moves { return *(*Moves)(unsafe.Pointer(out)) }

func goVictims(out *C.struct_frond_victims) Victims { return *(*Victims)(unsafe.Pointer(out)) }

func goGang(out *C.struct_frond_gang) Gang {
	gang := Gang{State: GangState(out.state), MinMember: uint32(out.min_member), Members: uint32(out.members),
		Arrived: uint32(out.arrived), Bound: uint32(out.bound), Lost: uint32(out.lost), Priority: int32(out.priority)}
	if out.deadline_ms != 0 {
		gang.Deadline = time.UnixMilli(int64(out.deadline_ms))
	}
	return gang
}

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

func cKinds(kinds []Kind) *C.struct_frond_kind {
	return (*C.struct_frond_kind)(unsafe.Pointer(unsafe.SliceData(kinds)))
}

func cLeft(left []Left) *C.struct_frond_left {
	return (*C.struct_frond_left)(unsafe.Pointer(unsafe.SliceData(left)))
}

func cKeys(keys []Key) *C.struct_frond_key {
	return (*C.struct_frond_key)(unsafe.Pointer(unsafe.SliceData(keys)))
}

func cHolds(holds []GangHold) *C.struct_frond_hold {
	return (*C.struct_frond_hold)(unsafe.Pointer(unsafe.SliceData(holds)))
}

func cMoves(moves []Move) *C.struct_frond_move {
	return (*C.struct_frond_move)(unsafe.Pointer(unsafe.SliceData(moves)))
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
		key      C.struct_frond_key
		member   C.struct_frond_member
		place    C.struct_frond_place
		held     C.struct_frond_held
		hold     C.struct_frond_hold
		named    C.struct_frond_named
		room     C.struct_frond_room
		kind     C.struct_frond_kind
		left     C.struct_frond_left
		topology C.struct_frond_topology
		plan     C.struct_frond_plan
		move     C.struct_frond_move
		moves    C.struct_frond_moves
		victims  C.struct_frond_victims
		end      C.struct_frond_end
		window   C.struct_frond_window
		stats    C.struct_frond_stats
	)
	return map[string]uintptr{
		"Key": unsafe.Sizeof(key), "Key.Hi": unsafe.Offsetof(key.hi), "Key.Lo": unsafe.Offsetof(key.lo),
		"Member": unsafe.Sizeof(member), "Member.Pod": unsafe.Offsetof(member.pod),
		"Member.Rank": unsafe.Offsetof(member.rank), "Member.GPUs": unsafe.Offsetof(member.gpus),
		"Member.PinnedSlot": unsafe.Offsetof(member.pinned_slot), "Member.Template": unsafe.Offsetof(member.pod_template),
		"Place": unsafe.Sizeof(place), "Place.Slot": unsafe.Offsetof(place.slot),
		"Place.GPUMask": unsafe.Offsetof(place.gpu_mask), "Place.Ring": unsafe.Offsetof(place.ring),
		"Held": unsafe.Sizeof(held), "Held.Gang": unsafe.Offsetof(held.gang), "Held.Slot": unsafe.Offsetof(held.slot),
		"Held.GPUs": unsafe.Offsetof(held.gpus), "Held.GPUMask": unsafe.Offsetof(held.gpu_mask),
		"Held.ByCount": unsafe.Offsetof(held.by_count), "Held.Rank": unsafe.Offsetof(held.rank), "Held.State": unsafe.Offsetof(held.state),
		"GangHold": unsafe.Sizeof(hold), "GangHold.Gang": unsafe.Offsetof(hold.gang), "GangHold.Rank": unsafe.Offsetof(hold.rank),
		"GangHold.Slot": unsafe.Offsetof(hold.slot), "GangHold.GPUMask": unsafe.Offsetof(hold.gpu_mask),
		"GangHold.reserved": unsafe.Offsetof(hold.reserved), "GangHold.DeadlineMillis": unsafe.Offsetof(hold.deadline_ms),
		"Named": unsafe.Sizeof(named), "Named.Slot": unsafe.Offsetof(named.slot), "Named.GPUMask": unsafe.Offsetof(named.gpu_mask),
		"Room": unsafe.Sizeof(room), "Room.Slot": unsafe.Offsetof(room.slot), "Room.Template": unsafe.Offsetof(room.pod_template),
		"Room.Today": unsafe.Offsetof(room.today), "Room.Ever": unsafe.Offsetof(room.ever), "Room.Unavailable": unsafe.Offsetof(room.unavailable),
		"Kind": unsafe.Sizeof(kind), "Kind.CPUMilli": unsafe.Offsetof(kind.cpu_milli), "Kind.MemoryMiB": unsafe.Offsetof(kind.memory_mib),
		"Kind.GPUs": unsafe.Offsetof(kind.gpus), "Kind.Pods": unsafe.Offsetof(kind.pods),
		"Left": unsafe.Sizeof(left), "Left.CPUMilli": unsafe.Offsetof(left.cpu_milli), "Left.MemoryMiB": unsafe.Offsetof(left.memory_mib),
		"Topology": unsafe.Sizeof(topology), "Topology.GPUs": unsafe.Offsetof(topology.gpus),
		"Topology.NUMA": unsafe.Offsetof(topology.numa), "Topology.LinkGBps": unsafe.Offsetof(topology.link_gbps),
		"Plan": unsafe.Sizeof(plan), "Plan.Generation": unsafe.Offsetof(plan.generation),
		"Plan.Outcome": unsafe.Offsetof(plan.outcome), "Plan.Rule": unsafe.Offsetof(plan.rule),
		"Plan.Flags": unsafe.Offsetof(plan.flags), "Plan.Spines": unsafe.Offsetof(plan.spines),
		"Plan.Leaves": unsafe.Offsetof(plan.leaves), "Plan.Runs": unsafe.Offsetof(plan.runs),
		"Plan.Nodes": unsafe.Offsetof(plan.nodes), "Plan.WaitMillis": unsafe.Offsetof(plan.wait_ms),
		"Move": unsafe.Sizeof(move), "Move.Pod": unsafe.Offsetof(move.pod), "Move.Rank": unsafe.Offsetof(move.rank),
		"Move.From": unsafe.Offsetof(move.from), "Move.To": unsafe.Offsetof(move.to),
		"Move.GPUMask": unsafe.Offsetof(move.gpu_mask), "Move.Ring": unsafe.Offsetof(move.ring),
		"Moves": unsafe.Sizeof(moves), "Moves.Outcome": unsafe.Offsetof(moves.outcome),
		"Moves.Flags": unsafe.Offsetof(moves.flags), "Moves.Count": unsafe.Offsetof(moves.count),
		"Moves.LowerBound": unsafe.Offsetof(moves.lower_bound),
		"Victims":          unsafe.Sizeof(victims), "Victims.Outcome": unsafe.Offsetof(victims.outcome),
		"Victims.Count": unsafe.Offsetof(victims.count), "Victims.Budgets": unsafe.Offsetof(victims.budgets),
		"Victims.Priority": unsafe.Offsetof(victims.priority), "Victims.Gangs": unsafe.Offsetof(victims.gangs),
		"Victims.GPUs": unsafe.Offsetof(victims.gpus), "Victims.Plan": unsafe.Offsetof(victims.plan),
		"End": unsafe.Sizeof(end), "End.Pod": unsafe.Offsetof(end.pod), "End.EndsInMillis": unsafe.Offsetof(end.ends_in_ms),
		"Window": unsafe.Sizeof(window), "Window.Outcome": unsafe.Offsetof(window.outcome), "Window.Kept": unsafe.Offsetof(window.kept),
		"Window.Nodes": unsafe.Offsetof(window.nodes), "Window.Free": unsafe.Offsetof(window.free),
		"Window.StartMillis": unsafe.Offsetof(window.start_ms), "Window.Plan": unsafe.Offsetof(window.plan),
		"Stats": unsafe.Sizeof(stats), "Stats.Generation": unsafe.Offsetof(stats.generation),
		"Stats.Nodes": unsafe.Offsetof(stats.nodes), "Stats.NodesWithoutLeaf": unsafe.Offsetof(stats.nodes_without_leaf),
		"Stats.Leaves": unsafe.Offsetof(stats.leaves), "Stats.Spines": unsafe.Offsetof(stats.spines),
		"Stats.GPUs": unsafe.Offsetof(stats.gpus), "Stats.GPUsUnhealthy": unsafe.Offsetof(stats.gpus_unhealthy),
		"Stats.GPUsReserved": unsafe.Offsetof(stats.gpus_reserved), "Stats.GPUsBound": unsafe.Offsetof(stats.gpus_bound),
		"Stats.GPUsByCount": unsafe.Offsetof(stats.gpus_by_count), "Stats.GPUsFree": unsafe.Offsetof(stats.gpus_free),
		"Stats.Pods": unsafe.Offsetof(stats.pods), "Stats.Gangs": unsafe.Offsetof(stats.gangs),
		"Stats.Plans": unsafe.Offsetof(stats.plans), "Stats.Placed": unsafe.Offsetof(stats.placed),
		"Stats.Waiting": unsafe.Offsetof(stats.waiting), "Stats.Refused": unsafe.Offsetof(stats.refused),
		"Stats.Relaxed": unsafe.Offsetof(stats.relaxed), "Stats.Bounded": unsafe.Offsetof(stats.bounded),
		"Stats.Steps": unsafe.Offsetof(stats.steps), "Stats.Expired": unsafe.Offsetof(stats.expired),
		"Stats.Conflicts": unsafe.Offsetof(stats.conflicts), "Stats.Holds": unsafe.Offsetof(stats.holds),
		"Stats.GPUsKept": unsafe.Offsetof(stats.gpus_kept), "Stats.HoldsExpired": unsafe.Offsetof(stats.holds_expired),
	}
}

// A record whose size differs between the two languages does not compile.
var (
	_ [unsafe.Sizeof(Key{})]byte      = [C.sizeof_struct_frond_key]byte{}
	_ [unsafe.Sizeof(Member{})]byte   = [C.sizeof_struct_frond_member]byte{}
	_ [unsafe.Sizeof(Place{})]byte    = [C.sizeof_struct_frond_place]byte{}
	_ [unsafe.Sizeof(Held{})]byte     = [C.sizeof_struct_frond_held]byte{}
	_ [unsafe.Sizeof(GangHold{})]byte = [C.sizeof_struct_frond_hold]byte{}
	_ [unsafe.Sizeof(Named{})]byte    = [C.sizeof_struct_frond_named]byte{}
	_ [unsafe.Sizeof(Room{})]byte     = [C.sizeof_struct_frond_room]byte{}
	_ [unsafe.Sizeof(Kind{})]byte     = [C.sizeof_struct_frond_kind]byte{}
	_ [unsafe.Sizeof(Left{})]byte     = [C.sizeof_struct_frond_left]byte{}
	_ [unsafe.Sizeof(Topology{})]byte = [C.sizeof_struct_frond_topology]byte{}
	_ [unsafe.Sizeof(Plan{})]byte     = [C.sizeof_struct_frond_plan]byte{}
	_ [unsafe.Sizeof(Move{})]byte     = [C.sizeof_struct_frond_move]byte{}
	_ [unsafe.Sizeof(Moves{})]byte    = [C.sizeof_struct_frond_moves]byte{}
	_ [unsafe.Sizeof(Victims{})]byte  = [C.sizeof_struct_frond_victims]byte{}
	_ [unsafe.Sizeof(End{})]byte      = [C.sizeof_struct_frond_end]byte{}
	_ [unsafe.Sizeof(Window{})]byte   = [C.sizeof_struct_frond_window]byte{}
	_ [unsafe.Sizeof(Stats{})]byte    = [C.sizeof_struct_frond_stats]byte{}
)

// Limits of the ABI, as its header names them.
const (
	GPUsMax    = C.FROND_GPUS_MAX
	NodesMax   = C.FROND_NODES_MAX
	PodsMax    = C.FROND_PODS_MAX
	MembersMax = C.FROND_MEMBERS_MAX
	KindsMax   = C.FROND_KINDS_MAX
	RankMax    = C.FROND_RANK_MAX
	HoldsMax   = C.FROND_HOLDS_MAX
)
