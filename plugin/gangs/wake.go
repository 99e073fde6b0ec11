// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Waker is what the table's goroutine does to the scheduler, outside every lock of ours.
type Waker interface {
	Activate(pods []*v1.Pod)
	Reject(members []types.UID, message string)
	// Denominate takes back nominations that are left over in the API.
	Denominate(pods []*v1.Pod)
}

// ReasonExpired is what pods are told whose plan was given back because not all of its members came.
const ReasonExpired = "the gang's plan was given back: not all members reached Permit in time"

// Run wakes pods until the context ends. It is the only place from which the table moves pods in the scheduler.
func (t *Table) Run(ctx context.Context, waker Waker) {
	timer := time.NewTimer(sweep)
	defer timer.Stop()
	for {
		due := t.Due()
		if len(due.Expired) > 0 {
			waker.Reject(due.Expired, ReasonExpired)
		}
		if len(due.Stale) > 0 {
			waker.Denominate(due.Stale)
		}
		if pods := t.takeWakes(); len(pods) > 0 {
			waker.Activate(pods)
		}
		timer.Reset(due.Next)
		select {
		case <-ctx.Done():
			return
		case <-t.signal:
		case <-timer.C:
		}
	}
}

func (t *Table) takeWakes() []*v1.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	pods := make([]*v1.Pod, 0, len(t.wakes))
	for _, pod := range t.wakes {
		pods = append(pods, pod)
	}
	clear(t.wakes)
	return pods
}

// Duties are what time alone brings about.
type Duties struct {
	Expired []types.UID   // members of plans that have run out
	Stale   []*v1.Pod     // pods that are nominated for a node which no plan puts them on
	Next    time.Duration // nothing else is due for so long
}

// Due says what is to be done now.
func (t *Table) Due() (duties Duties) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	sweeping := now.Sub(t.swept) >= sweep
	if sweeping {
		t.swept = now
	}
	duties.Next = sweep
	// due says whether a moment has come, and keeps it in mind if not.
	due := func(at time.Time) bool {
		if now.Before(at) {
			duties.Next = min(duties.Next, at.Sub(now))
			return false
		}
		return true
	}
	for _, g := range t.gangs {
		if p := g.plan; p != nil {
			if !p.going && due(p.made.Add(p.wait+expirySlack)) {
				duties.Expired = append(duties.Expired, t.drop(g)...)
			} else if sweeping {
				t.poke(g)
			}
			continue
		}
		if !g.idle.IsZero() && due(g.idle.Add(nominationPause)) {
			duties.Stale = append(duties.Stale, t.stale(g)...)
		}
		switch reason, until := t.blocked(g); {
		case reason != "" && !until.IsZero():
			due(until)
		case reason != "":
			// The lead takes the reason to its event, once.
			if reason != g.said && due(g.changed.Add(silence)) && (g.woken != g.changed || sweeping) {
				t.wakeLead(g)
			}
		case !due(g.retryAt):
		case g.woken != g.changed:
			t.wakeLead(g)
		case g.waiting:
			if !g.wakeAt.IsZero() && due(g.wakeAt) {
				g.wakeAt = time.Time{}
				t.wakeLead(g)
			}
		case sweeping:
			t.wakeLead(g)
		}
	}
	return duties
}

// stale: upstream writes a nomination for every pod that waits in Permit, and takes it back when the pod is rejected,
// unless its own cache has not seen the first write yet. What is left then keeps everybody else off the node.
func (t *Table) stale(g *gang) (pods []*v1.Pod) {
	for _, m := range g.members {
		if m.tried && m.pending() && m.pod.Status.NominatedNodeName != "" && m.cleared != m.pod.ResourceVersion {
			m.cleared = m.pod.ResourceVersion
			pods = append(pods, m.pod)
		}
	}
	return pods
}
