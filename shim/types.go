// SPDX-License-Identifier: Apache-2.0

package shim

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"time"
)

// None is no node and no end: a slot that names nothing, a wait that never ends.
const None = math.MaxUint32

// NoPosition in Order's answer: the pod does not fit there.
const NoPosition = math.MaxUint16

// Code is the kind of an Error; the numbers are the ABI's.
type Code int32

const (
	CodeMissing Code = -1 // the library does not have the call
	CodeBad     Code = 1  // bad input
	CodeLimit   Code = 2  // over a limit
	CodeUnknown Code = 3  // not known
	CodeStale   Code = 4  // the plan is stale
	CodeSmall   Code = 5  // output buffer too small; the shim grows it
	CodeBroken  Code = 6  // an invariant does not hold
)

// Error is the engine's refusal of a call: a kind for the program and a sentence for people.
type Error struct {
	Code Code
	Text string
}

func (e *Error) Error() string { return e.Text }

// IsCode says whether err is, or wraps, an engine Error of that kind.
func IsCode(err error, code Code) bool {
	var refusal *Error
	return errors.As(err, &refusal) && refusal.Code == code
}

// Key is 128 bits that identify a pod or a gang in the engine.
type Key struct{ Hi, Lo uint64 }

func (k Key) String() string { return fmt.Sprintf("%016x%016x", k.Hi, k.Lo) }

// PodKey is a pod's UID: the UUID itself when it is one, which keeps it readable in dumps, else a hash.
func PodKey(uid string) Key {
	if key, ok := parseUUID(uid); ok {
		return key
	}
	return hashKey(uid)
}

// GangKey identifies a gang by the object that makes it one.
func GangKey(kind, namespace, name, uid string) Key {
	return hashKey(kind + "/" + namespace + "/" + name + "/" + uid)
}

func parseUUID(text string) (Key, bool) {
	if len(text) != 36 || text[8] != '-' || text[13] != '-' || text[18] != '-' || text[23] != '-' {
		return Key{}, false
	}
	digits := text[:8] + text[9:13] + text[14:18] + text[19:23] + text[24:]
	raw, err := hex.DecodeString(digits)
	if err != nil {
		return Key{}, false
	}
	key := Key{Hi: binary.BigEndian.Uint64(raw), Lo: binary.BigEndian.Uint64(raw[8:])}
	return key, key != Key{} // zero is no key in the ABI
}

func hashKey(text string) Key {
	sum := sha256.Sum256([]byte(text))
	key := Key{Hi: binary.BigEndian.Uint64(sum[:]), Lo: binary.BigEndian.Uint64(sum[8:])}
	if key == (Key{}) {
		key.Lo = 1
	}
	return key
}

// Limits of one engine. Over a limit is a refusal, never a truncation.
type Limits struct {
	Nodes      uint32 // slots 0 … Nodes-1
	Pods       uint32 // pods that hold GPUs or reservations at one time
	TextBytes  uint32 // names of nodes and domains together; 0: the engine's default
	TableBytes uint32 // for GPU-set tables; 0: the engine's default
	Holds      uint32 // at one time; 0: none
}

// Args is what the host needs of TopologyGPUArgs; the rest stays in the engine.
type Args struct {
	PermitWait time.Duration
	Resources  []string // names of GPU resources
	FabricFile string   // path; "": none
	// UnavailableAfter: what has been closed or unhealthy for longer is no capacity for the rule.
	UnavailableAfter time.Duration
}

// Fabric reads the file that the args name, for New; nil when they name none.
func (a Args) Fabric() ([]byte, error) {
	if a.FabricFile == "" {
		return nil, nil
	}
	fabric, err := os.ReadFile(a.FabricFile)
	if err != nil {
		var path *os.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		return nil, fmt.Errorf("args.topology.fabricFile: cannot read %s: %w", a.FabricFile, err)
	}
	return fabric, nil
}

// NodeFlag is a condition of the node: cordoned or down it takes nothing new, but still counts as capacity.
type NodeFlag uint32

const (
	NodeCordoned NodeFlag = 1
	NodeDown     NodeFlag = 2
	// NodeReplicas: the node lets pods have more GPUs than it has devices, GPUs of them being known. Problems names it.
	NodeReplicas NodeFlag = 4
	// NodeUnavailable: no capacity for the rule, because the node has been cordoned or down for longer than unavailableAfter.
	NodeUnavailable NodeFlag = 8
)

// Node is what the engine knows of a node besides its labels.
type Node struct {
	Slot          uint32
	GPUs          uint32
	UnhealthyMask uint32
	Flags         NodeFlag
	UplinkGbps    uint32
	Topology      uint32 // from TopologyPut; None: by model
	Name          string
	Model         string // the machine's; "": the fabric file's, or the product label's
	// UnavailableMask: of UnhealthyMask, for longer than unavailableAfter, no capacity for the rule.
	UnavailableMask uint32
}

// Topology is the links between the GPUs of a node. The layout is the ABI's.
type Topology struct {
	GPUs     uint32
	NUMA     [GPUsMax]uint8
	LinkGBps [GPUsMax][GPUsMax]uint16 // GB/s, symmetric; 0: through PCIe or the host
}

// PodFlag is what the engine should know of a pod before it evicts it.
type PodFlag uint32

// PodBudgeted: evicting it would violate a disruption budget.
const PodBudgeted PodFlag = 1

// Pod is a bound pod that holds GPUs, ours or another scheduler's.
type Pod struct {
	Key     Key
	Slot    uint32
	GPUs    uint32
	GPUMask uint32 // bit i: GPU i of the node, as many as GPUs; 0: held by count
	Name    string // for the map: namespace/name of its gang, or its own
	Gang    Key    // zero: none, or not known
	Rank    uint32 // None: not known
	Flags   PodFlag
}

// HeldState is how far a pod has come that holds something.
type HeldState uint32

const (
	HeldReserved HeldState = 1
	HeldBound    HeldState = 2
)

// Held is what a pod holds. The layout is the ABI's.
type Held struct {
	Gang    Key    // zero: none
	Slot    uint32 // None: a member without GPUs
	GPUs    uint32 // by device and by count together
	GPUMask uint32 // by device
	ByCount uint32 // GPUs whose devices nobody knows, or somebody else had before
	Rank    uint32 // None: not known
	State   HeldState
}

// GangHold keeps GPUs of a node for a rank of a gang, although its pod is not there yet or somebody still sits on them.
// The layout is the ABI's.
type GangHold struct {
	Gang           Key
	Rank           uint32
	Slot           uint32
	GPUMask        uint32
	reserved       uint32
	DeadlineMillis int64 // since 1970: Tick ends the hold when it is later; 0: none
}

// Named are GPUs of one node that a claim's preferIds names. The layout is the ABI's.
type Named struct {
	Slot    uint32
	GPUMask uint32
}

// Request is a gang, or one pod, to be planned.
type Request struct {
	Gang        Key // of a pod in no gang: the pod's own key
	MinMember   uint32
	GPUsDesired uint64        // by limits: GPUs of a pod × desired pods of the object that carries gpu-count
	Age         time.Duration // since the last member was created
	OnlySlot    uint32        // plan on this node only; None: anywhere
	Name        string        // for sentences: namespace/name
	Deadline    time.Time     // Reserve: Tick gives the places back when it is later; zero: never
	Priority    int32
	Claim       string  // the spec of its GpuClaim, JSON; "": none
	Named       []Named // GPUs that the claim's preferIds names by what only the host knows; at most GPUsMax, each slot once
}

// Member is one pod of a request. The layout is the ABI's: members cross without a copy.
type Member struct {
	Pod        Key
	Rank       uint32
	GPUs       uint32 // 0: counts for all-or-nothing, placed by upstream
	PinnedSlot uint32 // bound there already; None: to be placed
	Template   uint32 // members that are scheduled alike have the same; under the number of members
}

// Room is an exception: a node that takes fewer members of a template than its GPUs allow, because of everything that the
// engine does not know. Lists ascend by slot, then template. The layout is the ABI's.
type Room struct {
	Slot     uint32
	Template uint16
	Today    uint16 // now: filters, CPU, memory, assumed pods
	Ever     uint16 // on the empty, healthy node: labels, allocatable
	// Unavailable: of Ever, no capacity for the rule, because a taint has closed the node for longer than unavailableAfter.
	Unavailable uint16
}

// Thrift is what Order needs to keep the GPUs of nodes of use: the engine sees no CPU and no memory.
type Thrift struct {
	Asks  Left   // the pod
	Kinds []Kind // pods that are expected; at most KindsMax
	Left  []Left // by slot
}

// Kind is pods that ask for the same. The layout is the ABI's.
type Kind struct {
	CPUMilli  uint32 // 0: does not ask for it
	MemoryMiB uint32
	GPUs      uint32 // 1 to GPUsMax
	Pods      uint32 // how many there are: 1 to PodsMax
}

// Left is what a node has left, or a pod asks for, of what the engine does not see. The layout is the ABI's.
type Left struct {
	CPUMilli  uint32
	MemoryMiB uint32
}

// Place is where a member goes, parallel to the members. The layout is the ABI's.
type Place struct {
	Slot    uint32 // None for a member without GPUs
	GPUMask uint32
	Ring    uint64 // the same GPUs in ring order, four bits each, the first in the lowest
}

// Outcome is the engine's answer to a request.
type Outcome uint32

const (
	Placed    Outcome = 1
	Waits     Outcome = 2 // would fit another day
	Never     Outcome = 3 // capacity does not suffice
	Refused   Outcome = 4 // what was asked is wrong or contradicts itself
	Undecided Outcome = 5 // the bound on a call's work was reached before an answer was found: it may fit
)

func (o Outcome) String() string {
	return named(uint32(o), map[uint32]string{1: "placed", 2: "waits", 3: "never fits", 4: "refused", 5: "undecided"})
}

// Rule is the placement rule of reference 3.3 that a gang must meet.
type Rule uint32

func (r Rule) String() string {
	return named(uint32(r), map[uint32]string{0: "none", 1: "single node", 2: "NVLink domain", 3: "same leaf",
		4: "complete leaf", 5: "adjacent leaves", 6: "adjacent spines"})
}

func named(number uint32, names map[uint32]string) string {
	if name, ok := names[number]; ok {
		return name
	}
	return fmt.Sprintf("unknown (%d)", number)
}

// PlanFlag says what was special about a plan.
type PlanFlag uint32

const (
	PlanRelaxed       PlanFlag = 1   // the rule could not be met and was allowed to break
	PlanShapeless     PlanFlag = 2   // capacity suffices, but never in the rule's shape
	PlanUnknownDomain PlanFlag = 4   // preferred-domain names nothing in the fabric
	PlanNoTopology    PlanFlag = 8   // the cluster has no leaves
	PlanBounded       PlanFlag = 16  // more candidates were equal than are compared
	PlanUnknownGPU    PlanFlag = 32  // preferIds lists an id that is no GPU of the cluster
	PlanMixedModels   PlanFlag = 64  // the gang has GPUs of more than one model
	PlanSegmentless   PlanFlag = 128 // shapeless because of segments alone
)

// Plan is what the engine answers. The layout is the ABI's.
type Plan struct {
	Generation uint64 // of the state that was planned on
	Outcome    Outcome
	Rule       Rule
	Flags      PlanFlag
	Spines     uint32
	Leaves     uint32
	Runs       uint32
	Nodes      uint32
	WaitMillis uint32 // until topology-wait ends; None: for ever
}

// Verdict is the answer at Permit.
type Verdict uint32

const (
	Hold Verdict = 1
	Go   Verdict = 2
)

// GangState is how far a gang has come.
type GangState uint32

const (
	GangGathering GangState = 1 // some members hold places, fewer than MinMember, nothing is reserved
	GangPlanned   GangState = 2 // every place is reserved, nobody has reached Permit
	GangReserved  GangState = 3 // members are arriving at Permit, or being bound
	GangBound     GangState = 4 // MinMember or more are bound, nothing is reserved
	GangDegraded  GangState = 5 // was bound, and has lost members below MinMember
)

func (s GangState) String() string {
	return named(uint32(s), map[uint32]string{1: "gathering", 2: "planned", 3: "reserved", 4: "bound", 5: "degraded"})
}

// Gang is what the engine knows of a gang that holds something.
type Gang struct {
	State     GangState
	MinMember uint32
	Members   uint32 // that hold a place
	Arrived   uint32 // of them, reserved and at Permit
	Bound     uint32
	Lost      uint32 // bound members that have gone since the gang was bound
	Priority  int32
	Deadline  time.Time // zero: none
}

// Move is one member that changes its place. The layout is the ABI's.
type Move struct {
	Pod     Key
	Rank    uint32
	From    uint32 // slots
	To      uint32
	GPUMask uint32 // there
	Ring    uint64
}

// Moves is the answer to Recover and Defrag. The layout is the ABI's.
type Moves struct {
	Outcome    Outcome // Placed: the moves restore the rule or open the hole, or none is needed
	Flags      PlanFlag
	Count      uint32
	LowerBound uint32 // no plan has fewer
}

// Victims is the answer to Victims. The layout is the ABI's.
type Victims struct {
	Outcome  Outcome
	Count    uint32 // pods
	Budgets  uint32 // pods whose disruption budget would be violated
	Priority int32  // highest among them
	Gangs    uint32 // evicted, whole or in part
	GPUs     uint32
	Plan     Plan // where the gang goes then
}

// End is when a pod is expected to end. The layout is the ABI's.
type End struct {
	Pod          Key
	EndsInMillis int64 // from now; 0 or more
}

// WindowNever is the start of a window that there is not, and the end of a pod of which nobody knows.
const WindowNever = -1

// Window is where a gang that waits will find room, and when. The layout is the ABI's.
type Window struct {
	Outcome     Outcome // Placed when StartMillis says when, Waits when the ends do not suffice
	Kept        uint32  // 1: the window that the gang has
	Nodes       uint32
	Free        uint32 // of them, those that have the members' GPUs free now
	StartMillis int64  // from now; 0: now; WindowNever unless placed
	Plan        Plan   // at that time
}

// Backfill asks whether a pod may use nodes that a window keeps.
type Backfill struct {
	StartMillis    int64 // of the window, from now
	EndsInMillis   int64 // of the pod, from its start; WindowNever: not known
	WindowPriority int32 // of the gang that has the window
	PodPriority    int32
	WindowPreempts bool // false: its preemptionPolicy is Never
}

// Stats are the engine's counters. The layout is the ABI's.
type Stats struct {
	Generation       uint64
	Nodes            uint32
	NodesWithoutLeaf uint32
	Leaves           uint32
	Spines           uint32
	GPUs             uint32
	GPUsUnhealthy    uint32
	GPUsReserved     uint32
	GPUsBound        uint32
	GPUsByCount      uint32
	GPUsFree         uint32
	Pods             uint32
	Gangs            uint32
	Holds            uint32
	GPUsKept         uint32 // of holds, that nobody has
	Plans            uint64
	Placed           uint64
	Waiting          uint64
	Refused          uint64
	Relaxed          uint64
	Bounded          uint64 // plans for which more candidates were equal than are compared
	Steps            uint64 // candidates compared
	Expired          uint64 // gangs whose reservation Tick gave back
	Conflicts        uint64 // bound pods that claimed a GPU which had an owner
	HoldsExpired     uint64 // that Tick has ended
}
