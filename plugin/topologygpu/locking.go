// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/frond-scheduler/frond/plugin/failpoint"
	"github.com/frond-scheduler/frond/plugin/gangs"
	"github.com/frond-scheduler/frond/plugin/locks"
	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// How long locks may take: those of one pod, and of a gang beside what each of its nodes adds (two cores write some 590 Leases
// a second; a tenth of that is allowed for). Of a gang that is half bound it is less, because its bound members are deleted
// when it does not get on.
const (
	lockWithin     = 10 * time.Second
	lockHalfWithin = 6 * time.Second
	lockPerNode    = 15 * time.Millisecond
)

var (
	errDropped     = errors.New(reasonDropped)
	errBookingGone = errors.New("a node of the plan was removed, and what was booked there with it")
)

// The Leases have a client of their own: locking a gang of 1,024 nodes must not wait behind events, nor hold them up.
const (
	lockQPS   = 1000
	lockBurst = 2000
)

func (c *cluster) startLocks(ctx context.Context, logger klog.Logger, config *rest.Config) error {
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = lockQPS, lockBurst
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for device locks: %w", err)
	}
	holder, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("naming the holder of device locks: %w", err)
	}
	c.locks, err = locks.New(client, locks.Options{
		Namespace: c.lockNamespace, Holder: holder, Logger: logger, Now: c.now, Leading: c.leading,
		Bound:   c.mirror.Holdings,
		GPUs:    func(pod *v1.Pod) int { return int(c.reader.GPUs(pod)) },
		HasNode: func(name string) bool { _, known := c.mirror.Slot(name); return known },
		Find:    c.mirror.Find,
		GangOf:  c.leaseOf,
		OnConflict: func(held *locks.HeldError) {
			logger.Info("Lock conflict", "node", held.Node, "gpu", held.GPU, "pod", held.Pod, "owner", held.Name, "reserved", held.Pending)
		},
		Changed: c.lockChanged,
	})
	if err != nil {
		return err
	}
	go func() {
		if err := c.locks.Run(ctx); err != nil && ctx.Err() == nil {
			logger.Error(err, "Device locks are not watched")
		}
	}()
	return nil
}

// lockChanged: what is locked for pods that are not bound is not to be had; and a lock of a pending pod that this process has
// not taken tells that a scheduler before it died while it bound the pod's gang.
func (c *cluster) lockChanged(node string) {
	owners := c.locks.Owners(node)
	if c.mirror.SetOwners(node, owners) {
		c.roomAppeared(true)
	}
	for _, uid := range owners {
		c.table.Step(gangs.LockFound{UID: uid})
		if bound := c.mirror.BoundTo(uid); bound != "" && bound != node {
			c.locks.Free(node, uid)
		}
	}
}

// leaseOf is the Lease of a pod's gang.
func (c *cluster) leaseOf(pod *v1.Pod) (name string, certain bool) {
	if _, ours := c.profiles.Load(pod.Spec.SchedulerName); !ours {
		return "", true // whoever binds it, and wherever: it is not in our plans
	}
	switch class := c.reader.Classify(pod); class.Kind {
	case workload.Member:
		return gangLease(class.Gang), true
	case workload.Unknown:
		return "", false
	default:
		return "", true
	}
}

func gangLease(id workload.GangID) string {
	return locks.GangLease(id.Kind, id.Namespace, id.Name, id.UID)
}

// lockGang returns once every member of the pod's plan stands at Bind and every GPU of the plan is locked.
func (p *Plugin) lockGang(ctx context.Context, pod *v1.Pod, number uint64) (*gangs.Gate, error) {
	gate := p.table.Ready(pod.UID, number)
	if gate == nil {
		return nil, errDropped
	}
	select {
	case <-gate.Done():
		return gate, gate.Err()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// lockPlan takes what a plan needs, for all of its members. Not with one pod's context: the others wait for it, too.
func (c *cluster) lockPlan(ctx context.Context, lock gangs.Lock, gate *gangs.Gate) error {
	wants := map[string][]locks.Claimant{}
	for _, place := range lock.Places {
		if place.Node == "" {
			continue
		}
		annotations, err := c.annotations(place.Pod, place.Node)
		if shim.IsCode(err, shim.CodeUnknown) {
			return errBookingGone
		} else if err != nil {
			return err
		}
		wants[place.Node] = append(wants[place.Node], claimant(place.Pod, annotations))
	}
	if c.locks == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lockTime(len(wants), len(lock.Around) > 0))
	defer cancel()
	// The gang first: what other leaders may do with it is known before anything of a node's is taken.
	bound := make(map[types.UID]bool, len(lock.Around))
	for _, uid := range lock.Around {
		bound[uid] = true
	}
	versions, err := c.locks.TakeGang(ctx, locks.Gang{Lease: gangLease(lock.ID), Namespace: lock.ID.Namespace, Name: lock.ID.Name, Bound: bound})
	if err != nil {
		return err
	}
	gate.Renew(versions)
	_ = failpoint.Hit("gang-locked")
	return c.locks.TakeAll(ctx, wants)
}

// lockTime is how long all Leases of a plan may take; no Binding is sent before the last one is had. It grows with the plan.
func lockTime(nodes int, half bool) time.Duration {
	within := lockWithin
	if half {
		within = lockHalfWithin
	}
	return within + time.Duration(nodes)*lockPerNode
}

// checkGang: a Binding was refused because its pod has changed. If that was another scheduler that took the gang over, nothing
// of this plan may go on.
func (p *Plugin) checkGang(ctx context.Context, pod *v1.Pod, gate *gangs.Gate, number uint64) error {
	if gate == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lockWithin)
	defer cancel()
	err := p.locks.CheckGang(ctx, gangLease(gate.Gang))
	if held := (*locks.GangHeldError)(nil); errors.As(err, &held) {
		p.table.Step(gangs.LocksLost{UID: pod.UID, Plan: number})
	}
	return err
}

// lockPod locks the GPUs of one pod; those that it has already stay its own.
func (p *Plugin) lockPod(ctx context.Context, pod *v1.Pod, node string, annotations map[string]string) error {
	ctx, cancel := context.WithTimeout(ctx, lockWithin)
	defer cancel()
	return p.locks.Take(ctx, node, []locks.Claimant{claimant(pod, annotations)})
}

// unlock gives back what pods have locked, once the API server has confirmed that they are not bound there. nodes: besides
// those that the watch has shown.
func (c *cluster) unlock(pods []types.UID, nodes ...string) {
	if c.locks == nil {
		return
	}
	for _, uid := range pods {
		for _, node := range append(c.mirror.LockedOn(uid), nodes...) {
			c.locks.Free(node, uid)
		}
	}
}

// unlockElsewhere gives back what a bound pod has locked on other nodes than its own: an earlier plan, or an earlier scheduler,
// had other places for it.
func (c *cluster) unlockElsewhere(pod *v1.Pod) {
	if c.locks == nil || pod.Spec.NodeName == "" {
		return
	}
	for _, node := range c.mirror.LockedOn(pod.UID) {
		if node != pod.Spec.NodeName {
			c.locks.Free(node, pod.UID)
		}
	}
}

func claimant(pod *v1.Pod, annotations map[string]string) locks.Claimant {
	return locks.Claimant{Pod: pod.UID, Namespace: pod.Namespace, Name: pod.Name, GPUs: strings.Split(annotations[workload.Allocated], ",")}
}
