// SPDX-License-Identifier: Apache-2.0

package locks

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/frond-scheduler/frond/plugin/apis"
)

const (
	// freeDelay lets the pods of one node that end together be freed in one write.
	freeDelay = 50 * time.Millisecond
	// freeTime is how long one try of freeing may take; the queue tries again.
	freeTime = 30 * time.Second
	workers  = 8
	// standbyPause is how soon a process that has become the leader compares for the first time: what died with the leader
	// before it is locked until then.
	standbyPause = time.Second
)

// Run watches the Leases, frees what Free was told, and compares at the start and every minute. It returns when the
// context has ended and everything that it started has.
func (l *Locks) Run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(l.client, 0, informers.WithNamespace(l.opts.Namespace),
		// Agents renew theirs by the hundred a second in a large cluster, and they are nobody's lock.
		informers.WithTweakListOptions(func(options *metav1.ListOptions) { options.LabelSelector = "!" + apis.HeartbeatLabel }),
		informers.WithTransform(func(object any) (any, error) {
			if lease, ok := object.(*coordinationv1.Lease); ok {
				lease.ManagedFields = nil
			}
			return object, nil
		}))
	leases := factory.Coordination().V1().Leases().Informer()
	handler, err := leases.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { l.sees(object) },
		UpdateFunc: func(_, object any) { l.sees(object) },
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			lease, ok := object.(*coordinationv1.Lease)
			switch {
			case ok && isGang(lease):
				l.observeGangGone(lease.Name, lease.ResourceVersion)
			case ok:
				l.observeGone(lease.Name, lease.ResourceVersion)
				l.changed(lease.Name)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch the Leases of namespace %s: %w", l.opts.Namespace, err)
	}
	var group sync.WaitGroup
	factory.Start(ctx.Done())
	for range workers {
		group.Go(func() { l.work(ctx) })
	}
	if cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		l.synced.Store(true)
		l.watch(ctx)
	}
	l.queue.ShutDown()
	group.Wait()
	factory.Shutdown()
	return nil
}

func (l *Locks) sees(object any) {
	lease, ok := object.(*coordinationv1.Lease)
	switch {
	case !ok || foreign(lease):
	case isGang(lease):
		l.observeGang(lease)
	default:
		l.observe(lease)
		l.changed(lease.Name)
	}
}

func (l *Locks) changed(node string) {
	if l.opts.Changed != nil {
		l.opts.Changed(node)
	}
}

// watch compares when it is time, until the context ends.
func (l *Locks) watch(ctx context.Context) {
	timer := time.NewTimer(0) // the first comparison is due now
	defer timer.Stop()
	due := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case in := <-l.alarm:
			if at := time.Now().Add(in); at.Before(due) {
				due = at
				timer.Reset(in)
			}
		case <-timer.C:
			leads, next := l.leading(), l.opts.Every
			if !leads {
				next = min(next, standbyPause)
			}
			due = time.Now().Add(next)
			timer.Reset(next)
			if leads {
				l.compare(ctx)
			}
		}
	}
}

func (l *Locks) compare(ctx context.Context) {
	report := l.Compare(ctx)
	if report.Repairs != (Repairs{}) {
		l.log.Info("Locks and bound pods differed", "freed", report.Freed, "entered", report.Entered, "replaced", report.Replaced,
			"revoked", report.Revoked, "rebuilt", report.Rebuilt, "deleted", report.Deleted, "doubleBooked", report.DoubleBooked)
	}
	for _, double := range report.Doubles {
		l.log.Error(nil, "Two bound pods have one GPU", "node", double.Node, "gpu", double.GPU, "pods", double.Pods)
	}
	for _, err := range report.Errors {
		l.log.Error(err, "A lock was not compared")
	}
}

// soon asks for a comparison. One request is kept: the next comparison sees everything, and asks again for what is not due.
func (l *Locks) soon(in time.Duration) {
	for {
		select {
		case l.alarm <- in:
			return
		case before := <-l.alarm:
			in = min(in, before)
		}
	}
}

// Free gives back what pods own on a node, soon: one write a node, however many pods. It asks the API server first: a pod
// that is bound there keeps its GPUs, and one that is pending loses them only after no Binding of it can succeed.
func (l *Locks) Free(name string, pods ...types.UID) {
	if !l.leading() {
		return // the leader does it
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.nodes[name]
	if n == nil {
		return
	}
	found := false
	for _, uid := range pods {
		for _, owner := range n.readable().owners {
			if owner == uid {
				n.unwanted[uid], found = true, true
				break
			}
		}
	}
	if found {
		l.queue.AddAfter(name, freeDelay)
	}
}

func (l *Locks) work(ctx context.Context) {
	for {
		name, ended := l.queue.Get()
		if ended {
			return
		}
		limited, cancel := context.WithTimeout(ctx, freeTime)
		err := l.tidy(limited, name, &pass{})
		cancel()
		if err != nil && ctx.Err() == nil {
			l.log.Error(err, "GPUs were not freed; will try again", "node", name)
			l.queue.AddRateLimited(name)
		} else {
			l.queue.Forget(name)
		}
		l.queue.Done(name)
	}
}
