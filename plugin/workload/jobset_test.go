// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
)

// jobSetText is a JobSet with a driver of one pod with 4 GPUs and two Jobs of 3 pods with 8.
func jobSetText(extra, status string) string {
	return `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {namespace: ml, name: js, uid: js-1, annotations: {topology.scheduler/gpu-count: "52"}}
spec:
  ` + extra + `
  replicatedJobs:
  - name: driver
    template: {spec: {template: {spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 4}}}]}}}}
  - name: workers
    replicas: 2
    template: {spec: {parallelism: 3, completions: 3, template: {spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: 8}}}]}}}}
` + status
}

// jobSetPod has what the JobSet controller and the Job controller write on a pod.
func jobSetPod(replicated string, job, global, index int, gpus int64) *v1.Pod {
	name := fmt.Sprintf("js-%s-%d", replicated, job)
	return labelled(owned(pod(fmt.Sprintf("%s-%d-x%d", name, index, 9-index), gpus), "batch/v1 Job "+name+" uid-"+name),
		"jobset.sigs.k8s.io/jobset-name", "js", "jobset.sigs.k8s.io/jobset-uid", "js-1", "jobset.sigs.k8s.io/replicatedjob-name", replicated,
		"jobset.sigs.k8s.io/job-index", fmt.Sprint(job), "jobset.sigs.k8s.io/job-global-index", fmt.Sprint(global),
		"jobset.sigs.k8s.io/restart-attempt", "0", "batch.kubernetes.io/job-name", name, "batch.kubernetes.io/job-completion-index", fmt.Sprint(index))
}

func jobSetJob(replicated string, job int, pods int32) *batchv1.Job {
	name := fmt.Sprintf("js-%s-%d", replicated, job)
	j := owner(name, "jobset.x-k8s.io/v1alpha2 JobSet js js-1")
	j.Spec.Parallelism, j.Spec.Completions = &pods, &pods
	return j
}

func jobSetPods() (pods []*v1.Pod) {
	pods = append(pods, jobSetPod("driver", 0, 0, 0, 4))
	for job := range 2 {
		for index := range 3 {
			pods = append(pods, jobSetPod("workers", job, job+1, index, 8))
		}
	}
	return pods
}

func ranksOf(r *Reader, pods []*v1.Pod) ([]uint32, string) {
	indices := make([]Index, len(pods))
	for i, p := range pods {
		indices[i] = r.Classify(p).Index
	}
	return Ranks(pods, indices)
}

func gangsOf(r *Reader, id GangID) *Spec {
	for _, owner := range r.owners.byUID {
		for _, gang := range owner.Gangs {
			if gang.ID == id {
				return &gang.Spec
			}
		}
	}
	return nil
}

func TestAJobSetIsOneGang(t *testing.T) {
	r := reader(t, parse(t, jobSetText("", "")), jobSetJob("driver", 0, 1), jobSetJob("workers", 0, 3), jobSetJob("workers", 1, 3))
	pods := jobSetPods()
	want := GangID{Kind: KindJobSet, Namespace: "ml", Name: "js", UID: "js-1"}
	for _, p := range pods {
		if got := r.Classify(p); got.Kind != Member || got.Gang != want {
			t.Errorf("%s: %+v", p.Name, got)
		}
	}
	if spec := gangsOf(r, want); spec == nil || spec.MinMember != 7 || spec.Problem != "" || spec.UID != "js-1" {
		t.Errorf("got %+v", spec)
	}
	if got, note := ranksOf(r, pods); !slices.Equal(got, []uint32{0, 1, 2, 3, 4, 5, 6}) || note != "" {
		t.Errorf("ranks %v %s", got, note)
	}
	request, _, wishes := r.SingleRequest(pods[0], time.Now())
	if request.GPUsDesired != 4+2*3*8 || wishes[GPUCount] != "52" {
		t.Errorf("gpu-count is held against the sum over the templates: %d %v", request.GPUsDesired, wishes)
	}
}

func TestAJobSetThatStartsInOrderIsAGangPerReplicatedJob(t *testing.T) {
	depends := strings.Replace(jobSetText("", ""), "replicas: 2", "replicas: 2\n    dependsOn: [{name: driver, status: Ready}]", 1)
	for name, text := range map[string]string{"in order": jobSetText("startupPolicy: {startupPolicyOrder: InOrder}", ""), "depends": depends} {
		r := reader(t, parse(t, text), jobSetJob("driver", 0, 1), jobSetJob("workers", 0, 3), jobSetJob("workers", 1, 3))
		for _, p := range jobSetPods() {
			part, least := p.Labels[jobSetReplicated], map[string]int{"driver": 1, "workers": 6}
			want := GangID{Kind: KindJobSet, Namespace: "ml", Name: "js-" + part, UID: "js-1/" + part}
			got := r.Classify(p)
			if spec := gangsOf(r, got.Gang); got.Kind != Member || got.Gang != want || spec == nil || spec.MinMember != least[part] {
				t.Errorf("%s: %s: %+v %+v", name, p.Name, got, spec)
			}
		}
		if got, _ := ranksOf(r, jobSetPods()[1:]); !slices.Equal(got, []uint32{1, 2, 3, 4, 5, 6}) {
			t.Errorf("ranks count through the JobSet: %v", got)
		}
		odd := jobSetPod("workers", 0, 1, 0, 8)
		odd.Labels[jobSetReplicated] = "others"
		if got := r.Classify(odd); got.Kind != Refused || !strings.Contains(got.Problem, `"others"`) {
			t.Errorf("%s: got %+v", name, got)
		}
	}
	any := reader(t, parse(t, jobSetText("startupPolicy: {startupPolicyOrder: AnyOrder}", "")), jobSetJob("driver", 0, 1))
	if got := any.Classify(jobSetPods()[0]); got.Gang.Name != "js" {
		t.Errorf("got %+v", got)
	}
}

func TestJobsThatHaveEndedAreNotWaitedFor(t *testing.T) {
	r := reader(t, parse(t, jobSetText("", "status: {replicatedJobsStatus: [{name: workers, succeeded: 1}, {name: driver, succeeded: 0}]}")))
	if spec := gangsOf(r, GangID{Kind: KindJobSet, Namespace: "ml", Name: "js", UID: "js-1"}); spec == nil || spec.MinMember != 4 {
		t.Errorf("got %+v", spec)
	}
}

func TestJobSetsOutOfBounds(t *testing.T) {
	for name, test := range map[string][2]string{
		"no pods":     {"{replicatedJobs: [{name: w, replicas: 0}]}", "a gang has 1 to 16384 pods, it asks for 0"},
		"too many":    {"{replicatedJobs: [{name: w, replicas: 2147483647, template: {spec: {parallelism: 2147483647}}}]}", "it asks for 1099511627776"},
		"no list":     {"{replicatedJobs: 7}", "JobSet ml/js cannot be understood"},
		"no number":   {"{replicatedJobs: [{name: w, replicas: many}]}", "cannot be understood"},
		"no template": {"{replicatedJobs: [{name: w, template: []}]}", "cannot be understood"},
	} {
		r := reader(t, parse(t, "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {namespace: ml, name: js, uid: js-1}, spec: "+test[0]+"}"))
		if spec := gangsOf(r, GangID{Kind: KindJobSet, Namespace: "ml", Name: "js", UID: "js-1"}); spec == nil || !strings.Contains(spec.Problem, test[1]) {
			t.Errorf("%s: got %+v", name, spec)
		}
	}
}

// Where the JobSet itself cannot be read, its Jobs still say how many pods stand before one.
func TestRanksOfAJobSetThatCannotBeRead(t *testing.T) {
	r := reader(t, jobSetJob("workers", 0, 3), jobSetJob("workers", 1, 3))
	r.owners.SetSilent(jobSets, true)
	pods := []*v1.Pod{jobSetPod("workers", 1, 1, 2, 8), jobSetPod("workers", 0, 0, 1, 8)}
	if got, note := ranksOf(r, pods); !slices.Equal(got, []uint32{5, 1}) {
		t.Errorf("got %v %s", got, note)
	}
	if got := r.Classify(pods[0]); got.Kind != Single || got.Needs != jobSets {
		t.Errorf("got %+v", got)
	}
}
