// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/frond-scheduler/frond/test/harness"
)

// install makes the CRDs of a kind, unless the lab serves it already. The scheduler has been running for long.
func install(t *testing.T, kind string) {
	t.Helper()
	text, err := os.ReadFile("testdata/crds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	crds := dynamic.NewForConfigOrDie(lab.Config).Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	for decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096); ; {
		crd := &unstructured.Unstructured{}
		if err := decoder.Decode(&crd.Object); errors.Is(err, io.EOF) {
			t.Fatalf("testdata/crds.yaml has no %s", kind)
		} else if err != nil {
			t.Fatal(err)
		}
		if name, _, _ := unstructured.NestedString(crd.Object, "spec", "names", "kind"); name != kind {
			continue
		}
		if _, err := crds.Create(t.Context(), crd, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("create the CRD of %s: %v", kind, err)
		}
		return
	}
}

// create makes an object of a third party and returns its reference as an owner. Its CRD may just have been installed.
func create(t *testing.T, ns, resource, text string) metav1.OwnerReference {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	install(t, object.GetKind())
	group, err := schema.ParseGroupVersion(object.GetAPIVersion())
	if err != nil {
		t.Fatal(err)
	}
	client := dynamic.NewForConfigOrDie(lab.Config).Resource(group.WithResource(resource)).Namespace(ns)
	var made *unstructured.Unstructured
	harness.Eventually(t, 15*time.Second, func(ctx context.Context) (err error) {
		made, err = client.Create(ctx, object, metav1.CreateOptions{})
		return err
	})
	return *metav1.NewControllerRef(made, made.GroupVersionKind())
}

// createPod makes a pod as a controller would: "key=value" pairs are its labels.
func createPod(t *testing.T, ns, name string, owner *metav1.OwnerReference, gpus int64, annotations map[string]string, pairs ...string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}, Annotations: annotations}, Spec: harness.PodSpec(harness.Profile, gpus)}
	if owner != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	for _, pair := range pairs {
		key, value, _ := strings.Cut(pair, "=")
		pod.Labels[key] = value
	}
	if _, err := lab.Client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create pod %s: %v", name, err)
	}
}

// allBound waits for so many bound pods and returns those that have GPUs, by rank.
func allBound(t *testing.T, ns string, count int) []corev1.Pod {
	t.Helper()
	var list *corev1.PodList
	harness.Eventually(t, time.Minute, func(ctx context.Context) (err error) {
		if list, err = lab.Client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{}); err != nil {
			return err
		}
		if bound := harness.BoundCount(list.Items); bound != count {
			return fmt.Errorf("%d of %d pods bound; %s", bound, count, lab.Reasons(ctx, ns))
		}
		return nil
	})
	pods := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return pod.Annotations["gpu.scheduling/allocated"] == "" })
	rank := func(pod corev1.Pod) int {
		n, err := strconv.Atoi(pod.Annotations["topology.scheduler/rank"])
		if err != nil {
			t.Fatalf("pod %s has rank %q", pod.Name, pod.Annotations["topology.scheduler/rank"])
		}
		return n
	}
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(rank(a), rank(b)) })
	return pods
}

// inOrder checks that pods stand in order of rank, these being the ends or parts of their names.
func inOrder(t *testing.T, pods []corev1.Pod, parts ...string) {
	t.Helper()
	for i, part := range parts {
		if i >= len(pods) || !strings.Contains(pods[i].Name, part) {
			names := make([]string, len(pods))
			for j := range pods {
				names[j] = pods[j].Name
			}
			t.Fatalf("ranks are %q, want %q", names, parts)
		}
	}
}

// noneBound checks that nothing of it runs after a while in which it could.
func noneBound(t *testing.T, ns string) {
	t.Helper()
	time.Sleep(time.Second)
	pods, err := lab.Client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if count := harness.BoundCount(pods.Items); count != 0 {
		t.Fatalf("%d pods are bound before the gang is whole", count)
	}
}

// submitReplica makes a Job as the JobSet controller does.
func submitReplica(t *testing.T, ns string, owner metav1.OwnerReference, replicated string, index, global int, pods int32) {
	t.Helper()
	labels := map[string]string{
		"jobset.sigs.k8s.io/jobset-name": owner.Name, "jobset.sigs.k8s.io/jobset-uid": string(owner.UID), "jobset.sigs.k8s.io/replicatedjob-name": replicated,
		"jobset.sigs.k8s.io/job-index": fmt.Sprint(index), "jobset.sigs.k8s.io/job-global-index": fmt.Sprint(global),
	}
	indexed := batchv1.IndexedCompletion
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%s-%d", owner.Name, replicated, index), Labels: labels, OwnerReferences: []metav1.OwnerReference{owner}},
		Spec: batchv1.JobSpec{Parallelism: &pods, Completions: &pods, CompletionMode: &indexed, BackoffLimit: new(int32),
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: harness.PodSpec(harness.Profile, 8)}},
	}
	if _, err := lab.Client.BatchV1().Jobs(ns).Create(t.Context(), job, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create Job %s: %v", job.Name, err)
	}
}

// A JobSet that starts in order makes its second replicated job once the first runs: neither waits for the other.
func TestJobSetThatStartsInOrder(t *testing.T) {
	ns := lab.Namespace(t)
	owner := create(t, ns, "jobsets", `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: js}
spec:
  startupPolicy: {startupPolicyOrder: InOrder}
  replicatedJobs:
  - {name: first, replicas: 1, template: {spec: {parallelism: 2, completions: 2}}}
  - {name: second, replicas: 2, template: {spec: {parallelism: 1, completions: 1}}}
`)
	submitReplica(t, ns, owner, "first", 0, 0, 2)
	allBound(t, ns, 2)
	submitReplica(t, ns, owner, "second", 1, 2, 1)
	time.Sleep(time.Second)
	allBound(t, ns, 2) // the second replicated job is a gang, too
	submitReplica(t, ns, owner, "second", 0, 1, 1)
	inOrder(t, allBound(t, ns, 4), "first-0-0", "first-0-1", "second-0-0", "second-1-0")
}

// A JobSet of two replicated jobs of different sizes is one gang; its Jobs are real ones.
func TestJobSetIsPlacedWhole(t *testing.T) {
	ns := lab.Namespace(t)
	owner := create(t, ns, "jobsets", `
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: js, annotations: {topology.scheduler/gpu-count: "64", topology.scheduler/preferred-domain: spine-2}}
spec:
  replicatedJobs:
  - {name: zero, replicas: 1, template: {spec: {parallelism: 2, completions: 2, template: {spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 8}}}]}}}}}
  - {name: more, replicas: 2, template: {spec: {parallelism: 3, completions: 3, template: {spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 8}}}]}}}}}
`)
	submitReplica(t, ns, owner, "more", 1, 2, 3)
	submitReplica(t, ns, owner, "more", 0, 1, 3)
	noneBound(t, ns)
	submitReplica(t, ns, owner, "zero", 0, 0, 2)
	pods := allBound(t, ns, 8)
	checkPlacement(t, pods, 8, 2)
	inOrder(t, pods, "js-zero-0-0-", "js-zero-0-1-", "js-more-0-0-", "js-more-0-1-", "js-more-0-2-", "js-more-1-0-", "js-more-1-1-", "js-more-1-2-")
	if domain := pods[0].Annotations["topology.scheduler/domain"]; !strings.HasPrefix(domain, "spine-2/") {
		t.Errorf("the JobSet prefers spine-2, its pods are in %s", domain)
	}
}

// A group of a LeaderWorkerSet: the leader's and the workers' StatefulSets are real ones, the labels of LWS's webhook are added.
func TestLeaderWorkerSetGroupIsPlacedWhole(t *testing.T) {
	ns := lab.Namespace(t)
	count := map[string]string{"topology.scheduler/gpu-count": "32"}
	owner := create(t, ns, "leaderworkersets", `
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: serve, annotations: {topology.scheduler/gpu-count: "32"}}
spec:
  replicas: 1
  leaderWorkerTemplate:
    size: 4
    workerTemplate: {spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 8}}}]}}
`)
	group := map[string]string{"leaderworkerset.sigs.k8s.io/name": "serve", "leaderworkerset.sigs.k8s.io/group-index": "0", "leaderworkerset.sigs.k8s.io/group-key": "689ad2"}
	statefulSet := func(name string, owner metav1.OwnerReference, replicas, start int32, more map[string]string) {
		labels := map[string]string{}
		for _, set := range []map[string]string{group, more} {
			for key, value := range set {
				labels[key] = value
			}
		}
		spec := harness.PodSpec(harness.Profile, 8)
		spec.RestartPolicy = corev1.RestartPolicyAlways
		spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "test/labels"}}
		set := &appsv1.StatefulSet{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: count, OwnerReferences: []metav1.OwnerReference{owner}},
			Spec: appsv1.StatefulSetSpec{Replicas: &replicas, PodManagementPolicy: appsv1.ParallelPodManagement, Selector: &metav1.LabelSelector{MatchLabels: labels},
				Ordinals: &appsv1.StatefulSetOrdinals{Start: start},
				Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: map[string]string{"leaderworkerset.sigs.k8s.io/size": "4"}}, Spec: spec}},
		}
		if _, err := lab.Client.AppsV1().StatefulSets(ns).Create(t.Context(), set, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		background := metav1.DeletePropagationBackground
		_ = lab.Client.AppsV1().StatefulSets(ns).DeleteCollection(context.Background(), metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
	})
	// open adds what the webhook would have added, and opens the gate.
	open := func(name string, worker int) *corev1.Pod {
		var pod *corev1.Pod
		harness.Eventually(t, 30*time.Second, func(ctx context.Context) (err error) {
			if pod, err = lab.Client.CoreV1().Pods(ns).Get(ctx, name, metav1.GetOptions{}); err != nil {
				return err
			}
			pod.Labels["leaderworkerset.sigs.k8s.io/worker-index"] = fmt.Sprint(worker)
			pod.Spec.SchedulingGates = nil
			pod, err = lab.Client.CoreV1().Pods(ns).Update(ctx, pod, metav1.UpdateOptions{})
			return err
		})
		return pod
	}
	statefulSet("serve", owner, 1, 0, map[string]string{"leaderworkerset.sigs.k8s.io/worker-index": "0"})
	leader := open("serve-0", 0)
	statefulSet("serve-0", *metav1.NewControllerRef(leader, corev1.SchemeGroupVersion.WithKind("Pod")), 3, 1, map[string]string{"role": "worker"})
	open("serve-0-2", 2)
	open("serve-0-3", 3)
	noneBound(t, ns)
	open("serve-0-1", 1)
	pods := allBound(t, ns, 4)
	checkPlacement(t, pods, 8, 1)
	inOrder(t, pods, "serve-0", "serve-0-1", "serve-0-2", "serve-0-3")
}

// The pods of a TFJob: by name ps comes before worker, by rank after it.
func TestTrainingJobIsPlacedWhole(t *testing.T) {
	ns := lab.Namespace(t)
	template := "template: {spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 8}}}]}}"
	owner := create(t, ns, "tfjobs", `
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: tj, annotations: {topology.scheduler/gpu-count: "32"}}
spec: {runPolicy: {}, tfReplicaSpecs: {PS: {replicas: 1, `+template+`}, Chief: {replicas: 1, `+template+`}, Worker: {replicas: 2, `+template+`}}}
`)
	member := func(kind string, index int) {
		createPod(t, ns, fmt.Sprintf("tj-%s-%d", kind, index), &owner, 8, nil, "training.kubeflow.org/job-name=tj", "training.kubeflow.org/operator-name=tfjob-controller",
			"training.kubeflow.org/replica-type="+kind, fmt.Sprint("training.kubeflow.org/replica-index=", index))
	}
	member("ps", 0)
	member("worker", 1)
	member("worker", 0)
	noneBound(t, ns)
	member("chief", 0)
	pods := allBound(t, ns, 4)
	checkPlacement(t, pods, 8, 1)
	inOrder(t, pods, "chief-0", "worker-0", "worker-1", "ps-0")
}

// An MPIJob of v2beta1: the launcher runs through a Job and has no GPUs; the workers wait for it.
func TestMPIJobIsPlacedWhole(t *testing.T) {
	ns := lab.Namespace(t)
	owner := create(t, ns, "mpijobs", `
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: mpi, annotations: {topology.scheduler/gpu-count: "16"}}
spec:
  mpiReplicaSpecs:
    Launcher: {replicas: 1, template: {spec: {containers: [{name: main}]}}}
    Worker: {replicas: 2, template: {spec: {containers: [{name: main, resources: {limits: {nvidia.com/gpu: 8}}}]}}}
`)
	for index := range 2 {
		createPod(t, ns, fmt.Sprint("mpi-worker-", index), &owner, 8, nil, "training.kubeflow.org/job-name=mpi", "training.kubeflow.org/operator-name=mpi-operator",
			"training.kubeflow.org/job-role=worker", fmt.Sprint("training.kubeflow.org/replica-index=", index))
	}
	noneBound(t, ns)
	labels := map[string]string{"training.kubeflow.org/job-name": "mpi", "training.kubeflow.org/operator-name": "mpi-operator", "training.kubeflow.org/job-role": "launcher"}
	launcher := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "mpi-launcher", OwnerReferences: []metav1.OwnerReference{owner}},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: harness.PodSpec(harness.Profile, 0)}},
	}
	if _, err := lab.Client.BatchV1().Jobs(ns).Create(t.Context(), launcher, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := allBound(t, ns, 3)
	inOrder(t, pods, "mpi-worker-0", "mpi-worker-1")
	if pods[0].Annotations["topology.scheduler/rank"] != "1" || pods[1].Annotations["topology.scheduler/rank"] != "2" {
		t.Errorf("the launcher has rank 0, the workers have %q and %q", pods[0].Annotations["topology.scheduler/rank"], pods[1].Annotations["topology.scheduler/rank"])
	}
}

// The older label names a PodGroup as the newer does; more pods than minMember are planned together.
func TestOlderLabelAndMorePodsThanMinMember(t *testing.T) {
	ns := lab.Namespace(t)
	makePodGroup(t, ns, "group", 3)
	for i := range 4 {
		createPod(t, ns, fmt.Sprint("w-", i), nil, 8, nil, "pod-group.scheduling.sigs.k8s.io=group")
	}
	pods := allBound(t, ns, 4)
	checkPlacement(t, pods, 8, 1)
}

// A claim with a gangRef makes a gang of the pods that name it, and its spec counts: two GPUs of different sockets.
func TestClaimWithAGangRef(t *testing.T) {
	ns := lab.Namespace(t)
	makePodGroup(t, ns, "group", 2)
	claim := map[string]string{"gpu.scheduling/claim": "pair"}
	createPod(t, ns, "w-0", nil, 2, claim) // before its claim
	createPod(t, ns, "w-1", nil, 2, claim)
	lab.WaitReason(t, ns, "waiting for GpuClaim "+ns+"/pair")
	noneBound(t, ns)
	create(t, ns, "gpuclaims", "{apiVersion: gpu.scheduling/v1, kind: GpuClaim, metadata: {name: pair}, spec: {devices: {count: 2, policy: spread}, gangRef: group}}")
	for rank, pod := range allBound(t, ns, 2) {
		ids := strings.Split(pod.Annotations["gpu.scheduling/allocated"], ",")
		if len(ids) != 2 || pod.Annotations["topology.scheduler/rank"] != fmt.Sprint(rank) {
			t.Fatalf("%s: rank %q, GPUs %v", pod.Name, pod.Annotations["topology.scheduler/rank"], ids)
		}
		if a, b := harness.Number(ids[0]), harness.Number(ids[1]); (a < 4) == (b < 4) {
			t.Errorf("%s: GPUs %d and %d are on one socket, policy spread asks for two", pod.Name, a, b)
		}
	}
}

// Annotations of a Deployment reach its pods through the ReplicaSet.
func TestAnnotationsOfADeployment(t *testing.T) {
	ns := lab.Namespace(t)
	labels := map[string]string{"app": "web"}
	spec := harness.PodSpec(harness.Profile, 4)
	spec.RestartPolicy = corev1.RestartPolicyAlways
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Annotations: map[string]string{"topology.scheduler/gpu-count": "12", "topology.scheduler/preferred-domain": "leaf-9"}},
		Spec: appsv1.DeploymentSpec{Replicas: new(int32(3)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}},
	}
	if _, err := lab.Client.AppsV1().Deployments(ns).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, pod := range allBound(t, ns, 3) {
		if got := pod.Annotations["topology.scheduler/domain"]; got != "spine-2/leaf-9" {
			t.Errorf("%s is in %s, the Deployment prefers leaf-9", pod.Name, got)
		}
	}
}

// An owner whose kind is not served: the pod is held and told so, and then goes on its own, with one event.
func TestAnOwnerOfAKindThatIsNotServed(t *testing.T) {
	ns := lab.Namespace(t)
	yes := true
	// The garbage collector leaves pods alone whose owner's kind it cannot find.
	owner := metav1.OwnerReference{APIVersion: "kubeflow.org/v1", Kind: "PaddleJob", Name: "pj", UID: "3d3c1b2e-0000-4000-8000-000000000001", Controller: &yes}
	createPod(t, ns, "pj-worker-0", &owner, 8, nil)
	lab.WaitReason(t, ns, "waiting for PaddleJob "+ns+"/pj")
	noneBound(t, ns)
	lab.WaitReason(t, ns, "OwnerUnreadable", "PaddleJob", "paddlejobs.kubeflow.org")
	allBound(t, ns, 1)
}

// What contradicts itself stays pending with an event that names both sides; everybody else goes on.
func TestContradictionsStayPending(t *testing.T) {
	ns := lab.Namespace(t)
	create(t, ns, "gpuclaims", "{apiVersion: gpu.scheduling/v1, kind: GpuClaim, metadata: {name: four}, spec: {devices: {count: 4}}}")
	create(t, ns, "gpuclaims", "{apiVersion: gpu.scheduling/v1, kind: GpuClaim, metadata: {name: theirs}, spec: {devices: {count: 8}, gangRef: theirs}}")
	claim := func(name string) map[string]string { return map[string]string{"gpu.scheduling/claim": name} }
	createPod(t, ns, "two-groups", nil, 8, nil, "scheduling.x-k8s.io/pod-group=mine", "pod-group.scheduling.sigs.k8s.io=theirs")
	createPod(t, ns, "label-and-claim", nil, 8, claim("theirs"), "scheduling.x-k8s.io/pod-group=mine")
	createPod(t, ns, "no-name", nil, 8, nil, "scheduling.x-k8s.io/pod-group=My_Group")
	createPod(t, ns, "other-count", nil, 8, claim("four"))
	createPod(t, ns, "other-namespace", nil, 4, claim("elsewhere/four"))
	for pod, parts := range map[string][]string{
		"two-groups": {`"mine"`, `"theirs"`}, "label-and-claim": {`"mine"`, `"theirs"`, "gangRef"}, "no-name": {"My_Group"},
		"other-count": {"asks for 4 GPUs", "limits are 8"}, "other-namespace": {"own namespace", "elsewhere/four"},
	} {
		lab.WaitReason(t, ns, append(parts, "Pod/"+pod+" ")...)
	}
	noneBound(t, ns)
}

// A claim serves one pod at a time: the second waits, is told who has it, and gets it when that has gone.
func TestAClaimIsOnePods(t *testing.T) {
	ns := lab.Namespace(t)
	create(t, ns, "gpuclaims", "{apiVersion: gpu.scheduling/v1, kind: GpuClaim, metadata: {name: mine}, spec: {devices: {count: 4}}}")
	claim := map[string]string{"gpu.scheduling/claim": "mine"}
	createPod(t, ns, "first", nil, 4, claim)
	allBound(t, ns, 1)
	createPod(t, ns, "second", nil, 4, claim)
	lab.WaitReason(t, ns, "Pod/second ", "GpuClaim "+ns+"/mine serves one pod at a time", ns+"/first uses it")
	if err := lab.Client.CoreV1().Pods(ns).Delete(t.Context(), "first", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := allBound(t, ns, 1)
	inOrder(t, pods, "second")
}
