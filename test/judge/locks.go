// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"slices"
	"time"
)

func (r *replay) seeLease() {
	now := r.at.Lease
	before := r.locks[now.Name]
	if !now.Locks && before == nil {
		return // leader election's
	}
	owners := now.Owners
	if r.at.Gone {
		owners = nil
	}
	after := make(map[string]lock, len(owners))
	for id, owner := range owners {
		if old, held := before[id]; held && old.owner == owner {
			after[id] = old
		} else {
			after[id] = lock{owner: owner, version: r.at.Version}
		}
	}
	r.locks[now.Name] = after
	if !r.rules.Locks {
		return
	}
	for _, id := range sortedKeys(before) {
		old := before[id].owner
		if after[id].owner == old {
			continue
		}
		key := lockKey{id: id, owner: old}
		r.lost[key] = append(r.lost[key], span{from: before[id].version, until: r.at.Version})
		if p := r.pods[old]; p != nil && p.holds() && r.owners[id] == old {
			r.violate(LockStolen, "%s of %s, which lives, went to %q", id, p.Name, after[id].owner)
		}
	}
}

// checkLock: no Binding before its lock.
func (r *replay) checkLock(p *pod) {
	for _, id := range p.IDs {
		if held := r.locks[p.Node][id]; held.owner != p.UID {
			r.violate(LockMissing, "%s was bound with %s, whose lock is %q's", p.Name, id, held.owner)
		}
	}
}

// checkLockedFirst: no Binding of a gang before its last lock. A gang that was finished after an interruption may have
// found other places for the rest. A lock that was there when the first was bound, was revoked by another scheduler that
// believed to lead, and was taken again, is no violation: that the Binding had it is checkLock's to say.
func (r *replay) checkLockedFirst(g *gang, bound []*pod, now time.Time) {
	if !r.since(g.began, now).Equal(g.began) {
		return
	}
	for _, p := range bound {
		for _, id := range p.IDs {
			held := r.locks[p.Node][id]
			before := slices.ContainsFunc(r.lost[lockKey{id: id, owner: p.UID}], func(s span) bool { return s.from <= g.first && g.first < s.until })
			if held.owner == p.UID && held.version > g.first && !before {
				r.violate(LockMissing, "%s of %s was locked after the gang's first binding", id, p.Name)
			}
		}
	}
}

// compareLocks: at rest Leases and bound pods say the same.
func (r *replay) compareLocks() {
	locked := map[string]string{}
	for _, lease := range sortedKeys(r.locks) {
		for _, id := range sortedKeys(r.locks[lease]) {
			locked[id] = r.locks[lease][id].owner
		}
	}
	for _, id := range sortedKeys(locked) {
		if owner := r.owners[id]; owner != locked[id] {
			r.violate(LocksDiffer, "%s is locked for %q and held by %q", id, locked[id], owner)
		}
	}
	for _, id := range sortedKeys(r.owners) {
		if _, found := locked[id]; !found {
			r.violate(LocksDiffer, "%s is held by %s without a lock", id, r.pods[r.owners[id]].Name)
		}
	}
}
