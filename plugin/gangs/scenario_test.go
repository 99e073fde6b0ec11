// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/workload"
)

// Scenarios under testdata/scenarios are text: commands, and what the machine answered, recorded with -rewrite and read by eye. Every
// invariant is checked after each command. In them a pod is GANG-RANK, or RANK alone for the gang "train"; a member of rank
// 3 is planned on node-3.

// scene is a machine, a clock, and an executor that does nothing until it is told.
type scene struct {
	t       *testing.T
	machine *Machine
	clock   time.Time
	held    []Effect // Release and Lock that nobody has answered yet
	epochs  map[string]uint64
}

func newScene(t *testing.T) *scene {
	return &scene{t: t, machine: NewMachine(time.Minute), clock: time.Unix(1_000_000, 0), epochs: map[string]uint64{}}
}

func gangNamed(name string) workload.GangID {
	if strings.HasPrefix(name, "group") {
		return workload.GangID{Kind: workload.KindPodGroup, Namespace: "ml", Name: name}
	}
	return workload.GangID{Kind: workload.KindJob, Namespace: "ml", Name: name, UID: "uid-of-" + name}
}

// split "other-3" is the gang "other" and rank 3; "3" alone is of "train".
func split(pod string) (gang string, rank int) {
	gang, number, named := strings.Cut(pod, "-")
	if !named {
		gang, number = "train", pod
	}
	if _, err := fmt.Sscan(number, &rank); err != nil {
		panic(fmt.Sprintf("%q is no pod: RANK or GANG-RANK", pod))
	}
	return gang, rank
}

func podNamed(name string) *v1.Pod {
	gang, rank := split(name)
	full := fmt.Sprintf("%s-%d", gang, rank)
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: full, UID: types.UID("uid-" + full), ResourceVersion: "1",
		Labels: map[string]string{workload.CompletionIndex: fmt.Sprint(rank)}}}
}

// short is how scenarios write a pod.
func short(name string) string { return strings.TrimPrefix(strings.TrimPrefix(name, "uid-"), "train-") }

func (s *scene) step(event Event) string {
	var out strings.Builder
	for _, effect := range s.machine.Step(s.clock, event) {
		switch effect.(type) {
		case Release, Lock, Ask:
			s.held = append(s.held, effect)
		}
		fmt.Fprintln(&out, describe(effect))
	}
	if broken := s.machine.check(); broken != "" {
		s.t.Fatalf("after %T: %s", event, broken)
	}
	return out.String()
}

func describe(effect Effect) string {
	switch e := effect.(type) {
	case Activate:
		return "activate " + podNames(e.Pods)
	case Ask:
		return "ask about " + e.ID.Name
	case Allow:
		return "allow " + uidNames(e.Members)
	case Reject:
		return fmt.Sprintf("reject %s: %s", uidNames(e.Members), e.Message)
	case Lock:
		return fmt.Sprintf("lock plan %d: %s", e.Plan, placeNames(e.Places))
	case Unlock:
		return "unlock " + placeNames(e.Places)
	case OpenGate:
		if e.Err != nil {
			return fmt.Sprintf("gate of plan %d: no: %v", e.Plan, e.Err)
		}
		return fmt.Sprintf("gate of plan %d: open", e.Plan)
	case Release:
		return fmt.Sprintf("release plan %d", e.Plan)
	case ReleasePod:
		return "release pod " + short(string(e.UID))
	case Forget:
		return "forget " + e.ID.Name
	case ClearNominations:
		return "clear nominations of " + podNames(e.Pods)
	}
	panic(fmt.Sprintf("%T", effect))
}

func podNames(pods []*v1.Pod) string {
	names := make([]string, len(pods))
	for i, pod := range pods {
		names[i] = short(pod.Name)
	}
	return strings.Join(names, " ")
}

func uidNames(uids []types.UID) string {
	names := make([]string, len(uids))
	for i, uid := range uids {
		names[i] = short(string(uid))
	}
	return strings.Join(names, " ")
}

func placeNames(places []Placed) string {
	names := make([]string, len(places))
	for i, place := range places {
		names[i] = short(place.Pod.Name) + "→" + place.Node
	}
	return strings.Join(names, " ")
}

// show is a line for every gang.
func (s *scene) show() string {
	var out strings.Builder
	s.machine.now = s.clock
	for _, id := range sortedIDs(s.machine) {
		g := s.machine.gangs[id]
		fmt.Fprintf(&out, "%s: %s, %d pods, %d bound", id.Name, g.stage, g.active, g.bound)
		if g.plan != nil {
			fmt.Fprintf(&out, ", plan %d %s, %d left", g.plan.id, g.plan.state, g.plan.left)
		}
		if reason := s.machine.reason(g); reason != "" {
			fmt.Fprintf(&out, ": %s", reason)
		}
		if at := s.machine.due(g); !at.IsZero() {
			fmt.Fprintf(&out, " (next in %v)", at.Sub(s.clock))
		}
		fmt.Fprintln(&out)
	}
	return out.String()
}

func sortedIDs(m *Machine) (ids []workload.GangID) {
	for id := range m.gangs {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, compareIDs)
	return ids
}

// plan is the number of the gang's plan, or of the last one.
func (s *scene) plan(pod string) uint64 {
	gang, _ := split(pod)
	if g := s.machine.gangs[gangNamed(gang)]; g != nil && g.plan != nil {
		return g.plan.id
	}
	return s.machine.lastPlan
}

func (s *scene) begin(pod string) (Turn, string) {
	s.machine.now = s.clock
	turn, event := s.machine.turn(podNamed(pod).UID)
	if event == nil {
		return turn, ""
	}
	return turn, s.step(event)
}

// reserve plays the lead: begins, and books its pending members on node-RANK.
func (s *scene) reserve(pod string, most int) string {
	turn, out := s.begin(pod)
	if turn.Task != Lead {
		return out + "does not lead: " + turn.Reason + "\n"
	}
	event := PlanReserved{ID: turn.ID, Key: workload.GangKey(turn.ID)}
	for _, peer := range turn.Members {
		if peer.Node != "" {
			event.Around = append(event.Around, peer.Pod.UID)
		} else if most == 0 || len(event.Places) < most {
			event.Places = append(event.Places, Place{UID: peer.Pod.UID, Node: fmt.Sprintf("node-%d", peer.Rank)})
		}
	}
	return out + s.step(event)
}

// answer plays the executor for the effects that want an answer.
func (s *scene) answer(kind string, err error) string {
	var out string
	held := s.held
	s.held = nil
	for _, effect := range held {
		switch e := effect.(type) {
		case Release:
			if kind == "released" {
				out += s.step(PlacesReleased{Plan: e.Plan})
				continue
			}
		case Ask:
			if kind == "yes" || kind == "no" {
				out += s.step(RoomAnswered{ID: e.ID, Fits: kind == "yes"})
				continue
			}
		case Lock:
			if kind == "locked" {
				out += s.step(LocksTaken{Plan: e.Plan, Places: e.Places, Err: err})
				continue
			}
		}
		s.held = append(s.held, effect)
	}
	return out
}

func (s *scene) run(d *datadriven.TestData) string {
	var err error
	option := func(name string) (value string) {
		for _, arg := range d.CmdArgs {
			if arg.Key == name && len(arg.Vals) > 0 {
				value = arg.Vals[0]
			}
		}
		return value
	}
	duration := func(text string) time.Duration {
		value, parseErr := time.ParseDuration(text)
		err = errors.Join(err, parseErr)
		return value
	}
	var names []string // arguments without a value
	for _, arg := range d.CmdArgs {
		if len(arg.Vals) == 0 {
			names = append(names, arg.Key)
		}
	}
	each := func(do func(pod string) string) (out string) {
		for _, name := range names {
			out += do(name)
		}
		return out
	}
	class := func(name string) workload.Class {
		gang, _ := split(name)
		return workload.Class{Kind: workload.Member, GPUs: 8, Gang: gangNamed(gang)}
	}
	var out string
	switch d.Cmd {
	case "spec": // spec train min=3 [more] [timeout=5s] [problem=text]
		spec := workload.Spec{Problem: option("problem"), More: slices.Contains(names, "more")}
		fmt.Sscan(option("min"), &spec.MinMember)
		if text := option("timeout"); text != "" {
			spec.ScheduleTimeout = duration(text)
		}
		out = s.step(SpecSet{ID: gangNamed(names[0]), Spec: spec})
	case "spec-gone":
		out = s.step(SpecGone{ID: gangNamed(names[0])})
	case "pod": // pod 0 1 2 [priority=7] [node=node-7] [bound] [deleting] [gated] [nominated=node-1]
		flags := map[string]bool{}
		names = slices.DeleteFunc(names, func(name string) bool {
			flag := name == "bound" || name == "deleting" || name == "gated"
			flags[name] = flags[name] || flag
			return flag
		})
		out = each(func(name string) string {
			pod := podNamed(name)
			_, rank := split(name)
			if flags["bound"] {
				pod.Spec.NodeName = fmt.Sprintf("node-%d", rank)
			}
			if node := option("node"); node != "" {
				pod.Spec.NodeName = node
			}
			if flags["deleting"] {
				pod.DeletionTimestamp = &metav1.Time{Time: s.clock}
			}
			if flags["gated"] {
				pod.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "hold"}}
			}
			pod.Status.NominatedNodeName = option("nominated")
			if text := option("priority"); text != "" {
				pod.Spec.Priority = new(int32)
				fmt.Sscan(text, pod.Spec.Priority)
			}
			return s.step(PodSet{Pod: pod, Class: class(name)})
		})
	case "gone":
		out = each(func(name string) string { return s.step(PodGone{UID: podNamed(name).UID}) })
	case "wish":
		out = each(func(name string) string { return s.step(WishChanged{UID: podNamed(name).UID}) })
	case "room": // room [nodes]
		out = s.step(RoomAppeared{Nodes: slices.Contains(names, "nodes")})
	case "fits": // fits yes|no: the answer to the last question
		out = s.answer(names[0], nil)
	case "node":
		out = s.step(NodeChanged{Node: names[0]})
	case "lock-found":
		out = each(func(name string) string { return s.step(LockFound{UID: podNamed(name).UID}) })
	case "admit": // which of them PreEnqueue lets pass, and why not
		out = each(func(name string) string {
			if reason, ok := s.machine.Admit(s.clock, podNamed(name).UID); !ok {
				return name + " held: " + reason + "\n"
			}
			return name + " passes\n"
		})
	case "begin":
		turn, effects := s.begin(names[0])
		gang, _ := split(names[0])
		s.epochs[gang] = turn.Epoch
		switch turn.Task {
		case Hold:
			out = effects + "held: " + turn.Reason + "\n"
		case Lead:
			out = effects + fmt.Sprintf("leads %d members, at least %d\n", len(turn.Members), turn.Least)
		case Follow:
			out = effects + fmt.Sprintf("follows plan %d to %s\n", turn.Plan, turn.Node)
		}
	case "reserve": // reserve 0 [most=2]
		most := 0
		fmt.Sscan(option("most"), &most)
		out = s.reserve(names[0], most)
	case "no-place": // no-place train reason=full [refused|never] [wait=5m]
		event := NoPlace{ID: gangNamed(names[0]), Epoch: s.epochs[names[0]], Reason: option("reason")}
		if slices.Contains(names, "refused") {
			event.Lack = LackWish
		} else if slices.Contains(names, "never") {
			event.Lack = LackEver
		}
		if text := option("wait"); text != "" {
			event.TopologyWait = duration(text)
		}
		out = s.step(event)
	case "arrive":
		out = each(func(name string) string {
			return s.step(MemberArrived{UID: podNamed(name).UID, Plan: s.plan(name)})
		})
	case "ready":
		out = each(func(name string) string {
			return s.step(MemberReady{UID: podNamed(name).UID, Plan: s.plan(name)})
		})
	case "bound":
		out = each(func(name string) string {
			_, rank := split(name)
			return s.step(MemberBound{UID: podNamed(name).UID, Node: fmt.Sprintf("node-%d", rank)})
		})
	case "fail":
		out = each(func(name string) string { return s.step(MemberFailed{UID: podNamed(name).UID, Plan: s.plan(name)}) })
	case "refused":
		out = each(func(name string) string { return s.step(MemberRefused{UID: podNamed(name).UID}) })
	case "locked": // locked [err=text]
		if text := option("err"); text != "" {
			out = s.answer("locked", errors.New(text))
		} else {
			out = s.answer("locked", nil)
		}
	case "locks-lost":
		out = s.step(LocksLost{UID: podNamed(names[0]).UID, Plan: s.plan(names[0])})
	case "released":
		out = s.answer("released", nil)
	case "half": // half train [unconfirmed]: the API server was asked
		out = s.step(HalfSeen{ID: gangNamed(names[0]), Confirmed: !slices.Contains(names, "unconfirmed")})
		for _, half := range s.machine.Halves(s.clock) {
			out += fmt.Sprintf("%s is half-bound: %s of %d, overdue %v\n", half.ID.Name, podNames(half.Bound), half.MinMember, half.Overdue)
		}
	case "abandon":
		out = s.step(HalfAbandoned{ID: gangNamed(names[0])})
	case "pass": // pass 1s: time goes by, and the clock ticks when something is due
		end := s.clock.Add(duration(names[0]))
		for {
			at := s.machine.Next()
			if at.IsZero() || at.After(end) {
				break
			}
			s.clock = later(s.clock, at)
			if effects := s.step(Tick{}); effects != "" {
				out += fmt.Sprintf("at -%v: %s", end.Sub(s.clock), effects)
			}
		}
		s.clock = end
	case "show":
		out = s.show()
	default:
		d.Fatalf(s.t, "no such command: %s", d.Cmd)
	}
	if err != nil {
		d.Fatalf(s.t, "%v", err)
	}
	if out == "" {
		return "nothing\n"
	}
	return out
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func TestScenarios(t *testing.T) {
	datadriven.Walk(t, "testdata/scenarios", func(t *testing.T, path string) {
		s := newScene(t)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string { return s.run(d) })
	})
}
