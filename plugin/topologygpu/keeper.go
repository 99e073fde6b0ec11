// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/frond-scheduler/frond/plugin/gangs"
)

// The keeper releases gangs that stay half-bound: no scheduling cycle would do that. Only the leader may, and a standby has
// the plugin, too, so it asks first. What it deletes it reads from the API server itself before: a leader that was asleep
// may know less than it believes.
const (
	keeperPause = time.Second
	asleepAfter = 5 * time.Second // between two rounds: what was seen before is too old to act on
	keeperLook  = 3 * time.Second // with the pause less than asleepAfter: a slow answer is not sleep
	keeperCall  = 5 * time.Second

	sweepWithin = 30 * time.Second
	sweepRetry  = 15 * time.Second // a sweep that failed may have listed much

	keeperWidth = 32
	pageSize    = 500
)

// reasonReleased is the event of a bound pod that is deleted with its half-bound gang.
const reasonReleased = "GangReleased"

type keeper struct {
	*cluster
	logger klog.Logger
	last   time.Time // round
}

func (k *keeper) run(ctx context.Context) {
	ticker := time.NewTicker(keeperPause)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !k.synced() || !k.leading() {
			k.last = time.Time{}
			continue
		}
		k.round(ctx)
	}
}

func (k *keeper) round(ctx context.Context) {
	now := k.now()
	asleep := now.Sub(k.last) > asleepAfter
	k.last = now
	halves := k.table.Halves()
	workqueue.ParallelizeUntil(ctx, keeperWidth, len(halves), func(i int) { k.half(ctx, halves[i], asleep) })
}

// runSweep deletes the Leases of gangs that are gone. Not in the keeper's rounds: half-bound gangs do not wait for it.
func (k *keeper) runSweep(ctx context.Context) {
	pause := keeperPause
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = keeperPause
		if !k.synced() || !k.leading() {
			continue
		}
		if err := k.sweep(ctx); err != nil {
			k.logger.Error(err, "Leases of gangs that are gone were not deleted; will try again")
			pause = sweepRetry
		}
	}
}

func (k *keeper) sweep(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, sweepWithin)
	defer cancel()
	return k.locks.SweepGangs(ctx, func() map[string]bool {
		living := map[string]bool{}
		for _, id := range k.table.Gangs() {
			living[gangLease(id)] = true
		}
		return living
	})
}

// half looks after one half-bound gang.
func (k *keeper) half(ctx context.Context, half gangs.Half, asleep bool) {
	logger := klog.LoggerWithValues(k.logger, "gang", half.ID.String(), "bound", len(half.Bound), "minMember", half.MinMember)
	live, err := k.live(ctx, half)
	k.table.Step(gangs.HalfSeen{ID: half.ID, Confirmed: err == nil && !asleep})
	if err != nil || asleep || !half.Overdue {
		return
	}
	if !k.table.Abandon(half.ID) {
		return // it became whole a moment ago, or got on
	}
	logger.Info("Gang released: it was never whole and could not be completed")
	workqueue.ParallelizeUntil(ctx, keeperWidth, len(live), func(i int) {
		pod := live[i]
		ctx, cancel := context.WithTimeout(ctx, keeperCall)
		defer cancel()
		k.recorder.Event(pod, v1.EventTypeWarning, reasonReleased, string(gangs.CauseReleased))
		err := k.first.ClientSet().CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion}})
		if err != nil && !apierrors.IsNotFound(err) {
			logger.Error(err, "A bound pod of a half-bound gang was not deleted", "pod", klog.KObj(pod))
		}
	})
}

// live reads bound members from the API server: those that are still so. One answer shows that the gang could be finished; all
// are read before anything is deleted. A gang that is being bound is half-bound, too, and must not be held up.
func (k *keeper) live(ctx context.Context, half gangs.Half) (live []*v1.Pod, err error) {
	within := keeperLook
	if half.Overdue {
		within = keeperCall
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	pods := k.first.ClientSet().CoreV1().Pods(half.ID.Namespace)
	if !half.Overdue {
		if _, err := pods.Get(ctx, half.Bound[0].Name, metav1.GetOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
		return nil, nil
	}
	bound := make(map[types.UID]bool, len(half.Bound))
	for _, pod := range half.Bound {
		bound[pod.UID] = true
	}
	for page := (metav1.ListOptions{Limit: pageSize}); ; {
		list, err := pods.List(ctx, page)
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			if pod := &list.Items[i]; bound[pod.UID] && pod.Spec.NodeName != "" {
				live = append(live, pod)
			}
		}
		if page.Continue = list.Continue; page.Continue == "" {
			return live, nil
		}
	}
}
