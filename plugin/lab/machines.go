// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/frond-scheduler/frond/plugin/apis"
)

// A node may stand for a machine. Machines lie beside the programs in bin/machines: a driver that plays any of them, and
// for each kind its description for that driver and for hwloc. What such a node has is what the real probe finds on its
// machine. The description of a node's own machine is DIR/machines/NODE.machine; where an agent runs, a line that is
// added there is seen by it, "lost 3" for example.

const (
	machineDriver = "libnvidia-ml.so.1"
	machineEnv    = "FROND_FAKE_NVML" // tells the driver which machine it is
	probePatience = 30 * time.Second
	probeWorkers  = 4
)

// share is a part of the fabric that is of one kind.
type share struct {
	kind  string
	count int // -1: all that are left
}

// parseMachines reads "dgx-h100=16,dgx-a100=8,pcie-4".
func parseMachines(text string) ([]share, error) {
	var shares []share
	for entry := range strings.SplitSeq(text, ",") {
		kind, number, counted := strings.Cut(entry, "=")
		part := share{kind: kind, count: -1}
		if counted {
			count, err := strconv.Atoi(number)
			if err != nil || count < 1 {
				return nil, fmt.Errorf("must be like dgx-h100=16,dgx-a100=8, got %q", entry)
			}
			part.count = count
		}
		if kind == "" || kind != filepath.Base(kind) {
			return nil, fmt.Errorf("must be like dgx-h100=16,dgx-a100=8, got %q", entry)
		}
		if len(shares) > 0 && shares[len(shares)-1].count < 0 {
			return nil, fmt.Errorf("%q takes all that are left, so nothing can follow it", shares[len(shares)-1].kind)
		}
		shares = append(shares, part)
	}
	return shares, nil
}

// deal gives nodes their machines, in fabric order, and the first of these nodes their agents.
func (l Lab) deal(nodes []FabricNode, machines string, agents int) error {
	shares, err := parseMachines(machines)
	if err != nil {
		return inputErrorf("--machines: %w", err)
	}
	known, err := l.machineKinds()
	if err != nil {
		return err
	}
	next := 0
	for _, part := range shares {
		if !slices.Contains(known, part.kind) {
			return inputErrorf("--machines: must be of %s, got %q", strings.Join(known, ", "), part.kind)
		}
		if part.count < 0 {
			part.count = len(nodes) - next
		}
		if next+part.count > len(nodes) {
			return inputErrorf("--machines: must not be more than the %d nodes, got %s", len(nodes), machines)
		}
		for range part.count {
			nodes[next].Machine = part.kind
			nodes[next].Agent = next < agents
			next++
		}
	}
	if agents < 0 || agents > next {
		return inputErrorf("--agents: must be 0 to %d, the nodes with machines, got %d", next, agents)
	}
	return nil
}

func (l Lab) machineFile(name string) string { return filepath.Join(l.Bin, "machines", name) }

func (l Lab) machineKinds() ([]string, error) {
	paths, err := filepath.Glob(l.machineFile("*.machine"))
	if err != nil {
		return nil, fmt.Errorf("look for machines: %w", err)
	}
	for _, needed := range []string{l.machineFile(machineDriver), filepath.Join(l.Bin, progAgent)} {
		if _, err := os.Stat(needed); err != nil {
			return nil, fmt.Errorf("%s is missing: run make build", Show(needed))
		}
	}
	var kinds []string
	for _, path := range paths {
		kinds = append(kinds, strings.TrimSuffix(filepath.Base(path), ".machine"))
	}
	return kinds, nil
}

// machineOf is where the description of a node's own machine is.
func (l Lab) machineOf(node string) string { return l.path("machines", node+".machine") }

// writeMachine describes the machine of the index-th node: one of its kind, with UUIDs of its own.
func (l Lab) writeMachine(n FabricNode, index int) error {
	text, err := os.ReadFile(l.machineFile(n.Machine + ".machine"))
	if err != nil {
		return fmt.Errorf("read a machine: %w", err)
	}
	if err := writeFile(l.machineOf(n.Name), fmt.Appendf(text, "node %d\n", index+1)); err != nil {
		return fmt.Errorf("write the machine of node %s: %w", n.Name, err)
	}
	return nil
}

// looking is the part of an agent's command line that lets it see a machine.
func (l Lab) looking(n FabricNode) []string {
	return []string{"--nvml", l.machineFile(machineDriver), "--hwloc-xml", l.machineFile(n.Machine + ".xml")}
}

// probe asks the agent what it sees on a node's machine: the status of its GpuNodeStatus.
func (l Lab) probe(ctx context.Context, n FabricNode) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	asked := l.program(progAgent, 0, append([]string{"--once"}, l.looking(n)...)...)
	command := exec.CommandContext(ctx, asked.path, asked.args...)
	command.Env = append(asked.env, machineEnv+"="+l.machineOf(n.Name))
	var problem bytes.Buffer
	command.Stderr = &problem
	out, err := command.Output()
	if err != nil {
		return nil, fmt.Errorf("probe the machine %s: %w: %s", n.Machine, err, bytes.TrimSpace(problem.Bytes()))
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"status":%s}`, apis.KindGpuNodeStatus, apis.GPU, out)); err != nil {
		return nil, fmt.Errorf("read the report on machine %s: %w", n.Machine, err)
	}
	status, found, err := unstructured.NestedMap(object.Object, "status")
	if err != nil || !found {
		return nil, errors.Join(fmt.Errorf("the report on machine %s has no status", n.Machine), err)
	}
	return status, nil
}

// probeAll looks at all machines; the answer is by node, nil for one that stands for none. Nodes become what was found.
func (l Lab) probeAll(ctx context.Context, nodes []FabricNode) ([]map[string]any, error) {
	if err := os.MkdirAll(l.path("machines"), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder for machines: %w", err)
	}
	statuses := make([]map[string]any, len(nodes))
	err := inParallel(ctx, len(nodes), probeWorkers, func(ctx context.Context, i int) error {
		if nodes[i].Machine == "" {
			return nil
		}
		if err := l.writeMachine(nodes[i], i); err != nil {
			return err
		}
		status, err := l.probe(ctx, nodes[i])
		if err != nil {
			return err
		}
		statuses[i] = status
		return nodes[i].become(status)
	})
	return statuses, err
}

// become takes GPUs and labels from what was found, as the device plugin and GPU feature discovery would.
func (n *FabricNode) become(status map[string]any) error {
	data, err := json.Marshal(status)
	if err != nil {
		return fmt.Errorf("read the report on machine %s: %w", n.Machine, err)
	}
	var report apis.NodeReport
	if err := json.Unmarshal(data, &report); err != nil {
		return fmt.Errorf("read the report on machine %s: %w", n.Machine, err)
	}
	n.GPUs, n.Model, n.UsedGPUs, n.UnhealthyGPUs = len(report.Devices), "", nil, nil
	for _, device := range report.Devices {
		if n.Model == "" {
			n.Model = strings.ReplaceAll(device.Model, " ", "-")
		}
		if device.Clique != "" {
			n.Labels = map[string]string{cliqueLabel: device.Clique} // a one-line cluster has no labels of its own
		}
		if device.Health != apis.Healthy || len(device.MIG) > 0 { // slices are another resource
			n.UnhealthyGPUs = append(n.UnhealthyGPUs, int(device.Index))
		}
	}
	return nil
}
