// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/plugin/liveconfig"
	"github.com/frond-scheduler/frond/test/harness"
)

// engine takes what has at most three decimals, as the real one does.
type engine struct {
	mu      sync.Mutex
	inForce string
}

func (e *engine) put(json []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if strings.Contains(string(json), "0.1234") {
		return errors.New("spec.scoringWeights.modelCache: must have at most 3 decimals, got 0.1234")
	}
	e.inForce = string(json)
	return nil
}

func (e *engine) want(t *testing.T, want string) {
	t.Helper()
	harness.Eventually(t, 10*time.Second, func(context.Context) error {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.inForce != want {
			return fmt.Errorf("in force is %s, want %s", e.inForce, want)
		}
		return nil
	})
}

func wantApplied(t *testing.T, resource schema.GroupVersionResource, name string, want metav1.ConditionStatus, says string) {
	t.Helper()
	harness.Eventually(t, 10*time.Second, func(ctx context.Context) error {
		object, err := client.Resource(resource).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		got, err := apis.Status[apis.ConfigStatus](object)
		if err != nil {
			return err
		}
		applied := meta.FindStatusCondition(got.Conditions, apis.ConditionApplied)
		if applied == nil || applied.Status != want || !strings.Contains(applied.Message, says) || applied.ObservedGeneration != object.GetGeneration() || got.ObservedGeneration != object.GetGeneration() {
			return fmt.Errorf("%s %s, generation %d: status is %+v", resource.Resource, name, object.GetGeneration(), got)
		}
		return nil
	})
}

// Objects are applied as they come, change and go; each says what became of it.
func TestLiveConfiguration(t *testing.T) {
	writer, fake := startWriter(t), &engine{}
	watcher, err := liveconfig.New(client, fake.put, writer.Config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); watcher.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	configs := client.Resource(apis.SchedulerConfigs)
	t.Cleanup(func() {
		for _, resource := range []schema.GroupVersionResource{apis.SchedulerConfigs, apis.TopologySchedulerConfigs} {
			_ = client.Resource(resource).DeleteCollection(context.Background(), metav1.DeleteOptions{}, metav1.ListOptions{})
		}
	})

	create(t, apis.TopologySchedulerConfigs, "", apis.KindTopologySchedulerConfig, "default", map[string]any{"scoringPreset": "utilization"})
	fake.want(t, `{"scoringPreset":"utilization"}`)
	wantApplied(t, apis.TopologySchedulerConfigs, "default", metav1.ConditionTrue, "in force")

	create(t, apis.SchedulerConfigs, "", apis.KindSchedulerConfig, "default", map[string]any{"scoringWeights": map[string]any{"modelCache": 0.125}, "topologyConstraints": map[string]any{"maxNodesPerLeaf": int64(4)}})
	create(t, apis.SchedulerConfigs, "", apis.KindSchedulerConfig, "spare", map[string]any{"scoringPreset": "agents"})
	good := `{"scoringWeights":{"modelCache":0.125},"topologyConstraints":{"maxNodesPerLeaf":4}}`
	fake.want(t, good)
	wantApplied(t, apis.SchedulerConfigs, "default", metav1.ConditionTrue, "in force")
	wantApplied(t, apis.SchedulerConfigs, "spare", metav1.ConditionFalse, "named default")
	wantApplied(t, apis.TopologySchedulerConfigs, "default", metav1.ConditionFalse, "named default")

	if _, err := configs.Patch(t.Context(), "default", types.MergePatchType, []byte(`{"spec":{"scoringWeights":{"modelCache":0.1234}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	wantApplied(t, apis.SchedulerConfigs, "default", metav1.ConditionFalse, "spec.scoringWeights.modelCache: must have at most 3 decimals, got 0.1234; the last good version")
	fake.want(t, good)

	if err := configs.Delete(t.Context(), "default", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	fake.want(t, `{"scoringPreset":"utilization"}`)
	if err := client.Resource(apis.TopologySchedulerConfigs).Delete(t.Context(), "default", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	fake.want(t, `{}`)
}
