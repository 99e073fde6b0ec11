// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// shelf is a lab whose machines are empty files: enough to choose among them.
func shelf(t *testing.T) Lab {
	t.Helper()
	l := Lab{Dir: t.TempDir(), Bin: t.TempDir()}
	for _, name := range []string{machineDriver, "dgx-h100.machine", "pcie-4.machine", "../" + progAgent} {
		path := l.machineFile(name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("gpus 4\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

func TestMachinesAreDealtInFabricOrder(t *testing.T) {
	l := shelf(t)
	for _, c := range []struct {
		machines string
		agents   int
		want     string // a letter a node, large where an agent runs
		refusal  string
	}{
		{"dgx-h100=2,pcie-4=1", 1, "Dhp-", ""},
		{"pcie-4=1,dgx-h100", 2, "PDhh", ""},
		{"dgx-h100", 0, "hhhh", ""},
		{"dgx-h100=5", 1, "", "--machines: must not be more than the 4 nodes, got dgx-h100=5"},
		{"dgx-h100,pcie-4=1", 1, "", `--machines: "dgx-h100" takes all that are left, so nothing can follow it`},
		{"dgx-h100=0", 1, "", `--machines: must be like dgx-h100=16,dgx-a100=8, got "dgx-h100=0"`},
		{"dgx-h100=x", 1, "", `got "dgx-h100=x"`},
		{"", 1, "", `got ""`},
		{"../x=1", 1, "", `got "../x=1"`},
		{"dgx-h200=1", 1, "", `--machines: must be of dgx-h100, pcie-4, got "dgx-h200"`},
		{"pcie-4=2", 3, "", "--agents: must be 0 to 2, the nodes with machines, got 3"},
		{"pcie-4=2", -1, "", "--agents: must be 0 to 2"},
	} {
		nodes := make([]FabricNode, 4)
		err := l.deal(nodes, c.machines, c.agents)
		if c.refusal != "" {
			if err == nil || !strings.Contains(err.Error(), c.refusal) {
				t.Errorf("%q: got %v, want %q", c.machines, err, c.refusal)
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c.machines, err)
		}
		got := ""
		for _, n := range nodes {
			letter := map[string]string{"": "-", "dgx-h100": "h", "pcie-4": "p"}[n.Machine]
			if n.Agent {
				letter = map[string]string{"h": "D", "p": "P"}[letter]
			}
			got += letter
		}
		if got != c.want {
			t.Errorf("%q: got %s, want %s", c.machines, got, c.want)
		}
	}
	if err := (Lab{Bin: t.TempDir()}).deal(nil, "dgx-h100", 0); err == nil || !strings.Contains(err.Error(), "run make build") {
		t.Errorf("machines that were never built: %v", err)
	}
}

func TestANodeBecomesWhatTheProbeFound(t *testing.T) {
	n := FabricNode{Name: "node-1", GPUs: 8, Model: "H100-SXM", Machine: "dgx-a100"}
	device := func(index int64, health string) map[string]any {
		return map[string]any{"id": "x", "index": index, "health": health, "model": "NVIDIA A100-SXM4-40GB"}
	}
	err := n.become(map[string]any{"total": int64(3), "devices": []any{device(0, "Healthy"), device(1, "Unknown"), device(2, "Unhealthy")}})
	if err != nil {
		t.Fatal(err)
	}
	if n.GPUs != 3 || n.Model != "NVIDIA-A100-SXM4-40GB" || !slices.Equal(n.UnhealthyGPUs, []int{1, 2}) {
		t.Errorf("got %+v", n)
	}
	gpus := n.object(0).Status.Allocatable[nvidiaResource]
	if product := n.object(0).Labels["nvidia.com/gpu.product"]; gpus.Value() != 1 || product != "NVIDIA-A100-SXM4-40GB" {
		t.Errorf("the node has %d GPUs of product %q", gpus.Value(), product)
	}
}

func TestEveryNodeHasAMachineOfItsOwn(t *testing.T) {
	l := shelf(t)
	if err := os.Mkdir(l.path("machines"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := l.writeMachine(FabricNode{Name: "node-8", Machine: "pcie-4"}, 7); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(l.machineOf("node-8")); err != nil || string(text) != "gpus 4\nnode 8\n" {
		t.Errorf("got %q, %v", text, err)
	}
}
