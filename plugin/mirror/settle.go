// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/frond-scheduler/frond/shim"
)

// What the engine holds on a node follows from what is known of it, never from the order in which that was learnt:
//
//   - bound pods by device, when they are known to have GPUs of the node (evidence.go), as many as their limits say, and
//     nobody before them has one of these; else by count. Pods that the node's Lease knows with these GPUs come before those
//     that carry them without, and those before the ones of which only the report knows; older ones before younger ones.
//   - locks of pods that are not bound, on GPUs that no bound pod has (locks.go).
//   - healthy GPUs beyond what the node lets pods have, by count: its device plugin knows of something that the report
//     does not.

// settled is what came of it.
type settled struct {
	changed bool               // the engine was told something
	freed   bool               // somebody holds less than before
	failed  map[shim.Key]error // pods that the engine could not take
	first   error              // the first of them, in order
}

// settle makes the engine hold what it should on a node, and gives back what is leaving in the same moment. In between no
// GPU is free that should not be: the engine takes it as one call.
func (m *Mirror) settle(name string, leaving ...shim.Key) (result settled) {
	n := m.nodes[name]
	if n == nil || !n.known {
		return result // pods wait for their node
	}
	wanted := m.wanted(name, n, leaving)
	stay := make(map[shim.Key]bool, len(wanted))
	var emptied, put []shim.Pod
	for _, entry := range wanted {
		stay[entry.Key] = true
		before, there := n.in[entry.Key]
		if there && before == entry {
			continue
		}
		if there && (before.GPUMask != entry.GPUMask || before.GPUs != entry.GPUs) {
			// Pods may exchange GPUs, so all let go before one takes. An entry that stays keeps its gang.
			before.GPUMask, before.GPUs = 0, 0
			emptied = append(emptied, before)
		}
		put = append(put, entry)
	}
	out := slices.Clone(leaving)
	for _, key := range slices.SortedFunc(maps.Keys(n.in), compareKeys) {
		if !stay[key] {
			out = append(out, key)
			delete(n.in, key)
		}
	}
	if len(out) == 0 && len(put) == 0 {
		return result
	}
	errs := m.engine.Swap(out, append(emptied, put...))[len(emptied):]
	for i, entry := range put {
		if errs[i] == nil {
			n.in[entry.Key] = entry
			continue
		}
		delete(n.in, entry.Key)
		err := fmt.Errorf("pod of %s on node %s is not counted: %w", entry.Name, name, errs[i])
		if result.failed == nil {
			result.failed, result.first = map[shim.Key]error{}, err
		}
		result.failed[entry.Key] = err
	}
	m.findShort(name, n)
	result.changed, result.freed = true, len(out) > 0 || len(emptied) > 0
	return result
}

func compareKeys(a, b shim.Key) int { return cmp.Or(cmp.Compare(a.Hi, b.Hi), cmp.Compare(a.Lo, b.Lo)) }

func (n *node) has(key shim.Key) bool {
	_, there := n.in[key]
	return there
}

// wanted is what the engine should hold on a node.
func (m *Mirror) wanted(name string, n *node, leaving []shim.Key) []shim.Pod {
	pods := slices.Collect(maps.Values(m.on[name]))
	proofs := make(map[*pod]proof, len(pods))
	for _, p := range pods {
		p.ids, proofs[p] = m.evidence(p)
	}
	slices.SortFunc(pods, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(proofs[b], proofs[a]), a.created.Compare(b.created), cmp.Compare(a.uid, b.uid))
	})
	wanted := make([]shim.Pod, 0, len(pods)+1)
	taken := uint32(0)
	for _, p := range pods {
		mask, reason, sentence := m.devices(n, p)
		if mask&taken != 0 {
			reason = ReasonGPUConflict
			sentence = fmt.Sprintf("it has %s, of which another pod on the node has some; its GPUs are held by count", n.list(mask))
			mask = 0
		}
		if taken |= mask; mask == 0 {
			p.ids = nil
		}
		if sentence != p.told {
			if p.told = sentence; sentence != "" {
				m.tell(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.name.Namespace, Name: p.name.Name, UID: p.uid}}, reason, sentence)
			}
		}
		entry := p.entry
		entry.Slot, entry.GPUMask = n.slot, mask
		wanted = append(wanted, entry)
	}
	wanted = append(wanted, m.locks(name, n, taken, leaving)...)
	if r := m.reports[name]; r != nil && r.used != nil && r.used.Healthy() > n.allocatable {
		wanted = append(wanted, shim.Pod{Key: shim.PodKey("withheld/" + name), Slot: n.slot, GPUs: r.used.Healthy() - n.allocatable,
			Name: "withheld by " + name, Rank: shim.None})
	}
	return wanted
}
