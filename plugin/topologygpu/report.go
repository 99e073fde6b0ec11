// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/status"
	"github.com/frond-scheduler/frond/plugin/workload"
)

// reportPause is how long changes are gathered: those of a gang come in a row.
const reportPause = 50 * time.Millisecond

// endedPatience is how long a pod that vanished may take to turn up among those that have ended.
const endedPatience = time.Second

// teller has states written; plugin/status does.
type teller interface {
	Claim(status.ClaimState)
	Group(status.GroupState)
	Config(status.ConfigState)
}

// reporter tells claims, groups and live configuration what became of them. Whoever changes something only marks what is
// touched; one goroutine then derives the state anew from what is known at that moment, so that no order of events leaves a
// wrong one behind. Only the leader derives and writes. A process that becomes it tells everything once, because nobody
// knows what the one before it still managed to write.
type reporter struct {
	cluster *cluster
	out     teller
	signal  chan struct{}
	synced  func() bool // everything that was there at the start has been seen

	mu      sync.Mutex
	pods    map[types.UID]*reported // those with a claim or in a PodGroup, ended ones included while they are there
	members map[workload.GangID]map[types.UID]*reported
	groups  map[workload.GangID]*workload.Group
	configs map[configKey]status.ConfigState
	leaving map[types.UID]time.Time // since when: pods of a PodGroup that have ended or were deleted
	marks   marks

	// Of the goroutine of run.
	led        bool
	toldClaims map[types.NamespacedName]toldClaim
	toldGroups map[workload.GangID]toldGroup
}

// reported is what is kept of a pod.
type reported struct {
	name     string
	owner    string // namespace/name of its controller
	claim    types.NamespacedName
	gang     workload.GangID
	phase    podPhase
	node     string // that is reserved for a pod in no gang
	sentence string // what it was told last by this process
	refused  bool   // for what it asks for, not for lack of room
}

type podPhase int

const (
	podPending podPhase = iota
	podBound
	podRunning
	podSucceeded
	podFailed
)

func (p podPhase) ended() bool { return p >= podSucceeded }

type configKey struct {
	resource schema.GroupVersionResource
	name     string
}

// marks are what there is to tell.
type marks struct {
	claims  map[types.NamespacedName]bool
	groups  map[workload.GangID]bool
	configs map[configKey]bool
}

func newMarks() marks {
	return marks{claims: map[types.NamespacedName]bool{}, groups: map[workload.GangID]bool{}, configs: map[configKey]bool{}}
}

func newReporter(c *cluster, out teller, synced func() bool) *reporter {
	return &reporter{
		cluster: c, out: out, synced: synced, signal: make(chan struct{}, 1), marks: newMarks(), leaving: map[types.UID]time.Time{},
		pods: map[types.UID]*reported{}, members: map[workload.GangID]map[types.UID]*reported{},
		groups: map[workload.GangID]*workload.Group{}, configs: map[configKey]status.ConfigState{},
		toldClaims: map[types.NamespacedName]toldClaim{}, toldGroups: map[workload.GangID]toldGroup{},
	}
}

// ---- what happens ----------------------------------------------------------------------------------------------------

// podSeen: a pod of ours is there, or has changed, or is read another way.
func (r *reporter) podSeen(pod *v1.Pod, class workload.Class) {
	claim, named := workload.ClaimName(pod)
	gang := workload.GangID{}
	if class.Kind == workload.Member || class.Kind == workload.Unknown {
		gang = class.Gang
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[pod.UID]
	if !named && gang.Kind != workload.KindPodGroup {
		if p != nil {
			r.drop(pod.UID, p)
		}
		return
	}
	if p == nil {
		p = &reported{name: pod.Name, owner: controllerOf(pod)}
		r.pods[pod.UID] = p
	} else if p.claim != claim || p.gang != gang {
		r.mark(p)
	}
	r.join(pod.UID, p, gang)
	p.claim = claim
	if !p.phase.ended() { // the two informers are not in step
		p.phase = phaseOf(pod)
		delete(r.leaving, pod.UID)
	}
	r.mark(p)
}

// podGone: a pod was deleted or has ended, the scheduler's informer does not say which. It counts for its group as it did
// until that is known.
func (r *reporter) podGone(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[uid]
	if p == nil {
		return
	}
	r.mark(p)
	p.claim = types.NamespacedName{} // it uses it no more
	switch {
	case p.gang.Kind != workload.KindPodGroup:
		r.drop(uid, p)
	case !p.phase.ended():
		r.leaving[uid] = r.cluster.now()
	}
}

// podEnded: a pod has ended and is there.
func (r *reporter) podEnded(pod *v1.Pod) {
	class := r.cluster.reader.Classify(pod)
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[pod.UID]
	if p == nil {
		if class.Kind != workload.Member || class.Gang.Kind != workload.KindPodGroup {
			return
		}
		p = &reported{name: pod.Name, owner: controllerOf(pod)}
		r.pods[pod.UID] = p
		r.join(pod.UID, p, class.Gang)
	}
	delete(r.leaving, pod.UID)
	p.phase = phaseOf(pod)
	r.mark(p)
}

// podDeleted: a pod that had ended is gone.
func (r *reporter) podDeleted(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pods[uid]; p != nil {
		r.drop(uid, p)
	}
}

// forget takes out who went away and has not turned up among those that have ended.
func (r *reporter) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid, since := range r.leaving {
		if r.cluster.now().Sub(since) >= endedPatience {
			r.drop(uid, r.pods[uid])
		}
	}
}

// podTold: a pod was told why it has no place; "": it has one.
func (r *reporter) podTold(uid types.UID, sentence string, refused bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.pods[uid]
	if p == nil || (p.sentence == sentence && p.refused == refused) {
		return
	}
	p.sentence, p.refused = sentence, refused
	r.mark(p)
}

// podReserved: a node is kept for a pod in no gang; "": no more.
func (r *reporter) podReserved(uid types.UID, node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.pods[uid]; p != nil && p.node != node {
		p.node, p.sentence, p.refused = node, "", false
		r.mark(p)
	}
}

// podsTouched: something about the plan for these pods has changed.
func (r *reporter) podsTouched(uids []types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, uid := range uids {
		if p := r.pods[uid]; p != nil {
			r.mark(p)
		}
	}
}

// gangTouched: something about the gang has changed that all its members' claims tell.
func (r *reporter) gangTouched(id workload.GangID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.members[id] {
		r.mark(p)
	}
}

func (r *reporter) claimTouched(name types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marks.claims[name] = true
	r.poke()
}

// groupSet: a PodGroup is there, or has changed.
func (r *reporter) groupSet(group *workload.Group) {
	if group.ID.Kind != workload.KindPodGroup {
		return // the native kind's status is not ours
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.groups[group.ID]
	r.groups[group.ID] = group
	if before == nil || !before.Spec.Equal(group.Spec) { // our own status is no news
		r.marks.groups[group.ID] = true
		r.poke()
	}
}

func (r *reporter) groupGone(group *workload.Group) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.groups[group.ID]; known != nil && known.UID == group.UID {
		delete(r.groups, group.ID)
		r.marks.groups[group.ID] = true
		r.poke()
	}
}

// config: what became of an object of live configuration. Every process applies it, only the leader says so.
func (r *reporter) config(state status.ConfigState) {
	key := configKey{state.Resource, state.Name}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.configs[key] = state
	r.marks.configs[key] = true
	r.poke()
}

// ---- inside, under the lock ----------------------------------------------------------------------------------------

func (r *reporter) join(uid types.UID, p *reported, gang workload.GangID) {
	if p.gang != gang {
		r.leave(uid, p)
	}
	p.gang = gang
	if gang == (workload.GangID{}) {
		return
	}
	if r.members[gang] == nil {
		r.members[gang] = map[types.UID]*reported{}
	}
	r.members[gang][uid] = p
}

func (r *reporter) leave(uid types.UID, p *reported) {
	delete(r.members[p.gang], uid)
	if len(r.members[p.gang]) == 0 {
		delete(r.members, p.gang)
	}
}

func (r *reporter) drop(uid types.UID, p *reported) {
	r.mark(p)
	r.leave(uid, p)
	delete(r.pods, uid)
	delete(r.leaving, uid)
}

func (r *reporter) mark(p *reported) {
	if p.claim.Name != "" {
		r.marks.claims[p.claim] = true
	}
	if p.gang.Kind == workload.KindPodGroup {
		r.marks.groups[p.gang] = true
	}
	r.poke()
}

func (r *reporter) poke() {
	select {
	case r.signal <- struct{}{}:
	default:
	}
}

// ---- telling ---------------------------------------------------------------------------------------------------------

// run tells until the context ends.
func (r *reporter) run(ctx context.Context) {
	ticker := time.NewTicker(leaderAge) // nobody says when this process becomes the leader
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		case <-r.signal:
			select {
			case <-ctx.Done():
				return
			case <-time.After(reportPause):
			}
		}
		r.round()
	}
}

// round tells what is marked. Before all pods have been seen a claim looks unused that is not.
func (r *reporter) round() {
	if !r.synced() {
		return
	}
	r.forget()
	if !r.cluster.leading() {
		r.led = false
		r.take()
		return
	}
	if !r.led {
		r.led = true
		clear(r.toldClaims)
		clear(r.toldGroups)
		r.markAll()
	}
	marked := r.take()
	for name := range marked.claims {
		r.tellClaim(name)
	}
	for id := range marked.groups {
		r.tellGroup(id)
	}
	for key := range marked.configs {
		r.mu.Lock()
		state := r.configs[key]
		r.mu.Unlock()
		r.out.Config(state)
	}
}

func (r *reporter) take() marks {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.marks
	if len(taken.claims)+len(taken.groups)+len(taken.configs) > 0 {
		r.marks = newMarks()
	}
	return taken
}

func (r *reporter) markAll() {
	names := r.cluster.sources.claims.Names()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, name := range names {
		r.marks.claims[name] = true
	}
	for id := range r.groups {
		r.marks.groups[id] = true
	}
	for key := range r.configs {
		r.marks.configs[key] = true
	}
}

// foreign says whether pods of other schedulers are what somebody means: another Frond with profiles of its own may serve
// them, and what it has written stays.
func (r *reporter) foreign(namespace string, means func(*v1.Pod) bool) bool {
	pods, err := r.cluster.first.SharedInformerFactory().Core().V1().Pods().Lister().Pods(namespace).List(labels.Everything())
	return err == nil && slices.ContainsFunc(pods, func(pod *v1.Pod) bool {
		_, ours := r.cluster.profiles.Load(pod.Spec.SchedulerName)
		return !ours && means(pod)
	})
}

func phaseOf(pod *v1.Pod) podPhase {
	switch {
	case pod.Status.Phase == v1.PodSucceeded:
		return podSucceeded
	case pod.Status.Phase == v1.PodFailed:
		return podFailed
	case pod.Status.Phase == v1.PodRunning:
		return podRunning
	case pod.Spec.NodeName != "":
		return podBound
	}
	return podPending
}

func controllerOf(pod *v1.Pod) string {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		return pod.Namespace + "/" + owner.Name
	}
	return ""
}
