// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/frond-scheduler/frond/test/harness"
)

// A configuration that cannot work stops the start with one sentence that names the place.
func TestBadConfigurationIsRefusedAtStart(t *testing.T) {
	order := "      bind: {enabled: [{name: TopologyGPU}, {name: DefaultBinder}], disabled: [{name: DefaultBinder}]}\n" +
		"      postFilter: {enabled: [{name: TopologyGPU}, {name: DefaultPreemption}], disabled: [{name: DefaultPreemption}]}\n"
	notALibrary := filepath.Join(t.TempDir(), "text.so")
	if err := os.WriteFile(notALibrary, []byte("not a library\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	badFabric := filepath.Join(t.TempDir(), "fabric.yaml")
	if err := os.WriteFile(badFabric, []byte("kind: Fabric\nspines: 3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, order, args, want string }{
		{"unknown arg", order, "{scoringWeight: {}}", "args.scoringWeight"},
		{"negative weight", order, "{scoringWeights: {topologyAlignment: -3}}", "args.scoringWeights.topologyAlignment: must be between 0 and 1, got -3"},
		{"wrong type", order, "{permitWaitingTimeSeconds: soon}", "args.permitWaitingTimeSeconds"},
		{"missing library", order, "{corePath: /nowhere/libfrond.so}", "/nowhere/libfrond.so"},
		{"not a library", order, "{corePath: " + notALibrary + "}", notALibrary},
		{"missing fabric file", order, "{topology: {fabricFile: /nowhere/fabric.yaml}}", "args.topology.fabricFile"},
		{"broken fabric file", order, "{topology: {fabricFile: " + badFabric + "}}", "line 2"},
		{"plugin order", "", "{}", "postFilter"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection: {leaderElect: false}\n" +
				"clientConnection: {kubeconfig: " + lab.Kubeconfig() + "}\nprofiles:\n- schedulerName: other-scheduler\n  plugins:\n" +
				"      multiPoint: {enabled: [{name: TopologyGPU}]}\n" + c.order +
				"  pluginConfig:\n  - name: TopologyGPU\n    args: " + c.args + "\n"
			path := filepath.Join(t.TempDir(), "config.yaml")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			out, err := exec.CommandContext(ctx, lab.Program("scheduler"), "--config", path, "--secure-port", "0").CombinedOutput()
			if err == nil || ctx.Err() != nil {
				t.Fatalf("the scheduler started (%v); output:\n%s", ctx.Err(), harness.Tail(out))
			}
			if !strings.Contains(string(out), c.want) {
				t.Errorf("refused without %q; output:\n%s", c.want, harness.Tail(out))
			}
			if strings.Contains(string(out), "goroutine ") {
				t.Errorf("it crashed:\n%s", harness.Tail(out))
			}
		})
	}
}

// What a user got wrong is an event on the pod, in numbers, and nothing of it is bound; everything else goes on.
func TestBadWorkloadsGetAnEvent(t *testing.T) {
	for _, c := range []struct {
		name string
		gang harness.Gang
		want []string
	}{
		{"gpu-count contradicts the limits", harness.Gang{Pods: 2, GPUs: 8, Annotations: map[string]string{"topology.scheduler/gpu-count": "12"}},
			[]string{"gpu-count", "12", "16"}},
		{"unparsable wait", harness.Gang{Pods: 2, GPUs: 8, Annotations: map[string]string{"topology.scheduler/topology-wait": "10 minutes"}},
			[]string{"topology.scheduler/topology-wait", "10 minutes", "10m"}},
		{"unknown strategy", harness.Gang{Pods: 2, GPUs: 8, Annotations: map[string]string{"topology.scheduler/placement-strategy": "random"}},
			[]string{"topology.scheduler/placement-strategy", "random", "consolidated"}},
		{"annotation of a quarter mebibyte", harness.Gang{Pods: 2, GPUs: 8, Annotations: map[string]string{"topology.scheduler/preferred-domain": strings.Repeat("x", 255<<10)}},
			[]string{"topology.scheduler/preferred-domain"}},
		{"larger than the cluster", harness.Gang{Pods: harness.Nodes + 1, GPUs: 8}, []string{"never fits", "49 nodes", "48"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ns := lab.Namespace(t)
			c.gang.Name = "bad"
			lab.Submit(t, ns, c.gang)
			lab.WaitReason(t, ns, c.want...)
			good := harness.Gang{Name: "good", Pods: 2, GPUs: 8}
			lab.Submit(t, ns, good)
			lab.Bound(t, ns, good)
			pods, err := lab.JobPods(t.Context(), ns, "bad")
			if err != nil {
				t.Fatal(err)
			}
			if count := harness.BoundCount(pods); count != 0 {
				t.Errorf("%d pods of the bad gang are bound", count)
			}
		})
	}
}

var podGroups = schema.GroupVersionResource{Group: "scheduling.x-k8s.io", Version: "v1alpha1", Resource: "podgroups"}

func makePodGroup(t *testing.T, ns, name string, minMember int64) {
	t.Helper()
	group := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
		"metadata": map[string]any{"name": name, "namespace": ns},
		"spec":     map[string]any{"minMember": minMember},
	}}
	if _, err := dynamic.NewForConfigOrDie(lab.Config).Resource(podGroups).Namespace(ns).Create(t.Context(), group, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create PodGroup %s: %v", name, err)
	}
}

func makeGroupPod(t *testing.T, ns, name, group string) {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"scheduling.x-k8s.io/pod-group": group}},
		Spec:       harness.PodSpec(harness.Profile, 8),
	}
	if _, err := lab.Client.CoreV1().Pods(ns).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create pod %s: %v", name, err)
	}
}

func TestPodGroupsWithImpossibleMinMember(t *testing.T) {
	for _, minMember := range []int64{0, 1<<31 - 1} {
		t.Run(fmt.Sprint(minMember), func(t *testing.T) {
			ns := lab.Namespace(t)
			makePodGroup(t, ns, "group", minMember)
			makeGroupPod(t, ns, "pod-0", "group")
			lab.WaitReason(t, ns, "minMember", fmt.Sprint(minMember))
		})
	}
}

// Pods of a PodGroup arrive one by one; nothing is bound before the last, then all are, by natural order of names.
func TestPodGroupIsHeldUntilComplete(t *testing.T) {
	ns := lab.Namespace(t)
	makeGroupPod(t, ns, "worker-10", "group") // before its group exists
	makePodGroup(t, ns, "group", 4)
	makeGroupPod(t, ns, "worker-2", "group")
	makeGroupPod(t, ns, "worker-1", "group")
	time.Sleep(2 * time.Second)
	pods, err := lab.Client.CoreV1().Pods(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if count := harness.BoundCount(pods.Items); count != 0 {
		t.Fatalf("%d of 3 pods are bound although minMember is 4", count)
	}
	makeGroupPod(t, ns, "worker-3", "group")
	harness.Eventually(t, 30*time.Second, func(ctx context.Context) error {
		if pods, err = lab.Client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{}); err != nil {
			return err
		}
		if count := harness.BoundCount(pods.Items); count != 4 {
			return fmt.Errorf("%d of 4 pods bound; %s", count, lab.Reasons(ctx, ns))
		}
		return nil
	})
	nodes := map[string]int{}
	for _, pod := range pods.Items {
		nodes[pod.Name] = harness.Number(pod.Spec.NodeName)
	}
	if !(nodes["worker-1"] < nodes["worker-2"] && nodes["worker-2"] < nodes["worker-3"] && nodes["worker-3"] < nodes["worker-10"]) {
		t.Errorf("ranks are not in natural order of names: %v", nodes)
	}
}

// Labels that form no tree are named in an event on a node; those nodes go on without topology and the rest with it.
func TestLabelsThatFormNoTreeAreNamed(t *testing.T) {
	relabel := func(ctx context.Context, node, leaf, spine string) error {
		patch := fmt.Appendf(nil, `{"metadata":{"labels":{"fabric.topograph.run/tier-0":%q,"fabric.topograph.run/tier-1":%q}}}`, leaf, spine)
		_, err := lab.Client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	}
	for _, c := range []struct{ name, leaf, spine, want string }{
		{"two parents", "leaf-12", "spine-1", "leaf leaf-12 has two parents, spine-1 and spine-2"},
		{"loop", "spine-1", "spine-1", "leaf spine-1 is above itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ns := lab.Namespace(t)
			if err := relabel(t.Context(), "node-48", c.leaf, c.spine); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := relabel(context.Background(), "node-48", "leaf-12", "spine-2"); err != nil {
					t.Error(err)
				}
			})
			lab.WaitReason(t, corev1.NamespaceDefault, c.want) // events of nodes are there
			g := harness.Gang{Name: "train", Pods: 8, GPUs: 8}
			lab.Submit(t, ns, g)
			checkPlacement(t, lab.Bound(t, ns, g), 8, 2)
		})
	}
}
