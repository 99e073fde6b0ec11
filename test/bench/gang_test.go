// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/frond-scheduler/frond/test/harness"
)

const thousandNodes = "spine:2 leaf:125 node:4 gpu:8"

// BenchmarkThousandNodes measures gangs on a lab of that size.
func BenchmarkThousandNodes(b *testing.B) {
	large := harness.Start(b, thousandNodes)
	for _, variant := range []struct {
		name  string
		setup harness.Setup
	}{
		{"gang-of-512", harness.Setup{}},
		{"gang-of-512-with-nominations", harness.Setup{Flags: []string{"--feature-gates=NominatedNodeNameForExpectation=true"}}},
		{"gang-of-512-without-locks", harness.Setup{NoLocks: true}},
	} {
		b.Run(variant.name, func(b *testing.B) { gangOf512(b, large, variant.setup) })
	}
	b.Run("impossible-gang", func(b *testing.B) { impossibleGang(b, large) })
}

// gangOf512 asks for 512 whole nodes: the time from its last pod's creation to its last binding, and the scheduler's CPU
// seconds and requests to the API server from the submission on.
func gangOf512(b *testing.B, large *harness.Lab, setup harness.Setup) {
	scheduler := large.Run(b, setup)
	ns := large.Namespace(b)
	// Starting is not what is measured: a first gang shows that everything has been seen.
	first := harness.Gang{Name: "first", Pods: 2, GPUs: 8, RunSeconds: 1}
	large.Submit(b, ns, first)
	large.Bound(b, ns, first)
	time.Sleep(5 * time.Second)
	ns = large.Namespace(b)
	for b.Loop() {
		const pods = 512
		follow := followPods(b, large, ns)
		before, asked := cpu(b, scheduler), requests(b, large, scheduler)
		large.Submit(b, ns, harness.Gang{Name: "train", Pods: pods, GPUs: 8})
		created, first, bound := follow(pods)
		b.ReportMetric(first.Sub(created).Seconds(), "last-pod-to-first-bound-s")
		b.ReportMetric(bound.Sub(created).Seconds(), "last-pod-to-bound-s")
		b.ReportMetric((cpu(b, scheduler) - before).Seconds(), "cpu-s")
		b.ReportMetric(requests(b, large, scheduler)-asked, "requests")
	}
}

// impossibleGang asks for 1,001 nodes: the time from its last pod's creation to the reason, and the scheduler's CPU use
// afterwards beside its use before.
func impossibleGang(b *testing.B, large *harness.Lab) {
	const quiet = 20 * time.Second
	scheduler := large.Run(b, harness.Setup{})
	ns := large.Namespace(b)
	used := func() float64 {
		before := cpu(b, scheduler)
		time.Sleep(quiet)
		return (cpu(b, scheduler) - before).Seconds() / quiet.Seconds()
	}
	for b.Loop() {
		idle := used()
		const pods = 1001
		told := followReason(b, large, ns, "never fits")
		follow := followPods(b, large, ns)
		large.Submit(b, ns, harness.Gang{Name: "train", Pods: pods, GPUs: 8})
		created, _, _ := follow(0)
		b.ReportMetric(told().Sub(created).Seconds(), "last-pod-to-reason-s")
		time.Sleep(5 * time.Second) // the last of a thousand informer events
		b.ReportMetric(used(), "cores-waiting")
		b.ReportMetric(idle, "cores-idle")
	}
}

func cpu(b *testing.B, scheduler *harness.Scheduler) time.Duration {
	b.Helper()
	used, err := scheduler.CPU()
	if err != nil {
		b.Fatal(err)
	}
	return used
}

// requests that the scheduler has sent to the API server so far.
func requests(b *testing.B, lab *harness.Lab, scheduler *harness.Scheduler) float64 {
	b.Helper()
	var count float64
	harness.Eventually(b, 10*time.Second, func(ctx context.Context) (err error) { // a scheduler that has just started refuses
		count, err = scheduler.Requests(ctx, lab)
		return err
	})
	return count
}

// followPods watches a namespace from now on. What it returns waits until that many pods are bound, or, asked for none,
// until no pod was created for a second, and says when the last was created and when the first and the last were bound.
func followPods(b *testing.B, lab *harness.Lab, ns string) func(want int) (created, first, bound time.Time) {
	b.Helper()
	stream := watchPods(b, lab, ns)
	return func(want int) (created, first, bound time.Time) {
		defer stream.Stop()
		seen := map[string]bool{}
		quiet := time.NewTimer(2 * time.Minute)
		for want == 0 || len(seen) < want {
			select {
			case event := <-stream.ResultChan():
				pod, ok := event.Object.(*corev1.Pod)
				if !ok {
					b.Fatalf("the watch sent %T", event.Object)
				}
				if event.Type == watch.Added {
					created = time.Now()
					if want == 0 {
						quiet.Reset(time.Second)
					}
				}
				if pod.Spec.NodeName != "" && !seen[pod.Name] {
					seen[pod.Name] = true
					bound = time.Now()
					if first.IsZero() {
						first = bound
					}
				}
			case <-quiet.C:
				if want != 0 {
					b.Fatalf("%d of %d pods bound after two minutes; %s", len(seen), want, lab.Reasons(b.Context(), ns))
				}
				return created, first, bound
			}
		}
		return created, first, bound
	}
}

// followReason watches a namespace's events from now on. What it returns waits for a text and says when it came.
func followReason(b *testing.B, lab *harness.Lab, ns, text string) func() time.Time {
	b.Helper()
	events := lab.Client.CoreV1().Events(ns)
	list, err := events.List(b.Context(), metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	stream := retry(b, list.ResourceVersion, func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		return events.Watch(ctx, options)
	})
	told := make(chan time.Time, 1)
	go func() {
		defer stream.Stop()
		for event := range stream.ResultChan() {
			if said, ok := event.Object.(*corev1.Event); ok && strings.Contains(said.Message, text) {
				told <- time.Now()
				return
			}
		}
	}()
	return func() time.Time {
		select {
		case at := <-told:
			return at
		case <-time.After(2 * time.Minute):
			b.Fatalf("no event with %q after two minutes", text)
			return time.Time{}
		}
	}
}

// watchPods watches the pods of a namespace from now on.
func watchPods(b *testing.B, lab *harness.Lab, ns string) *watchtools.RetryWatcher {
	b.Helper()
	pods := lab.Client.CoreV1().Pods(ns)
	list, err := pods.List(b.Context(), metav1.ListOptions{})
	if err != nil {
		b.Fatal(err)
	}
	return retry(b, list.ResourceVersion, func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		return pods.Watch(ctx, options)
	})
}

func retry(b *testing.B, version string, how func(context.Context, metav1.ListOptions) (watch.Interface, error)) *watchtools.RetryWatcher {
	b.Helper()
	stream, err := watchtools.NewRetryWatcherWithContext(b.Context(), version, &cache.ListWatch{WatchFuncWithContext: how})
	if err != nil {
		b.Fatal(err)
	}
	return stream
}
