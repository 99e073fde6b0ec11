// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/frond-scheduler/frond/plugin/nodereport"
)

// status is a GpuNodeStatus of one GPU.
func status(name, health string) *unstructured.Unstructured {
	object := (&nodereport.Report{Node: name, UID: "gns"}).Object()
	object.Object["status"] = map[string]any{"total": int64(1), "heartbeat": "2026-01-02T03:04:05Z",
		"devices": []any{map[string]any{"id": "GPU-x", "index": int64(0), "health": health}}}
	return object
}

func fakeClient(objects ...runtime.Object) *fake.FakeDynamicClient {
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{nodereport.Resource(): nodereport.Kind + "List"}, objects...)
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 500 {
		if done() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s: never", what)
}

func TestWatchReports(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	client := fakeClient(status("a", "Healthy"), (&nodereport.Report{Node: "empty"}).Object())
	e, w := newEngine(4, 4), &witness{}
	m := New(e, reader())
	if _, err := m.SetNode(nodeOf("a", 1)); err != nil {
		t.Fatal(err)
	}
	informer, synced, err := m.WatchReports(klog.Background(), client, w)
	if err != nil || synced() {
		t.Fatalf("%v", err)
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), synced) {
		t.Fatal("not synced")
	}
	entry := func() (gpus, unhealthy uint32, reported bool) {
		e.mu.Lock()
		defer e.mu.Unlock()
		return e.nodes[0].GPUs, e.nodes[0].UnhealthyMask, e.nodes[0].Topology == 0
	}
	if gpus, _, reported := entry(); gpus != 1 || !reported {
		t.Error("what was there at the start is entered before the first decision")
	}
	resource := client.Resource(nodereport.Resource())
	if _, err := resource.Update(ctx, status("a", "Unhealthy"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "unhealthy", func() bool { _, unhealthy, _ := entry(); return unhealthy == 1 })
	w.wait(t, "reported a")
	if _, err := resource.Update(ctx, status("a", "bad"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.wait(t, "ReportRefused a")
	if _, unhealthy, _ := entry(); unhealthy != 1 {
		t.Error("the last good report stays")
	}
	for _, object := range informer.GetStore().List() {
		if _, ok := object.(*reading); !ok {
			t.Errorf("the whole object is kept: %T", object)
		}
	}
	if err := resource.Delete(ctx, "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "taken back", func() bool { _, unhealthy, reported := entry(); return unhealthy == 0 && !reported })
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, text := range w.heard {
		if text == "ReportRefused empty" {
			t.Error("an object that was only just made is no problem")
		}
	}
}

func TestReportsThatCannotBeReadHoldNothingUp(t *testing.T) {
	for _, test := range []struct {
		name string
		err  error
		want bool
	}{
		{"no CRD", apierrors.NewNotFound(nodereport.Resource().GroupResource(), ""), true},
		{"no rights", apierrors.NewForbidden(nodereport.Resource().GroupResource(), "", errors.New("rbac")), true},
		{"another day", apierrors.NewInternalError(errors.New("etcd")), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			client := fakeClient()
			asked := make(chan struct{}, 64)
			client.PrependReactor("*", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
				select {
				case asked <- struct{}{}:
				default:
				}
				return true, nil, test.err
			})
			client.PrependWatchReactor("*", clienttesting.DefaultWatchReactor(nil, test.err))
			informer, synced, err := New(newEngine(1, 1), reader()).WatchReports(klog.Background(), client, &witness{})
			if err != nil {
				t.Fatal(err)
			}
			go informer.RunWithContext(ctx)
			if test.want {
				waitFor(t, "synced", synced)
				return
			}
			<-asked
			time.Sleep(50 * time.Millisecond)
			if synced() {
				t.Error("decisions wait until it is known what there is")
			}
		})
	}
}
