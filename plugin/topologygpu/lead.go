// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/frond-scheduler/frond/plugin/failpoint"
	"github.com/frond-scheduler/frond/plugin/gangs"
	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

// replans is how often one attempt plans anew, because the state moved under it or a rehearsal refused a node.
const replans = 8

const (
	reasonMoved   = "the cluster changed while the gang was being planned"
	reasonRefused = "no plan passed the filters of other plugins for all members together"
)

// lead plans the gang in five steps: what each node takes (eligibility), a joint plan (the engine), a rehearsal with
// upstream's filters, the booking (all or nothing), and the table, which lets the others come.
func (p *Plugin) lead(ctx context.Context, state fwk.CycleState, pod *v1.Pod, nodes []fwk.NodeInfo, turn gangs.Turn) (*fwk.PreFilterResult, *fwk.Status) {
	logger := klog.LoggerWithValues(loggerFor(ctx), "gang", turn.ID.String())
	if turn.Note != "" {
		logger.Info("Ranks", "note", turn.Note)
	}
	begun := p.now()
	room, status := p.survey(context.WithValue(ctx, probing{}, true), nodes, turn)
	if !status.IsSuccess() {
		p.kept.forget(turn.ID)
		if status.IsRejected() {
			return nil, unresolvable(p.waits(logger, pod, turn, attempt{sentence: status.Message()}))
		}
		return nil, status
	}
	pending, uids := 0, make([]types.UID, 0, len(turn.Members))
	for _, peer := range turn.Members {
		if peer.Node == "" {
			pending++
			uids = append(uids, peer.Pod.UID)
		}
	}
	type try struct {
		room *survey
		size int
	}
	var tries []try
	if held := p.inPlace(room, turn); held != nil {
		tries = append(tries, try{held, pending})
	}
	// All that are there, else as many as make the gang whole; later ones join around those.
	tries = append(tries, try{room, pending})
	if turn.Least < pending {
		tries = append(tries, try{room, turn.Least})
	}
	// What is locked for the members from before is no obstacle to themselves.
	p.mirror.Yield(uids...)
	var result attempt
	for _, try := range tries {
		result = p.attempt(ctx, try.room, pod, turn, try.size)
		if result.err != nil {
			p.mirror.Unyield(uids...)
			return nil, fwk.AsStatus(fmt.Errorf("planning gang %s: %w", turn.ID, result.err))
		}
		if result.plan.Outcome == shim.Placed {
			break
		}
	}
	p.warn(pod, result.plan, func(flag shim.PlanFlag) bool { return p.table.Warn(turn.ID, uint32(flag)) })
	if result.plan.Outcome != shim.Placed {
		p.mirror.Unyield(uids...)
		p.kept.keep(turn.ID, room, begun)
		told := p.waits(klog.LoggerWithValues(logger, "outcome", result.plan.Outcome.String(), "rule", result.plan.Rule.String(),
			"members", pending, "generation", result.plan.Generation), pod, turn, result)
		return nil, unresolvable(told)
	}
	p.kept.forget(turn.ID)
	p.told.settle(pod.UID)
	p.keep(logger, turn, result.places)
	p.report.podTold(pod.UID, "", false)
	p.report.gangTouched(turn.ID)
	logger.Info("Gang placed", "rule", result.plan.Rule.String(), "relaxed", result.plan.Flags&shim.PlanRelaxed != 0,
		"members", len(result.places), "of", pending, "nodes", result.plan.Nodes, "leaves", result.plan.Leaves,
		"spines", result.plan.Spines, "generation", result.plan.Generation, "why", result.sentence)
	for _, place := range result.places {
		if place.UID == pod.UID {
			return p.follow(state, p.reader.GPUs(pod), result.number, place.Node), nil
		}
	}
	return nil, unresolvable(reasonMoved) // the lead is the lowest pending rank, so it is always planned
}

// inPlace narrows the room of a half-bound gang to the nodes that the rest of it had when somebody began to bind it, which
// the locks tell. Finished there, it has the ranks and the ring that it was planned with; the best places of today, around
// those that are bound, may have neither. nil: it is not known of all of them.
func (p *Plugin) inPlace(room *survey, turn gangs.Turn) *survey {
	held, bound := map[uint32]uint16{}, false
	for _, peer := range turn.Members {
		if peer.Node != "" || peer.GPUs == 0 {
			bound = bound || peer.Node != ""
			continue
		}
		nodes := p.mirror.LockedOn(peer.Pod.UID)
		if len(nodes) != 1 {
			return nil
		}
		slot, known := p.mirror.Slot(nodes[0])
		if !known {
			return nil
		}
		held[slot]++
	}
	if !bound || len(held) == 0 {
		return nil
	}
	narrow := *room
	narrow.rooms = slices.Clone(room.rooms)
	everywhere := p.mirror.Known(nil).Others
	for _, t := range room.templates {
		for _, slot := range everywhere {
			if t.gpus > 0 {
				narrow.rooms = narrow.rooms.lower(slot, t.number, held[slot])
			}
		}
	}
	return &narrow
}

// waits remembers what the gang waits for, and returns what its lead is told: it may try many times.
func (p *Plugin) waits(logger klog.Logger, pod *v1.Pod, turn gangs.Turn, result attempt) (told string) {
	level, lack := 4, lackOf(result.plan)
	if p.table.Wait(gangs.NoPlace{ID: turn.ID, Epoch: turn.Epoch, Reason: result.sentence, Lack: lack, TopologyWait: topologyWait(result.plan)}) {
		level = 0
	}
	logger.V(level).Info("Gang waits", "reason", result.sentence)
	told = p.retell(pod, result.plan.Outcome, result.sentence)
	p.report.podTold(pod.UID, told, lack == gangs.LackWish)
	p.report.gangTouched(turn.ID)
	return told
}

func lackOf(plan shim.Plan) gangs.Lack {
	switch plan.Outcome {
	case shim.Refused:
		return gangs.LackWish
	case shim.Never:
		return gangs.LackEver
	default:
		return gangs.LackRoom
	}
}

func topologyWait(plan shim.Plan) time.Duration {
	if plan.Outcome != shim.Waits || plan.WaitMillis == shim.None {
		return 0
	}
	return time.Duration(plan.WaitMillis) * time.Millisecond
}

type attempt struct {
	plan     shim.Plan
	sentence string
	places   []gangs.Place
	number   uint64
	err      error
}

// attempt plans and books the lowest ranks of the gang, size of them, around those that are bound.
func (p *Plugin) attempt(ctx context.Context, room *survey, pod *v1.Pod, turn gangs.Turn, size int) attempt {
	members := p.members(turn, size)
	if problem := p.reader.GangProblem(members); problem != "" {
		return attempt{plan: shim.Plan{Outcome: shim.Refused}, sentence: problem}
	}
	request, asked, annotations := p.reader.GangRequest(turn.ID, turn.Spec, pod, members, p.now(), turn.Since)
	numbers := numberTemplates(members, asked, room.numbers())
	var last attempt
	for range replans {
		plan, places, sentence, err := p.engine.Plan(request, asked, annotations, room.rooms.of(numbers))
		last = attempt{plan: plan, sentence: sentence, err: err}
		if err != nil || plan.Outcome != shim.Placed {
			return last
		}
		names := make([]string, len(places))
		for i, place := range places {
			if place.Slot != shim.None {
				names[i] = p.mirror.Name(place.Slot)
			}
		}
		if refused, err := p.rehearse(ctx, room, members, places, names); err != nil {
			last.err = err
			return last
		} else if refused {
			last.plan.Outcome, last.sentence = shim.Waits, reasonRefused
			continue
		}
		if err := failpoint.Hit("planned"); err != nil {
			last.err = err
			return last
		}
		err = p.engine.Reserve(request, asked, places)
		if shim.IsCode(err, shim.CodeStale) {
			last.plan.Outcome, last.sentence = shim.Waits, reasonMoved
			continue
		}
		if err != nil {
			last.err = err
			return last
		}
		p.remember(ctx, request, annotations)
		for i, member := range members {
			if member.Slot == shim.None {
				last.places = append(last.places, gangs.Place{UID: member.Pod.UID, Node: names[i]})
			}
		}
		number, ok := p.table.Reserved(turn.ID, request.Gang, last.places, around(turn)...)
		if !ok {
			last.plan.Outcome, last.sentence = shim.Waits, reasonMoved
		}
		last.number = number
		_ = failpoint.Hit("reserved")
		return last
	}
	return last
}

// numbers are the templates of members, by number.
func (s *survey) numbers() map[types.UID]uint16 {
	of := make(map[types.UID]uint16, len(s.of))
	for uid, t := range s.of {
		of[uid] = t.number
	}
	return of
}

// numberTemplates tells the engine which members are of one template, by numbers of those that this request has. of: by member,
// the survey's own numbers; returned are the request's by those.
func numberTemplates(members []workload.GangMember, asked []shim.Member, of map[types.UID]uint16) map[uint16]uint16 {
	numbers := map[uint16]uint16{}
	for i, member := range members {
		if number, known := of[member.Pod.UID]; known && member.Slot == shim.None {
			if _, seen := numbers[number]; !seen {
				numbers[number] = uint16(len(numbers)) // the survey numbers by rank as well: the order is the same
			}
			asked[i].Template = uint32(numbers[number])
		}
	}
	return numbers
}

// around are the members that are bound already.
func around(turn gangs.Turn) (bound []types.UID) {
	for _, peer := range turn.Members {
		if peer.Node != "" {
			bound = append(bound, peer.Pod.UID)
		}
	}
	return bound
}

// members of the request: bound ones with GPUs pinned where they are, and size pending ones by rank.
func (c *cluster) members(turn gangs.Turn, size int) []workload.GangMember {
	members := make([]workload.GangMember, 0, len(turn.Members))
	for _, peer := range turn.Members {
		member := workload.GangMember{Pod: peer.Pod, GPUs: peer.GPUs, Rank: peer.Rank, Slot: shim.None}
		if peer.Node != "" {
			slot, known := c.mirror.Slot(peer.Node)
			if !known || peer.GPUs == 0 {
				continue // nothing of it stands in the fabric
			}
			member.Slot = slot
		} else if size == 0 {
			continue
		} else {
			size--
		}
		members = append(members, member)
	}
	return members
}

// keep nominates the members on their nodes, so that pods of other profiles do not take CPU and memory there before the
// members come. Older nominations of theirs, left by an earlier attempt or an earlier scheduler, go away with that.
func (p *Plugin) keep(logger klog.Logger, turn gangs.Turn, places []gangs.Place) {
	pods := make(map[string]*v1.Pod, len(turn.Members))
	for _, peer := range turn.Members {
		pods[string(peer.Pod.UID)] = peer.Pod
	}
	for _, place := range places {
		info, err := framework.NewPodInfo(pods[string(place.UID)])
		if err != nil {
			continue // a malformed affinity term; upstream goes on without it, too
		}
		p.handle.AddNominatedPod(logger, info, &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: place.Node})
	}
}
