// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/frond-scheduler/frond/shim"
)

// Known is the nodes that the engine has, as a caller that knows some of them by name sees them.
type Known struct {
	Slots  []uint32 // of the named nodes; shim.None for those that the engine does not have
	GPUs   []uint32 // of the named nodes, as the engine counts them
	Others []uint32 // slots of all other nodes, ascending
	// Taints of the named nodes that have kept pods out for longer than unavailableAfter; mostly none
	Taints [][]v1.Taint
}

// Known looks nodes up by name, all at one moment.
func (m *Mirror) Known(names []string) Known {
	m.mu.RLock()
	defer m.mu.RUnlock()
	known := Known{Slots: make([]uint32, len(names)), GPUs: make([]uint32, len(names)), Taints: make([][]v1.Taint, len(names))}
	now := m.now()
	named := make(map[uint32]struct{}, len(names))
	for i, name := range names {
		known.Slots[i] = shim.None
		if n := m.nodes[name]; n != nil && n.known {
			known.Slots[i], known.GPUs[i] = n.slot, n.entry.GPUs
			known.Taints[i] = m.lasting(n, now)
			named[n.slot] = struct{}{}
		}
	}
	for _, n := range m.nodes {
		if _, ok := named[n.slot]; n.known && !ok {
			known.Others = append(known.Others, n.slot)
		}
	}
	slices.Sort(known.Others)
	return known
}
