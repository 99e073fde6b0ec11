// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
)

// Judge writes down what happens until it is asked for its verdict.
type Judge struct {
	rules  Rules
	cancel context.CancelFunc
	ended  sync.WaitGroup

	mu      sync.Mutex
	history History
	broken  []Violation
	events  int
}

// Watch begins: it lists what is there and follows it from that version on. The context ends it; so does Stop.
func Watch(ctx context.Context, client kubernetes.Interface, rules Rules) (*Judge, error) {
	ctx, cancel := context.WithCancel(ctx)
	j := &Judge{rules: rules.withDefaults(), cancel: cancel, history: History{Released: map[string]time.Time{}}}
	nodes, leases, pods := client.CoreV1().Nodes(), client.CoordinationV1().Leases(lockSpace), client.CoreV1().Pods(metav1.NamespaceAll)
	for _, kind := range []source{
		{"nodes",
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return nodes.List(ctx, o) },
			func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return nodes.Watch(ctx, o) }},
		{"Leases",
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return leases.List(ctx, o) },
			func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return leases.Watch(ctx, o) }},
		{"pods",
			func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) },
			func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) { return pods.Watch(ctx, o) }},
	} {
		if err := j.follow(ctx, kind); err != nil {
			j.Stop()
			return nil, err
		}
	}
	return j, nil
}

type source struct {
	name  string
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

func (j *Judge) follow(ctx context.Context, kind source) error {
	list, err := kind.list(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list %s: %w", kind.name, err)
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return fmt.Errorf("list %s: %w", kind.name, err)
	}
	for _, item := range items {
		j.see(item, false, true)
	}
	whole, err := meta.ListAccessor(list)
	if err != nil {
		return fmt.Errorf("list %s: %w", kind.name, err)
	}
	// The API server may end a watch at any time; this one goes on from the last event seen, so none is missed.
	stream, err := watchtools.NewRetryWatcherWithContext(ctx, whole.GetResourceVersion(), &cache.ListWatch{
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.AllowWatchBookmarks = true // a quiet watch stays young enough to be resumed
			return kind.watch(ctx, options)
		},
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", kind.name, err)
	}
	j.ended.Go(func() {
		defer stream.Stop()
		for {
			select {
			case event, open := <-stream.ResultChan():
				if !open {
					if ctx.Err() == nil {
						j.miss(fmt.Errorf("the watch of %s ended early", kind.name))
					}
					return
				}
				switch event.Type {
				case watch.Added, watch.Modified, watch.Deleted:
					j.see(event.Object, event.Type == watch.Deleted, false)
				case watch.Error:
					j.miss(fmt.Errorf("the watch of %s: %w", kind.name, apierrors.FromObject(event.Object)))
				}
			case <-ctx.Done():
				return
			}
		}
	})
	return nil
}

func (j *Judge) see(object runtime.Object, gone, initial bool) {
	record := Record{Seen: time.Now(), Gone: gone, Initial: initial}
	access, err := meta.Accessor(object)
	if err == nil {
		record.Version, err = version(access)
	}
	switch object := object.(type) {
	case *corev1.Pod:
		record.Pod = podRecord(object, j.rules.GangOf)
	case *corev1.Node:
		record.Node = nodeRecord(object)
	case *coordinationv1.Lease:
		var bad error
		if record.Lease, bad = leaseRecord(object); bad != nil && j.rules.Locks {
			err = errors.Join(err, bad)
		}
	default:
		err = fmt.Errorf("the watch sent %T", object)
	}
	if err != nil {
		j.miss(err)
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events++
	j.history.Records = append(j.history.Records, record)
}

func (j *Judge) miss(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.broken = append(j.broken, Violation{Kind: WatchBroken, Text: err.Error()})
}

// Expect tells of a gang before it is submitted.
func (j *Judge) Expect(g Gang) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.history.Gangs = append(j.history.Gangs, g)
}

// Release says that from now on the test itself deletes pods of this gang, or the pod of this name.
func (j *Judge) Release(name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.history.Released[name] = time.Now()
}

// Resume says that a scheduler works again after the test had stopped it or cut it off.
func (j *Judge) Resume() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.history.Resumed = append(j.history.Resumed, time.Now())
}

// Stop ends the watching; a verdict after it is about what was seen before.
func (j *Judge) Stop() {
	j.cancel()
	j.ended.Wait()
}

// Look judges what was seen so far.
func (j *Judge) Look() []Violation {
	j.mu.Lock()
	history := j.history
	history.Released = maps.Clone(history.Released)
	history.Ended = time.Now()
	found := append([]Violation(nil), j.broken...)
	j.mu.Unlock()
	return append(found, Replay(j.rules, history)...)
}

// AtRest says whether nothing is left that could be over in a moment.
func (j *Judge) AtRest() bool { return atRest(j.Look()) }

func atRest(found []Violation) bool {
	return !slices.ContainsFunc(found, func(v Violation) bool { return v.Final })
}

// Verdict waits until nothing is left that could be over in a moment, at most for limit, and judges what was seen until then:
// a moment later pods may have ended whose locks are still to be freed.
func (j *Judge) Verdict(limit time.Duration) []Violation {
	found := j.Look()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline) && !atRest(found); found = j.Look() {
		time.Sleep(200 * time.Millisecond)
	}
	j.Stop()
	if j.events == 0 {
		found = append(found, Violation{Kind: WatchBroken, Text: "nothing was seen"})
	}
	return found
}

// Events is how many changes were seen.
func (j *Judge) Events() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.events
}
