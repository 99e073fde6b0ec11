// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/frond-scheduler/frond/test/harness"
)

const (
	waitingNodes  = 400 // in leaves of 4
	waitingLine   = "spine:2 leaf:50 node:4 gpu:8"
	waitingGangs  = 500
	waitingFor    = 30 * time.Second
	singlesPerSec = 20
)

// BenchmarkWaiting measures what 500 gangs that wait cost everybody else, in one run: single pods of one GPU come at 20 a
// second while one node becomes whole every second, first without gangs, then with them. Every node has a pod of one GPU on it;
// gangs ask for the four nodes of a leaf, whole.
func BenchmarkWaiting(b *testing.B) {
	lab := harness.Start(b, waitingLine)
	scheduler := lab.Run(b, harness.Setup{})
	for b.Loop() {
		alone := singles(b, lab, scheduler, 0)
		beside := singles(b, lab, scheduler, waitingGangs)
		b.ReportMetric(float64(beside.median)/float64(alone.median), "p50/without-gangs")
		b.ReportMetric(float64(beside.worst)/float64(alone.worst), "p99/without-gangs")
		b.ReportMetric(alone.median.Seconds(), "p50-alone-s")
		b.ReportMetric(alone.worst.Seconds(), "p99-alone-s")
		b.ReportMetric(beside.cpu/alone.cpu, "cpu/without-gangs")
		b.ReportMetric(beside.idle, "cores-waiting")
		b.ReportMetric(beside.completed.Seconds(), "freed-to-gang-bound-s")
	}
}

type latency struct {
	median, worst time.Duration // worst: the 99th of a hundred
	cpu, idle     float64       // seconds meanwhile; cores while nothing changes
	completed     time.Duration // from the end of the pod that stood in a gang's way to that gang's last Binding
}

func singles(b *testing.B, lab *harness.Lab, scheduler *harness.Scheduler, gangs int) (result latency) {
	b.Helper()
	ctx := b.Context()
	ns := lab.Namespace(b)
	occupy(b, lab, ns)
	for i := range gangs {
		lab.Submit(b, ns, harness.Gang{Name: fmt.Sprintf("gang-%03d", i), Pods: 4, GPUs: 8})
	}
	if gangs > 0 {
		created(b, lab, ns, waitingNodes+4*gangs)
		before := cpu(b, scheduler)
		time.Sleep(10 * time.Second)
		result.idle = (cpu(b, scheduler) - before).Seconds() / 10
	}
	bound := follow(b, lab, ns)
	before := cpu(b, scheduler)
	starts := map[string]time.Time{}
	ticker := time.NewTicker(time.Second / singlesPerSec)
	defer ticker.Stop()
	for i := 0; i < int(waitingFor.Seconds())*singlesPerSec; i++ {
		<-ticker.C
		if i%singlesPerSec == 0 { // one node of each leaf: no gang fits by that
			free(b, lab, ns, 4*(i/singlesPerSec)+1)
		}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("single-%04d", i)}, Spec: harness.PodSpec(harness.Profile, 1)}
		starts[pod.Name] = time.Now()
		if _, err := lab.Client.CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	var times []time.Duration
	harness.Eventually(b, time.Minute, func(context.Context) error {
		times = times[:0]
		for name, start := range starts {
			if at := bound(name); !at.IsZero() {
				times = append(times, at.Sub(start))
			}
		}
		if len(times) < len(starts) {
			return fmt.Errorf("%d of %d single pods are bound", len(times), len(starts))
		}
		return nil
	})
	result.cpu = (cpu(b, scheduler) - before).Seconds()
	slices.Sort(times)
	result.median, result.worst = times[len(times)/2], times[len(times)*99/100]
	if gangs > 0 {
		result.completed = complete(b, lab, ns, bound)
		return result
	}
	now := int64(0) // what follows is measured on nodes without these
	if err := lab.Client.CoreV1().Pods(ns).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{}); err != nil {
		b.Fatal(err)
	}
	return result
}

// occupy puts a pod of one GPU on every node, around any scheduler: single pods have room, and no node is whole.
func occupy(b *testing.B, lab *harness.Lab, ns string) {
	b.Helper()
	var group sync.WaitGroup
	slots := make(chan struct{}, 16)
	for i := range waitingNodes {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("block-%d", i+1)}, Spec: harness.PodSpec("nobody", 1)}
			pod.Spec.NodeName = fmt.Sprintf("node-%d", i+1)
			if _, err := lab.Client.CoreV1().Pods(ns).Create(b.Context(), pod, metav1.CreateOptions{}); err != nil {
				b.Error(err)
			}
		})
	}
	group.Wait()
	created(b, lab, ns, waitingNodes)
}

func created(b *testing.B, lab *harness.Lab, ns string, want int) {
	b.Helper()
	harness.Eventually(b, 3*time.Minute, func(ctx context.Context) error {
		pods, err := lab.Client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err == nil && len(pods.Items) < want {
			err = fmt.Errorf("%d of %d pods are there", len(pods.Items), want)
		}
		return err
	})
	time.Sleep(5 * time.Second) // the last informer events and attempts
}

func free(b *testing.B, lab *harness.Lab, ns string, node int) {
	b.Helper()
	now := int64(0)
	if err := lab.Client.CoreV1().Pods(ns).Delete(b.Context(), fmt.Sprintf("block-%d", node), metav1.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		b.Fatal(err)
	}
}

// complete frees the last leaf node by node, and says how long after the last one a gang is bound there.
func complete(b *testing.B, lab *harness.Lab, ns string, bound func(string) time.Time) time.Duration {
	b.Helper()
	now := int64(0)
	for node := waitingNodes - 3; node <= waitingNodes; node++ {
		there := metav1.ListOptions{FieldSelector: fmt.Sprintf("spec.nodeName=node-%d", node)}
		if err := lab.Client.CoreV1().Pods(ns).DeleteCollection(b.Context(), metav1.DeleteOptions{GracePeriodSeconds: &now}, there); err != nil {
			b.Fatal(err)
		}
		time.Sleep(2 * time.Second)
	}
	freed := time.Now().Add(-2 * time.Second)
	var last time.Time
	harness.Eventually(b, 30*time.Second, func(ctx context.Context) error {
		pods, err := lab.Client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{FieldSelector: fmt.Sprintf("spec.nodeName=node-%d", waitingNodes)})
		if err != nil {
			return err
		}
		for i := range pods.Items {
			if job := pods.Items[i].Labels["batch.kubernetes.io/job-name"]; job != "" {
				members, err := lab.JobPods(ctx, ns, job)
				if err != nil || harness.BoundCount(members) < 4 {
					return fmt.Errorf("%s is half bound: %v", job, err)
				}
				for j := range members {
					if at := bound(members[j].Name); at.After(last) {
						last = at
					}
				}
				return nil
			}
		}
		return fmt.Errorf("no gang is bound; %s", lab.Reasons(ctx, ns))
	})
	return last.Sub(freed)
}

// follow watches a namespace; what it returns says when a pod was seen bound.
func follow(b *testing.B, lab *harness.Lab, ns string) func(name string) time.Time {
	b.Helper()
	stream := watchPods(b, lab, ns)
	b.Cleanup(stream.Stop)
	var mu sync.Mutex
	seen := map[string]time.Time{}
	go func() {
		for event := range stream.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
				mu.Lock()
				if seen[pod.Name].IsZero() {
					seen[pod.Name] = time.Now()
				}
				mu.Unlock()
			}
		}
	}()
	return func(name string) time.Time {
		mu.Lock()
		defer mu.Unlock()
		return seen[name]
	}
}
