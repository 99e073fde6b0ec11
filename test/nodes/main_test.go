// SPDX-License-Identifier: Apache-2.0

// Package nodes tries what agents report, from the driver to the GPUs that pods get: a real API server, the real scheduler,
// and for every node a real frond-agent, with the account that its manifest gives it, on a machine that the fake driver
// plays. Machines are told what happens to them through their descriptions; what came of it is read from the API server.
package nodes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/dynamic"

	"github.com/frond-scheduler/frond/test/harness"
)

// One node of each kind, in this order: node-1 is the first. The last ones are those that things happen to.
var kinds = []string{"dgx-1v", "dgx-2", "dgx-a100", "dgx-h100", "gb200", "pcie-4", "link-down", "dead-gpu", "busy", "mig",
	"dgx-h100", "dgx-1v", "dgx-h100", "dgx-h100", "dgx-a100", "pcie-4", "dgx-h100", "gb200"}

const (
	nodeOfDeath   = "node-11" // dgx-h100
	nodeOfLinks   = "node-12" // dgx-1v
	nodeOfSilence = "node-13" // dgx-h100
	nodeOfTokens  = "node-14" // dgx-h100
	nodeOfErasure = "node-15" // dgx-a100
	nodeThatGoes  = "node-16" // pcie-4
	firstOfLab    = 16        // nodes from here on have no agent: the lab speaks for them, but for the very last, which have no machine
)

var (
	lab     *harness.Lab
	objects dynamic.Interface
)

func TestMain(m *testing.M) {
	flags := []string{"--cluster", "spine:1 leaf:5 node:4 gpu:8", "--machines", strings.Join(kinds, "=1,") + "=1", "--agents", strconv.Itoa(firstOfLab)}
	harness.MainWith(m, flags, func(started *harness.Lab) {
		lab, objects = started, dynamic.NewForConfigOrDie(started.Config)
		counted.count(context.Background())
	})
}

// machineFile is the description of a node's machine, which its driver looks at all the time.
func machineFile(node string) string { return filepath.Join(lab.Dir, "machines", node+".machine") }

// describe replaces a machine's description by its own with more lines, until the test ends.
func describe(t *testing.T, node string, lines ...string) {
	t.Helper()
	before, err := os.ReadFile(machineFile(node))
	if err != nil {
		t.Fatal(err)
	}
	text := string(before)
	for _, line := range lines {
		text += line + "\n"
	}
	replace(t, machineFile(node), text)
	t.Cleanup(func() { replace(t, machineFile(node), string(before)) })
}

// replace by renaming, so that nobody sees half of it.
func replace(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func nodeName(i int) string { return fmt.Sprintf("node-%d", i+1) }
