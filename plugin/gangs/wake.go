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
}

// ReasonExpired is what pods are told whose plan was given back because not all of its members came.
const ReasonExpired = "the gang's plan was given back: not all members reached Permit in time"

// Run wakes pods until the context ends. It is the only place from which the table moves pods in the scheduler.
func (t *Table) Run(ctx context.Context, waker Waker) {
	timer := time.NewTimer(sweep)
	defer timer.Stop()
	for {
		expired, next := t.Due()
		if len(expired) > 0 {
			waker.Reject(expired, ReasonExpired)
		}
		if pods := t.takeWakes(); len(pods) > 0 {
			waker.Activate(pods)
		}
		timer.Reset(next)
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

// Due does what time alone brings about, and says how long nothing else is due. It returns members of plans that have
// run out.
func (t *Table) Due() (expired []types.UID, next time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	sweeping := now.Sub(t.swept) >= sweep
	if sweeping {
		t.swept = now
	}
	next = sweep
	// due says whether a moment has come, and keeps it in mind if not.
	due := func(at time.Time) bool {
		if now.Before(at) {
			next = min(next, at.Sub(now))
			return false
		}
		return true
	}
	for _, g := range t.gangs {
		if p := g.plan; p != nil {
			if !p.going && due(p.made.Add(t.permitWait+expirySlack)) {
				expired = append(expired, t.drop(g)...)
			} else if sweeping {
				t.poke(g)
			}
			continue
		}
		switch reason, until := t.blocked(g); {
		case reason != "" && !until.IsZero():
			due(until)
		case reason != "":
			// The lead takes the reason to its event, once.
			if reason != g.said && due(g.changed.Add(settle)) && (g.woken != g.changed || sweeping) {
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
	return expired, next
}
