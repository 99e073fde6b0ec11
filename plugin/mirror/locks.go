// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"maps"
	"math/bits"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/frond-scheduler/frond/shim"
)

// A node's Lease says which GPUs are locked for which pods. Those of a pod that is not bound, reserved by another leader
// or by us before a restart, are held in the engine under a key of their own, so that the pod itself can still be
// reserved. Such an entry goes away when the Lease no longer says so, when the pod is bound (in the same moment its own
// entry takes over), when it is deleted, and while the pod itself is being placed: Yield.

// lock is what a Lease says of one pod.
type lock struct {
	ids  []string
	gone bool // the pod was deleted; its Lease is freed a moment later
	told bool // ids that the node does not have were logged
}

func lockKey(node string, uid types.UID) shim.Key {
	return shim.PodKey("lock/" + node + "/" + string(uid))
}

// SetOwners takes what a node's Lease says: GPU id → pod. nil: there is no Lease. freed: there may be more room.
func (m *Mirror) SetOwners(node string, owners map[string]types.UID) (freed bool) {
	next := map[types.UID]*lock{}
	for _, id := range slices.Sorted(maps.Keys(owners)) {
		uid := owners[id]
		if uid == "" {
			continue
		}
		if next[uid] == nil {
			next[uid] = &lock{}
		}
		next[uid].ids = append(next[uid].ids, id)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid, before := range m.owners[node] {
		if now := next[uid]; now != nil {
			now.gone, now.told = before.gone, before.told
			continue
		}
		delete(m.locked[uid], node)
		if len(m.locked[uid]) == 0 {
			delete(m.locked, uid)
		}
	}
	for uid := range next {
		if m.locked[uid] == nil {
			m.locked[uid] = map[string]struct{}{}
		}
		m.locked[uid][node] = struct{}{}
	}
	if m.owners[node] = next; len(next) == 0 {
		delete(m.owners, node)
	}
	return m.settle(node).freed
}

// Yield lets pods be planned on GPUs that are locked for themselves. To be called before every plan, for all pods that it
// is to place; they stay yielded until they are bound or deleted, or given up by Unyield or Unreserve.
func (m *Mirror) Yield(uids ...types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.short {
		m.settleAgain(name)
	}
	for _, uid := range uids {
		if m.pods[uid] != nil {
			continue
		}
		m.yielded[uid] = struct{}{}
		for name := range m.locked[uid] {
			m.settle(name)
		}
	}
}

// Unyield: no plan came of it, or it was given back. What Leases say of the pods is held again.
func (m *Mirror) Unyield(uids ...types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, uid := range uids {
		delete(m.yielded, uid)
		for name := range m.locked[uid] {
			m.settle(name)
		}
	}
}

// locks that the engine should hold on a node whose bound pods have taken some GPUs by device. Together they are never
// more than the node has, whatever is written into its Lease. leaving: keys whose reservations are being given back.
func (m *Mirror) locks(name string, n *node, taken uint32, leaving []shim.Key) []shim.Pod {
	var list []shim.Pod
	left := max(0, int(n.entry.GPUs)-bits.OnesCount32(taken))
	for _, uid := range slices.Sorted(maps.Keys(m.owners[name])) {
		lock := m.owners[name][uid]
		if left == 0 {
			break
		}
		if _, yielded := m.yielded[uid]; yielded || lock.gone || m.pods[uid] != nil || m.reserved(uid, leaving) {
			continue
		}
		mask, unknown := m.lockedOf(name, n, lock)
		gpus := min(bits.OnesCount32(mask&^taken)+unknown, left)
		if gpus == 0 {
			continue
		}
		entry := shim.Pod{Key: lockKey(name, uid), Slot: n.slot, GPUs: uint32(gpus), Name: "lock of pod " + string(uid), Rank: shim.None}
		if bits.OnesCount32(mask&^taken) == gpus {
			entry.GPUMask = mask &^ taken
			taken |= mask
		}
		left -= gpus
		list = append(list, entry)
	}
	return list
}

// reserved: our own engine has places for the pod, so its lock is ours.
func (m *Mirror) reserved(uid types.UID, leaving []shim.Key) bool {
	key := shim.PodKey(string(uid))
	if slices.Contains(leaving, key) {
		return false
	}
	_, err := m.engine.Pod(key)
	return err == nil
}

// lockedOf a Lease's entry: GPUs by index, and how many have ids that only a report could explain. Once there is one,
// ids that it does not know are ignored.
func (m *Mirror) lockedOf(name string, n *node, lock *lock) (mask uint32, unknown int) {
	r := m.reports[name]
	for _, id := range lock.ids {
		if index, found := m.index(n, id); found {
			mask |= 1 << index
			continue
		}
		if r == nil || r.names == nil {
			unknown++
		} else if !lock.told {
			lock.told = true
			klog.Background().Info("A Lease locks a GPU that its node does not have; ignored", "node", name, "gpu", shorten(id))
		}
	}
	return mask, unknown
}

// findShort remembers a node on which a lock did not get its GPUs, because our engine has reserved them for another pod.
// That reservation cannot be bound; once it is given back the lock gets them.
func (m *Mirror) findShort(name string, n *node) {
	delete(m.short, name)
	for uid := range m.owners[name] {
		entry, there := n.in[lockKey(name, uid)]
		if !there || entry.GPUMask == 0 {
			continue
		}
		if held, err := m.engine.Pod(entry.Key); err == nil && held.GPUMask != entry.GPUMask {
			m.short[name] = struct{}{}
		}
	}
}

// settleAgain tells the engine all locks of a node anew.
func (m *Mirror) settleAgain(name string) {
	n := m.nodes[name]
	for uid := range m.owners[name] {
		if entry, there := n.in[lockKey(name, uid)]; there {
			entry.Name = "" // differs from what is wanted
			n.in[entry.Key] = entry
		}
	}
	m.settle(name)
}
