// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
)

func trainingText(version, kind, specs, more string) string {
	return "{apiVersion: kubeflow.org/" + version + ", kind: " + kind + ", metadata: {namespace: ml, name: tj, uid: tj-1, annotations: {topology.scheduler/gpu-count: \"40\"}}, spec: {" +
		kubeflowSpecs[kind] + ": {" + specs + "}" + more + "}"
}

func replica(kind string, count, gpus int) string {
	return fmt.Sprintf("%s: {replicas: %d, template: {spec: {containers: [{name: c, resources: {limits: {nvidia.com/gpu: %d}}}]}}}", kind, count, gpus)
}

// trainingPod has what the training operator writes on a pod.
func trainingPod(kind, replicaType string, index int, gpus int64) *v1.Pod {
	return labelled(owned(pod(fmt.Sprintf("tj-%s-%d", replicaType, index), gpus), "kubeflow.org/v1 "+kind+" tj tj-1"),
		"training.kubeflow.org/job-name", "tj", "training.kubeflow.org/operator-name", strings.ToLower(kind)+"-controller",
		"training.kubeflow.org/replica-type", replicaType, "training.kubeflow.org/replica-index", fmt.Sprint(index))
}

func TestTrainingJobsAreGangs(t *testing.T) {
	for _, test := range []struct {
		kind, specs string
		pods        []*v1.Pod
		ranks       []uint32
		least       int
		gpus        uint64
	}{
		{"PyTorchJob", replica("Master", 1, 8) + ", " + replica("Worker", 4, 8),
			[]*v1.Pod{trainingPod("PyTorchJob", "worker", 3, 8), trainingPod("PyTorchJob", "master", 0, 8), trainingPod("PyTorchJob", "worker", 0, 8)}, []uint32{4, 0, 1}, 5, 40},
		{"TFJob", replica("PS", 2, 0) + ", " + replica("Worker", 2, 8) + ", " + replica("Chief", 1, 8) + ", " + replica("Evaluator", 1, 1),
			[]*v1.Pod{trainingPod("TFJob", "ps", 1, 0), trainingPod("TFJob", "worker", 1, 8), trainingPod("TFJob", "chief", 0, 8), trainingPod("TFJob", "evaluator", 0, 1)}, []uint32{5, 2, 0, 3}, 6, 25},
		{"XGBoostJob", replica("Worker", 2, 4) + ", " + replica("Master", 1, 4),
			[]*v1.Pod{trainingPod("XGBoostJob", "worker", 0, 4), trainingPod("XGBoostJob", "master", 0, 4)}, []uint32{1, 0}, 3, 12},
		{"PaddleJob", replica("Worker", 3, 4), []*v1.Pod{trainingPod("PaddleJob", "worker", 2, 4), trainingPod("PaddleJob", "worker", 0, 4)}, []uint32{2, 0}, 3, 12},
		{"JAXJob", replica("Worker", 3, 4), []*v1.Pod{trainingPod("JAXJob", "worker", 1, 4)}, []uint32{1}, 3, 12},
		{"MPIJob", replica("Launcher", 1, 0) + ", " + replica("Worker", 2, 8),
			[]*v1.Pod{trainingPod("MPIJob", "worker", 0, 8), trainingPod("MPIJob", "worker", 1, 8)}, []uint32{1, 2}, 3, 16},
	} {
		t.Run(test.kind, func(t *testing.T) {
			r := reader(t, parse(t, trainingText("v1", test.kind, test.specs, "}")))
			want := GangID{Kind: test.kind, Namespace: "ml", Name: "tj", UID: "tj-1"}
			for _, p := range test.pods {
				if got := r.Classify(p); got.Kind != Member || got.Gang != want {
					t.Errorf("%s: %+v", p.Name, got)
				}
			}
			if spec := gangsOf(r, want); spec == nil || spec.MinMember != test.least || spec.Problem != "" {
				t.Errorf("got %+v", spec)
			}
			if got, note := ranksOf(r, test.pods); !slices.Equal(got, test.ranks) || note != "" {
				t.Errorf("ranks %v %s", got, note)
			}
			if request, _, _ := r.SingleRequest(test.pods[0], time.Now()); request.GPUsDesired != test.gpus {
				t.Errorf("got %d GPUs", request.GPUsDesired)
			}
		})
	}
}

// The MPI operator of v2beta1 runs the launcher through a Job and says roles instead of types.
func mpiPods(padded bool) (objects []any, pods []*v1.Pod) {
	job := owner("tj-launcher", "kubeflow.org/v2beta1 MPIJob tj tj-1")
	launcher := labelled(owned(pod("tj-launcher-8x2kq"), "batch/v1 Job tj-launcher uid-tj-launcher"),
		"training.kubeflow.org/job-name", "tj", "training.kubeflow.org/job-role", "launcher", "training.kubeflow.org/operator-name", "mpi-operator",
		"batch.kubernetes.io/job-name", "tj-launcher")
	pods = []*v1.Pod{launcher}
	for i := range 3 {
		index := i
		if padded {
			index++
		}
		pods = append(pods, labelled(owned(pod(fmt.Sprint("tj-worker-", i), 8), "kubeflow.org/v2beta1 MPIJob tj tj-1"),
			"training.kubeflow.org/job-name", "tj", "training.kubeflow.org/job-role", "worker", "training.kubeflow.org/operator-name", "mpi-operator",
			"training.kubeflow.org/replica-index", fmt.Sprint(index)))
	}
	if padded {
		launcher.Labels["training.kubeflow.org/replica-index"] = "0"
	}
	return []any{job}, pods
}

func TestMPIJobsOfV2(t *testing.T) {
	specs := replica("Launcher", 1, 0) + ", " + replica("Worker", 3, 8)
	for _, test := range []struct {
		name, more string
		padded     bool
		least      int
	}{
		{"plain", "}", false, 4},
		{"launcher works", ", runLauncherAsWorker: true}", true, 4},
		{"launcher comes later", ", launcherCreationPolicy: WaitForWorkersReady}", false, 3},
	} {
		t.Run(test.name, func(t *testing.T) {
			objects, pods := mpiPods(test.padded)
			r := reader(t, append(objects, parse(t, trainingText("v2beta1", "MPIJob", specs, test.more)))...)
			want := GangID{Kind: "MPIJob", Namespace: "ml", Name: "tj", UID: "tj-1"}
			for _, p := range pods {
				if got := r.Classify(p); got.Kind != Member || got.Gang != want {
					t.Errorf("%s: %+v", p.Name, got)
				}
			}
			if spec := gangsOf(r, want); spec == nil || spec.MinMember != test.least {
				t.Errorf("got %+v", spec)
			}
			if got, note := ranksOf(r, pods); !slices.Equal(got, []uint32{0, 1, 2, 3}) || note != "" {
				t.Errorf("ranks %v %s", got, note)
			}
		})
	}
}

func TestSchedulingPolicies(t *testing.T) {
	specs := replica("Master", 1, 8) + ", " + replica("Worker", 4, 8)
	for _, test := range []struct {
		name, more string
		least      int
		bad        string
	}{
		{"minAvailable", ", runPolicy: {schedulingPolicy: {minAvailable: 3, scheduleTimeoutSeconds: 60, minResources: {cpu: 8}}}}", 3, ""},
		{"none", ", runPolicy: {cleanPodPolicy: None}}", 5, ""},
		{"empty", ", runPolicy: {schedulingPolicy: {}}}", 5, ""},
		{"zero", ", runPolicy: {schedulingPolicy: {minAvailable: 0}}}", 1, "PyTorchJob ml/tj: spec.runPolicy.schedulingPolicy.minAvailable must be between 1 and 5, the number of its pods, got 0"},
		{"more than pods", ", runPolicy: {schedulingPolicy: {minAvailable: 6}}}", 5, "got 6"},
		{"bad timeout", ", runPolicy: {schedulingPolicy: {scheduleTimeoutSeconds: -5}}}", 5, "scheduleTimeoutSeconds must be between 1"},
		{"no object", ", runPolicy: {schedulingPolicy: 3}}", 0, "cannot be understood"},
		{"workers have ended", "}, status: {replicaStatuses: {Worker: {succeeded: 3}}}", 2, ""},
		{"minAvailable, and workers have ended", ", runPolicy: {schedulingPolicy: {minAvailable: 3}}}, status: {replicaStatuses: {Worker: {succeeded: 3}}}", 2, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := reader(t, parse(t, trainingText("v1", "PyTorchJob", specs, test.more)))
			got := gangsOf(r, GangID{Kind: "PyTorchJob", Namespace: "ml", Name: "tj", UID: "tj-1"})
			if got == nil || got.MinMember != test.least || !strings.Contains(got.Problem, test.bad) || (test.bad == "") != (got.Problem == "") {
				t.Errorf("got %+v", got)
			}
			if test.name == "minAvailable" && (got.ScheduleTimeout != time.Minute || len(got.MinResources) != 1 || !got.More) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestTrainingJobsThatCannotBeUnderstood(t *testing.T) {
	for name, specs := range map[string]string{"a number": "Worker: 7", "no replicas": "", "a word": "Worker: {replicas: many}"} {
		r := reader(t, parse(t, trainingText("v1", "JAXJob", specs, "}")))
		if got := gangsOf(r, GangID{Kind: "JAXJob", Namespace: "ml", Name: "tj", UID: "tj-1"}); got == nil || got.Problem == "" {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// Where no template tells GPUs, because something else sets the limits of pods, the pods are counted.
func TestGPUCountWithoutLimitsInTemplates(t *testing.T) {
	r := reader(t, parse(t, trainingText("v1", "PyTorchJob", replica("Master", 1, 0)+", "+replica("Worker", 2, 0), "}")))
	lead := trainingPod("PyTorchJob", "master", 0, 8)
	members := []GangMember{{Pod: lead, GPUs: 8}, {Pod: trainingPod("PyTorchJob", "worker", 0, 8), GPUs: 8, Rank: 1}, {Pod: trainingPod("PyTorchJob", "worker", 1, 4), GPUs: 4, Rank: 2}}
	request, _, _ := r.GangRequest(r.Classify(lead).Gang, Spec{MinMember: 3}, lead, members, time.Now(), time.Now())
	if request.GPUsDesired != 20 {
		t.Errorf("got %d", request.GPUsDesired)
	}
}

func TestDuplicateReplicaIndices(t *testing.T) {
	r := reader(t, parse(t, trainingText("v1", "PyTorchJob", replica("Worker", 2, 8), "}")))
	a, b := trainingPod("PyTorchJob", "worker", 0, 8), trainingPod("PyTorchJob", "worker", 0, 8)
	b.Name = "another"
	if got, note := ranksOf(r, []*v1.Pod{a, b}); !slices.Equal(got, []uint32{1, 0}) || !strings.Contains(note, kubeflowReplicaIndex) {
		t.Errorf("got %v %q", got, note)
	}
}
