// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/util"

	"github.com/frond-scheduler/frond/plugin/gangs"
	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// performer does to the scheduler, the engine and the API what the lifecycle of gangs says: the executor in plugin/gangs calls
// it, one effect after the other, and nobody else moves a gang.
type performer struct {
	*cluster
	logger klog.Logger
}

var _ gangs.Performer = &performer{}

// Activate moves pods to the scheduling queue.
func (p *performer) Activate(pods []*v1.Pod) { p.activate(p.logger, pods...) }

func (c *cluster) activate(logger klog.Logger, pods ...*v1.Pod) {
	wanted := make(map[string]*v1.Pod, len(pods))
	for _, pod := range pods {
		wanted[pod.Namespace+"/"+pod.Name] = pod
	}
	c.first.Activate(logger, wanted)
}

// Allow lets members go that wait in Permit. Who has not come to wait yet finds its plan permitted.
func (p *performer) Allow(members []types.UID) {
	for _, uid := range members {
		if waiting := p.first.GetWaitingPod(uid); waiting != nil {
			waiting.Allow(Name)
		}
	}
}

// Reject ends the waiting of members whose plan has ended, and frees the nodes that were kept for them.
func (p *performer) Reject(members []types.UID, message string) {
	p.mirror.Unyield(members...)
	p.kept.forgetAll()
	p.unlock(members)
	p.report.podsTouched(members)
	for _, uid := range members {
		p.first.DeleteNominatedPodIfExists(&v1.Pod{ObjectMeta: objectMeta(uid)})
		if waiting := p.first.GetWaitingPod(uid); waiting != nil {
			waiting.Reject(Name, message)
		}
	}
}

// Lock returns once the gang and every GPU of its plan are locked: one write for the gang, and one a node.
func (p *performer) Lock(ctx context.Context, lock gangs.Lock, gate *gangs.Gate) error {
	return p.lockPlan(ctx, lock, gate)
}

// Unlock gives back what an attempt to lock may have taken.
func (p *performer) Unlock(places []gangs.Placed) {
	for _, place := range places {
		if place.Node != "" {
			p.unlock([]types.UID{place.Pod.UID}, place.Node)
		}
	}
}

// Release has the engine give back what it has booked for a gang and nobody is bound to.
func (p *performer) Release(gang shim.Key) {
	_, _ = p.engine.ReleaseGang(gang) // unknown: nothing was held, which is what was wanted
}

// ReleasePod has the engine give back what it has booked for one member.
func (p *performer) ReleasePod(pod types.UID) {
	_ = p.engine.Release(shim.PodKey(string(pod))) // unknown: nothing was held
	p.unlock([]types.UID{pod})
}

// Forget drops what the gang's last attempt has found.
func (p *performer) Forget(id workload.GangID) { p.kept.forget(id) }

// ClearNominations runs aside: the API may be slow, and nobody waits for it.
func (p *performer) ClearNominations(pods []*v1.Pod) {
	go func() {
		for _, pod := range pods {
			status := pod.Status.DeepCopy()
			status.NominatedNodeName = ""
			if err := util.PatchPodStatus(p.ctx, p.first.ClientSet(), pod.Name, pod.Namespace, &pod.Status, status); err != nil && !apierrors.IsNotFound(err) {
				p.logger.Error(err, "A nomination was not taken back", "pod", klog.KObj(pod), "node", pod.Status.NominatedNodeName)
			}
		}
	}()
}
