// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/frond-scheduler/frond/plugin/apis"
)

// rig is a writer with a pretended API server, on the bubble's clock.
type rig struct {
	*Writer
	t      *testing.T
	client *fake.FakeDynamicClient

	mu      sync.Mutex
	patches []time.Time
	fail    func(clienttesting.Action) error // answers instead of the API server unless it says nil
}

// bubble runs a test in its own time; the writer ends with it.
func bubble(t *testing.T, objects []*unstructured.Unstructured, test func(*rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		kinds := map[schema.GroupVersionResource]string{
			apis.GpuClaims: "GpuClaimList", apis.PodGroups: "PodGroupList", apis.SchedulerConfigs: "SchedulerConfigList",
			apis.GpuNodeStatuses: "GpuNodeStatusList",
		}
		client := fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
		for _, object := range objects {
			resource, _ := resourceOf(object)
			if err := client.Tracker().Create(resource, object, object.GetNamespace()); err != nil {
				t.Fatal(err)
			}
		}
		r := &rig{Writer: New(client, time.Now), t: t, client: client}
		client.PrependReactor("*", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.fail != nil {
				if err := r.fail(action); err != nil {
					return true, nil, err
				}
			}
			if action.GetVerb() == "patch" {
				r.patches = append(r.patches, time.Now())
			}
			return false, nil, nil
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); r.Run(ctx, 4) }()
		test(r)
		cancel()
		<-done
	})
}

func resourceOf(object *unstructured.Unstructured) (schema.GroupVersionResource, bool) {
	resource, found := map[string]schema.GroupVersionResource{
		"GpuClaim": apis.GpuClaims, "PodGroup": apis.PodGroups, "SchedulerConfig": apis.SchedulerConfigs, "GpuNodeStatus": apis.GpuNodeStatuses,
	}[object.GetKind()]
	return resource, found
}

func (r *rig) failWith(fail func(clienttesting.Action) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fail = fail
}

// written is how many patches the API server got.
func (r *rig) written() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.patches)
}

// rest lets everything that is due happen.
func (r *rig) rest(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (r *rig) get(resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	r.t.Helper()
	object, err := r.client.Tracker().Get(resource, namespace, name)
	if err != nil {
		r.t.Fatal(err)
	}
	return object.(*unstructured.Unstructured)
}

func (r *rig) claim(name string) *apis.GpuClaim {
	r.t.Helper()
	claim, err := apis.Decode[apis.GpuClaim](r.get(apis.GpuClaims, "ns", name).Object)
	if err != nil {
		r.t.Fatal(err)
	}
	return claim
}

func claimObject(name string, uid types.UID) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apis.GPU.String(), "kind": apis.KindGpuClaim,
		"metadata": map[string]any{"namespace": "ns", "name": name, "uid": string(uid), "generation": int64(3)},
		"spec":     map[string]any{"devices": map[string]any{"count": int64(2)}},
	}}
}

func groupObject(name string, uid types.UID) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apis.Scheduling.String(), "kind": "PodGroup",
		"metadata": map[string]any{"namespace": "ns", "name": name, "uid": string(uid)},
		"spec":     map[string]any{"minMember": int64(512)},
	}}
}

// notServed is what a client makes of a path that no handler knows.
func notServed() error {
	return apierrors.NewGenericServerResponse(404, "get", schema.GroupResource{}, "", "404 page not found", 0, true)
}

func condition(t *testing.T, list []metav1.Condition, name string) metav1.Condition {
	t.Helper()
	for _, c := range list {
		if c.Type == name {
			return c
		}
	}
	t.Fatalf("no condition %s in %v", name, list)
	return metav1.Condition{}
}
