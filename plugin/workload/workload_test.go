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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/frond-scheduler/frond/shim"
)

func reader(t *testing.T, jobs ...*batchv1.Job) *Reader {
	t.Helper()
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	for _, job := range jobs {
		if err := store.Add(job); err != nil {
			t.Fatal(err)
		}
	}
	return NewReader([]string{"nvidia.com/gpu", "amd.com/gpu"}, batchlisters.NewJobLister(store))
}

func pod(name string, gpus ...int64) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name, UID: types.UID("uid-" + name), Annotations: map[string]string{}, Labels: map[string]string{}}}
	for _, n := range gpus {
		p.Spec.Containers = append(p.Spec.Containers, container("nvidia.com/gpu", n))
	}
	return p
}

func container(name v1.ResourceName, count int64) v1.Container {
	list := v1.ResourceList{name: *resource.NewQuantity(count, resource.DecimalSI)}
	return v1.Container{Resources: v1.ResourceRequirements{Limits: list, Requests: list}}
}

func of(p *v1.Pod, job *batchv1.Job) *v1.Pod {
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: &yes}}
	return p
}

func job(parallelism, completions int32, annotations ...string) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: "train", UID: "job-1", Annotations: map[string]string{}}}
	if parallelism >= 0 {
		j.Spec.Parallelism = &parallelism
	}
	if completions >= 0 {
		j.Spec.Completions = &completions
	}
	for i := 0; i < len(annotations); i += 2 {
		j.Annotations[annotations[i]] = annotations[i+1]
	}
	return j
}

func with(p *v1.Pod, pairs ...string) *v1.Pod {
	for i := 0; i < len(pairs); i += 2 {
		p.Annotations[pairs[i]] = pairs[i+1]
	}
	return p
}

func grouped(p *v1.Pod, group string) *v1.Pod {
	p.Labels[PodGroupLabel] = group
	return p
}

func TestClassify(t *testing.T) {
	gang, plain := job(4, 4, GPUCount, "32"), job(4, 4)
	jobGang := GangID{Kind: KindJob, Namespace: "ml", Name: "train", UID: "job-1"}
	recreated := job(4, 4, GPUCount, "32")
	recreated.UID = "job-2"
	for _, test := range []struct {
		name string
		jobs []*batchv1.Job
		pod  *v1.Pod
		want Class
	}{
		{"no GPUs, no owner", nil, pod("a"), Class{Kind: Plain}},
		{"GPUs", nil, pod("a", 2, 1), Class{Kind: Single, GPUs: 3}},
		{"gpu-count without GPUs is a contradiction to be told", nil, with(pod("a"), GPUCount, "8"), Class{Kind: Single}},
		{"group", nil, grouped(pod("a", 8), "g"), Class{Kind: Member, GPUs: 8, Gang: GangID{Kind: KindPodGroup, Namespace: "ml", Name: "g"}}},
		{"group wins over Job", []*batchv1.Job{gang}, grouped(of(pod("a", 8), gang), "g"), Class{Kind: Member, GPUs: 8, Gang: GangID{Kind: KindPodGroup, Namespace: "ml", Name: "g"}}},
		{"group without GPUs", nil, grouped(pod("a"), "g"), Class{Kind: Member, Gang: GangID{Kind: KindPodGroup, Namespace: "ml", Name: "g"}}},
		{"Job with gpu-count", []*batchv1.Job{gang}, of(pod("a", 8), gang), Class{Kind: Member, GPUs: 8, Gang: jobGang}},
		{"Job with gpu-count, no limits", []*batchv1.Job{gang}, of(pod("a"), gang), Class{Kind: Member, Gang: jobGang}},
		{"a plain Job never becomes a gang", []*batchv1.Job{plain}, of(pod("a", 8), plain), Class{Kind: Single, GPUs: 8}},
		{"a plain Job without GPUs", []*batchv1.Job{plain}, of(pod("a"), plain), Class{Kind: Plain}},
		{"a pod that carries gpu-count speaks for itself", []*batchv1.Job{gang}, with(of(pod("a", 8), gang), GPUCount, "8"), Class{Kind: Single, GPUs: 8}},
		{"parallelism 1", []*batchv1.Job{job(1, 4, GPUCount, "8")}, of(pod("a", 8), gang), Class{Kind: Single, GPUs: 8}},
		{"one completion", []*batchv1.Job{job(4, 1, GPUCount, "8")}, of(pod("a", 8), gang), Class{Kind: Single, GPUs: 8}},
		{"Job not seen yet", nil, of(pod("a", 8), gang), Class{Kind: Unknown, GPUs: 8, Gang: jobGang}},
		{"another Job of that name", []*batchv1.Job{recreated}, of(pod("a", 8), gang), Class{Kind: Unknown, GPUs: 8, Gang: jobGang}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := reader(t, test.jobs...).Classify(test.pod); got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestGPUsAreCountedAsUpstreamDoes(t *testing.T) {
	always := v1.ContainerRestartPolicyAlways
	sidecar := container("nvidia.com/gpu", 1)
	sidecar.RestartPolicy = &always
	both := pod("both", 2)
	both.Spec.Containers = append(both.Spec.Containers, container("amd.com/gpu", 3), container("example.com/fpga", 9))
	initial := pod("init", 2)
	initial.Spec.InitContainers = []v1.Container{container("nvidia.com/gpu", 4)}
	side := pod("side", 2)
	side.Spec.InitContainers = []v1.Container{sidecar}
	r := reader(t)
	for _, test := range []struct {
		pod  *v1.Pod
		want uint32
	}{{both, 5}, {initial, 4}, {side, 3}, {pod("zero", 0), 0}, {pod("none"), 0}, {pod("huge", 1<<40), 1<<32 - 1}} {
		if got := r.GPUs(test.pod); got != test.want {
			t.Errorf("%s: got %d, want %d", test.pod.Name, got, test.want)
		}
	}
}

func TestAnnotationsComeKeyByKey(t *testing.T) {
	j := job(2, 2, GPUCount, "16", Prefix+"placement-strategy", "balanced", "other/key", "x")
	p := with(of(pod("a", 8), j), Prefix+"placement-strategy", "distributed", Rank, "7", Domain, "s/l", Allocated, "g")
	got := reader(t, j).Annotations(p)
	want := map[string]string{GPUCount: "16", Prefix + "placement-strategy": "distributed"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestRequests(t *testing.T) {
	now := time.Unix(1000, 0)
	j := job(4, 2, GPUCount, "16")
	p := of(pod("a", 8), j)
	p.CreationTimestamp = metav1.NewTime(now.Add(-time.Minute))
	r := reader(t, j)

	urgent := with(pod("s", 4), GPUCount, "4")
	urgent.Spec.Priority = new(int32(1000))
	single, member, _ := r.SingleRequest(urgent, now)
	if single.Priority != 1000 || single.GPUsDesired != 4 || member.GPUs != 4 || member.PinnedSlot != shim.None || single.Name != "ml/s" || single.Gang != member.Pod {
		t.Errorf("single: %+v %+v", single, member)
	}

	young := of(pod("b", 8), j)
	young.CreationTimestamp = metav1.NewTime(now.Add(-time.Second))
	future := of(pod("c", 8), j)
	future.CreationTimestamp = metav1.NewTime(now.Add(time.Hour))
	members := []GangMember{{Pod: p, GPUs: 8, Rank: 0, Slot: shim.None}, {Pod: young, GPUs: 8, Rank: 1, Slot: shim.None}, {Pod: future, GPUs: 8, Rank: 2, Slot: 5}}
	request, out, annotations := r.GangRequest(JobID(j), JobSpec(j), p, members, now)
	if request.Priority != 0 || request.GPUsDesired != 16 || request.MinMember != 2 || request.Age != time.Second || request.Name != "ml/train" {
		t.Errorf("gang: %+v", request)
	}
	if len(out) != 3 || out[2].PinnedSlot != 5 || out[1].Rank != 1 || annotations[GPUCount] != "16" {
		t.Errorf("members: %+v", out)
	}
}

func TestJobSpec(t *testing.T) {
	ended := job(4, 10, GPUCount, "32")
	ended.Status.Succeeded = 8
	over := job(4, 4, GPUCount, "32")
	over.Status.Succeeded = 4
	for _, test := range []struct {
		name string
		job  *batchv1.Job
		want int
		bad  bool
	}{
		{"all at once", job(4, 4), 4, false}, {"fewer completions", job(4, 2), 2, false}, {"more completions", job(4, 10), 4, false},
		{"the last ones do not wait for those that succeeded", ended, 2, false}, {"over", over, 1, false},
		{"work queue", job(3, -1), 3, false}, {"defaults", job(-1, -1), 1, false},
		{"at the limit", job(shim.MembersMax, -1), shim.MembersMax, false}, {"over the limit", job(shim.MembersMax+1, -1), shim.MembersMax + 1, true},
		{"largest", job(1<<31-1, -1), 1<<31 - 1, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := JobSpec(test.job); got.MinMember != test.want || (got.Problem != "") != test.bad {
				t.Errorf("got %+v, want %d", got, test.want)
			}
		})
	}
}

func TestPodGroupSpec(t *testing.T) {
	for _, test := range []struct {
		name string
		spec map[string]any
		want int
		bad  string
	}{
		{"good", map[string]any{"minMember": int64(8)}, 8, ""},
		{"one", map[string]any{"minMember": int64(1)}, 1, ""},
		{"zero", map[string]any{"minMember": int64(0)}, 0, "must be between 1 and 16384, got 0"},
		{"negative", map[string]any{"minMember": int64(-3)}, 0, "got -3"},
		{"2^31-1", map[string]any{"minMember": int64(1<<31 - 1)}, 0, "got 2147483647"},
		{"limit", map[string]any{"minMember": int64(shim.MembersMax)}, shim.MembersMax, ""},
		{"limit + 1", map[string]any{"minMember": int64(shim.MembersMax + 1)}, 0, "got 16385"},
		{"missing", map[string]any{}, 0, "is missing"},
		{"no number", map[string]any{"minMember": "eight"}, 0, "is not a number"},
	} {
		t.Run(test.name, func(t *testing.T) {
			group := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "ml", "name": "g", "uid": "u"}, "spec": test.spec}}
			got := PodGroupSpec(group)
			if got.MinMember != test.want || (test.bad == "") != (got.Problem == "") || !strings.Contains(got.Problem, test.bad) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func indexed(p *v1.Pod, index string) *v1.Pod {
	p.Labels[CompletionIndex] = index
	return p
}

func placed(p *v1.Pod, rank string) *v1.Pod {
	p.Spec.NodeName = "node"
	p.Annotations[Rank] = rank
	return p
}

func TestRanks(t *testing.T) {
	for _, test := range []struct {
		name string
		pods []*v1.Pod
		want []uint32
		note string
	}{
		{"by index", []*v1.Pod{indexed(pod("z"), "0"), indexed(pod("a"), "2"), with(pod("m"), CompletionIndex, "1")}, []uint32{0, 2, 1}, ""},
		{"gaps stay", []*v1.Pod{indexed(pod("a"), "5"), indexed(pod("b"), "3")}, []uint32{5, 3}, ""},
		{"by name", []*v1.Pod{pod("w-10"), pod("w-9"), pod("w-1")}, []uint32{2, 1, 0}, ""},
		{"garbage", []*v1.Pod{indexed(pod("b"), "0"), indexed(pod("a"), "zero")}, []uint32{1, 0}, `pod a has batch.kubernetes.io/job-completion-index "zero"`},
		{"negative", []*v1.Pod{indexed(pod("b"), "-1"), indexed(pod("a"), "0")}, []uint32{1, 0}, `"-1"`},
		{"leading zero", []*v1.Pod{indexed(pod("b"), "01"), indexed(pod("a"), "0")}, []uint32{1, 0}, `"01"`},
		{"too large", []*v1.Pod{indexed(pod("b"), "4294967296"), indexed(pod("a"), "0")}, []uint32{1, 0}, `"4294967296"`},
		{"a long one is cut", []*v1.Pod{indexed(pod("a"), strings.Repeat("9", 100))}, []uint32{0}, "…"},
		{"the same twice", []*v1.Pod{indexed(pod("b"), "0"), indexed(pod("a"), "0")}, []uint32{1, 0}, "both have"},
		{"some without", []*v1.Pod{indexed(pod("b"), "0"), pod("a")}, []uint32{1, 0}, "pod a has no"},
		{"bound ones keep theirs", []*v1.Pod{pod("a"), placed(pod("b"), "0"), placed(pod("c"), "2"), pod("d")}, []uint32{1, 0, 2, 3}, ""},
		{"bound with garbage", []*v1.Pod{placed(pod("b"), "x"), pod("a")}, []uint32{1, 0}, ""},
		{"bound twice the same", []*v1.Pod{placed(pod("b"), "0"), placed(pod("a"), "0")}, []uint32{1, 0}, ""},
		{"none", nil, []uint32{}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, note := Ranks(test.pods)
			if !slices.Equal(got, test.want) || !strings.Contains(note, test.note) || (test.note == "") != (note == "") {
				t.Errorf("got %v %q, want %v %q", got, note, test.want, test.note)
			}
		})
	}
}

func TestNaturalCompare(t *testing.T) {
	ordered := []string{"", "0", "00", "1", "01", "2", "10", "a", "a-1", "a-01", "a-2", "a-10", "a-10-b", "a-99999999999999999999", "a-100000000000000000000", "b", "node-2x", "node-10"}
	slices.SortFunc(ordered, func(a, b string) int { return strings.Compare(a, b) })
	slices.SortStableFunc(ordered, NaturalCompare)
	want := []string{"", "0", "00", "01", "1", "2", "10", "a", "a-01", "a-1", "a-2", "a-10", "a-10-b", "a-99999999999999999999", "a-100000000000000000000", "b", "node-2x", "node-10"}
	if !slices.Equal(ordered, want) {
		t.Errorf("got  %q\nwant %q", ordered, want)
	}
	for _, a := range want {
		for _, b := range want {
			if x, y := NaturalCompare(a, b), NaturalCompare(b, a); x != -y || (x == 0) != (a == b) {
				t.Errorf("%q against %q: %d and %d", a, b, x, y)
			}
		}
	}
}
