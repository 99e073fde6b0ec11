// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"regexp"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/frond-scheduler/frond/test/harness"
)

// A default-profile Deployment of 500 pods is scheduled while the plugin is loaded and a gang waits.
func TestDefaultProfileIsUntouched(t *testing.T) {
	waiting := lab.Namespace(t)
	lab.Submit(t, waiting, harness.Gang{Name: "never", Pods: harness.Nodes + 1, GPUs: 8})
	lab.WaitReason(t, waiting, "never fits")
	took := lab.Deploy(t, lab.Namespace(t), 500, harness.PodSpec(corev1.DefaultSchedulerName, 0))
	t.Logf("500 pods of the default profile bound in %.1f s", took.Seconds())
}

// GPUs that pods of another profile hold are not given away a second time.
func TestGPUsOfOtherProfilesCount(t *testing.T) {
	ns := lab.Namespace(t)
	foreign := harness.PodSpec(corev1.DefaultSchedulerName, 8)
	foreign.NodeSelector = map[string]string{"fabric.topograph.run/tier-1": "spine-1"}
	lab.Deploy(t, ns, 24, foreign) // all of spine-1
	g := harness.Gang{Name: "train", Pods: 8, GPUs: 8}
	lab.Submit(t, ns, g)
	for _, pod := range lab.Bound(t, ns, g) {
		if harness.Number(pod.Spec.NodeName) <= 24 {
			t.Errorf("%s is on %s, whose GPUs a pod of another profile holds", pod.Name, pod.Spec.NodeName)
		}
	}
}

// Pods without GPUs are signed by us, so upstream's batching stays on in a profile with our plugin: it hands out node
// hints. Upstream's own plugins sign a pod only where no default topology spread applies, hence a scheduler of its own.
func TestPodsWithoutGPUsAreBatched(t *testing.T) {
	port := lab.StartScheduler(t, `
- schedulerName: batching-scheduler
  plugins:
    multiPoint: {enabled: [{name: TopologyGPU}]}
    bind: {enabled: [{name: TopologyGPU}, {name: DefaultBinder}], disabled: [{name: DefaultBinder}]}
    postFilter: {enabled: [{name: TopologyGPU}, {name: DefaultPreemption}], disabled: [{name: DefaultPreemption}]}
  pluginConfig:
  - name: PodTopologySpread
    args: {defaultingType: List, defaultConstraints: []}
`)
	// Upstream drops a hint after half a second: on a busy machine pods may come too slowly, so there are three tries.
	used, before := 0, 0
	for range 3 {
		lab.Deploy(t, lab.Namespace(t), 200, harness.PodSpec("batching-scheduler", 0))
		all := hintsUsed(t, port)
		used, before = all-before, all
		t.Logf("upstream's batching used %d hints for 200 equal pods", used)
		if used >= 100 {
			return
		}
	}
	t.Errorf("upstream's batching used %d hints for 200 equal pods, want most of them", used)
}

var hintUsed = regexp.MustCompile(`(?m)^scheduler_batch_attempts_total\{profile="batching-scheduler",result="hint_used"\} ([0-9.e+]+)$`)

func hintsUsed(t *testing.T, port int) int {
	t.Helper()
	text, err := lab.Scrape(t.Context(), port, "/metrics")
	if err != nil {
		t.Fatalf("GET /metrics: %v", err)
	}
	found := hintUsed.FindSubmatch(text)
	if found == nil {
		return 0
	}
	value, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatalf("scheduler_batch_attempts_total: %v", err)
	}
	return int(value)
}
