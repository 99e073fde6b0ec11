// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// draft is the next content of one Lease while it is tidied.
type draft struct {
	l     *Locks
	n     *node
	p     *pass
	bound map[string][]Holding // by GPU
	// Copies of what this process knows of the node: Free may be called meanwhile.
	taken, unwanted map[types.UID]bool
	seen            map[types.UID]time.Time
	last            table

	begun     table // as it was before anything of it was judged
	next      table
	revoke    []types.UID
	rivals    map[string]Holding // bound, live, to GPUs of those who are to be revoked
	sightings map[types.UID]sighting
	fixed     Repairs
	doubles   []Double
}

func (l *Locks) draft(n *node, p *pass) *draft {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &draft{
		l: l, n: n, p: p, bound: p.bound[n.name],
		taken: maps.Clone(n.taken), unwanted: maps.Clone(n.unwanted), seen: maps.Clone(n.seen), last: n.last,
		rivals: map[string]Holding{}, sightings: map[types.UID]sighting{},
	}
}

func (d *draft) make(ctx context.Context, content table, there bool) error {
	d.next = content.clone()
	if d.p.all && (content.err != nil || !there && len(d.last.owners) > 0) {
		// What could be read last is where to start; the rest comes from bound pods.
		d.next = d.last.clone()
		d.fixed.Rebuilt++
	}
	d.begun = d.next.clone()
	for _, gpu := range slices.Sorted(maps.Keys(d.next.owners)) {
		if err := d.entry(ctx, gpu, d.next.owners[gpu]); err != nil {
			return err
		}
	}
	for _, gpu := range slices.Sorted(maps.Keys(d.bound)) {
		if _, owned := d.next.owners[gpu]; !owned {
			d.set(gpu, d.bound[gpu][0])
			d.fixed.Entered++
		}
	}
	d.next.trim()
	return nil
}

// set enters a bound pod. Nobody is noted as having taken it, so only its end frees it.
func (d *draft) set(gpu string, h Holding) {
	d.next.owners[gpu] = h.Pod
	if _, noted := d.next.pods[h.Pod]; !noted {
		d.next.pods[h.Pod] = noteOf(h)
	}
}

func noteOf(h Holding) note { return note{Pod: h.Namespace + "/" + h.Name} }

// entry judges one owner.
func (d *draft) entry(ctx context.Context, gpu string, uid types.UID) error {
	holders := d.bound[gpu]
	agrees := slices.ContainsFunc(holders, func(h Holding) bool { return h.Pod == uid })
	switch {
	case agrees && len(holders) == 1 && !d.unwanted[uid]:
		return nil
	case !agrees && d.next.pods[uid].By == d.l.me && !d.taken[uid]:
		// Given back, or a write that arrived after its Take had given up: in any case nobody relies on it.
		delete(d.next.owners, gpu)
		return nil
	case !d.p.all && !d.unwanted[uid]:
		return nil
	}
	s, err := d.sight(ctx, uid, d.next.pods[uid])
	if err != nil {
		return err
	}
	rival, contested, err := d.rival(ctx, gpu, uid)
	if err != nil {
		return err
	}
	at := s.towards(d.n.name, gpu, d.begun.gpus(uid))
	switch {
	case at == released && contested:
		d.set(gpu, rival)
		d.fixed.Replaced++
	case at == released:
		delete(d.next.owners, gpu)
		d.fixed.Freed++
	case at == bound && contested:
		d.doubles = append(d.doubles, Double{Node: d.n.name, GPU: gpu, Pods: []types.UID{uid, rival.Pod}})
		d.fixed.DoubleBooked++
	case at == reserved && contested:
		d.rivals[gpu] = rival
		d.toRevoke(uid)
	case at == reserved && d.unwanted[uid]:
		d.toRevoke(uid)
	case at == reserved && !d.taken[uid]:
		if left := d.left(uid); left > 0 {
			d.p.due(left)
		} else {
			d.toRevoke(uid)
		}
	}
	return nil
}

// left of the patience with a reservation that another scheduler made.
func (d *draft) left(uid types.UID) time.Duration {
	now := d.l.opts.Now()
	since, known := d.seen[uid]
	if !known {
		d.l.mu.Lock()
		d.n.seen[uid], since = now, now
		d.l.mu.Unlock()
	}
	return d.l.opts.Patience - now.Sub(since)
}

func (d *draft) toRevoke(uid types.UID) {
	if !slices.Contains(d.revoke, uid) {
		d.revoke = append(d.revoke, uid)
	}
}

// rival is another pod that is bound to the GPU, live.
func (d *draft) rival(ctx context.Context, gpu string, uid types.UID) (Holding, bool, error) {
	for _, h := range d.bound[gpu] {
		if h.Pod == uid {
			continue
		}
		s, err := d.sight(ctx, h.Pod, noteOf(h))
		if err != nil {
			return Holding{}, false, err
		}
		if s.towards(d.n.name, gpu, d.begun.gpus(h.Pod)) == bound {
			return h, true, nil
		}
	}
	return Holding{}, false, nil
}

// sight looks at each pod once; a pod without a name is looked for among all.
func (d *draft) sight(ctx context.Context, uid types.UID, n note) (sighting, error) {
	if s, seen := d.sightings[uid]; seen {
		return s, nil
	}
	s, err := d.l.sight(ctx, uid, n)
	if err == nil && !s.known && d.p.census != nil {
		var all map[types.UID]sighting
		if all, err = d.p.census(); err == nil {
			var there bool
			if s, there = all[uid]; !there {
				s = sighting{known: true, gone: true}
			}
		}
	}
	if err == nil {
		d.sightings[uid] = s
	}
	return s, err
}

// mark says in the Lease what is about to be revoked.
func (d *draft) mark() {
	for _, uid := range d.revoke {
		n := d.next.pods[uid]
		if name, ok := d.l.nameOf(uid, n); ok {
			n.Pod = name.String()
		}
		n.Revoked = true
		d.next.pods[uid] = n
	}
}

// fence frees what is marked once no Binding from before the mark can succeed any more. A pod that turns out to be bound
// keeps what it has.
func (d *draft) fence(ctx context.Context) error {
	for _, uid := range d.revoke {
		n := d.next.pods[uid]
		s, err := d.l.fence(ctx, d.n.name, uid, n)
		if err != nil {
			return err
		}
		for _, gpu := range slices.Sorted(maps.Keys(d.next.owners)) {
			if d.next.owners[gpu] != uid {
				continue
			}
			switch s.towards(d.n.name, gpu, d.begun.gpus(uid)) {
			case reserved:
				d.fixed.Revoked++
			case released:
				d.fixed.Freed++
			default:
				n.Revoked = false
				d.next.pods[uid] = n
				continue
			}
			delete(d.next.owners, gpu)
			if rival, contested := d.rivals[gpu]; contested {
				d.set(gpu, rival)
				d.fixed.Replaced++
			}
		}
	}
	d.next.trim()
	return nil
}

// finish counts, and forgets what is settled.
func (d *draft) finish() {
	d.l.stats.repaired(d.fixed)
	d.p.done(d)
	d.l.mu.Lock()
	defer d.l.mu.Unlock()
	for uid := range d.unwanted {
		delete(d.n.unwanted, uid)
	}
	for uid := range d.taken {
		if _, owns := d.next.pods[uid]; !owns {
			delete(d.n.taken, uid)
		}
	}
	if d.n.lease == nil {
		d.n.last = table{}
	}
}
