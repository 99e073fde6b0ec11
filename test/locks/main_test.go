// SPDX-License-Identifier: Apache-2.0

// Package locks tries device locks against a real API server, with the rights of the scheduler's own account. What was
// bound is read from a watch of pods, in the order in which the API server wrote it.
package locks

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/frond-scheduler/frond/plugin/locks"
	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/test/harness"
)

var lab *harness.Lab

func TestMain(m *testing.M) {
	harness.Main(m, func(started *harness.Lab) { lab = started })
}

// client has the rights of the scheduler, and a rate limit of its own.
func client(t testing.TB, qps float32) *kubernetes.Clientset {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(lab.Dir, "config", "scheduler.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.Burst = qps, int(2*qps)
	config.ContentType, config.AcceptContentTypes = "application/vnd.kubernetes.protobuf", "application/vnd.kubernetes.protobuf,application/json"
	made, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// start runs the locks of one more scheduler until the test ends.
func start(t testing.TB, qps float32, opts locks.Options) *locks.Locks {
	t.Helper()
	opts.Logger = klog.Background().V(9)
	l, err := locks.New(client(t, qps), opts)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := l.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	harness.Eventually(t, 10*time.Second, func(context.Context) error {
		if !l.Synced() {
			return errors.New("the locks are not synced")
		}
		return nil
	})
	return l
}

// pod that no scheduler looks at.
func pod(t testing.TB, namespace, name string) *corev1.Pod {
	t.Helper()
	made, err := lab.Client.CoreV1().Pods(namespace).Create(t.Context(),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: harness.PodSpec("nobody", 0)}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create pod %s: %v", name, err)
	}
	return made
}

// bind sends a Binding whose preconditions are those of the copy that it is given.
func bind(ctx context.Context, c kubernetes.Interface, pod *corev1.Pod, node string, gpus []string) error {
	return c.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			Annotations: map[string]string{workload.Allocated: strings.Join(gpus, ",")}},
		Target: corev1.ObjectReference{Kind: "Node", Name: node},
	}, metav1.CreateOptions{})
}

func claim(pod *corev1.Pod, gpus ...string) locks.Claimant {
	return locks.Claimant{Pod: pod.UID, Namespace: pod.Namespace, Name: pod.Name, GPUs: gpus}
}

// bound lists bound pods of the namespace.
func bound(namespace string) func() []locks.Holding {
	return func() []locks.Holding {
		list, err := lab.Client.CoreV1().Pods(namespace).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			return nil
		}
		var all []locks.Holding
		for i := range list.Items {
			p := &list.Items[i]
			if p.Spec.NodeName != "" && p.Annotations[workload.Allocated] != "" {
				all = append(all, locks.Holding{Node: p.Spec.NodeName, Claimant: claim(p, strings.Split(p.Annotations[workload.Allocated], ",")...)})
			}
		}
		return all
	}
}

// owners as the Lease says now.
func owners(t testing.TB, node string) string {
	t.Helper()
	lease, err := lab.Client.CoordinationV1().Leases(locks.DefaultNamespace).Get(t.Context(), node, metav1.GetOptions{})
	if err != nil {
		return fmt.Sprint(err)
	}
	return lease.Annotations[locks.OwnersAnnotation]
}
