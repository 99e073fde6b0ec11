// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	authv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	applyv1 "k8s.io/client-go/applyconfigurations/coordination/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/test/harness"
)

func tokenFile(node string) string {
	return filepath.Join(lab.Dir, "config", "frond-agent-"+node+".token")
}

// metric of an agent.
func metric(t *testing.T, node, name string) float64 {
	t.Helper()
	agent, err := lab.Running("frond-agent-" + node)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/metrics", agent.Port), nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	page, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` (\S+)$`).FindSubmatch(page)
	if match == nil {
		t.Fatalf("the agent of %s has no metric %s", node, name)
	}
	value, err := strconv.ParseFloat(string(match[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

// request a token of the agents' account, bound to a node or to nothing.
func request(t *testing.T, node string) string {
	t.Helper()
	asked := &authv1.TokenRequest{}
	if node != "" {
		object, err := lab.Client.CoreV1().Nodes().Get(t.Context(), node, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		asked.Spec.BoundObjectRef = &authv1.BoundObjectReference{Kind: "Node", APIVersion: "v1", Name: node, UID: object.UID}
	}
	token, err := lab.Client.CoreV1().ServiceAccounts("frond-system").CreateToken(t.Context(), "frond-agent", asked, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return token.Status.Token
}

// A token that the API server does not take any more, then a new one in its place: what happened meanwhile is reported.
func TestARotatedTokenIsTakenUp(t *testing.T) {
	node := nodeOfTokens
	good, err := os.ReadFile(tokenFile(node))
	if err != nil {
		t.Fatal(err)
	}
	defer replace(t, tokenFile(node), string(good))
	refused := metric(t, node, `frond_agent_requests_total{answer="unauthorized"}`)
	replace(t, tokenFile(node), string(good[:len(good)-20])+"AAAAAAAAAAAAAAAAAAAA")
	told := seen(t, node, sick(5))
	describe(t, node, "xid 5 79")
	harness.Eventually(t, 20*time.Second, func(context.Context) error {
		if metric(t, node, `frond_agent_requests_total{answer="unauthorized"}`) <= refused {
			return errNotYet
		}
		return nil
	})
	if device(report(t, node), 5).Health != apis.Healthy {
		t.Error("it was reported with a token that is not valid")
	}
	replace(t, tokenFile(node), request(t, node))
	wait(t, told, "the report with the new token")
	if reason := device(report(t, node), 5).Reason; reason != "XID 79" {
		t.Errorf("reason %q", reason)
	}
}

// What an agent's account may do: its own node's object, and nothing else. A token that is bound to no node may not even that.
func TestAnAgentWritesItsOwnNodeOnly(t *testing.T) {
	for _, test := range []struct {
		token, object string
		allowed       bool
	}{{"node-1", "node-1", true}, {"node-1", "node-2", false}, {"node-1", "node-of-nobody", false}, {"", "node-1", false}} {
		config := rest.AnonymousClientConfig(lab.Config)
		config.BearerToken = request(t, test.token)
		client := dynamic.NewForConfigOrDie(config).Resource(apis.GpuNodeStatuses)
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(apis.GPU.WithKind(apis.KindGpuNodeStatus))
		object.SetName(test.object)
		options := metav1.ApplyOptions{FieldManager: "test", Force: true, DryRun: []string{metav1.DryRunAll}}
		_, err := client.Apply(t.Context(), test.object, object, options)
		if test.allowed != (err == nil) || err != nil && !apierrors.IsForbidden(err) {
			t.Errorf("token of %q, object %q: %v", test.token, test.object, err)
		}
		if test.object == "node-of-nobody" {
			continue
		}
		object.Object["status"] = map[string]any{"heartbeat": "2026-01-02T15:04:05Z"}
		_, err = client.ApplyStatus(t.Context(), test.object, object, options)
		if test.allowed != (err == nil) || err != nil && !apierrors.IsForbidden(err) {
			t.Errorf("token of %q, status of %q: %v", test.token, test.object, err)
		}
		if err := client.Delete(t.Context(), test.object, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); !apierrors.IsForbidden(err) {
			t.Errorf("an agent may delete: %v", err)
		}
		if _, err := client.List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("an agent may list: %v", err)
		}
	}
}

// The namespace has the scheduler's locks and its election as well: an agent's account writes the Lease of its own node, with
// its label, and reads, changes or deletes no other.
func TestAnAgentRenewsItsOwnLeaseOnly(t *testing.T) {
	label := map[string]string{apis.HeartbeatLabel: "true"}
	for _, test := range []struct {
		token, namespace, lease string
		labels                  map[string]string
		allowed                 bool
	}{
		{"node-1", "frond-system", "gns-node-1", label, true},
		{"node-1", "frond-system", "gns-node-1", nil, false},
		{"node-1", "frond-system", "gns-node-2", label, false},
		{"node-1", "frond-system", "node-1", label, false},
		{"node-1", "frond-system", "frond-scheduler", label, false},
		{"node-1", "frond-system", "gns-node-of-nobody", label, false},
		{"node-1", "kube-node-lease", "gns-node-1", label, false},
		{"", "frond-system", "gns-node-1", label, false},
	} {
		config := rest.AnonymousClientConfig(lab.Config)
		config.BearerToken = request(t, test.token)
		leases := kubernetes.NewForConfigOrDie(config).CoordinationV1().Leases(test.namespace)
		lease := applyv1.Lease(test.lease, test.namespace).WithLabels(test.labels).WithSpec(applyv1.LeaseSpec().WithHolderIdentity("test"))
		_, err := leases.Apply(t.Context(), lease, metav1.ApplyOptions{FieldManager: "frond-agent", Force: true, DryRun: []string{metav1.DryRunAll}})
		if test.allowed != (err == nil) || err != nil && !apierrors.IsForbidden(err) {
			t.Errorf("%+v: %v", test, err)
		}
		for verb, err := range map[string]error{
			"get":    second(leases.Get(t.Context(), test.lease, metav1.GetOptions{})),
			"list":   second(leases.List(t.Context(), metav1.ListOptions{})),
			"delete": leases.Delete(t.Context(), test.lease, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}),
		} {
			if !apierrors.IsForbidden(err) {
				t.Errorf("%+v: an agent may %s: %v", test, verb, err)
			}
		}
	}
}

func second[T any](_ T, err error) error { return err }

// What users are given to apply is what the API server takes.
func TestManifestsAreTaken(t *testing.T) {
	examples, err := filepath.Glob(filepath.Join(lab.Root, "manifests", "examples", "*.yaml"))
	if err != nil || len(examples) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	commands := [][]string{{"-k", filepath.Join(lab.Root, "manifests", "agent")}}
	for _, path := range examples {
		commands = append(commands, []string{"-n", "default", "-f", path})
	}
	for _, args := range commands {
		args = append([]string{"--kubeconfig", lab.Kubeconfig(), "apply", "--server-side", "--force-conflicts", "--dry-run=server"}, args...)
		if out, err := exec.CommandContext(t.Context(), lab.Program("kubectl"), args...).CombinedOutput(); err != nil || strings.Contains(string(out), "Warning") {
			t.Errorf("kubectl %s: %v\n%s", strings.Join(args[2:], " "), err, out)
		}
	}
}
