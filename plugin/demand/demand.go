// SPDX-License-Identifier: Apache-2.0

// Package demand learns which kinds of GPU pods a cluster has to expect: those that it has. It counts pods by what they ask
// for, whoever schedules them, and knows nothing of nodes. What is made of it is the engine's to decide.
package demand

import (
	"cmp"
	"math"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/frond-scheduler/frond/shim"
)

const mebibyte = 1 << 20

// Demand counts pods. It may be used by several goroutines.
type Demand struct {
	mu    sync.Mutex
	pods  map[types.UID]want
	count map[want]uint32
	kinds []shim.Kind // as Kinds has told them
	known bool        // and nothing has changed since
}

// want is what makes two pods of one kind.
type want struct {
	asks shim.Left
	gpus uint32
}

// New has seen no pod.
func New() *Demand {
	return &Demand{pods: map[types.UID]want{}, count: map[want]uint32{}}
}

// Set enters a pod that asks for so many GPUs, or what has become of it. A pod without GPUs is none of ours, and one with
// more than a node can have waits for ever: what is left free for it makes no difference.
func (d *Demand) Set(pod *v1.Pod, gpus uint32) {
	if gpus == 0 || gpus > shim.GPUsMax {
		d.Drop(pod.UID)
		return
	}
	now := want{asks: Asks(pod), gpus: gpus}
	d.mu.Lock()
	defer d.mu.Unlock()
	if before, known := d.pods[pod.UID]; known && before == now {
		return
	}
	d.drop(pod.UID)
	d.pods[pod.UID] = now
	d.count[now]++
	d.known = false
}

// Drop forgets a pod that was deleted or has ended. One that is not known is no mistake.
func (d *Demand) Drop(uid types.UID) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drop(uid)
}

func (d *Demand) drop(uid types.UID) {
	before, known := d.pods[uid]
	if !known {
		return
	}
	delete(d.pods, uid)
	if d.count[before]--; d.count[before] == 0 {
		delete(d.count, before)
	}
	d.known = false
}

// Kinds are the most frequent ones, at most as many as the engine takes: most pods first, then what asks for less. The
// caller must not change them.
func (d *Demand) Kinds() []shim.Kind {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known {
		return d.kinds
	}
	kinds := make([]shim.Kind, 0, len(d.count))
	for w, pods := range d.count {
		kinds = append(kinds, shim.Kind{CPUMilli: w.asks.CPUMilli, MemoryMiB: w.asks.MemoryMiB, GPUs: w.gpus, Pods: min(pods, shim.PodsMax)})
	}
	slices.SortFunc(kinds, func(a, b shim.Kind) int {
		return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(a.CPUMilli, b.CPUMilli), cmp.Compare(a.MemoryMiB, b.MemoryMiB))
	})
	d.kinds, d.known = slices.Clip(kinds[:min(len(kinds), shim.KindsMax)]), true
	return d.kinds
}

// Asks is what a pod asks for besides GPUs; a part of a mebibyte counts as a whole one.
func Asks(pod *v1.Pod) shim.Left {
	requests := resourcehelper.PodRequests(pod, resourcehelper.PodResourcesOptions{})
	memory := requests.Memory().Value()
	return shim.Left{CPUMilli: clamp(requests.Cpu().MilliValue()), MemoryMiB: clamp(memory/mebibyte + min(memory%mebibyte, 1))}
}

// Left is what a node has left; a part of a mebibyte does not count, and what is overcommitted is nothing.
func Left(cpuMilli, memoryBytes int64) shim.Left {
	return shim.Left{CPUMilli: clamp(cpuMilli), MemoryMiB: clamp(memoryBytes / mebibyte)}
}

func clamp(amount int64) uint32 { return uint32(min(max(amount, 0), math.MaxUint32)) }
