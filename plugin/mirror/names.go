// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"math/bits"
	"strconv"
	"strings"

	"github.com/frond-scheduler/frond/plugin/nodereport"
	"github.com/frond-scheduler/frond/shim"
)

// A GPU has two names: the one that its node's agent reports, a UUID, and NODE-gpu-INDEX, which it has as long as no agent
// has spoken. Pods and Leases carry one or the other. Everywhere else a GPU is a bit of its node.

const gpuInfix = "-gpu-"

// setNames says which report the ids of a node's GPUs come from; nil: none.
func (m *Mirror) setNames(name string, r *reported, report *nodereport.Report) {
	if r.names != nil {
		for i := range r.names.Devices {
			if id := r.names.Devices[i].ID; m.ids[id] == name {
				delete(m.ids, id)
			}
		}
	}
	r.names = report
	if report != nil {
		for i := range report.Devices {
			m.ids[report.Devices[i].ID] = name
		}
	}
}

// GPU finds the GPU that users call by that id, on whichever node it is.
func (m *Mirror) GPU(id string) (shim.Named, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	name, reported := m.ids[id]
	if at := strings.LastIndex(id, gpuInfix); !reported && at > 0 {
		name = id[:at]
	}
	n := m.nodes[name]
	if n == nil || !n.known {
		return shim.Named{}, false
	}
	index, found := m.index(n, id)
	return shim.Named{Slot: n.slot, GPUMask: 1 << index}, found
}

// Allocated is what a pod that has the place carries, and its node's Lease: the ids of the GPUs, comma separated, in the
// order of the ring.
func (m *Mirror) Allocated(node string, place shim.Place) string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	ids := make([]string, bits.OnesCount32(place.GPUMask))
	r := m.reports[node]
	plain := r == nil || r.names == nil || bits.Len32(place.GPUMask) > len(r.names.Devices)
	for i := range ids {
		index := int(place.Ring >> (4 * i) & 15)
		if plain {
			ids[i] = node + gpuInfix + strconv.Itoa(index)
		} else {
			ids[i] = r.names.Devices[index].ID
		}
	}
	return strings.Join(ids, ",")
}

// index of the GPU that a pod or a Lease calls by that id. Pods that were bound before the node had a report carry
// NODE-gpu-INDEX.
func (m *Mirror) index(n *node, id string) (uint32, bool) {
	if r := m.reports[n.entry.Name]; r != nil && r.names != nil {
		if index, found := r.names.Index(id); found {
			return index, index < n.entry.GPUs
		}
	}
	return n.plain(id)
}

// plain reads NODE-gpu-INDEX.
func (n *node) plain(id string) (uint32, bool) {
	digits, found := strings.CutPrefix(id, n.entry.Name+gpuInfix)
	if !found {
		return 0, false
	}
	index, err := strconv.ParseUint(digits, 10, 8)
	return uint32(index), err == nil && uint32(index) < n.entry.GPUs && digits == strconv.FormatUint(index, 10)
}

// list names GPUs of a node for a sentence.
func (n *node) list(mask uint32) string {
	var ids []string
	for ; mask != 0; mask &= mask - 1 {
		ids = append(ids, n.entry.Name+gpuInfix+strconv.Itoa(bits.TrailingZeros32(mask)))
	}
	return strings.Join(ids, ",")
}

// shorten keeps what others wrote out of sentences beyond what helps to find it.
func shorten(text string) string {
	const most = 64
	if len(text) <= most {
		return strconv.Quote(text)
	}
	return strconv.Quote(text[:most]) + "…"
}
