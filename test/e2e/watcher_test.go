// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/frond-scheduler/frond/test/harness"
)

// Bindings of one gang are separate writes, so between the first and the last it is seen half-bound for a moment. The
// promise is about rest: this is how long a moment may be on a busy machine with two cores.
const bindingMoment = 10 * time.Second

// watcher follows a namespace over the API, independent of the scheduler: who is bound, and who holds which GPU.
type watcher struct {
	cancel context.CancelFunc
	ended  chan struct{}

	mu         sync.Mutex
	gangs      map[string]*watched // by Job name
	owners     map[string]string   // GPU id → pod
	violations []string
	events     int
}

type watched struct {
	size        int
	bound       map[string]bool // pods that have ever had a node
	first, last time.Time
}

func startWatcher(t *testing.T, namespace string) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{cancel: cancel, ended: make(chan struct{}), gangs: map[string]*watched{}, owners: map[string]string{}}
	pods := lab.Client.CoreV1().Pods(namespace)
	list, err := pods.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatalf("watch %s: %v", namespace, err)
	}
	// The API server may end a watch at any time; this one goes on from the last event seen, so none is missed.
	stream, err := watchtools.NewRetryWatcherWithContext(ctx, list.ResourceVersion, &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return pods.Watch(ctx, options)
		},
	})
	if err != nil {
		t.Fatalf("watch %s: %v", namespace, err)
	}
	t.Cleanup(cancel)
	go func() {
		defer close(w.ended)
		defer stream.Stop()
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case event, open := <-stream.ResultChan():
				if !open {
					if ctx.Err() == nil {
						w.violate("the watch ended early")
					}
					return
				}
				w.see(event)
			case now := <-ticker.C:
				w.look(now)
			case <-ctx.Done():
				return
			}
		}
	}()
	return w
}

// expect tells the watcher how large a gang is, before it is submitted.
func (w *watcher) expect(g harness.Gang) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.gangs[g.Name] = &watched{size: int(g.Pods), bound: map[string]bool{}}
}

func (w *watcher) violate(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, fmt.Sprintf(format, args...))
}

func (w *watcher) see(event watch.Event) {
	pod, ok := event.Object.(*corev1.Pod)
	if !ok {
		w.violate("the watch sent %T", event.Object)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events++
	over := event.Type == watch.Deleted || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	for id := range strings.SplitSeq(pod.Annotations["gpu.scheduling/allocated"], ",") {
		if id == "" {
			continue
		}
		owner, taken := w.owners[id]
		switch {
		case over && owner == pod.Name:
			delete(w.owners, id)
		case !over && taken && owner != pod.Name:
			w.violations = append(w.violations, fmt.Sprintf("%s and %s both hold %s", owner, pod.Name, id))
		case !over:
			w.owners[id] = pod.Name
		}
	}
	job := pod.Labels["batch.kubernetes.io/job-name"]
	if job == "" || pod.Spec.NodeName == "" {
		return
	}
	g := w.gangs[job]
	if g == nil {
		w.violations = append(w.violations, fmt.Sprintf("%s belongs to no gang that was submitted", pod.Name))
		return
	}
	if len(g.bound) == 0 {
		g.first = time.Now()
	}
	if !g.bound[pod.Name] {
		g.bound[pod.Name] = true
		g.last = time.Now()
	}
}

// complete: every pod that is expected was seen bound.
func (w *watcher) complete() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.gangs {
		if len(g.bound) != g.size {
			return false
		}
	}
	return true
}

// look finds gangs that have been half-bound for longer than a moment.
func (w *watcher) look(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, g := range w.gangs {
		half := len(g.bound) > 0 && len(g.bound) < g.size
		if half && now.Sub(g.first) > bindingMoment {
			w.violations = append(w.violations, fmt.Sprintf("%s is half-bound: %d of %d for %s", name, len(g.bound), g.size, now.Sub(g.first)))
			g.first = now // say it once a moment
		}
	}
}

// catchUp is how far the watch may be behind a list of the same moment, on a busy machine.
const catchUp = 10 * time.Second

func (w *watcher) verdict(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(catchUp); !w.complete() && time.Now().Before(deadline); {
		time.Sleep(20 * time.Millisecond)
	}
	w.cancel()
	<-w.ended
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, violation := range w.violations {
		t.Error(violation)
	}
	if w.events == 0 || len(w.gangs) == 0 {
		t.Error("the watcher saw nothing")
	}
	longest := time.Duration(0)
	for name, g := range w.gangs {
		if len(g.bound) != g.size {
			t.Errorf("%s: the watcher saw %d of %d pods bound", name, len(g.bound), g.size)
		}
		longest = max(longest, g.last.Sub(g.first))
	}
	t.Logf("watched %d events of %d gangs; longest from a gang's first to its last binding: %s", w.events, len(w.gangs), longest)
}
