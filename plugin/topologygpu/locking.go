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

// lockWithin is how long all Leases of a gang may take; no Binding is sent before the last one is had. Of a gang that is half
// bound it is less, because its bound members are deleted when it does not get on.
const (
	lockWithin     = 10 * time.Second
	lockHalfWithin = 6 * time.Second
)

var (
	errDropped = errors.New(reasonDropped)
	errLeft    = errors.New("a member was deleted, or its node, before any was bound; the gang is planned anew")
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
		c.table.Began(uid)
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

// lockGang returns once the pod's gang and every GPU of its plan are locked. The first member that comes does it for all of
// them: one write, and one a node.
func (p *Plugin) lockGang(ctx context.Context, pod *v1.Pod, number uint64) (*gangs.Gate, error) {
	gate, first, places := p.table.Enter(pod.UID, number)
	if gate == nil {
		return nil, errDropped
	}
	if first {
		err := p.lockPlaces(gate, places)
		if err == nil && !p.table.Complete(pod.UID, number) {
			err = errLeft
			for _, place := range places { // of those that have left, too: theirs may have been taken after they were gone
				p.unlock([]types.UID{place.Pod.UID}, place.Node)
			}
		}
		gate.Open(err)
	}
	select {
	case <-gate.Done():
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := gate.Err(); err != nil {
		p.reject(p.table.Abort(pod.UID, number), err.Error())
		return nil, err
	}
	return gate, nil
}

func (p *Plugin) lockPlaces(gate *gangs.Gate, places []gangs.Placed) error {
	if p.locks == nil {
		return nil
	}
	wants := map[string][]locks.Claimant{}
	for _, place := range places {
		if place.Node == "" {
			continue
		}
		annotations, err := p.annotations(place.Pod, place.Node)
		if shim.IsCode(err, shim.CodeUnknown) {
			continue // its node was removed, and its booking with it: it fails by itself
		} else if err != nil {
			return err
		}
		wants[place.Node] = append(wants[place.Node], claimant(place.Pod, annotations))
	}
	// Not with one pod's context: the others of its gang wait for it, too.
	within := lockWithin
	if len(gate.Around) > 0 {
		within = lockHalfWithin
	}
	ctx, cancel := context.WithTimeout(p.ctx, within)
	defer cancel()
	// The gang first: what other leaders may do with it is known before anything of a node's is taken.
	bound := make(map[types.UID]bool, len(gate.Around))
	for _, uid := range gate.Around {
		bound[uid] = true
	}
	versions, err := p.locks.TakeGang(ctx, locks.Gang{Lease: gangLease(gate.Gang), Namespace: gate.Gang.Namespace, Name: gate.Gang.Name, Bound: bound})
	if err != nil {
		return err
	}
	gate.Renew(versions)
	_ = failpoint.Hit("gang-locked")
	return p.locks.TakeAll(ctx, wants)
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
		p.reject(p.table.Abort(pod.UID, number), err.Error())
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
