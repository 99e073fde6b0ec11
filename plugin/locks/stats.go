// SPDX-License-Identifier: Apache-2.0

package locks

import "sync/atomic"

// Stats are counts since New.
type Stats struct {
	Writes    uint64 // Leases created, changed or deleted
	Conflicts uint64 // Takes refused because somebody alive owns a GPU
	Races     uint64 // writes lost to another writer
	Takeovers uint64 // gangs taken over from another holder
	Retries   uint64 // calls repeated because the API server gave no answer or an error of its own
	Repaired  Repairs
}

// Repairs by kind, in entries; Rebuilt and Deleted in Leases.
type Repairs struct {
	Freed        uint64 // the owner is gone, finished, or bound to something else
	Entered      uint64 // a bound pod's GPU had no owner
	Replaced     uint64 // a bound pod's GPU had an owner that was not bound
	Revoked      uint64 // a reservation that its scheduler did not use
	Rebuilt      uint64 // Leases that could not be read
	Deleted      uint64 // Leases of nodes that are gone
	DoubleBooked uint64 // two bound pods have one GPU; counted at every comparison, never touched
}

func (r *Repairs) add(other Repairs) {
	r.Freed += other.Freed
	r.Entered += other.Entered
	r.Replaced += other.Replaced
	r.Revoked += other.Revoked
	r.Rebuilt += other.Rebuilt
	r.Deleted += other.Deleted
	r.DoubleBooked += other.DoubleBooked
}

type counters struct {
	writes, conflicts, races, takeovers, retries                            atomic.Uint64
	freed, entered, replaced, revoked, rebuilt, deletedLeases, doubleBooked atomic.Uint64
}

func (c *counters) repaired(r Repairs) {
	c.freed.Add(r.Freed)
	c.entered.Add(r.Entered)
	c.replaced.Add(r.Replaced)
	c.revoked.Add(r.Revoked)
	c.rebuilt.Add(r.Rebuilt)
	c.deletedLeases.Add(r.Deleted)
	c.doubleBooked.Add(r.DoubleBooked)
}

// Stats reads the counters.
func (l *Locks) Stats() Stats {
	c := &l.stats
	return Stats{
		Writes: c.writes.Load(), Conflicts: c.conflicts.Load(), Races: c.races.Load(), Takeovers: c.takeovers.Load(), Retries: c.retries.Load(),
		Repaired: Repairs{
			Freed: c.freed.Load(), Entered: c.entered.Load(), Replaced: c.replaced.Load(), Revoked: c.revoked.Load(),
			Rebuilt: c.rebuilt.Load(), Deleted: c.deletedLeases.Load(), DoubleBooked: c.doubleBooked.Load(),
		},
	}
}
