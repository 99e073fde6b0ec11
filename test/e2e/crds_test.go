// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/frond-scheduler/frond/plugin/apis"
	"github.com/frond-scheduler/frond/test/harness"
)

// kubectl runs it as the lab's admin and returns both outputs together.
func kubectl(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, lab.Program("kubectl"), append([]string{"--kubeconfig", lab.Kubeconfig()}, args...)...)
	command.Stdin = strings.NewReader(stdin)
	out, err := command.CombinedOutput()
	return string(out), err
}

func mustKubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := kubectl(t, stdin, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// What a user leaves out of a claim is there, in words, after the API server has it.
func TestClaimDefaults(t *testing.T) {
	for _, c := range []struct{ name, spec, want string }{
		{"no spec", "", `{"devices":{"exclusivity":"Exclusive","policy":"contiguous"},"topology":{"locality":"any","mode":"Preferred"}}`},
		{"count alone", "spec: {devices: {count: 4}}", `{"devices":{"count":4,"exclusivity":"Exclusive","policy":"contiguous"},"topology":{"locality":"any","mode":"Preferred"}}`},
		{"nothing of it", "spec: {devices: {policy: preferIds, preferIds: [3, '4', GPU-1, node-1-gpu-15], exclusivity: Exclusive}, topology: {mode: Ignore, locality: nvlink}}",
			`{"devices":{"exclusivity":"Exclusive","policy":"preferIds","preferIds":[3,"4","GPU-1","node-1-gpu-15"]},"topology":{"locality":"nvlink","mode":"Ignore"}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			claim := "apiVersion: gpu.scheduling/v1\nkind: GpuClaim\nmetadata: {name: claim}\n" + c.spec
			got := mustKubectl(t, claim, "create", "--dry-run=server", "-f", "-", "-o", "jsonpath={.spec}")
			if got != c.want {
				t.Errorf("spec is\n%s, want\n%s", got, c.want)
			}
		})
	}
}

// Every value that makes no sense is refused at the door, with a message that names its field.
func TestBadValuesAreRefused(t *testing.T) {
	long := strings.Repeat("x", 300)
	many := strings.Repeat("a,", 16) + "a"
	device := func(fields string) string {
		return "status: {devices: [{id: a, index: 0, health: Healthy, " + fields + "}]}"
	}
	devices := make([]string, 17)
	for i := range devices {
		devices[i] = fmt.Sprintf("{id: gpu-%d, index: %d, health: Healthy}", i, i%16)
	}
	var labels strings.Builder
	for i := range 17 {
		fmt.Fprintf(&labels, "l%d: x, ", i)
	}
	for _, c := range []struct{ kind, body, field, says string }{
		{"GpuClaim", "spec: {devices: {count: 0}}", "spec.devices.count", "greater than or equal to 1"},
		{"GpuClaim", "spec: {devices: {count: 17}}", "spec.devices.count", "less than or equal to 16"},
		{"GpuClaim", "spec: {devices: {count: many}}", "spec.devices.count", "must be of type integer"},
		{"GpuClaim", "spec: {devices: {policy: fast}}", "spec.devices.policy", `"contiguous", "spread", "preferIds"`},
		{"GpuClaim", "spec: {devices: {policy: preferIds}}", "spec.devices.preferIds", "is needed with policy preferIds"},
		{"GpuClaim", "spec: {devices: {policy: spread, preferIds: [1]}}", "spec.devices.preferIds", "with policy preferIds only"},
		{"GpuClaim", "spec: {devices: {policy: preferIds, preferIds: []}}", "spec.devices.preferIds", "at least 1 items"},
		{"GpuClaim", "spec: {devices: {policy: preferIds, preferIds: [" + many + "]}}", "spec.devices.preferIds", "at most 16 items"},
		{"GpuClaim", "spec: {devices: {policy: preferIds, preferIds: [1, 2, 1]}}", "spec.devices.preferIds", "lists a GPU twice"},
		{"GpuClaim", "spec: {devices: {policy: preferIds, preferIds: [1, '1']}}", "spec.devices.preferIds", "lists a GPU twice"},
		{"GpuClaim", "spec: {devices: {policy: preferIds, preferIds: [16]}}", "spec.devices.preferIds[0]", "less than or equal to 15"},
		{"GpuClaim", "spec: {devices: {policy: preferIds, preferIds: [-1]}}", "spec.devices.preferIds[0]", "greater than or equal to 0"},
		{"GpuClaim", "spec: {devices: {policy: preferIds, preferIds: ['16']}}", "spec.devices.preferIds[0]", "is not an index from 0 to 15"},
		{"GpuClaim", "spec: {devices: {policy: preferIds, preferIds: ['a b']}}", "spec.devices.preferIds[0]", "should match"},
		{"GpuClaim", "spec: {devices: {policy: preferIds, preferIds: [" + long + "]}}", "spec.devices.preferIds[0]", "not be more than 260"},
		{"GpuClaim", "spec: {devices: {exclusivity: Alone}}", "spec.devices.exclusivity", `"Exclusive", "Shared", "MIG"`},
		{"GpuClaim", "spec: {devices: {exclusivity: Shared, memoryMiB: 4096, computePercent: 50}}", "spec.devices.exclusivity", "Shared is not supported yet"},
		{"GpuClaim", "spec: {devices: {exclusivity: MIG, migProfile: 1g.5gb}}", "spec.devices.exclusivity", "MIG is not supported yet"},
		{"GpuClaim", "spec: {devices: {memoryMiB: 4096}}", "spec.devices.memoryMiB", "with exclusivity Shared only"},
		{"GpuClaim", "spec: {devices: {computePercent: 50}}", "spec.devices.computePercent", "with exclusivity Shared only"},
		{"GpuClaim", "spec: {devices: {migProfile: 1g.5gb}}", "spec.devices.migProfile", "with exclusivity MIG only"},
		{"GpuClaim", "spec: {devices: {memoryMiB: 0}}", "spec.devices.memoryMiB", "greater than or equal to 1"},
		{"GpuClaim", "spec: {devices: {computePercent: 101}}", "spec.devices.computePercent", "less than or equal to 100"},
		{"GpuClaim", "spec: {devices: {migProfile: half}}", "spec.devices.migProfile", "should match"},
		{"GpuClaim", "spec: {devices: {colour: red}}", "spec.devices.colour", "unknown field"},
		{"GpuClaim", "spec: {topology: {mode: Maybe}}", "spec.topology.mode", `"Required", "Preferred", "Ignore"`},
		{"GpuClaim", "spec: {topology: {locality: here}}", "spec.topology.locality", `"any", "same-node", "same-socket", "nvlink"`},
		{"GpuClaim", "spec: {topology: {minBandwidthGBps: -1}}", "spec.topology.minBandwidthGBps", "greater than or equal to 0"},
		{"GpuClaim", "spec: {topology: {minBandwidthGBps: 1000001}}", "spec.topology.minBandwidthGBps", "less than or equal to 1000000"},
		{"GpuClaim", "spec: {selector: {matchLabels: {'not a key': x}}}", "spec.selector.matchLabels", "not a label key"},
		{"GpuClaim", "spec: {selector: {matchLabels: {zone: 'a b'}}}", "spec.selector.matchLabels.zone", "should match"},
		{"GpuClaim", "spec: {selector: {matchLabels: {" + labels.String() + "}}}", "spec.selector.matchLabels", "at most 16"},
		{"GpuClaim", "spec: {gangRef: My_Group}", "spec.gangRef", "should match"},
		{"GpuClaim", "spec: {gangRef: ''}", "spec.gangRef", "at least 1 chars"},

		{"GpuNodeStatus", "spec: {nodeName: another}", "spec.nodeName", "must be the name of the object"},
		{"GpuNodeStatus", "status: {total: 2, devices: [{id: a, index: 0, health: Healthy}]}", "status.total", "must be the number of devices"},
		{"GpuNodeStatus", "status: {total: 17}", "status.total", "less than or equal to 16"},
		{"GpuNodeStatus", "status: {heartbeat: yesterday}", "status.heartbeat", "must be of type date-time"},
		{"GpuNodeStatus", "status: {devices: [" + strings.Join(devices, ", ") + "]}", "status.devices", "at most 16 items"},
		{"GpuNodeStatus", "status: {devices: [{id: a, index: 0, health: Healthy}, {id: a, index: 1, health: Healthy}]}", "status.devices[1]", "Duplicate value"},
		{"GpuNodeStatus", "status: {devices: [{id: a, index: 0, health: Healthy}, {id: b, index: 0, health: Healthy}]}", "status.devices", "each once"},
		{"GpuNodeStatus", "status: {devices: [{id: a, index: 1, health: Healthy}]}", "status.devices", "0 to n - 1"},
		{"GpuNodeStatus", "status: {devices: [{id: a, index: 0}]}", "status.devices[0].health", "Required value"},
		{"GpuNodeStatus", "status: {devices: [{id: a, index: 0, health: Fine}]}", "status.devices[0].health", `"Healthy", "Unhealthy", "Unknown"`},
		{"GpuNodeStatus", "status: {devices: [{id: 'a b', index: 0, health: Healthy}]}", "status.devices[0].id", "should match"},
		{"GpuNodeStatus", device("numaNode: -1"), "status.devices[0].numaNode", "greater than or equal to 0"},
		{"GpuNodeStatus", device("pciBusId: slot-3"), "status.devices[0].pciBusId", "should match"},
		{"GpuNodeStatus", device("utilization: 101"), "status.devices[0].utilization", "less than or equal to 100"},
		{"GpuNodeStatus", device("bandwidthGBps: -5"), "status.devices[0].bandwidthGBps", "greater than or equal to 0"},
		{"GpuNodeStatus", device("links: [{peer: 0, bandwidthGBps: 1}]"), "status.devices", "the device itself or no device"},
		{"GpuNodeStatus", device("links: [{peer: 3, bandwidthGBps: 1}]"), "status.devices", "the device itself or no device"},
		{"GpuNodeStatus", device("links: [{peer: 1, bandwidthGBps: 65536}]"), "status.devices[0].links[0].bandwidthGBps", "less than or equal to 65535"},
		{"GpuNodeStatus", device("links: [{peer: 1, kind: Rope, bandwidthGBps: 1}]"), "status.devices[0].links[0].kind", "supported values"},
		{"GpuNodeStatus", device("inUseBy: [a/b/c]"), "status.devices[0].inUseBy[0]", "should match"},

		{"SchedulerConfig", "spec: {scoringPreset: fast}", "spec.scoringPreset", `"training", "agents", "utilization"`},
		{"SchedulerConfig", "spec: {scoringWeights: {topologyAlignment: -3}}", "spec.scoringWeights.topologyAlignment", "greater than or equal to 0"},
		{"SchedulerConfig", "spec: {scoringWeights: {topologyAlignment: 1.5}}", "spec.scoringWeights.topologyAlignment", "less than or equal to 1"},
		{"SchedulerConfig", "spec: {scoringWeights: {luck: 1}}", "spec.scoringWeights.luck", "unknown field"},
		{"SchedulerConfig", "spec: {topologyConstraints: {maxNodesPerLeaf: 0}}", "spec.topologyConstraints.maxNodesPerLeaf", "greater than or equal to 1"},
		{"TopologySchedulerConfig", "spec: {topologyConstraints: {maxGPUsPerLeaf: 2097153}}", "spec.topologyConstraints.maxGPUsPerLeaf", "less than or equal to 2097152"},
		{"TopologySchedulerConfig", "spec: {scoringWeights: {modelCache: much}}", "spec.scoringWeights.modelCache", "must be of type number"},
	} {
		t.Run(c.kind+" "+c.field+" "+c.says, func(t *testing.T) {
			err := tryObject(t, c.kind, "bad", c.body)
			if err == nil {
				t.Fatal("it was taken")
			}
			if !strings.Contains(err.Error(), c.field) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("refused with %q, want %q and %q in it", err, c.field, c.says)
			}
		})
	}
}

// tryObject creates an object without a trace and, because a status is not read on creation, writes its status too.
func tryObject(t *testing.T, kind, name, body string) error {
	t.Helper()
	resource := map[string]schema.GroupVersionResource{
		apis.KindGpuClaim: apis.GpuClaims, apis.KindGpuNodeStatus: apis.GpuNodeStatuses,
		apis.KindSchedulerConfig: apis.SchedulerConfigs, apis.KindTopologySchedulerConfig: apis.TopologySchedulerConfigs,
	}[kind]
	content := map[string]any{}
	if err := yaml.Unmarshal([]byte(body), &content); err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{Object: content}
	object.SetAPIVersion(resource.GroupVersion().String())
	object.SetKind(kind)
	object.SetName(name)
	var target dynamic.ResourceInterface = dynamic.NewForConfigOrDie(lab.Config).Resource(resource)
	if kind == apis.KindGpuClaim {
		target = dynamic.NewForConfigOrDie(lab.Config).Resource(resource).Namespace(metav1.NamespaceDefault)
	}
	if content["status"] == nil {
		_, err := target.Create(t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict})
		return err
	}
	made, err := target.Create(t.Context(), object, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
	if err != nil {
		return err
	}
	defer func() {
		if err := target.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}()
	made.Object["status"] = content["status"]
	_, err = target.UpdateStatus(t.Context(), made, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
	return err
}

const report = `
apiVersion: gpu.scheduling/v1
kind: GpuNodeStatus
metadata: {name: gns-test}
status:
  total: 2
  heartbeat: "2026-01-02T03:04:05Z"
  devices:
  - {id: GPU-1, index: 0, model: NVIDIA H100, health: Healthy, numaNode: 0, island: 0, links: [{peer: 1, kind: NVSwitch, bandwidthGBps: 450}], inUseBy: [default/pod]}
  - {id: GPU-2, index: 1, model: NVIDIA H100, health: Unhealthy, numaNode: 1, island: 0, links: [{peer: 0, kind: NVSwitch, bandwidthGBps: 450}]}
`

// kubectl shows what matters under the short names, and who may write the spec does not thereby write the status.
func TestKubectlShowsClaimsAndReports(t *testing.T) {
	ns := lab.Namespace(t)
	mustKubectl(t, "apiVersion: gpu.scheduling/v1\nkind: GpuClaim\nmetadata: {name: mine}\nspec: {devices: {count: 4, policy: spread}}\nstatus: {phase: Bound, nodeName: node-1}", "apply", "-n", ns, "-f", "-")
	out := mustKubectl(t, "", "get", "gclaim", "-n", ns)
	wantFields(t, out, "NAME", "PHASE", "COUNT", "POLICY", "NODE", "POD", "AGE")
	wantFields(t, out, "mine", "4", "spread")
	if strings.Contains(out, "node-1") || strings.Contains(out, "Bound") {
		t.Errorf("a status given with the spec was taken:\n%s", out)
	}
	wantFields(t, mustKubectl(t, "", "get", "gclaim", "-n", ns, "-o", "wide"), "GPUS", "MESSAGE")

	t.Cleanup(func() { mustKubectlAfter(t, "delete", "gns", "gns-test") })
	mustKubectl(t, report, "apply", "-f", "-")
	if out := mustKubectl(t, "", "get", "gns", "gns-test", "-o", "jsonpath={.status}"); out != "" {
		t.Errorf("a status given with the object was taken: %s", out)
	}
	mustKubectl(t, report, "apply", "--server-side", "--field-manager=agent", "--subresource=status", "-f", "-")
	out = mustKubectl(t, "", "get", "gns", "gns-test")
	wantFields(t, out, "NAME", "GPUS", "MODEL", "FIRSTUNHEALTHY", "HEARTBEAT", "AGE")
	wantFields(t, out, "gns-test", "2", "NVIDIA", "H100", "1")
	mustKubectl(t, "", "patch", "gns", "gns-test", "--type=merge", "-p", `{"status":{"total":0,"devices":[]}}`)
	if got := mustKubectl(t, "", "get", "gns", "gns-test", "-o", "jsonpath={.status.total}"); got != "2" {
		t.Errorf("the status was written through the object: total is %s", got)
	}
}

func mustKubectlAfter(t *testing.T, args ...string) {
	out, err := exec.Command(lab.Program("kubectl"), append([]string{"--kubeconfig", lab.Kubeconfig()}, args...)...).CombinedOutput()
	if err != nil {
		t.Errorf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// wantFields: some line holds these words in this order.
func wantFields(t *testing.T, out string, want ...string) {
	t.Helper()
	for line := range strings.Lines(out) {
		rest := want
		for _, word := range strings.Fields(line) {
			if len(rest) > 0 && word == rest[0] {
				rest = rest[1:]
			}
		}
		if len(rest) == 0 {
			return
		}
	}
	t.Errorf("no line with %q in\n%s", want, out)
}

// The scheduler may do what it needs and no more; who may edit a namespace may use claims and groups in it.
func TestRights(t *testing.T) {
	ns := lab.Namespace(t)
	for user, role := range map[string]string{"dev": "edit", "guest": "view"} {
		mustKubectl(t, "", "create", "rolebinding", user, "--clusterrole="+role, "--user="+user, "-n", ns)
	}
	const scheduler = "system:serviceaccount:frond-system:frond-scheduler"
	for _, c := range []struct {
		user, verbs string
		resource    schema.GroupVersionResource
		part        string
		may         bool
	}{
		{scheduler, "get list watch", apis.GpuClaims, "", true},
		{scheduler, "get patch update", apis.GpuClaims, "status", true},
		{scheduler, "create update patch delete", apis.GpuClaims, "", false},
		{scheduler, "get list watch", apis.PodGroups, "", true},
		{scheduler, "get patch update", apis.PodGroups, "status", true},
		{scheduler, "create update patch delete", apis.PodGroups, "", false},
		{scheduler, "get list watch", apis.GpuNodeStatuses, "", true},
		{scheduler, "patch", apis.GpuNodeStatuses, "status", true},
		{scheduler, "create update patch delete", apis.GpuNodeStatuses, "", false},
		{scheduler, "get list watch", apis.SchedulerConfigs, "", true},
		{scheduler, "get list watch", apis.TopologySchedulerConfigs, "", true},
		{scheduler, "patch", apis.SchedulerConfigs, "status", true},
		{scheduler, "patch", apis.TopologySchedulerConfigs, "status", true},
		{scheduler, "create update patch delete", apis.SchedulerConfigs, "", false},
		{"dev", "get list watch create update patch delete", apis.GpuClaims, "", true},
		{"dev", "get list watch create update patch delete", apis.PodGroups, "", true},
		{"dev", "update patch", apis.GpuClaims, "status", false},
		{"dev", "update patch", apis.PodGroups, "status", false},
		{"guest", "get list watch", apis.GpuClaims, "", true},
		{"guest", "create update patch delete", apis.GpuClaims, "", false},
		{"guest", "create", apis.SchedulerConfigs, "", false},
	} {
		for verb := range strings.FieldsSeq(c.verbs) {
			harness.Eventually(t, 10*time.Second, func(ctx context.Context) error { // roles are put together by a controller
				review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
					User: c.user, ResourceAttributes: &authorizationv1.ResourceAttributes{
						Namespace: ns, Verb: verb, Group: c.resource.Group, Version: c.resource.Version, Resource: c.resource.Resource, Subresource: c.part,
					},
				}}
				answer, err := lab.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
				if err == nil && answer.Status.Allowed != c.may {
					err = fmt.Errorf("%s may %s %s/%s: %t", c.user, verb, c.resource.Resource, c.part, answer.Status.Allowed)
				}
				return err
			})
		}
	}
}

// Groups of files that are read by programs and never sent to an API server.
var programGroups = []string{"kubescheduler.config.k8s.io/", "kwok.x-k8s.io/", "config.kwok.x-k8s.io/", "kustomize.config.k8s.io/"}

// Everything under manifests that is a Kubernetes object is one that the API server takes.
func TestEveryManifestApplies(t *testing.T) {
	root := filepath.Join(lab.Root, "manifests")
	args, objects := []string{"apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-o", "name"}, 0
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		count := 0
		for _, document := range bytes.Split(data, []byte("\n---\n")) {
			var kind metav1.TypeMeta
			if err := yaml.Unmarshal(document, &kind); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			if !hasPrefix(kind.APIVersion, programGroups) {
				count++
			}
		}
		if count > 0 {
			args = append(args, "-f", path)
			objects += count
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	out := mustKubectl(t, "", args...)
	if got := strings.Count(out, "\n"); got != objects {
		t.Errorf("%d objects were taken, manifests holds %d:\n%s", got, objects, out)
	}
	mustKubectl(t, "", "apply", "--server-side", "--force-conflicts", "--dry-run=server", "-k", root)
}

func hasPrefix(text string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}
