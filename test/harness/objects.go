// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const gpuResource = "nvidia.com/gpu"

// Namespace makes one for the test and deletes it, with all its pods gone, when the test ends.
func (l *Lab) Namespace(t testing.TB) string {
	t.Helper()
	ctx := t.Context()
	made, err := l.Client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		background := metav1.DeletePropagationBackground
		now := int64(0)
		_ = l.Client.BatchV1().Jobs(made.Name).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
		_ = l.Client.AppsV1().Deployments(made.Name).DeleteCollection(ctx, metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
		for ctx.Err() == nil {
			_ = l.Client.CoreV1().Pods(made.Name).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
			pods, err := l.Client.CoreV1().Pods(made.Name).List(ctx, metav1.ListOptions{})
			if err == nil && len(pods.Items) == 0 {
				break
			}
			time.Sleep(200 * time.Millisecond)
		}
		_ = l.Client.CoreV1().Namespaces().Delete(ctx, made.Name, metav1.DeleteOptions{})
	})
	return made.Name
}

// Gang describes an annotated Job.
type Gang struct {
	Name        string
	Pods        int32
	GPUs        int64 // of a pod
	RunSeconds  int   // 0: until deleted
	Annotations map[string]string
}

func (g Gang) job(namespace string) *batchv1.Job {
	annotations := map[string]string{"topology.scheduler/gpu-count": strconv.FormatInt(int64(g.Pods)*g.GPUs, 10)}
	for key, value := range g.Annotations {
		annotations[key] = value
	}
	indexed := batchv1.IndexedCompletion
	podAnnotations := map[string]string{}
	if g.RunSeconds > 0 {
		podAnnotations["frond.lab/run-seconds"] = strconv.Itoa(g.RunSeconds)
	}
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: g.Name, Namespace: namespace, Annotations: annotations},
		Spec: batchv1.JobSpec{
			Parallelism: &g.Pods, Completions: &g.Pods, CompletionMode: &indexed, BackoffLimit: new(int32),
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Annotations: podAnnotations},
				Spec:       PodSpec(Profile, g.GPUs),
			},
		},
	}
}

// PodSpec is one container with that many GPUs.
func PodSpec(scheduler string, gpus int64) corev1.PodSpec {
	container := corev1.Container{Name: "main", Image: "none"}
	if gpus > 0 {
		container.Resources.Limits = corev1.ResourceList{gpuResource: *resource.NewQuantity(gpus, resource.DecimalSI)}
	}
	zero := int64(0)
	return corev1.PodSpec{
		SchedulerName: scheduler, RestartPolicy: corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &zero,
		Containers: []corev1.Container{container},
	}
}

// Submit creates the Job.
func (l *Lab) Submit(t testing.TB, namespace string, g Gang) {
	t.Helper()
	if _, err := l.Client.BatchV1().Jobs(namespace).Create(t.Context(), g.job(namespace), metav1.CreateOptions{}); err != nil {
		t.Fatalf("create Job %s: %v", g.Name, err)
	}
}

// Eventually polls until done says nil, or fails the test with what it said last.
func Eventually(t testing.TB, limit time.Duration, done func(ctx context.Context) error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := done(t.Context())
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("not after %s: %v", limit, err)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// JobPods are the pods of a Job by rank annotation (bound ones) or name.
func (l *Lab) JobPods(ctx context.Context, namespace, job string) ([]corev1.Pod, error) {
	list, err := l.Client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name=" + job})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list.Items, func(a, b corev1.Pod) int { return completionIndex(&a) - completionIndex(&b) })
	return list.Items, nil
}

func completionIndex(pod *corev1.Pod) int {
	index, err := strconv.Atoi(pod.Labels["batch.kubernetes.io/job-completion-index"])
	if err != nil {
		return -1
	}
	return index
}

// Bound waits until all pods of a Job have a node and returns them by rank.
func (l *Lab) Bound(t testing.TB, namespace string, g Gang) []corev1.Pod {
	t.Helper()
	var pods []corev1.Pod
	Eventually(t, time.Minute, func(ctx context.Context) (err error) {
		if pods, err = l.JobPods(ctx, namespace, g.Name); err != nil {
			return err
		}
		if count := BoundCount(pods); count != int(g.Pods) {
			return fmt.Errorf("%s: %d of %d pods bound; %s", g.Name, count, g.Pods, l.Reasons(ctx, namespace))
		}
		return nil
	})
	return pods
}

// BoundCount says how many have a node.
func BoundCount(pods []corev1.Pod) int {
	count := 0
	for i := range pods {
		if pods[i].Spec.NodeName != "" {
			count++
		}
	}
	return count
}

// Reasons are the messages of the namespace's warnings, for failure texts and for tests about events.
func (l *Lab) Reasons(ctx context.Context, namespace string) string {
	events, err := l.Client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err.Error()
	}
	var texts []string
	for _, event := range events.Items {
		if event.Type == corev1.EventTypeWarning {
			texts = append(texts, fmt.Sprintf("%s/%s %s: %s", event.InvolvedObject.Kind, event.InvolvedObject.Name, event.Reason, event.Message))
		}
	}
	return strings.Join(texts, "\n")
}

// WaitReason waits for a Warning in the namespace that contains every part.
func (l *Lab) WaitReason(t testing.TB, namespace string, parts ...string) {
	t.Helper()
	Eventually(t, 30*time.Second, func(ctx context.Context) error {
		texts := l.Reasons(ctx, namespace)
		for line := range strings.SplitSeq(texts, "\n") {
			missing := slices.IndexFunc(parts, func(part string) bool { return !strings.Contains(line, part) })
			if missing < 0 {
				return nil
			}
		}
		return fmt.Errorf("no event with %q; there are:\n%s", parts, texts)
	})
}

// Number is the trailing number of a generated name: leaf-12 → 12.
func Number(name string) int {
	n, err := strconv.Atoi(name[strings.LastIndex(name, "-")+1:])
	if err != nil {
		return -1
	}
	return n
}

// Cordon sets spec.unschedulable of nodes first … last and undoes it when the test ends.
func (l *Lab) Cordon(t testing.TB, first, last int) {
	t.Helper()
	set := func(ctx context.Context, on bool) error {
		for n := first; n <= last; n++ {
			patch := fmt.Appendf(nil, `{"spec":{"unschedulable":%t}}`, on)
			_, err := l.Client.CoreV1().Nodes().Patch(ctx, fmt.Sprintf("node-%d", n), types.MergePatchType, patch, metav1.PatchOptions{})
			if err != nil {
				return err
			}
		}
		return nil
	}
	if err := set(t.Context(), true); err != nil {
		t.Fatalf("cordon: %v", err)
	}
	t.Cleanup(func() {
		if err := set(context.Background(), false); err != nil {
			t.Errorf("uncordon: %v", err)
		}
	})
}
