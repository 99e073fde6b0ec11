// SPDX-License-Identifier: Apache-2.0

package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Deploy runs a Deployment to the last bound pod and says how long that took.
func (l *Lab) Deploy(t testing.TB, ns string, replicas int32, spec corev1.PodSpec) time.Duration {
	t.Helper()
	labels := map[string]string{"app": "web"}
	spec.RestartPolicy = corev1.RestartPolicyAlways
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: ns},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
		},
	}
	begin := time.Now()
	if _, err := l.Client.AppsV1().Deployments(ns).Create(t.Context(), deployment, metav1.CreateOptions{}); err != nil {
		t.Fatalf("create the Deployment: %v", err)
	}
	Eventually(t, 2*time.Minute, func(ctx context.Context) error {
		pods, err := l.Client.CoreV1().Pods(ns).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return err
		}
		if count := BoundCount(pods.Items); count != int(replicas) {
			return fmt.Errorf("%d of %d pods bound; %s", count, replicas, l.Reasons(ctx, ns))
		}
		return nil
	})
	return time.Since(begin)
}

// StartScheduler runs one more scheduler with these profiles, and the account of the lab's, until the test ends, and returns its port.
func (l *Lab) StartScheduler(t testing.TB, profiles string) int {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	text := "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nleaderElection: {leaderElect: false}\n" +
		"clientConnection: {kubeconfig: " + filepath.Join(l.Dir, "config", "scheduler.kubeconfig") + ", qps: 1000, burst: 2000}\nprofiles:" + profiles
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return l.launch(t, "scheduler", path, nil, false).Port
}

// Scrape reads from a scheduler's own port with the lab's admin certificate; its serving certificate is self-signed.
func (l *Lab) Scrape(ctx context.Context, port int, path string) ([]byte, error) {
	direct := rest.CopyConfig(l.Config)
	direct.Host = fmt.Sprintf("https://127.0.0.1:%d", port)
	direct.TLSClientConfig.CAData, direct.TLSClientConfig.CAFile = nil, ""
	direct.TLSClientConfig.Insecure = true
	own, err := kubernetes.NewForConfig(direct)
	if err != nil {
		return nil, err
	}
	return own.RESTClient().Get().AbsPath(path).DoRaw(ctx)
}

// Tail is the end of a program's output, for failure texts.
func Tail(out []byte) string {
	if len(out) > 1500 {
		out = out[len(out)-1500:]
	}
	return string(out)
}
