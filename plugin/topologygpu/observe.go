// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/frond-scheduler/frond/plugin/gangs"
	"github.com/frond-scheduler/frond/plugin/mirror"
	"github.com/frond-scheduler/frond/plugin/workload"
)

// sources are the objects that pods refer to. Reading a pod and entering it into the table is one step, and so is changing
// an object and reading its pods anew: otherwise a pod could be entered as it was before its owner came, and stay so.
type sources struct {
	mu      sync.Mutex
	owners  *workload.Owners
	claims  *workload.Claims
	watches *watches // nil in tests that bring the objects themselves
}

func newSources() *sources {
	return &sources{owners: workload.NewOwners(), claims: workload.NewClaims()}
}

// observer feeds the gang table from informers: pods, and the objects that they refer to.
type observer struct {
	*cluster
	logger klog.Logger
}

// PodSeen: a pod was created or has changed.
func (o *observer) PodSeen(pod *v1.Pod) {
	o.unlockElsewhere(pod)
	o.demand.Set(pod, o.reader.GPUs(pod))
	o.sources.mu.Lock()
	defer o.sources.mu.Unlock()
	if link := workload.LinkOwner(pod); link != nil {
		o.ownerSet(link)
	}
	if _, ours := o.profiles.Load(pod.Spec.SchedulerName); ours {
		passed := o.sources.claims.Use(pod)
		o.read(pod)
		o.readAnew(claimSources(passed))
	}
}

// PodGone: a pod was deleted or has ended.
func (o *observer) PodGone(pod *v1.Pod) {
	o.told.forget(pod.UID)
	o.demand.Drop(pod.UID)
	if pod.Spec.NodeName != "" {
		o.nodeTouched(pod.Spec.NodeName)
		o.unlock([]types.UID{pod.UID}, pod.Spec.NodeName)
	} else {
		o.unlock([]types.UID{pod.UID})
	}
	o.sources.mu.Lock()
	o.table.Step(gangs.PodGone{UID: pod.UID})
	o.readAnew(claimSources(o.sources.claims.Leave(pod.UID)))
	if workload.LinkOwner(pod) != nil {
		o.ownerGone(pod.UID)
	}
	o.sources.mu.Unlock()
	o.report.podGone(pod.UID)
}

// NodeChanged: plans that count on the node, and of which nobody is being bound, are made anew.
func (o *observer) NodeChanged(name string) {
	o.nodeTouched(name)
	o.capacityChanged.Store(true)
	o.table.Step(gangs.NodeChanged{Node: name})
}

// nodeTouched: what waiting gangs have found out about the node may not be true any more.
func (o *observer) nodeTouched(name string) {
	if slot, known := o.mirror.Slot(name); known {
		o.kept.change(slot, o.now())
	}
}

// Freed: there may be room that was not there before.
func (o *observer) Freed(gpus bool) { o.roomAppeared(gpus) }

// ReportChanged: a GPU that a gang counts on may be dead, or there is room. Whoever waits is woken with the next look at the
// reports: those of a whole cluster may come at once.
func (o *observer) ReportChanged(name string) {
	o.NodeChanged(name)
	o.roomAppeared(true)
	o.reportsChanged.Store(true)
}

// Problem is told as an event on the object. Of a report only by the leader: every replica finds the same, and a condition
// tells it for good.
func (o *observer) Problem(object runtime.Object, reason, sentence string) {
	if (reason == mirror.ReasonReportRefused || reason == mirror.ReasonStaleReport) && !o.leading() {
		return
	}
	o.recorder.Event(object, v1.EventTypeWarning, reason, sentence)
}

// objectSet: an object that pods may refer to was created or has changed.
func (o *observer) objectSet(object any) {
	o.sources.mu.Lock()
	defer o.sources.mu.Unlock()
	switch now := object.(type) {
	case *workload.Owner:
		o.ownerSet(now)
	case *workload.Group:
		o.table.Step(gangs.SpecSet{ID: now.ID, Spec: now.Spec})
		o.report.groupSet(now)
	case *workload.Claim:
		name := types.NamespacedName{Namespace: now.Namespace, Name: now.Name}
		if o.sources.claims.Set(now) { // our own status is no news to its pods
			o.readAnew(claimSources([]types.NamespacedName{name}))
			o.report.claimTouched(name)
			if o.ended != nil && now.GangRef != "" {
				o.ended.claimSet(name)
			}
		}
	}
}

// objectGone: it was deleted, or can no longer be read.
func (o *observer) objectGone(object any) {
	o.sources.mu.Lock()
	defer o.sources.mu.Unlock()
	switch last := object.(type) {
	case *workload.Owner:
		o.ownerGone(last.UID)
	case *workload.Group:
		o.table.Step(gangs.SpecGone{ID: last.ID})
		o.report.groupGone(last)
	case *workload.Claim:
		name := types.NamespacedName{Namespace: last.Namespace, Name: last.Name}
		o.sources.claims.Drop(last)
		o.readAnew(claimSources([]types.NamespacedName{name}))
		o.report.claimTouched(name)
	}
}

// ---- under the lock of the sources ---------------------------------------------------------------------------------

// read enters a pod as it is read now.
func (o *observer) read(pod *v1.Pod) {
	class := o.reader.Classify(pod)
	if class.Needs != nil && o.sources.watches != nil {
		o.sources.watches.need(class.Needs)
	}
	o.table.Step(gangs.PodSet{Pod: pod, Class: class})
	o.report.podSeen(pod, class)
}

// readAnew reads the pods of these sources, because what they are, or what they ask for, may have changed.
func (o *observer) readAnew(changed []workload.Source) {
	if len(changed) > 0 {
		o.readPods(o.table.PodsFrom(changed...))
	}
}

func (o *observer) readPods(pods []*v1.Pod) {
	for _, pod := range pods {
		o.read(pod)
		o.table.Step(gangs.WishChanged{UID: pod.UID})
		if pod.Spec.NodeName == "" {
			continue
		}
		// The engine may have had it under no gang.
		if err := o.mirror.SetPod(pod); err != nil {
			o.logger.Error(err, "Pod not mirrored", "pod", klog.KObj(pod), "node", pod.Spec.NodeName)
		}
	}
}

func (o *observer) ownerSet(owner *workload.Owner) {
	before := o.sources.owners.Set(owner)
	for _, gang := range owner.Gangs {
		o.table.Step(gangs.SpecSet{ID: gang.ID, Spec: gang.Spec})
	}
	if before != nil && before.Same(owner) {
		return
	}
	o.readAnew(o.below(owner.UID))
	if before != nil {
		o.dropGangs(before.Gangs, owner.Gangs)
	}
}

func (o *observer) ownerGone(uid types.UID) {
	if owner := o.sources.owners.Drop(uid); owner != nil {
		o.dropGangs(owner.Gangs, nil)
		o.readAnew(o.below(uid))
	}
}

// dropGangs forgets what an owner said of gangs that it makes no more.
func (o *observer) dropGangs(before, now []workload.Gang) {
	kept := make(map[workload.GangID]bool, len(now))
	for _, gang := range now {
		kept[gang.ID] = true
	}
	for _, gang := range before {
		if !kept[gang.ID] {
			o.table.Step(gangs.SpecGone{ID: gang.ID})
		}
	}
}

// below are the sources of all pods under an owner, whoever controls them directly.
func (o *observer) below(uid types.UID) (list []workload.Source) {
	for _, owner := range o.sources.owners.Under(uid) {
		list = append(list, workload.Source{Owner: owner})
	}
	return list
}

func claimSources(names []types.NamespacedName) (list []workload.Source) {
	for _, name := range names {
		list = append(list, workload.Source{Claim: name})
	}
	return list
}

func objectMeta(uid types.UID) metav1.ObjectMeta { return metav1.ObjectMeta{UID: uid} }
