// SPDX-License-Identifier: Apache-2.0

package liveconfig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/plugin/status"
)

// One of the handlers spaces errors out by the time since the last one, which makes no sense between a bubble's clock and
// the machine's; the first only logs.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	m.Run()
}

// rig is a watcher with a pretended API server and engine.
type rig struct {
	t       *testing.T
	client  *fake.FakeDynamicClient
	settled func() bool // of the watcher that was started last

	mu      sync.Mutex
	applied []string          // what the engine was given and took
	asked   int               // how often it was given something
	told    map[string]string // kind/name → what its condition says
	tells   int               // how often one was told something
	absent  map[string]error  // resource → what the API server answers instead
}

func bubble(t *testing.T, test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
			apis.SchedulerConfigs: "SchedulerConfigList", apis.TopologySchedulerConfigs: "TopologySchedulerConfigList",
		})
		r := &rig{t: t, client: client, told: map[string]string{}, absent: map[string]error{}}
		client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			err := r.absent[action.GetResource().Resource]
			return err != nil, nil, err
		})
		test(r)
	})
}

// start runs the watcher until the test ends.
func (r *rig) start() (stop func()) {
	watcher, err := New(r.client, r.apply, r.tell)
	if err != nil {
		r.t.Fatal(err)
	}
	r.settled = watcher.Settled
	if r.settled() {
		r.t.Error("settled before it has looked")
	}
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); watcher.Run(ctx) }()
	r.rest()
	return func() { cancel(); <-done }
}

// apply refuses what mentions bad.
func (r *rig) apply(json []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked++
	if strings.Contains(string(json), "bad") {
		return errors.New("spec.scoringPreset: must be training, agents or utilization, got \"bad\"")
	}
	r.applied = append(r.applied, string(json))
	return nil
}

func (r *rig) tell(s status.ConfigState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tells++
	r.told[s.Resource.Resource+"/"+s.Name] = fmt.Sprintf("%t %s %d: %s", s.Applied, s.Reason, s.Generation, s.Message)
}

func (r *rig) rest() {
	time.Sleep(time.Minute)
	synctest.Wait()
}

func (r *rig) answer(resource schema.GroupVersionResource, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.absent[resource.Resource] = err
}

// wantForce compares everything that was put in force so far.
func (r *rig) wantForce(want ...string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.applied, want) {
		r.t.Errorf("in force one after the other:\n%q, want\n%q", r.applied, want)
	}
}

func (r *rig) wantTold(object string, parts ...string) {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, part := range parts {
		if !strings.Contains(r.told[object], part) {
			r.t.Errorf("%s was told %q, want %q in it", object, r.told[object], part)
		}
	}
}

var kindOf = map[schema.GroupVersionResource]string{
	apis.SchedulerConfigs: apis.KindSchedulerConfig, apis.TopologySchedulerConfigs: apis.KindTopologySchedulerConfig,
}

func (r *rig) object(resource schema.GroupVersionResource, name, uid string, generation int64, spec map[string]any) *unstructured.Unstructured {
	content := map[string]any{
		"apiVersion": apis.Topology.String(), "kind": kindOf[resource],
		"metadata": map[string]any{"name": name, "uid": uid, "generation": generation},
	}
	if spec != nil {
		content["spec"] = spec
	}
	return &unstructured.Unstructured{Object: content}
}

func (r *rig) create(resource schema.GroupVersionResource, name, uid string, spec map[string]any) {
	r.t.Helper()
	if err := r.client.Tracker().Create(resource, r.object(resource, name, uid, 1, spec), ""); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) update(resource schema.GroupVersionResource, name, uid string, generation int64, spec map[string]any) {
	r.t.Helper()
	if err := r.client.Tracker().Update(resource, r.object(resource, name, uid, generation, spec), ""); err != nil {
		r.t.Fatal(err)
	}
	r.rest()
}

func (r *rig) remove(resource schema.GroupVersionResource, name string) {
	r.t.Helper()
	if err := r.client.Tracker().Delete(resource, "", name); err != nil {
		r.t.Fatal(err)
	}
	r.rest()
}

func preset(name string) map[string]any { return map[string]any{"scoringPreset": name} }

func presetJSON(name string) string { return `{"scoringPreset":"` + name + `"}` }

func TestTheWholeSpecReachesTheEngine(t *testing.T) {
	for _, c := range []struct {
		name string
		spec map[string]any
		want string
	}{
		{"no spec", nil, `{}`},
		{"empty", map[string]any{}, `{}`},
		{"all of it", map[string]any{
			"scoringPreset": "agents", "scoringWeights": map[string]any{"modelCache": 0.125, "dataLocality": int64(1)},
			"topologyConstraints": map[string]any{"maxNodesPerLeaf": int64(4)},
		}, `{"scoringPreset":"agents","scoringWeights":{"dataLocality":1,"modelCache":0.125},"topologyConstraints":{"maxNodesPerLeaf":4}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.create(apis.SchedulerConfigs, "default", "a", c.spec)
				defer r.start()()
				r.wantForce(c.want)
				r.wantTold("schedulerconfigs/default", "true InForce 1: in force")
			})
		})
	}
}

// A change is applied, a bad one is refused while the last good version stays, and deletion goes back to the start.
func TestTheLifeOfAnObject(t *testing.T) {
	bubble(t, func(r *rig) {
		defer r.start()()
		r.wantForce()
		r.create(apis.SchedulerConfigs, "default", "a", preset("agents"))
		r.rest()
		r.wantForce(presetJSON("agents"))
		r.update(apis.SchedulerConfigs, "default", "a", 2, preset("bad"))
		r.wantForce(presetJSON("agents"))
		r.wantTold("schedulerconfigs/default", "false Refused 2", `got "bad"; the last good version of this object stays in force`)
		r.update(apis.SchedulerConfigs, "default", "a", 3, preset("training"))
		r.wantForce(presetJSON("agents"), presetJSON("training"))
		r.wantTold("schedulerconfigs/default", "true InForce 3")
		r.remove(apis.SchedulerConfigs, "default")
		r.wantForce(presetJSON("agents"), presetJSON("training"), "{}")
	})
}

// A status that changes, or an object that is told to us again, is no news.
func TestOnlyAChangedSpecIsApplied(t *testing.T) {
	bubble(t, func(r *rig) {
		r.create(apis.SchedulerConfigs, "default", "a", preset("bad"))
		defer r.start()()
		changed := r.object(apis.SchedulerConfigs, "default", "a", 1, preset("bad"))
		changed.Object["status"] = map[string]any{"observedGeneration": int64(1)}
		if err := r.client.Tracker().Update(apis.SchedulerConfigs, changed, ""); err != nil {
			t.Fatal(err)
		}
		r.create(apis.SchedulerConfigs, "other", "b", nil) // has everything looked at anew
		r.rest()
		if r.asked != 1 || r.tells != 2 {
			t.Errorf("the engine was asked %d times, two objects were told %d times", r.asked, r.tells)
		}
	})
}

func TestOneObjectIsInForce(t *testing.T) {
	bubble(t, func(r *rig) {
		r.create(apis.TopologySchedulerConfigs, "default", "t", preset("utilization"))
		r.create(apis.SchedulerConfigs, "another", "x", preset("bad"))
		defer r.start()()
		r.wantForce(presetJSON("utilization"))
		r.wantTold("topologyschedulerconfigs/default", "true InForce")
		r.wantTold("schedulerconfigs/another", "false NotUsed 1: only the SchedulerConfig named default is applied")

		r.create(apis.SchedulerConfigs, "default", "s", preset("agents"))
		r.rest()
		r.wantForce(presetJSON("utilization"), presetJSON("agents"))
		r.wantTold("topologyschedulerconfigs/default", "false NotUsed")

		r.remove(apis.SchedulerConfigs, "default")
		r.wantForce(presetJSON("utilization"), presetJSON("agents"), presetJSON("utilization"))
		r.wantTold("topologyschedulerconfigs/default", "true InForce")
	})
}

// What a deleted object said does not live on because its successor is bad.
func TestABadSuccessorDoesNotKeepItsPredecessorInForce(t *testing.T) {
	bubble(t, func(r *rig) {
		r.create(apis.SchedulerConfigs, "default", "a", preset("agents"))
		r.create(apis.TopologySchedulerConfigs, "default", "t", preset("bad"))
		defer r.start()()
		r.remove(apis.SchedulerConfigs, "default")
		r.wantForce(presetJSON("agents"), "{}")
		r.wantTold("topologyschedulerconfigs/default", "false Refused 1", "what the scheduler was started with is in force")
		r.remove(apis.TopologySchedulerConfigs, "default")
		r.wantForce(presetJSON("agents"), "{}") // nothing to take back
	})
}

// Either definition may be missing, or come later; nothing waits for it.
func TestDefinitionsMayBeMissing(t *testing.T) {
	gone := apierrors.NewGenericServerResponse(404, "list", schema.GroupResource{}, "", "404 page not found", 0, true)
	for name, err := range map[string]error{"not served": gone, "forbidden": apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no right"))} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.answer(apis.SchedulerConfigs, err)
				r.create(apis.TopologySchedulerConfigs, "default", "t", preset("agents"))
				defer r.start()()
				r.wantForce(presetJSON("agents"))
				if !r.settled() {
					t.Error("not settled: nobody can say more about a kind that is not to be had")
				}
				r.create(apis.SchedulerConfigs, "default", "s", preset("training"))
				r.answer(apis.SchedulerConfigs, nil)
				r.rest()
				r.rest()
				r.wantForce(presetJSON("agents"), presetJSON("training"))
			})
		})
	}
}

// While the API server does not answer for one kind, the other is not taken for all there is.
func TestAnAPIServerThatDoesNotAnswerIsWaitedFor(t *testing.T) {
	bubble(t, func(r *rig) {
		r.answer(apis.SchedulerConfigs, apierrors.NewInternalError(errors.New("etcd is away")))
		r.create(apis.TopologySchedulerConfigs, "default", "t", preset("agents"))
		r.create(apis.SchedulerConfigs, "default", "s", preset("training"))
		defer r.start()()
		r.wantForce()
		if r.settled() {
			t.Error("settled on half of it")
		}
		r.answer(apis.SchedulerConfigs, nil)
		r.rest()
		r.rest()
		r.wantForce(presetJSON("training"))
		if !r.settled() {
			t.Error("not settled")
		}
	})
}

// An object that some other definition let in is refused, not crashed on.
func TestASpecThatIsNoObjectIsRefused(t *testing.T) {
	bubble(t, func(r *rig) {
		odd := r.object(apis.SchedulerConfigs, "default", "a", 1, nil)
		odd.Object["spec"] = "agents"
		if err := r.client.Tracker().Create(apis.SchedulerConfigs, odd, ""); err != nil {
			t.Fatal(err)
		}
		defer r.start()()
		r.wantForce()
		r.wantTold("schedulerconfigs/default", "false Refused 1: spec: must be an object")
	})
}
