// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	backoffLeast = 20 * time.Millisecond
	backoffMost  = 2 * time.Second
	// callTimeout is what one call to the API server may take. Without it a cut connection would be waited for as long as
	// the caller's context lives.
	callTimeout = 5 * time.Second
	// maxRaces is how often a write may be lost to another writer.
	maxRaces = 40
)

// waiter sleeps, or says why not.
type waiter func(ctx context.Context, length time.Duration) error

func pause(ctx context.Context, length time.Duration) error {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// backoff is a random part of a span that doubles: writers that have met once should not meet again.
func backoff(attempt int) time.Duration {
	span := min(backoffLeast<<min(attempt, 10), backoffMost)
	return span/4 + rand.N(span*3/4)
}

// outcome of a write.
type outcome int

const (
	done    outcome = iota
	lost            // somebody else has written, or it is gone: certainly not carried out
	refused         // certainly not carried out, and will not be
	unknown         // no answer, or one that leaves open whether it was carried out
)

func judgeWrite(err error) outcome {
	switch {
	case err == nil:
		return done
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err):
		return lost
	case final(err):
		return refused
	default:
		return unknown
	}
}

// final: the API server has understood and does not want it.
func final(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) ||
		apierrors.IsMethodNotSupported(err) || apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsNotAcceptable(err) ||
		apierrors.IsUnsupportedMediaType(err)
}

// ---- the newest that is known of each Lease ---------------------------------------------------------------------------

// enter waits for a node's gate; leave gives it back.
func (l *Locks) enter(ctx context.Context, name string) (*node, error) {
	n := l.use(name, 1)
	select {
	case n.gate <- struct{}{}:
		return n, nil
	case <-ctx.Done():
		l.use(name, -1)
		return nil, context.Cause(ctx)
	}
}

func (l *Locks) leave(n *node) {
	<-n.gate
	l.use(n.name, -1)
}

// use counts who needs the record of a node; one that says nothing and that nobody needs is dropped.
func (l *Locks) use(name string, by int) *node {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.record(name)
	n.uses += by
	l.forget(n)
	return n
}

func (l *Locks) forget(n *node) {
	if n.uses == 0 && n.lease == nil && len(n.last.owners)+len(n.taken)+len(n.unwanted) == 0 {
		delete(l.nodes, n.name)
	}
}

func newNode(name string) *node {
	return &node{
		name: name, gate: make(chan struct{}, 1),
		taken: map[types.UID]bool{}, unwanted: map[types.UID]bool{}, seen: map[types.UID]time.Time{},
	}
}

func (l *Locks) record(name string) *node {
	n := l.nodes[name]
	if n == nil {
		n = newNode(name)
		l.nodes[name] = n
	}
	return n
}

// observe takes a Lease that the API server has shown us, unless a newer one is known.
func (l *Locks) observe(lease *coordinationv1.Lease) {
	content := parse(lease)
	l.mu.Lock()
	n := l.record(lease.Name)
	news := n.lease == nil || newer(lease.ResourceVersion, n.lease.ResourceVersion)
	if news {
		n.lease, n.table = lease, content
		n.remember(content)
	}
	others := news && l.othersReserve(n)
	l.mu.Unlock()
	switch {
	case !news || content.alien:
	case content.err != nil:
		l.log.Error(content.err, "A lock cannot be read; it will be repaired from bound pods", "node", lease.Name)
		l.soon(0)
	case others:
		l.soon(l.opts.Patience)
	}
}

// othersReserve notes since when owners that another scheduler entered have been there, and says whether one is new.
func (l *Locks) othersReserve(n *node) bool {
	news := false
	for uid, note := range n.table.pods {
		if _, known := n.seen[uid]; !known && note.By != l.me && !n.taken[uid] {
			n.seen[uid], news = l.opts.Now(), true
		}
	}
	for uid := range n.seen {
		if _, there := n.table.pods[uid]; !there {
			delete(n.seen, uid)
		}
	}
	return news
}

// observeGone takes note that a Lease is not there any more, unless a newer one is known.
func (l *Locks) observeGone(name, version string) {
	l.mu.Lock()
	n := l.nodes[name]
	gone := n != nil && n.lease != nil && !newer(n.lease.ResourceVersion, version)
	lostOwners := 0
	if gone {
		n.lease, n.table = nil, table{}
		lostOwners = len(n.last.owners)
		l.forget(n)
	}
	l.mu.Unlock()
	if lostOwners > 0 {
		l.log.Error(nil, "A lock with owners was deleted; it will be written again from what was seen last and from bound pods",
			"node", name, "owners", lostOwners)
		l.soon(0)
	}
}

// remember keeps content that could be read. Of a damaged entry the owner before stays.
func (n *node) remember(content table) {
	if content.whole {
		return
	}
	kept := content.clone()
	for gpu := range content.bad {
		if uid, known := n.last.owners[gpu]; known {
			kept.owners[gpu] = uid
			if _, noted := kept.pods[uid]; !noted {
				kept.pods[uid] = n.last.pods[uid]
			}
		}
	}
	clear(kept.bad)
	kept.err = nil
	n.last = kept
}

// newer compares resource versions; one that cannot be compared is taken for newer, and compare-and-swap finds out.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil || order > 0
}

// known is what is known of a Lease without asking; false: not enough.
func (l *Locks) known(n *node) (*coordinationv1.Lease, table, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n.lease == nil {
		return nil, n.last, l.synced.Load() && !n.doubtful()
	}
	return n.lease, n.table, !n.doubtful()
}

// ---- calls to the API server --------------------------------------------------------------------------------------------

// read asks the API server itself. It repeats until there is an answer.
func (l *Locks) read(ctx context.Context, n *node) (*coordinationv1.Lease, table, error) {
	var lease *coordinationv1.Lease
	err := l.persist(ctx, func(ctx context.Context) (err error) {
		lease, err = l.client.CoordinationV1().Leases(l.opts.Namespace).Get(ctx, n.name, metav1.GetOptions{})
		return err
	})
	switch {
	case apierrors.IsNotFound(err):
		l.mu.Lock()
		version := ""
		if n.lease != nil {
			version = n.lease.ResourceVersion
		}
		l.mu.Unlock()
		l.observeGone(n.name, version)
		l.mu.Lock()
		defer l.mu.Unlock()
		return nil, n.last, nil
	case err != nil:
		return nil, table{}, fmt.Errorf("read Lease %s/%s: %w", l.opts.Namespace, n.name, err)
	}
	l.observe(lease)
	return lease, parse(lease), nil
}

// persist repeats a call that can be repeated until it has an answer or the context ends.
func (l *Locks) persist(ctx context.Context, call func(context.Context) error) error {
	for attempt := 0; ; attempt++ {
		limited, cancel := context.WithTimeout(ctx, callTimeout)
		err := call(limited)
		cancel()
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || final(err) {
			return err
		}
		l.stats.retries.Add(1)
		if stop := l.wait(ctx, backoff(attempt)); stop != nil {
			return errors.Join(stop, err)
		}
	}
}

// swap writes content over the Lease that it was made from (nil: none), if that is still the current one.
func (l *Locks) swap(ctx context.Context, n *node, base *coordinationv1.Lease, content table) (*coordinationv1.Lease, error) {
	next, version := l.over(base, n.name), absent
	if base != nil {
		version = base.ResourceVersion
	}
	if err := content.write(next); err != nil {
		return nil, fmt.Errorf("lock node %s: %w", n.name, err)
	}
	written, err := l.write(ctx, next)
	l.settle(n, version, err)
	if err != nil {
		return nil, err
	}
	l.observe(written)
	return written, nil
}

// over is a Lease that can be written over base, if that is still the current one; nil: if there is none of that name.
func (l *Locks) over(base *coordinationv1.Lease, name string) *coordinationv1.Lease {
	if base == nil {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: l.opts.Namespace, Name: name}}
	}
	next := base.DeepCopy()
	next.ManagedFields = nil // the API server's to keep
	return next
}

// write makes this process the holder of what over has returned.
func (l *Locks) write(ctx context.Context, next *coordinationv1.Lease) (written *coordinationv1.Lease, err error) {
	// The count makes every write a change: an update that changes nothing would not get a new resource version, and a
	// write in doubt could still arrive after it.
	writes := int32(0)
	if next.Spec.LeaseTransitions != nil && *next.Spec.LeaseTransitions < math.MaxInt32 {
		writes = *next.Spec.LeaseTransitions + 1
	}
	next.Spec.LeaseTransitions, next.Spec.HolderIdentity = &writes, &l.me

	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	l.stats.writes.Add(1)
	leases := l.client.CoordinationV1().Leases(l.opts.Namespace)
	if next.ResourceVersion == "" {
		written, err = leases.Create(ctx, next, metav1.CreateOptions{})
		err = l.missingNamespace(err, next.Name)
	} else {
		written, err = leases.Update(ctx, next, metav1.UpdateOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("write Lease %s/%s: %w", l.opts.Namespace, next.Name, err)
	}
	return written, nil
}

// again waits until a write that failed may be tried once more, or says why it may not. races: those that others overtook.
func (l *Locks) again(ctx context.Context, err error, attempt int, races *int) error {
	switch judgeWrite(err) {
	case refused:
		return err
	case lost:
		if *races++; *races > maxRaces {
			return fmt.Errorf("%d writes were overtaken by others: %w", *races, err)
		}
	case unknown:
		l.stats.retries.Add(1)
	}
	if stop := l.wait(ctx, backoff(attempt)); stop != nil {
		return errors.Join(stop, err)
	}
	return nil
}

// missingNamespace: a Lease that cannot be created because its namespace is not there will not be by trying again.
func (l *Locks) missingNamespace(err error, lease string) error {
	if apierrors.IsNotFound(err) {
		return apierrors.NewForbidden(coordinationv1.Resource("leases"), lease, fmt.Errorf("namespace %s does not exist", l.opts.Namespace))
	}
	return err
}

// remove deletes the Lease of a node that is gone, if it is still the one that was read.
func (l *Locks) remove(ctx context.Context, n *node, base *coordinationv1.Lease) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	l.stats.writes.Add(1)
	err := l.client.CoordinationV1().Leases(l.opts.Namespace).Delete(ctx, n.name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &base.UID, ResourceVersion: &base.ResourceVersion},
	})
	if apierrors.IsNotFound(err) {
		err = nil
	}
	l.settle(n, base.ResourceVersion, err)
	if err != nil {
		return fmt.Errorf("delete Lease %s/%s: %w", l.opts.Namespace, n.name, err)
	}
	l.observeGone(n.name, base.ResourceVersion)
	return nil
}

// absent stands for the resource version of a Lease that is not there.
const absent = "absent"

// settle notes whether a write may still arrive.
func (l *Locks) settle(n *node, version string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch judgeWrite(err) {
	case unknown:
		n.doubt = version
	case lost:
		l.stats.races.Add(1)
		fallthrough
	case done:
		n.doubt = "" // the resource version has moved on
	}
}

// doubtful: an earlier write may still change the Lease as it is known.
func (n *node) doubtful() bool {
	if n.lease == nil {
		return n.doubt == absent
	}
	return n.doubt == n.lease.ResourceVersion
}

// inDoubt: an earlier write may still change this Lease.
func (l *Locks) inDoubt(n *node, lease *coordinationv1.Lease) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return lease != nil && lease.ResourceVersion == n.doubt
}
