// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/locks"
)

// Holdings are the bound pods whose GPUs are known by name, and which the engine holds for them: what Leases are compared with.
// What is only written on a pod is not among them, so that it enters no Lease.
func (m *Mirror) Holdings() []locks.Holding {
	m.mu.RLock()
	defer m.mu.RUnlock()
	holdings := make([]locks.Holding, 0, len(m.pods))
	for uid, p := range m.pods {
		if m.holds(p) {
			holdings = append(holdings, locks.Holding{Node: p.node, Claimant: locks.Claimant{
				Pod: uid, Namespace: p.name.Namespace, Name: p.name.Name, GPUs: slices.Clone(p.ids),
			}})
		}
	}
	slices.SortFunc(holdings, func(a, b locks.Holding) int { return strings.Compare(string(a.Pod), string(b.Pod)) })
	return holdings
}

// holds: the engine has exactly these GPUs under the pod. It gives by count what it was told by device, if it had that
// reserved for another.
func (m *Mirror) holds(p *pod) bool {
	n := m.nodes[p.node]
	if p.ids == nil || n == nil || !n.has(p.entry.Key) {
		return false
	}
	held, err := m.engine.Pod(p.entry.Key)
	return err == nil && held.GPUMask == n.in[p.entry.Key].GPUMask
}

// Find is the name of a bound pod with GPUs.
func (m *Mirror) Find(uid types.UID) (types.NamespacedName, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if p := m.pods[uid]; p != nil {
		return p.name, true
	}
	return types.NamespacedName{}, false
}

// LockedOn are the nodes whose Leases name the pod.
func (m *Mirror) LockedOn(uid types.UID) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Sorted(maps.Keys(m.locked[uid]))
}

// BoundTo is the node of a bound pod with GPUs; "": it is not known as bound.
func (m *Mirror) BoundTo(uid types.UID) string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if p := m.pods[uid]; p != nil {
		return p.node
	}
	return ""
}
