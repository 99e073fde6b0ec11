// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/frond-scheduler/frond/plugin/locks"
	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// Which GPUs a bound pod has is written on it, and whoever may write pods may write anything there: at its creation, with a
// node of its own choice, or later. An admission policy forbids it (docs/security.md); nothing here relies on that. What was
// written when the pod was first seen bound stays, whatever is written later. What another process has seen first, the Lease
// remembers: locks.Credible. A pod whose text is nonsense has its GPUs by count, as every pod of which nobody knows more.

// proof is how well the GPUs of a bound pod are known.
type proof int

const (
	noProof proof = iota // the report may know them
	byText               // they are written on it
	byLease              // and its node's Lease says so, or this process has planned it
)

// evidence is what names the GPUs of a bound pod; nil: nothing does.
func (m *Mirror) evidence(p *pod) ([]string, proof) {
	var texts, leased []string
	if p.carried != "" {
		texts = strings.Split(p.carried, ",")
	}
	if p.planned {
		return texts, byLease
	}
	if lock := m.owners[p.node][p.uid]; lock != nil {
		leased = lock.ids
	}
	ids := locks.Credible(texts, leased, int(p.entry.GPUs))
	switch {
	case ids == nil:
		return nil, noProof
	case slices.ContainsFunc(ids, func(id string) bool { return !slices.Contains(leased, id) }):
		return ids, byText
	}
	return ids, byLease
}

// planned: a pod that is seen bound for the first time carries what this process has reserved for it.
func (m *Mirror) planned(p *pod, key shim.Key) bool {
	n := m.nodes[p.node]
	if n == nil || p.carried == "" {
		return false
	}
	held, err := m.engine.Pod(key)
	if err != nil || held.Slot != n.slot || held.GPUMask == 0 {
		return false
	}
	mask, _ := m.mask(n, strings.Split(p.carried, ","))
	return mask == held.GPUMask
}

// mask of GPUs that are called by these ids; bad: the first id that is no GPU of the node, or there twice.
func (m *Mirror) mask(n *node, ids []string) (mask uint32, bad string) {
	for _, id := range ids {
		index, found := m.index(n, id)
		if !found || mask>>index&1 != 0 {
			return 0, id
		}
		mask |= 1 << index
	}
	return mask, ""
}

// devices of a bound pod as a mask; 0: not known. The sentence says what somebody should look at.
func (m *Mirror) devices(n *node, p *pod) (mask uint32, reason, sentence string) {
	r := m.reports[p.node]
	switch {
	case p.ids != nil:
	case p.carried != "":
		return 0, ReasonUnknownGPU, fmt.Sprintf("it has %d GPUs and carries another number of them; they are held by count", p.entry.GPUs)
	default:
		if r != nil && r.used != nil {
			if mask = r.used.UsedBy(p.uid, p.name); bits.OnesCount32(mask) == int(p.entry.GPUs) {
				return mask, "", ""
			}
		}
		return 0, "", ""
	}
	mask, bad := m.mask(n, p.ids)
	switch {
	case bad != "" && (r == nil || r.names == nil):
		return 0, "", "" // a report may yet tell
	case bad != "":
		return 0, ReasonUnknownGPU, fmt.Sprintf("it carries GPU %s, which node %s does not have, or carries it twice; its GPUs are held by count", shorten(bad), p.node)
	case p.rewritten:
		return mask, ReasonRewritten, fmt.Sprintf("its annotation %s was changed after it was bound; it still has %s", workload.Allocated, n.list(mask))
	}
	return mask, "", ""
}
