// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/failpoint"
)

// HeldError says that somebody owns a GPU that was asked for.
type HeldError struct {
	Node    string
	GPU     string
	Pod     types.UID // asked for it
	Owner   types.UID // has it
	Name    string    // the owner's NAMESPACE/NAME, as far as known
	Pending bool      // the owner is reserved there, not bound
}

func (e *HeldError) Error() string {
	what := "is bound to it"
	if e.Pending {
		what = "has it reserved"
	}
	return fmt.Sprintf("GPU %s of node %s is locked: pod %s (uid %s) %s", e.GPU, e.Node, e.Name, e.Owner, what)
}

// Take locks the GPUs of one node for pods, all of them or none. It asks again and again while the API server does not
// answer, until the context ends; then the locks may or may not be there, and tidying up gives them back.
//
// A Binding must carry, as its resource version, that of a copy of the pod which was read before Take. If it is refused
// for that, read the pod again, Take again, and bind with the newer one: only so can a reservation be revoked safely.
func (l *Locks) Take(ctx context.Context, name string, want []Claimant) error {
	_, err := l.take(ctx, name, want)
	return err
}

// take returns the pods whose GPUs this process did not have before, and nobody else has reserved for them.
func (l *Locks) take(ctx context.Context, name string, want []Claimant) ([]types.UID, error) {
	if err := check(name, want); err != nil {
		return nil, err
	}
	n, err := l.enter(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("lock node %s: %w", name, err)
	}
	defer l.leave(n)
	content, err := l.takeAt(ctx, n, want)
	if err != nil {
		var held *HeldError
		if errors.As(err, &held) {
			l.stats.conflicts.Add(1)
			if l.opts.OnConflict != nil {
				l.opts.OnConflict(held)
			}
		}
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var fresh []types.UID
	for _, claim := range want {
		if !n.taken[claim.Pod] && content.pods[claim.Pod].By == l.me {
			fresh = append(fresh, claim.Pod)
		}
		n.taken[claim.Pod] = true
		delete(n.unwanted, claim.Pod)
		delete(n.seen, claim.Pod)
	}
	return fresh, nil
}

// takeAt returns the content of the Lease with all of it taken.
func (l *Locks) takeAt(ctx context.Context, n *node, want []Claimant) (table, error) {
	fail := func(err error) (table, error) { return table{}, fmt.Errorf("lock node %s: %w", n.name, err) }
	judged := map[types.UID]sighting{}
	lease, content, usable := l.known(n)
	live := false
	for attempt, races := 0, 0; ; attempt++ {
		if !usable {
			var err error
			if lease, content, err = l.read(ctx, n); err != nil {
				return fail(err)
			}
			live = true
		}
		usable = false
		next, refusal, err := l.add(ctx, n.name, content, want, judged)
		if err != nil {
			return fail(err)
		}
		nothing := lease != nil && next.equal(content) && !l.inDoubt(n, lease)
		switch {
		case (refusal != nil || nothing) && !live:
			continue // what is only remembered refuses nobody, and lets nobody in without a write
		case refusal != nil:
			return table{}, refusal
		case nothing:
			return content, nil
		}
		if _, err = l.swap(ctx, n, lease, next); err == nil {
			return next, nil
		}
		if err = l.again(ctx, err, attempt, &races); err != nil {
			return fail(err)
		}
	}
}

// add enters the claims. The refusal is a HeldError or a LeaseError; an error is a question that has no answer. Pods that
// are found to have no right to what is in the way lose all that they have no right to; they are remembered in judged.
func (l *Locks) add(ctx context.Context, node string, content table, want []Claimant, judged map[types.UID]sighting) (next table, refusal, err error) {
	if content.whole {
		return next, content.err, nil
	}
	next = content.clone()
	for _, claim := range want {
		for _, gpu := range claim.GPUs {
			if raw, bad := next.bad[gpu]; bad {
				lease := l.opts.Namespace + "/" + node
				return next, &LeaseError{lease, OwnersAnnotation, shown(gpu) + ": " + shown(string(raw)), allowedEntry}, nil
			}
			owner, owned := next.owners[gpu]
			if owned && owner != claim.Pod {
				note := next.pods[owner]
				s, known := judged[owner]
				if !known {
					if s, err = l.sight(ctx, owner, note); err != nil {
						return next, nil, err
					}
				}
				entered := content.gpus(owner)
				if at := s.towards(node, gpu, entered); at != released {
					return next, &HeldError{node, gpu, claim.Pod, owner, note.Pod, at == reserved}, nil
				}
				judged[owner] = s
				maps.DeleteFunc(next.owners, func(other string, uid types.UID) bool {
					return uid == owner && s.towards(node, other, entered) == released
				})
			}
			next.owners[gpu] = claim.Pod
		}
		next.pods[claim.Pod] = l.sign(claim, content)
	}
	return next, nil, nil
}

// sign notes who took the GPUs. What another holder took stays good, but from then on belongs to both.
func (l *Locks) sign(claim Claimant, content table) note {
	signed := note{Pod: claim.Namespace + "/" + claim.Name, By: l.me}
	for _, owner := range content.owners {
		if owner == claim.Pod && content.pods[owner].By != l.me {
			signed.By = ""
		}
	}
	return signed
}

// check refuses what could not be read back.
func check(node string, want []Claimant) error {
	owner := map[string]types.UID{}
	for _, claim := range want {
		switch {
		case !plausible(string(claim.Pod), maxUID):
			return fmt.Errorf("lock node %s: %q is no pod UID", node, claim.Pod)
		case claim.Namespace == "" || claim.Name == "":
			return fmt.Errorf("lock node %s: pod %s: namespace and name must be given, got %q and %q", node, claim.Pod, claim.Namespace, claim.Name)
		case len(claim.GPUs) == 0:
			return fmt.Errorf("lock node %s: pod %s/%s: no GPUs", node, claim.Namespace, claim.Name)
		}
		for _, gpu := range claim.GPUs {
			if !plausible(gpu, maxID) {
				return fmt.Errorf("lock node %s: %q is no GPU id: allowed is %s", node, gpu, allowedEntry)
			}
			if other, twice := owner[gpu]; twice {
				return fmt.Errorf("lock node %s: GPU %s is asked for twice, for pods %s and %s", node, gpu, other, claim.Pod)
			}
			owner[gpu] = claim.Pod
		}
	}
	if len(owner) > maxEntries {
		return fmt.Errorf("lock node %s: %d GPUs; at most %d", node, len(owner), maxEntries)
	}
	return nil
}

const (
	// stopDelay is how long TakeAll waits for the other nodes when one has failed.
	stopDelay = 250 * time.Millisecond
	// giveBackTime is how long TakeAll tries to give back; what remains is given back from the queue.
	giveBackTime = 2 * time.Second
)

// TakeAll locks on several nodes at once. If one refuses, what was not held before is given back, and the first error by
// name of node is returned.
func (l *Locks) TakeAll(ctx context.Context, want map[string][]Claimant) error {
	names := slices.Sorted(maps.Keys(want))
	trying, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var failed atomic.Bool
	var locked atomic.Int32
	fresh, failures := make([][]types.UID, len(names)), make([]error, len(names))
	parallel(len(names), func(i int) {
		if failed.Load() {
			failures[i] = errElsewhere
			return
		}
		if fresh[i], failures[i] = l.take(trying, names[i], want[names[i]]); failures[i] != nil && !failed.Swap(true) {
			// Writes under way may end: breaking them off would leave them in doubt.
			time.AfterFunc(stopDelay, func() { stop(errElsewhere) })
		} else if failures[i] == nil {
			_ = failpoint.HitNth("lock", int(locked.Add(1)), len(names))
		}
	})
	var first error
	for _, err := range failures {
		if first == nil || errors.Is(first, errElsewhere) {
			first = cmp.Or(err, first)
		}
	}
	if first == nil {
		return nil
	}
	// The caller's context may be what ended it all.
	giving, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime)
	defer cancel()
	parallel(len(names), func(i int) {
		l.giveBack(giving, names[i], fresh[i])
	})
	return first
}

var errElsewhere = errors.New("another node of the gang could not be locked")

// giveBack is for locks that nobody has used yet: there can be no Binding under way. Without pods it only sees to a write
// whose answer was lost.
func (l *Locks) giveBack(ctx context.Context, name string, pods []types.UID) {
	l.mu.Lock()
	n := l.record(name)
	for _, uid := range pods {
		delete(n.taken, uid)
	}
	clean := len(pods) == 0 && !n.doubtful()
	l.forget(n)
	l.mu.Unlock()
	if clean {
		return
	}
	if err := l.tidy(ctx, name, &pass{}); err != nil {
		l.queue.AddRateLimited(name)
	}
}

// parallel runs work for 0 … count−1 on a few goroutines and returns when all are done.
func parallel(count int, work func(i int)) {
	next := make(chan int)
	var group sync.WaitGroup
	for range min(count, width) {
		group.Go(func() {
			for i := range next {
				work(i)
			}
		})
	}
	for i := range count {
		next <- i
	}
	close(next)
	group.Wait()
}
