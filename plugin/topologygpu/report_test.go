// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/plugin/gangs"
	"github.com/frond-scheduler/frond/plugin/status"
	"github.com/frond-scheduler/frond/plugin/workload"
)

// told remembers the last state of each object, and how many there were.
type told struct {
	claims  map[string]status.ClaimState
	groups  map[string]status.GroupState
	configs map[string]status.ConfigState
	count   int
}

func (t *told) Claim(s status.ClaimState)   { t.claims[s.Name] = s; t.count++ }
func (t *told) Group(s status.GroupState)   { t.groups[s.Name] = s; t.count++ }
func (t *told) Config(s status.ConfigState) { t.configs[s.Name] = s; t.count++ }

// reportBench is a bench whose reports are asked for by the test.
type reportBench struct {
	*bench
	observer *observer
	told     *told
	leads    bool
	ahead    time.Duration // of the clock
}

func newReportBench(t *testing.T) *reportBench {
	r := &reportBench{bench: newBench(t), leads: true}
	r.told = &told{claims: map[string]status.ClaimState{}, groups: map[string]status.GroupState{}, configs: map[string]status.ConfigState{}}
	c := r.plugin.cluster
	c.report = newReporter(c, r.told, func() bool { return c.synced() })
	c.now = func() time.Time { return time.Now().Add(r.ahead) }
	c.leading = func() bool { return r.leads }
	r.observer = &observer{cluster: c, logger: loggerFor(ctx)}
	return r
}

func (r *reportBench) object(kind, name, spec string, was any) any {
	r.t.Helper()
	object := &unstructured.Unstructured{}
	version := "gpu.scheduling/v1"
	if kind == "PodGroup" {
		version = "scheduling.x-k8s.io/v1alpha1"
	}
	text := fmt.Sprintf(`{"apiVersion": %q, "kind": %q, "metadata": {"namespace": "ml", "name": %q, "uid": "uid-%s", "generation": 1}, "spec": %s}`, version, kind, name, name, spec)
	if err := object.UnmarshalJSON([]byte(text)); err != nil {
		r.t.Fatal(err)
	}
	if was != nil {
		content, err := apis.Encode(was)
		if err != nil {
			r.t.Fatal(err)
		}
		object.Object["status"] = content
	}
	compact, err := r.plugin.reader.Compact(object)
	if err != nil {
		r.t.Fatal(err)
	}
	return compact
}

func (r *reportBench) claim(name string) status.ClaimState {
	r.plugin.report.round()
	return r.told.claims[name]
}

func (r *reportBench) group(name string) status.GroupState {
	r.plugin.report.round()
	return r.told.groups[name]
}

// seen is what the informers say of a pod that is there.
func (r *reportBench) seen(pod *v1.Pod) {
	r.t.Helper()
	if phaseOf(pod).ended() {
		slim, err := compactEnded(pod)
		if err != nil {
			r.t.Fatal(err)
		}
		r.plugin.ended.OnAdd(slim, false)
		r.observer.PodGone(pod)
		return
	}
	if err := r.framework.SharedInformerFactory().Core().V1().Pods().Informer().GetIndexer().Add(pod); err != nil {
		r.t.Fatal(err)
	}
	r.observer.PodSeen(pod)
}

func (r *reportBench) deleted(pod *v1.Pod) {
	if phaseOf(pod).ended() {
		r.plugin.ended.OnDelete(pod)
	} else {
		r.observer.PodGone(pod)
		r.ahead += endedPatience
	}
}

func claiming(pod *v1.Pod, claim string) *v1.Pod {
	pod.Annotations[workload.ClaimAnnotation] = claim
	return pod
}

func TestAClaimFollowsItsPod(t *testing.T) {
	b := newReportBench(t)
	b.observer.objectSet(b.object("GpuClaim", "mine", `{"devices": {"count": 4}}`, nil))
	if got := b.claim("mine"); got.Phase != apis.ClaimPending || got.Pod.Name != "" || got.UID != "uid-mine" || got.Generation != 1 {
		t.Fatalf("no pod uses it: %+v", got)
	}
	one := claiming(pod("one", 4, 1), "mine")
	b.seen(one)
	if got := b.claim("mine"); got.Phase != apis.ClaimPending || got.Pod.Name != "one" || got.PodUID != one.UID {
		t.Fatalf("its pod waits: %+v", got)
	}
	state, _, code := b.preFilter(one)
	if !code.IsSuccess() {
		t.Fatal(code)
	}
	if code := b.plugin.Reserve(ctx, state, one, "node-2"); !code.IsSuccess() {
		t.Fatal(code)
	}
	if got := b.claim("mine"); got.Phase != apis.ClaimReserved || got.Node != "node-2" || len(got.GPUs) != 4 || !strings.HasPrefix(got.GPUs[0], "node-2-gpu-") {
		t.Fatalf("reserved: %+v", got)
	}
	b.plugin.Unreserve(ctx, state, one, "node-2")
	if got := b.claim("mine"); got.Phase != apis.ClaimPending || got.Node != "" || got.GPUs != nil {
		t.Fatalf("given back: %+v", got)
	}
	bound := one.DeepCopy()
	bound.Spec.NodeName, bound.Annotations[workload.Allocated], bound.Annotations[workload.Rank] = "node-3", "GPU-b,GPU-a", "0"
	b.seen(bound)
	if got := b.claim("mine"); got.Phase != apis.ClaimBound || got.Node != "node-3" || strings.Join(got.GPUs, " ") != "GPU-b GPU-a" {
		t.Fatalf("bound: %+v", got)
	}
	ended := bound.DeepCopy()
	ended.Status.Phase = v1.PodSucceeded
	b.seen(ended)
	if got := b.claim("mine"); got.Phase != apis.ClaimReleased || got.Pod.Name != "one" || got.Node != "" {
		t.Fatalf("ended: %+v", got)
	}
	b.deleted(ended)
	b.seen(claiming(pod("two", 4, 1), "mine"))
	if got := b.claim("mine"); got.Phase != apis.ClaimPending || got.Pod.Name != "two" {
		t.Fatalf("the next one: %+v", got)
	}
	b.deleted(claiming(pod("two", 4, 1), "mine"))
	if got := b.claim("mine"); got.Phase != apis.ClaimPending || got.Pod.Name != "" {
		t.Fatalf("it never held anything: %+v", got)
	}
	if len(b.plugin.report.pods)+len(b.plugin.report.members) != 0 {
		t.Error("pods are remembered that are gone")
	}
}

func TestAWaitingClaimSaysWhatItsPodWasTold(t *testing.T) {
	b := newReportBench(t)
	for _, node := range b.nodes {
		blocker := pod("blocker-"+node.Name, 8, 1)
		blocker.Spec.NodeName = node.Name
		b.pods = append(b.pods, blocker)
	}
	b.look()
	b.observer.objectSet(b.object("GpuClaim", "mine", `{}`, nil))
	one := claiming(pod("one", 4, 1), "mine")
	one.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Message: "told by the scheduler before"}}
	b.seen(one)
	if got := b.claim("mine"); got.Message != "told by the scheduler before" {
		t.Errorf("got %+v", got)
	}
	_, _, code := b.preFilter(one)
	if got := b.claim("mine"); code.IsSuccess() || got.Phase != apis.ClaimPending || got.Message == "" || !strings.Contains(code.Message(), got.Message) {
		t.Errorf("got %+v, the pod was told %q", got, code.Message())
	}
}

func TestAClaimWhoseUseIsRefusedHasFailed(t *testing.T) {
	b := newReportBench(t)
	b.observer.objectSet(b.object("GpuClaim", "mine", `{"devices": {"count": 4}}`, nil))
	b.observer.objectSet(b.object("GpuClaim", "shared", `{"devices": {"exclusivity": "Shared"}}`, nil))
	b.observer.objectSet(b.object("GpuClaim", "strange", `{"devices": {"policy": "fastest"}}`, nil))
	b.seen(claiming(pod("one", 2, 1), "mine"))
	strange := claiming(pod("two", 2, 1), "strange")
	b.seen(strange)
	b.preFilter(strange)
	for name, want := range map[string]string{"mine": "asks for 4 GPUs and the pod's limits are 2", "shared": "not supported yet", "strange": "fastest"} {
		if got := b.claim(name); got.Phase != apis.ClaimFailed || !strings.Contains(got.Message, want) {
			t.Errorf("%s: %+v, want %q", name, got, want)
		}
	}
	b.deleted(claiming(pod("one", 2, 1), "mine"))
	if got := b.claim("mine"); got.Phase != apis.ClaimPending {
		t.Errorf("nobody uses it wrongly any more: %+v", got)
	}
}

func TestARestartKnowsReleasedClaimsFromTheirStatus(t *testing.T) {
	b := newReportBench(t)
	was := &apis.GpuClaimStatus{Phase: apis.ClaimBound, Pod: &apis.ClaimPod{Name: "one", UID: "uid-one"}}
	b.observer.objectSet(b.object("GpuClaim", "mine", `{}`, was))
	b.plugin.synced = func() bool { return false }
	if b.claim("mine"); b.told.count != 0 {
		t.Error("its pod may not have been seen yet")
	}
	b.plugin.synced = func() bool { return true }
	if got := b.claim("mine"); got.Phase != apis.ClaimReleased || got.Pod.Name != "one" || got.PodUID != "uid-one" {
		t.Errorf("got %+v", got)
	}
}

func TestAClaimOfAGangIsAsFarAsItsLastPod(t *testing.T) {
	b := newReportBench(t)
	b.observer.objectSet(b.object("GpuClaim", "all", `{"devices": {"count": 8}, "gangRef": "train"}`, nil))
	b.observer.objectSet(b.object("PodGroup", group, `{"minMember": 2}`, nil))
	first, second := claiming(pod("w-0", 8, 1), "all"), claiming(pod("w-1", 8, 1), "all")
	b.seen(first)
	if got := b.claim("all"); got.Phase != apis.ClaimPending || got.Pod.Name != "w-0" || got.Reason != status.ReasonWaiting ||
		got.Message != "0 of 1 pods have their GPUs; pod w-0: gang ml/train has 1 of 2 pods" {
		t.Errorf("got %+v", got)
	}
	b.seen(second)
	b.gang(2, first, second)
	if _, _, code := b.preFilter(first); !code.IsSuccess() {
		t.Fatal(code)
	}
	if got := b.claim("all"); got.Phase != apis.ClaimReserved || got.Node != "" || got.GPUs != nil || got.Pod.Name != "" {
		t.Errorf("both are reserved: %+v", got)
	}
	bound := first.DeepCopy()
	bound.Spec.NodeName, bound.Annotations[workload.Rank] = "node-1", "0"
	b.seen(bound)
	if got := b.claim("all"); got.Phase != apis.ClaimReserved || got.Message != "1 of 2 pods have their GPUs" {
		t.Errorf("one is still to come: %+v", got)
	}
	wrong := claiming(pod("w-2", 4, 1), "all")
	b.seen(wrong)
	if got := b.claim("all"); got.Phase != apis.ClaimFailed || !strings.Contains(got.Message, "pod w-2: GpuClaim ml/all asks for 8 GPUs") {
		t.Errorf("one is refused: %+v", got)
	}
}

// What a gang asks for is every member's failure, not only that of the one that asked for all.
func TestARefusedGangFailsAllItsClaims(t *testing.T) {
	b := newReportBench(t)
	for _, name := range []string{"first", "second"} {
		b.observer.objectSet(b.object("GpuClaim", name, `{"devices": {"count": 8}}`, nil))
	}
	b.observer.objectSet(b.object("PodGroup", group, `{"minMember": 2}`, nil))
	var pods []*v1.Pod
	for i, claim := range []string{"first", "second"} {
		member := claiming(pod(fmt.Sprintf("w-%d", i), 8, 1), claim)
		member.Labels[workload.PodGroupLabel] = group
		member.Annotations[workload.Prefix+"recovery"] = "Sideways"
		pods = append(pods, member)
		b.seen(member)
	}
	time.Sleep(250 * time.Millisecond) // PodGroups gather for a moment
	if _, _, status := b.preFilter(pods[0]); status.IsSuccess() {
		t.Fatal("a gang with a recovery that does not exist was placed")
	}
	for _, name := range []string{"first", "second"} {
		if got := b.claim(name); got.Phase != apis.ClaimFailed || !strings.Contains(got.Message, "Sideways") {
			t.Errorf("claim %s: %s %q, want Failed and the value", name, got.Phase, got.Message)
		}
	}
}

func TestOnlyTheLeaderTellsAndThenAll(t *testing.T) {
	b := newReportBench(t)
	b.leads = false
	b.observer.objectSet(b.object("GpuClaim", "mine", `{}`, nil))
	b.observer.objectSet(b.object("PodGroup", group, `{"minMember": 2}`, nil))
	b.plugin.report.config(status.ConfigState{Name: "default", Applied: true})
	b.plugin.report.round()
	if b.told.count != 0 {
		t.Fatalf("a standby told %d states", b.told.count)
	}
	b.leads = true
	b.plugin.report.round()
	if len(b.told.claims) != 1 || len(b.told.groups) != 1 || !b.told.configs["default"].Applied || b.told.count != 3 {
		t.Errorf("a new leader told %+v", b.told)
	}
	b.plugin.report.round()
	b.observer.objectSet(b.object("GpuClaim", "mine", `{}`, &apis.GpuClaimStatus{Phase: apis.ClaimPending}))
	b.observer.objectSet(b.object("PodGroup", group, `{"minMember": 2}`, &apis.PodGroupStatus{Phase: apis.GroupPending}))
	b.plugin.report.round()
	if b.told.count != 3 {
		t.Error("nothing has happened but its own writing")
	}
	b.leads = false
	b.plugin.report.round()
	b.leads = true
	b.plugin.report.round()
	if b.told.count != 6 {
		t.Error("who leads again tells everything again")
	}
}

func TestAPodGroupFromItsFirstPodToItsEnd(t *testing.T) {
	b := newReportBench(t)
	expect := func(what string, phase apis.GroupPhase, counts, says string) {
		t.Helper()
		got := b.group(group)
		if have := fmt.Sprint(got.Scheduled, got.Running, got.Succeeded, got.Failed); got.Phase != phase || have != counts || !strings.Contains(got.Message, says) {
			t.Errorf("%s: %s %s %q, want %s %s %q", what, got.Phase, have, got.Message, phase, counts, says)
		}
	}
	b.observer.objectSet(b.object("PodGroup", group, `{"minMember": 2}`, nil))
	expect("empty", apis.GroupPending, "0 0 0 0", messageNoPods)
	owner := true
	pods := []*v1.Pod{pod("w-0", 8, 1), pod("w-1", 8, 1)}
	for i, label := range []string{workload.PodGroupLabel, workload.OldPodGroupLabel} {
		pods[i].Labels[label] = group
		pods[i].OwnerReferences = []metav1.OwnerReference{{APIVersion: "example.com/v1", Kind: "Sweep", Name: "sweep", UID: "uid-sweep", Controller: &owner}}
	}
	b.seen(pods[0])
	expect("one pod", apis.GroupPending, "0 0 0 0", "1 of 2 pods are there")
	if !b.told.groups[group].Start.IsZero() {
		t.Error("nothing was tried yet")
	}
	b.seen(pods[1])
	expect("both", apis.GroupPreScheduling, "0 0 0 0", "")
	began := b.told.groups[group].Start
	if began.IsZero() || b.told.groups[group].OccupiedBy != "ml/sweep" {
		t.Errorf("got %+v", b.told.groups[group])
	}
	b.gang(2, pods[0])
	if _, _, code := b.preFilter(pods[0]); !code.IsSuccess() {
		t.Fatal(code)
	}
	expect("planned", apis.GroupScheduling, "0 0 0 0", "places are reserved")
	for i, p := range pods {
		pods[i] = p.DeepCopy()
		pods[i].Spec.NodeName, pods[i].Annotations[workload.Rank] = fmt.Sprintf("node-%d", i+1), fmt.Sprint(i)
		b.seen(pods[i])
		if i == 0 {
			expect("half", apis.GroupScheduling, "1 0 0 0", "")
		}
	}
	expect("bound", apis.GroupScheduled, "2 0 0 0", "")
	set := func(i int, phase v1.PodPhase) {
		pods[i] = pods[i].DeepCopy()
		pods[i].Status.Phase = phase
		b.seen(pods[i])
	}
	set(0, v1.PodRunning)
	expect("one runs", apis.GroupScheduled, "2 1 0 0", "")
	set(1, v1.PodRunning)
	expect("both run", apis.GroupRunning, "2 2 0 0", "")
	set(0, v1.PodSucceeded)
	expect("one has ended", apis.GroupRunning, "1 1 1 0", "")
	b.deleted(pods[0])
	expect("and is deleted", apis.GroupUnknown, "1 1 0 0", "1 of 2 pods are left")
	b.seen(pods[0])
	set(1, v1.PodSucceeded)
	expect("both have ended", apis.GroupFinished, "0 0 2 0", "")
	if got := b.told.groups[group].Start; !got.Equal(began) {
		t.Errorf("the start has moved from %v to %v", began, got)
	}
	before := b.told.count
	b.deleted(pods[0])
	b.deleted(pods[1])
	if b.plugin.report.round(); b.told.groups[group].Phase != apis.GroupFinished || b.told.count != before {
		t.Errorf("what became of it stands: %+v", b.told.groups[group])
	}
	b.observer.objectGone(b.object("PodGroup", group, `{"minMember": 2}`, nil))
	b.plugin.report.round()
	if r := b.plugin.report; len(r.pods)+len(r.members)+len(r.groups)+len(r.toldGroups) != 0 {
		t.Errorf("something is left of it: %+v", r)
	}
}

// The informers are not in step: whether a pod that vanished has ended may show a moment later.
func TestAPodThatVanishedCountsUntilItsEndIsKnown(t *testing.T) {
	b := newReportBench(t)
	b.observer.objectSet(b.object("PodGroup", group, `{"minMember": 1}`, nil))
	running := pod("w-0", 8, 1)
	running.Labels[workload.PodGroupLabel], running.Spec.NodeName, running.Status.Phase = group, "node-1", v1.PodRunning
	running.Annotations[workload.Rank] = "0"
	b.seen(running)
	b.observer.PodGone(running)
	if got := b.group(group); got.Phase != apis.GroupRunning {
		t.Errorf("got %+v", got)
	}
	ended := running.DeepCopy()
	ended.Status.Phase = v1.PodSucceeded
	b.plugin.ended.OnAdd(ended, false)
	b.observer.PodSeen(running) // late news
	b.observer.PodGone(running)
	b.ahead += 2 * endedPatience
	if got := b.group(group); got.Phase != apis.GroupFinished || got.Succeeded != 1 {
		t.Errorf("got %+v", got)
	}
}

func TestEndedPodsAreCountedAfterARestart(t *testing.T) {
	b := newReportBench(t)
	b.observer.objectSet(b.object("PodGroup", group, `{"minMember": 2}`, &apis.PodGroupStatus{Phase: apis.GroupRunning}))
	for i, phase := range []v1.PodPhase{v1.PodSucceeded, v1.PodFailed} {
		ended := pod(fmt.Sprintf("w-%d", i), 8, 1)
		ended.Labels[workload.PodGroupLabel], ended.Spec.NodeName, ended.Status.Phase = group, "node-1", phase
		ended.Annotations[workload.Rank] = fmt.Sprint(i)
		b.seen(ended)
	}
	if got := b.group(group); got.Phase != apis.GroupFailed || got.Succeeded != 1 || got.Failed != 1 || !got.Start.IsZero() {
		t.Errorf("got %+v", got)
	}
}

func TestPhasesOfAGroup(t *testing.T) {
	pods := func(there, bound int) gangs.State { return gangs.State{Pods: there, Bound: bound} }
	for _, c := range []struct {
		name  string
		facts groupFacts
		want  apis.GroupPhase
		says  string
	}{
		{"bad spec", groupFacts{spec: workload.Spec{Problem: "minMember must be"}, gang: pods(4, 0)}, apis.GroupPending, "minMember must be"},
		{"waits", groupFacts{gang: gangs.State{Pods: 4, Reason: "needs 4 nodes"}}, apis.GroupPreScheduling, "needs 4 nodes"},
		{"bound, not yet seen so", groupFacts{gang: pods(4, 4)}, apis.GroupScheduling, ""},
		{"half-bound before a restart", groupFacts{gang: gangs.State{Pods: 4, Bound: 1, Reason: "full"}, scheduled: 1, last: apis.GroupScheduling}, apis.GroupScheduling, "1 of 4 pods are bound; full"},
		{"lost one", groupFacts{gang: gangs.State{Pods: 4, Bound: 3, Whole: true, Reason: "full"}, scheduled: 3, running: 3}, apis.GroupUnknown, "3 of 4 pods are left; full"},
		{"lost one before a restart", groupFacts{gang: pods(3, 3), scheduled: 3, running: 3, last: apis.GroupRunning}, apis.GroupUnknown, "3 of 4"},
		{"lost all", groupFacts{gang: pods(0, 0), last: apis.GroupRunning}, apis.GroupPending, messageNoPods},
		{"one failed for good", groupFacts{gang: pods(3, 3), scheduled: 3, running: 3, failed: 1}, apis.GroupFailed, "1 pods have failed and 3 of 4 are left"},
		{"one failed and was replaced", groupFacts{gang: pods(4, 4), scheduled: 4, running: 4, failed: 1}, apis.GroupRunning, ""},
		{"finished after a retry", groupFacts{succeeded: 4, failed: 1}, apis.GroupFinished, ""},
		{"more than needed still run", groupFacts{gang: pods(1, 1), scheduled: 1, running: 1, succeeded: 4}, apis.GroupRunning, ""},
		{"failed and gone", groupFacts{last: apis.GroupFailed}, "", ""},
		{"new pods after the end", groupFacts{gang: pods(1, 0), last: apis.GroupFinished}, apis.GroupPending, "1 of 4 pods are there"},
	} {
		if c.facts.spec.Problem == "" {
			c.facts.spec.MinMember = 4
		}
		if phase, message := c.facts.phase(); phase != c.want || !strings.Contains(message, c.says) {
			t.Errorf("%s: %s %q, want %s %q", c.name, phase, message, c.want, c.says)
		}
	}
}

func TestPodsWithoutClaimOrGroupAreNotRemembered(t *testing.T) {
	b := newReportBench(t)
	b.seen(pod("single", 1, 1))
	b.seen(pod("plain", 0, 1))
	native := pod("native", 1, 1)
	name := "native"
	native.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &name}
	b.seen(native)
	b.plugin.report.podsTouched([]types.UID{"uid-single"})
	b.plugin.report.round()
	if r := b.plugin.report; len(r.pods)+len(r.members)+b.told.count != 0 {
		t.Errorf("got %+v", r)
	}
}

// Two schedulers of ours with different profiles see the same claims and groups; each speaks of those that its pods use.
func TestWhatAnotherSchedulerServesIsLeftToIt(t *testing.T) {
	b := newReportBench(t)
	theirs := claiming(pod("one", 4, 1), "mine")
	theirs.Spec.SchedulerName, theirs.Labels[workload.PodGroupLabel] = "other", group
	b.seen(theirs)
	b.observer.objectSet(b.object("GpuClaim", "mine", `{}`, &apis.GpuClaimStatus{Phase: apis.ClaimBound}))
	b.observer.objectSet(b.object("PodGroup", group, `{"minMember": 1}`, &apis.PodGroupStatus{Phase: apis.GroupRunning}))
	b.observer.objectSet(b.object("GpuClaim", "spare", `{}`, nil))
	b.plugin.report.round()
	if len(b.told.claims) != 1 || b.told.claims["spare"].Phase != apis.ClaimPending || len(b.told.groups) != 0 {
		t.Errorf("told %+v", b.told)
	}
}

func TestLiveConfigurationWakesThoseThatWait(t *testing.T) {
	b := newReportBench(t)
	members := []*v1.Pod{pod("w-0", 8, 1), pod("w-1", 8, 1)}
	if err := b.plugin.configure(loggerFor(ctx), []byte(`{"topologyConstraints": {"maxNodesPerLeaf": 1, "maxGPUsPerLeaf": 4}}`)); err != nil {
		t.Fatal(err)
	}
	b.gang(2, members...)
	single := pod("single", 8, 1)
	b.seen(single)
	for _, waiting := range []*v1.Pod{members[0], single} {
		if _, _, code := b.preFilter(waiting); code.IsSuccess() {
			t.Fatalf("%s is placed in spite of the caps", waiting.Name)
		}
	}
	b.queue.mu.Lock()
	clear(b.queue.activated)
	b.queue.mu.Unlock()
	if err := b.plugin.configure(loggerFor(ctx), []byte(`{"scoringWeights": {"modelCache": 0.1234}}`)); err == nil {
		t.Error("taken")
	}
	b.queue.mu.Lock()
	if len(b.queue.activated) != 0 {
		t.Error("a refused configuration wakes nobody")
	}
	b.queue.mu.Unlock()
	if err := b.plugin.configure(loggerFor(ctx), []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	b.wantActivated("ml/w-0", "ml/single")
	for _, waiting := range []*v1.Pod{members[0], single} {
		if _, _, code := b.preFilter(waiting); !code.IsSuccess() {
			t.Errorf("%s: %v", waiting.Name, code)
		}
	}
}

func (b *bench) wantActivated(names ...string) {
	b.t.Helper()
	missing := ""
	for range 200 {
		missing = ""
		b.queue.mu.Lock()
		for _, name := range names {
			if !b.queue.activated[name] {
				missing = name
			}
		}
		b.queue.mu.Unlock()
		if missing == "" {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.t.Errorf("%s was not woken", missing)
}
