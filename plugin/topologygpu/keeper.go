// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/frond-scheduler/frond/plugin/gangs"
)

// The keeper releases gangs that stay half-bound: no scheduling cycle would do that. Only the leader may, and a standby has
// the plugin, too, so it asks first. What it deletes it reads from the API server itself before: a leader that was asleep
// may know less than it believes.
const (
	keeperPause = time.Second
	asleepAfter = 5 * time.Second // between two rounds: what was seen before is too old to act on
	keeperCall  = 5 * time.Second
)

const (
	reasonReleased  = "GangReleased"
	messageReleased = "the gang could not be completed, so its bound pods are deleted and it starts anew"
)

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
	for _, half := range k.table.Halves() {
		k.half(ctx, half, asleep)
	}
	k.sweep(ctx)
}

// sweep deletes the Leases of gangs that are gone.
func (k *keeper) sweep(ctx context.Context) {
	if k.locks == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, keeperCall)
	defer cancel()
	err := k.locks.SweepGangs(ctx, func() map[string]bool {
		living := map[string]bool{}
		for _, id := range k.table.Gangs() {
			living[gangLease(id)] = true
		}
		return living
	})
	if err != nil {
		k.logger.Error(err, "Leases of gangs that are gone were not deleted; will try again")
	}
}

// half looks after one half-bound gang.
func (k *keeper) half(ctx context.Context, half gangs.Half, asleep bool) {
	logger := klog.LoggerWithValues(k.logger, "gang", half.ID.String(), "bound", len(half.Bound), "minMember", half.MinMember)
	ctx, cancel := context.WithTimeout(ctx, keeperCall)
	defer cancel()
	// One answer shows that the gang could be finished; all are read before anything is deleted. A gang that is being bound is
	// half-bound, too, and must not be held up.
	asked := half.Bound
	if !half.Overdue {
		asked = asked[:1]
	}
	live, err := k.live(ctx, asked)
	k.table.HalfSeen(half.ID, err == nil && !asleep)
	if err != nil || asleep || !half.Overdue {
		return
	}
	rejected, ok := k.table.Abandon(half.ID)
	if !ok {
		return // it became whole a moment ago
	}
	k.reject(rejected, messageReleased)
	logger.Info("Gang released: it was never whole and could not be completed")
	for _, pod := range live {
		k.recorder.Event(pod, v1.EventTypeWarning, reasonReleased, messageReleased)
		err := k.first.ClientSet().CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion}})
		if err != nil && !apierrors.IsNotFound(err) {
			logger.Error(err, "A bound pod of a half-bound gang was not deleted", "pod", klog.KObj(pod))
		}
	}
}

// live reads pods from the API server: those that are still bound.
func (k *keeper) live(ctx context.Context, pods []*v1.Pod) (live []*v1.Pod, err error) {
	for _, pod := range pods {
		found, err := k.first.ClientSet().CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, err
		case found.UID == pod.UID && found.Spec.NodeName != "":
			live = append(live, found)
		}
	}
	return live, nil
}
