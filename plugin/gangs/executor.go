// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// Performer does what effects say. It is called outside every lock of ours, and none of its methods waits for the API server,
// but for Lock, which has a goroutine of its own.
type Performer interface {
	Activate(pods []*v1.Pod)
	// Ask says whether a gang that waits would find a place now, as far as the engine can tell, and otherwise why not.
	Ask(turn Turn) (fits bool, reason string)
	Allow(members []types.UID)
	Reject(members []types.UID, message string)
	Lock(ctx context.Context, lock Lock, gate *Gate) error
	Unlock(places []Placed)
	Release(gang shim.Key)
	ReleasePod(pod types.UID)
	ClearNominations(pods []*v1.Pod)
	Forget(id workload.GangID)
}

// Run performs effects until the context ends, one after the other. It is the only place from which the table moves pods in
// the scheduler or gives anything back.
func (t *Table) Run(ctx context.Context, performer Performer) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.signal:
		case <-timer.C:
		}
		for effects, next := t.take(); ; effects, next = t.take() {
			if len(effects) == 0 {
				timer.Reset(next)
				break
			}
			for _, effect := range effects {
				t.perform(ctx, performer, effect)
			}
		}
	}
}

// take lets time pass and returns what is to be performed, and how long nothing else is due.
func (t *Table) take() (effects []Effect, next time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if at := t.machine.Next(); !at.IsZero() && !now.Before(at) {
		t.step(Tick{})
	}
	effects, t.effects = t.effects, nil
	next = sweep
	if at := t.machine.Next(); !at.IsZero() {
		next = min(max(at.Sub(now), time.Millisecond), sweep)
	}
	return effects, next
}

func (t *Table) perform(ctx context.Context, performer Performer, effect Effect) {
	switch e := effect.(type) {
	case Activate:
		performer.Activate(e.Pods)
	case Ask:
		answer := RoomAnswered{ID: e.ID}
		if turn, waits := t.peek(e.ID); waits {
			answer.Fits, answer.Reason = performer.Ask(turn)
		}
		t.Step(answer)
	case Allow:
		performer.Allow(e.Members)
	case Reject:
		performer.Reject(e.Members, e.Message)
	case Lock:
		go t.lock(ctx, performer, e)
	case Unlock:
		performer.Unlock(e.Places)
	case Release:
		performer.Release(e.Key)
		t.Step(PlacesReleased{Plan: e.Plan})
	case ReleasePod:
		performer.ReleasePod(e.UID)
	case ClearNominations:
		performer.ClearNominations(e.Pods)
	case Forget:
		performer.Forget(e.ID)
	}
}

// lock takes the locks of a plan, for all of its members. The versions of the pods are those from before.
func (t *Table) lock(ctx context.Context, performer Performer, lock Lock) {
	t.mu.Lock()
	gate := t.gate(lock.Plan)
	for _, place := range lock.Places {
		gate.versions[place.Pod.UID] = place.Pod.ResourceVersion
	}
	t.mu.Unlock()
	err := performer.Lock(ctx, lock, gate)
	t.Step(LocksTaken{Plan: lock.Plan, Places: lock.Places, Err: err})
}
