// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/frond-scheduler/frond/plugin/gangs"
	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// survey is how many members each node takes, as far as everything but GPUs and fabric is concerned: upstream's own
// filters, and arithmetic for the second and further members.
type survey struct {
	rooms     rooms // by the templates' own numbers
	infos     map[string]fwk.NodeInfo
	templates map[string]*template
	of        map[types.UID]*template // by member
}

// template stands for all members that are scheduled alike.
type template struct {
	number   uint16 // in the order of ranks, of those with GPUs
	gpus     uint32
	members  int64
	room     atomic.Int64 // of one without GPUs: how many fit in the cluster
	apart    atomic.Int64 // members that bear one another on a node; anti-affinity and host ports say fewer
	pod      *v1.Pod
	info     *framework.PodInfo
	request  fwk.Resource
	affinity nodeaffinity.RequiredNodeAffinity
	state    fwk.CycleState // after upstream's PreFilter
	allowed  sets.Set[string]
	strict   bool            // more than arithmetic decides whether a second one fits: a plan is rehearsed
	stepwise bool            // and each node can tell by itself, one member after the other
	known    *verdict        // what was said before; nil: ask every node
	selector labels.Selector // of its claim; nil: any node
}

const reasonCompanion = "members without GPUs, such as pod %s/%s: %d are to be placed and nodes have room for %d"

// survey asks upstream for every node. A status that is not success says why the gang cannot be scheduled at all.
func (p *Plugin) survey(ctx context.Context, nodes []fwk.NodeInfo, turn gangs.Turn) (*survey, *fwk.Status) {
	s := &survey{infos: make(map[string]fwk.NodeInfo, len(nodes)), templates: map[string]*template{}, of: map[types.UID]*template{}}
	mates := sets.New[types.UID]()
	var asking []*template // with GPUs, by number
	for _, peer := range turn.Members {
		mates.Insert(peer.Pod.UID)
		if peer.Node != "" {
			continue
		}
		name := fmt.Sprint(templateOf(peer.Pod), "/", peer.GPUs)
		if s.templates[name] == nil {
			made, status := p.template(ctx, peer.Pod)
			if !status.IsSuccess() {
				return nil, status
			}
			made.gpus = peer.GPUs
			if claim, _ := p.reader.Claim(peer.Pod); claim != nil {
				made.selector = claim.Selector // members whose claims differ are refused before they are planned
			}
			made.known = p.verdicts.lookup(made, p.framework.ListPlugins().Filter.Enabled, p.engine.Limits().Nodes)
			made.apart.Store(math.MaxUint16)
			s.templates[name] = made
			if made.gpus > 0 {
				made.number = uint16(len(asking))
				asking = append(asking, made)
			}
		}
		s.templates[name].members++
		if peer.GPUs > 0 {
			s.of[peer.Pod.UID] = s.templates[name]
		}
	}
	names := make([]string, len(nodes))
	for i, info := range nodes {
		names[i] = info.Node().Name
		s.infos[names[i]] = info
	}
	known := p.mirror.Known(names)

	type answer struct{ today, ever uint16 }
	answers := make([]answer, len(nodes)*len(asking)) // by node, then template
	var mu sync.Mutex
	var failed error
	p.handle.Parallelizer().Until(ctx, len(nodes), func(i int) {
		if known.Slots[i] == shim.None {
			return
		}
		for _, t := range s.templates {
			now, could, limited, err := p.room(ctx, t, known.Slots[i], nodes[i], mates)
			if err != nil {
				mu.Lock()
				failed = err
				mu.Unlock()
				return
			}
			if limited {
				lowerTo(&t.apart, now)
			}
			if t.gpus == 0 {
				t.room.Add(now)
				continue
			}
			answers[i*len(asking)+int(t.number)] = answer{uint16(now), uint16(could)}
		}
	}, Name)
	if failed != nil {
		return nil, fwk.AsStatus(fmt.Errorf("filtering nodes for gang %s: %w", turn.ID, failed))
	}
	if err := ctx.Err(); err != nil {
		return nil, fwk.AsStatus(err)
	}
	admits := make([]bool, len(nodes)) // the pods of every template
	for i := range nodes {
		admits[i] = known.Slots[i] != shim.None
		for number, t := range asking {
			said := answers[i*len(asking)+number]
			admits[i] = admits[i] && said.today > 0
			if known.Slots[i] == shim.None {
				continue
			}
			// What members do to one another they do on an empty node, too: the rule must not count on more.
			ever, allow := min(said.ever, uint16(t.apart.Load())), uint16(known.GPUs[i]/t.gpus)
			if said.today < allow || ever < allow {
				room := shim.Room{Slot: known.Slots[i], Template: t.number, Today: said.today, Ever: ever}
				if t.keptOut(known.Taints[i]) {
					room.Today, room.Unavailable = 0, ever
				}
				s.rooms = append(s.rooms, room)
			}
		}
	}
	// A node that this cycle's snapshot does not have takes nobody yet.
	for _, slot := range known.Others {
		for _, t := range asking {
			s.rooms = append(s.rooms, shim.Room{Slot: slot, Template: t.number})
		}
	}
	slices.SortFunc(s.rooms, compareRooms)
	if reason := s.lacks(turn, nodes, admits); reason != "" {
		return nil, unresolvable(reason)
	}
	// Members without GPUs are upstream's to place, but a plan that they cannot follow would only keep others waiting.
	for _, t := range s.templates {
		if t.gpus == 0 && t.room.Load() < t.members {
			return nil, unresolvable(fmt.Sprintf(reasonCompanion, t.pod.Namespace, t.pod.Name, t.members, t.room.Load()))
		}
	}
	return s, nil
}

func lowerTo(most *atomic.Int64, value int64) {
	for now := most.Load(); value < now && !most.CompareAndSwap(now, value); now = most.Load() {
	}
}

const reasonResources = "PodGroup %s: spec.minResources asks for %s %s, and nodes that admit its pods have %s free"

// lacks says what of a group's minResources is not free on the nodes that admit its pods. Once members are bound they have
// their share of it, and nobody asks any more.
func (s *survey) lacks(turn gangs.Turn, nodes []fwk.NodeInfo, admits []bool) string {
	for _, peer := range turn.Members {
		if peer.Node != "" {
			return ""
		}
	}
	for _, name := range slices.Sorted(maps.Keys(turn.Spec.MinResources)) {
		want, free := turn.Spec.MinResources[name], int64(0)
		for i, info := range nodes {
			if admits[i] {
				free += max(amount(info.GetAllocatable(), name)-amount(info.GetRequested(), name), 0)
			}
		}
		if have := quantity(name, free, want.Format); have.Cmp(want) < 0 {
			return fmt.Sprintf(reasonResources, turn.ID, want.String(), name, have.String())
		}
	}
	return ""
}

func amount(resources fwk.Resource, name v1.ResourceName) int64 {
	switch name {
	case v1.ResourceCPU:
		return resources.GetMilliCPU()
	case v1.ResourceMemory:
		return resources.GetMemory()
	case v1.ResourceEphemeralStorage:
		return resources.GetEphemeralStorage()
	case v1.ResourcePods:
		return int64(resources.GetAllowedPodNumber())
	default:
		return resources.GetScalarResources()[name]
	}
}

func quantity(name v1.ResourceName, value int64, format resource.Format) *resource.Quantity {
	if name == v1.ResourceCPU {
		return resource.NewMilliQuantity(value, format)
	}
	return resource.NewQuantity(value, format)
}

// templateOf names the template that a pod was made from: pods of one controller and revision are alike.
func templateOf(pod *v1.Pod) string {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		// but for those of a training job, which has a template for each replica type
		return string(owner.UID) + "/" + workload.PartOf(pod) + "/" + pod.Labels["pod-template-hash"] + pod.Labels["controller-revision-hash"]
	}
	spec := pod.Spec.DeepCopy()
	spec.NodeName, spec.Hostname = "", ""
	text, err := json.Marshal([]any{pod.Namespace, pod.Labels, spec})
	if err != nil {
		return string(pod.UID)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// template runs upstream's PreFilter plugins for a pod on a state of its own: inside a PreFilter the skip set of the
// running cycle is not known yet, so filters cannot be called on the cycle's own state.
func (p *Plugin) template(ctx context.Context, pod *v1.Pod) (*template, *fwk.Status) {
	info, err := framework.NewPodInfo(pod)
	if err != nil {
		return nil, unresolvable(fmt.Sprintf("pod %s/%s: %v", pod.Namespace, pod.Name, err))
	}
	t := &template{
		pod: pod, info: info, request: info.CalculateResource().Resource, affinity: nodeaffinity.GetRequiredNodeAffinity(pod),
		state: framework.NewCycleState(), strict: strict(pod),
	}
	// Spreading looks at all nodes at once: a second member may fit here only after the others have their first.
	t.stepwise = t.strict && len(pod.Spec.TopologySpreadConstraints) == 0
	result, status, _ := p.framework.RunPreFilterPlugins(ctx, t.state, pod)
	if !status.IsSuccess() {
		if status.IsRejected() {
			return nil, unresolvable(status.Message())
		}
		return nil, status
	}
	if !result.AllNodes() {
		t.allowed = result.NodeNames
	}
	return t, nil
}

// strict: ports, volumes, claims, affinity and spreading are not counted, they are tried.
func strict(pod *v1.Pod) bool {
	spec := &pod.Spec
	if len(spec.ResourceClaims) > 0 || len(spec.TopologySpreadConstraints) > 0 ||
		(spec.Affinity != nil && (spec.Affinity.PodAffinity != nil || spec.Affinity.PodAntiAffinity != nil)) {
		return true
	}
	for i := range spec.Volumes {
		if spec.Volumes[i].PersistentVolumeClaim != nil || spec.Volumes[i].Ephemeral != nil || spec.Volumes[i].CSI != nil {
			return true
		}
	}
	for i := range spec.Containers {
		for _, port := range spec.Containers[i].Ports {
			if port.HostPort > 0 {
				return true
			}
		}
	}
	return false
}

// room is what the node takes today and could take at best, from memory where that holds. Nominations are not part of a
// node's generation, so a node that has any is asked.
func (p *Plugin) room(ctx context.Context, t *template, slot uint32, node fwk.NodeInfo, mates sets.Set[types.UID]) (today, ever int64, limited bool, err error) {
	if t.selector != nil && !t.selector.Matches(labels.Set(node.Node().Labels)) {
		return 0, 0, false, nil
	}
	nominated := p.handle.NominatedPodsForNode(node.Node().Name)
	if len(nominated) == 0 {
		if today, ever, known := t.known.recall(slot, node); known {
			return today, ever, false, nil
		}
	}
	today, limited, err = p.fits(ctx, t, node, nominated, mates)
	ever = t.capacity(node)
	if err == nil && len(nominated) == 0 {
		t.known.keep(slot, node, today, ever)
	}
	return today, ever, limited, err
}

// fits is how many members the node takes today: 0 when upstream's filters refuse it, else by arithmetic. Nominated pods
// of equal or higher priority count as there, but for the gang's own: those nominations are the gang's to move. limited:
// it would be more if the members bore one another.
func (p *Plugin) fits(ctx context.Context, t *template, node fwk.NodeInfo, nominated []fwk.PodInfo, mates sets.Set[types.UID]) (count int64, limited bool, err error) {
	if t.allowed != nil && !t.allowed.Has(node.Node().Name) {
		return 0, false, nil
	}
	info, state := node, t.state
	for _, other := range nominated {
		if mates.Has(other.GetPod().UID) || !p.table.Nominated(other.GetPod().UID, node.Node().Name) || corev1helpers.PodPriority(other.GetPod()) < corev1helpers.PodPriority(t.pod) {
			continue
		}
		if info == node {
			info, state = node.Snapshot(), t.state.Clone()
		}
		info.AddPodInfo(other)
		if status := p.framework.RunPreFilterExtensionAddPod(ctx, state, t.pod, other, info); !status.IsSuccess() {
			return 0, false, status.AsError()
		}
	}
	status := p.framework.RunFilterPlugins(ctx, state, t.pod, info)
	if status.IsSuccess() && info != node {
		status = p.framework.RunFilterPlugins(ctx, t.state, t.pod, node)
	}
	if status.IsRejected() {
		return 0, false, nil
	}
	if !status.IsSuccess() {
		return 0, false, status.AsError()
	}
	count = countFits(info.GetAllocatable(), info.GetRequested(), len(info.GetPods()), t.request)
	if !t.stepwise || count <= 1 {
		return count, false, nil
	}
	most := min(count, int64(len(mates)))
	count, err = p.stepwise(ctx, t, state, info, most)
	return count, count < most, err
}

// stepwise adds members to a copy of the node until one is refused: host ports, anti-affinity.
func (p *Plugin) stepwise(ctx context.Context, t *template, state fwk.CycleState, node fwk.NodeInfo, most int64) (int64, error) {
	state, node = state.Clone(), node.Snapshot()
	for count := int64(1); count < most; count++ {
		if err := p.addTo(ctx, map[*template]fwk.CycleState{t: state}, t, t.pod, node); err != nil {
			return 0, err
		}
		status := p.framework.RunFilterPlugins(ctx, state, t.pod, node)
		if status.IsRejected() {
			return count, nil
		}
		if !status.IsSuccess() {
			return 0, status.AsError()
		}
	}
	return most, nil
}

// addTo puts a member on a copy of a node, and tells upstream's plugins of it.
func (p *Plugin) addTo(ctx context.Context, states map[*template]fwk.CycleState, t *template, pod *v1.Pod, node fwk.NodeInfo) error {
	placed := t.info.DeepCopy()
	placed.Pod = pod.DeepCopy()
	placed.Pod.Spec.NodeName = node.Node().Name
	node.AddPodInfo(placed)
	for other, state := range states {
		if status := p.framework.RunPreFilterExtensionAddPod(ctx, state, other.pod, placed, node); !status.IsSuccess() {
			return status.AsError()
		}
	}
	return nil
}

// keptOut: one of these taints closes the node to the template.
func (t *template) keptOut(taints []v1.Taint) bool {
	for i := range taints {
		tolerates := func(toleration v1.Toleration) bool {
			return toleration.ToleratesTaint(klog.Background(), &taints[i], utilfeature.DefaultFeatureGate.Enabled(features.TaintTolerationComparisonOperators))
		}
		if !slices.ContainsFunc(t.pod.Spec.Tolerations, tolerates) {
			return true
		}
	}
	return false
}

// capacity is how many members the node would take if it were empty and healthy: what a gang's rule is made from.
func (t *template) capacity(node fwk.NodeInfo) int64 {
	if match, err := t.affinity.Match(node.Node()); err != nil || !match {
		return 0
	}
	return countFits(node.GetAllocatable(), &framework.Resource{}, 0, t.request)
}

func countFits(allocatable, requested fwk.Resource, pods int, each fwk.Resource) int64 {
	count := int64(allocatable.GetAllowedPodNumber() - pods)
	limit := func(have, used, want int64) {
		if want > 0 {
			count = min(count, (have-used)/want)
		}
	}
	limit(allocatable.GetMilliCPU(), requested.GetMilliCPU(), each.GetMilliCPU())
	limit(allocatable.GetMemory(), requested.GetMemory(), each.GetMemory())
	limit(allocatable.GetEphemeralStorage(), requested.GetEphemeralStorage(), each.GetEphemeralStorage())
	for name, want := range each.GetScalarResources() {
		limit(allocatable.GetScalarResources()[name], requested.GetScalarResources()[name], want)
	}
	return min(max(count, 0), math.MaxUint16)
}

// rehearse adds the members to copies of their nodes, by rank, and runs upstream's filters for each. It is skipped where
// the survey has already asked all there is to ask: one member a node, nothing but arithmetic. A node that refuses takes
// fewer members from now on, and the gang is planned anew.
func (p *Plugin) rehearse(ctx context.Context, s *survey, members []workload.GangMember, places []shim.Place, names []string) (refused bool, err error) {
	ctx = context.WithValue(ctx, probing{}, true)
	onNode := map[string]int{}
	needed := false
	for i, member := range members {
		if t := s.of[member.Pod.UID]; t != nil && member.Slot == shim.None {
			onNode[names[i]]++
			needed = needed || t.strict || onNode[names[i]] > 1
		}
	}
	if !needed {
		return false, nil
	}
	states, infos := map[*template]fwk.CycleState{}, map[string]fwk.NodeInfo{}
	for _, t := range s.templates {
		states[t] = t.state.Clone()
	}
	type here struct {
		slot     uint32
		template uint16
	}
	taken := map[here]uint16{} // members of a template that the node has taken so far
	for i, member := range members {
		t := s.of[member.Pod.UID]
		if t == nil || member.Slot != shim.None {
			continue
		}
		info := infos[names[i]]
		if info == nil {
			known, ok := s.infos[names[i]]
			if !ok {
				s.rooms = s.rooms.lower(places[i].Slot, t.number, 0) // the node came after this cycle's snapshot
				refused = true
				continue
			}
			info = known.Snapshot()
			infos[names[i]] = info
		}
		switch status := p.framework.RunFilterPlugins(ctx, states[t], t.pod, info); {
		case status.IsRejected():
			s.rooms = s.rooms.lower(places[i].Slot, t.number, taken[here{places[i].Slot, t.number}])
			refused = true // the others go on: every node that refuses is known at once
		case !status.IsSuccess():
			return false, status.AsError()
		default:
			taken[here{places[i].Slot, t.number}]++
			if err := p.addTo(ctx, states, t, member.Pod, info); err != nil {
				return false, err
			}
		}
	}
	return refused, nil
}
