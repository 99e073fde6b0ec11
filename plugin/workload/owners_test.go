// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const strategy = Prefix + "placement-strategy"

func meta(name, uid, owner string, annotations ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID(uid), Annotations: map[string]string{}}
	if owner != "" {
		m.OwnerReferences = []metav1.OwnerReference{controller(owner)}
	}
	for i := 0; i < len(annotations); i += 2 {
		m.Annotations[annotations[i]] = annotations[i+1]
	}
	return m
}

func owner(name, owner string) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: meta(name, "uid-"+name, owner)}
}

func TestAnnotationsComeKeyByKeyFromTheNearest(t *testing.T) {
	deployment := &appsv1.Deployment{ObjectMeta: meta("web", "d", "", strategy, "balanced", PreferredDomain, "leaf-1", "other/key", "x")}
	set := &appsv1.ReplicaSet{ObjectMeta: meta("web-1", "r", "apps/v1 Deployment web d", strategy, "consolidated", Prefix+"topology-mode", "Ignore")}
	p := with(owned(pod("a", 8), "apps/v1 ReplicaSet web-1 r"), strategy, "distributed", Rank, "7", Domain, "s/l", Allocated, "g")
	got := reader(t, deployment, set).Annotations(p)
	want := map[string]string{strategy: "distributed", Prefix + "topology-mode": "Ignore", PreferredDomain: "leaf-1"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestChains(t *testing.T) {
	chain := func(depth int) (objects []any) {
		for i := range depth {
			above := ""
			if i > 0 {
				above = fmt.Sprintf("batch/v1 Job j%d uid-j%d", i-1, i-1)
			}
			object := owner(fmt.Sprintf("j%d", i), above)
			object.Annotations[Prefix+fmt.Sprint("level-", i)] = "x"
			objects = append(objects, object)
		}
		return objects
	}
	r := reader(t, chain(8)...)
	if got := r.Annotations(owned(pod("a"), "batch/v1 Job j7 uid-j7")); len(got) != depthMost || got[Prefix+"level-2"] == "" {
		t.Errorf("six owners are read: %v", got)
	}

	circle := reader(t, owner("a", "batch/v1 Job c uid-c"), owner("b", "batch/v1 Job a uid-a"), owner("c", "batch/v1 Job b uid-b"))
	if got := circle.Classify(owned(pod("p", 8), "batch/v1 Job c uid-c")); got.Kind != Refused || !strings.Contains(got.Problem, "Job ml/c comes twice") {
		t.Errorf("got %+v", got)
	}
	self := reader(t, owner("a", "batch/v1 Job a uid-a"))
	if got := self.Classify(owned(pod("p", 8), "batch/v1 Job a uid-a")); got.Kind != Refused {
		t.Errorf("got %+v", got)
	}
	if got := self.owners.Under("uid-a"); !slices.Equal(got, []types.UID{"uid-a"}) {
		t.Errorf("got %v", got)
	}

	renamed := reader(t, owner("a", ""))
	if got := renamed.Classify(owned(pod("p", 8), "batch/v1 Job b uid-a")); got.Kind != Unknown {
		t.Errorf("UID and name must agree: %+v", got)
	}
	if got := renamed.Classify(owned(pod("p", 8), "apps/v1 ReplicaSet a uid-a")); got.Kind != Unknown || got.Needs != replicaSets {
		t.Errorf("UID and kind must agree: %+v", got)
	}
}

// Owners arrive in any order, are replaced under the same name, and go.
func TestOwnersComeAndGo(t *testing.T) {
	r := reader(t)
	p := owned(pod("a", 8), "batch/v1 Job j uid-j")
	state := func() string {
		class := r.Classify(p)
		return fmt.Sprint(class.Kind == Unknown, " ", class.Gang)
	}
	expect := func(what, want string) {
		t.Helper()
		if got := state(); got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	top := parse(t, "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {namespace: ml, name: js, uid: js-1}, spec: {replicatedJobs: [{name: w, replicas: 2}]}}")
	child := owner("j", "jobset.x-k8s.io/v1alpha2 JobSet js js-1")
	expect("nothing is there", "true ml/j")
	enter(t, r, top)
	expect("the upper one first", "true ml/j")
	enter(t, r, child)
	expect("both", "false ml/js")
	if got := r.owners.Under("js-1"); !slices.Equal(got, []types.UID{"js-1", "uid-j"}) {
		t.Errorf("under: %v", got)
	}
	r.owners.Drop("js-1")
	expect("the upper one is gone", "true ml/js")
	if got := r.owners.Under("js-1"); !slices.Equal(got, []types.UID{"js-1", "uid-j"}) {
		t.Errorf("those below are still found: %v", got)
	}
	anew := top.DeepCopy()
	anew.SetUID("js-2")
	enter(t, r, anew)
	expect("another of the same name is not meant", "true ml/js")
	enter(t, r, owner("j", "jobset.x-k8s.io/v1alpha2 JobSet js js-2"))
	expect("adopted", "false ml/js")
	if got := r.owners.Under("js-1"); len(got) != 1 {
		t.Errorf("no longer under the first: %v", got)
	}
	r.owners.Drop("uid-j")
	r.owners.Drop("uid-j")
	r.owners.Drop("js-2")
	if r.owners.Drop("js-2") != nil || len(r.owners.children)+len(r.owners.byUID) != 0 {
		t.Errorf("left: %v %v", r.owners.children, r.owners.byUID)
	}
}

func TestOwnersThatCannotBeReadSayNothing(t *testing.T) {
	r := reader(t)
	p := owned(pod("a", 8), "kubeflow.org/v1 PyTorchJob train u")
	kind := FindResource("kubeflow.org", "PyTorchJob")
	if got := r.Classify(p); got.Kind != Unknown || got.Needs != kind {
		t.Fatalf("got %+v", got)
	}
	r.owners.SetSilent(kind, true)
	if got := r.Classify(p); got.Kind != Single || got.Needs != kind {
		t.Errorf("got %+v", got)
	}
	r.owners.SetSilent(kind, false)
	if got := r.Classify(p); got.Kind != Unknown {
		t.Errorf("got %+v", got)
	}
}

func TestSameMeansThatPodsAreReadAlike(t *testing.T) {
	r := reader(t)
	compact := func(change func(*batchv1.Job)) *Owner {
		j := job(4, 8, GPUCount, "32")
		change(j)
		return r.compactJob(j)
	}
	plain := compact(func(*batchv1.Job) {})
	if !plain.Same(compact(func(j *batchv1.Job) { j.Status.Succeeded, j.ResourceVersion, j.Annotations["x"] = 6, "7", "y" })) {
		t.Error("status and others' annotations do not matter")
	}
	for name, change := range map[string]func(*batchv1.Job){
		"annotation":  func(j *batchv1.Job) { j.Annotations[GPUCount] = "16" },
		"parallelism": func(j *batchv1.Job) { *j.Spec.Parallelism = 2 },
		"owner":       func(j *batchv1.Job) { j.OwnerReferences = []metav1.OwnerReference{controller("batch/v1 CronJob c u")} },
		"uid":         func(j *batchv1.Job) { j.UID = "job-2" },
		"limits":      func(j *batchv1.Job) { j.Spec.Template.Spec.Containers = []v1.Container{container("nvidia.com/gpu", 1)} },
	} {
		if plain.Same(compact(change)) {
			t.Errorf("%s matters", name)
		}
	}
}

func TestCompactKeepsLittle(t *testing.T) {
	j := job(4, 4, GPUCount, "32", "kubectl.kubernetes.io/last-applied-configuration", strings.Repeat("x", 10000))
	j.Labels, j.ManagedFields = map[string]string{"a": "b"}, []metav1.ManagedFieldsEntry{{}}
	j.OwnerReferences = []metav1.OwnerReference{{Kind: "Other"}, controller("batch/v1 CronJob c u")}
	got := reader(t).compactJob(j)
	if len(got.Annotations) != 1 || got.Labels != nil || got.ManagedFields != nil || len(got.OwnerReferences) != 1 || got.OwnerReferences[0].Kind != "CronJob" {
		t.Errorf("got %+v", got)
	}
	for _, odd := range []any{nil, "text", &v1.Node{}} {
		if kept, err := reader(t).Compact(odd); err != nil || kept != odd {
			t.Errorf("%v became %v, %v", odd, kept, err)
		}
	}
}

// Informers write while the scheduler reads.
func TestStoresAreReadWhileTheyAreWritten(t *testing.T) {
	r := reader(t)
	claim := newClaim(parse(t, claimText("c", "{devices: {count: 8}}")))
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			p := with(owned(pod(fmt.Sprint("p", worker), 8), "batch/v1 Job j uid-j"), ClaimAnnotation, "c")
			for i := range 200 {
				switch (i + worker) % 5 {
				case 0:
					r.owners.Set(r.compactJob(owner("j", "batch/v1 CronJob c u")))
				case 1:
					r.owners.Drop("uid-j")
				case 2:
					r.claims.Set(claim)
					r.claims.Use(p)
				case 3:
					r.claims.Drop(claim)
					r.claims.Leave(p.UID)
				}
				r.Classify(p)
				r.Annotations(p)
				r.owners.Under("u")
			}
		})
	}
	group.Wait()
}
