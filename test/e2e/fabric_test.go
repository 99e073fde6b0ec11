// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/frond-scheduler/frond/test/harness"
)

// Two leaves of four nodes, of which the first two have slow uplinks: what is lowest in order is what a gang takes that does
// not care.
const slowFabric = `
apiVersion: topology.scheduler/v1alpha1
kind: Fabric
defaults: {gpus: 8, model: H100-SXM, uplinkGbps: 400}
spines:
- name: spine-1
  leaves:
  - {name: leaf-1, uplinkGbps: 400, nodes: [node-1, node-2, node-3, node-4]}
  - {name: leaf-2, uplinkGbps: 400, nodes: [node-5, node-6, node-7, node-8]}
nodes:
- {name: node-1, uplinkGbps: 100}
- {name: node-2, uplinkGbps: 100}
`

// Wishes that only a fabric file, or only the engine's memory, can show.
func TestWishesOnAFabricOfItsOwn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fabric.yaml")
	if err := os.WriteFile(file, []byte(slowFabric), 0o600); err != nil {
		t.Fatal(err)
	}
	own := harness.StartFabric(t, file)
	recording := filepath.Join(t.TempDir(), "frond.rec")
	own.Run(t, harness.Setup{Record: recording})
	t.Run("network-bandwidth", func(t *testing.T) { bandwidth(t, own) })
	t.Run("recovery", func(t *testing.T) { recovery(t, own, recording) })
}

func bandwidth(t *testing.T, own *harness.Lab) {
	slow := map[string]bool{"node-1": true, "node-2": true}
	ns := own.Namespace(t)
	fast := harness.Gang{Name: "fast", Pods: 2, GPUs: 8, Annotations: wish("network-bandwidth", "200Gb")}
	own.Submit(t, ns, fast)
	for node := range nodesOf(own.Bound(t, ns, fast)) {
		if slow[node] {
			t.Errorf("a gang that asks for 200 Gb/s is on %s, which has 100", node)
		}
	}
	enough := harness.Gang{Name: "enough", Pods: 2, GPUs: 8, Annotations: wish("network-bandwidth", "100Gb")}
	own.Submit(t, ns, enough)
	for node := range nodesOf(own.Bound(t, ns, enough)) {
		if !slow[node] {
			t.Errorf("a gang that asks for 100 Gb/s is on %s; node-1 and node-2 have that, and complete their leaf", node)
		}
	}
	// Six nodes are fast enough, however empty the cluster; with the two slow ones seven members would fit.
	own.Submit(t, ns, harness.Gang{Name: "many", Pods: 7, GPUs: 8, Annotations: wish("network-bandwidth", "200Gb")})
	own.WaitReason(t, ns, "never fits", "200")
}

// Recovery itself comes later; what can be seen today is that a wrong value is refused in words, and that a right one is in
// the engine's memory of the gang, where recovery will look.
func recovery(t *testing.T, own *harness.Lab, recording string) {
	ns := own.Namespace(t)
	own.Submit(t, ns, harness.Gang{Name: "wrong", Pods: 2, GPUs: 4, Annotations: wish("recovery", "Sideways")})
	own.WaitReason(t, ns, "topology.scheduler/recovery", "Sideways", "Replace", "MoveGang", "Wait")

	for policy, want := range map[string]string{"Replace": "0", "MoveGang": "1", "Wait": "2"} {
		ns := own.Namespace(t)
		g := harness.Gang{Name: "train", Pods: 2, GPUs: 2, Annotations: wish("recovery", policy)}
		own.Submit(t, ns, g)
		own.Bound(t, ns, g)
		if got := remembered(t, own, recording, ns+"/train"); got != want {
			t.Errorf("%s: the engine remembers policy %q of the gang, want %s", policy, got, want)
		}
	}
}

var (
	gangPut = regexp.MustCompile(`(?m)^gang_put gang ([0-9a-f]{32}) .* name "([^"]*)"`)
	terms   = regexp.MustCompile(` gang ([0-9a-f]{32}) .* terms [0-9]+ [0-9]+ ([0-9]+) `)
)

// remembered is the recovery policy that the engine has for a gang: the recording is played again, and asked for a dump at
// its end.
func remembered(t *testing.T, own *harness.Lab, recording, gang string) string {
	t.Helper()
	text, err := os.ReadFile(recording)
	if err != nil {
		t.Fatal(err)
	}
	key := ""
	for _, put := range gangPut.FindAllStringSubmatch(string(text), -1) {
		if put[2] == gang {
			key = put[1]
		}
	}
	whole := text[:strings.LastIndexByte(string(text), '\n')+1]
	again := filepath.Join(t.TempDir(), "again.rec")
	if err := os.WriteFile(again, append(whole, "dump cap 1048576\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), own.Program("frond-sim"), "replay", again).CombinedOutput()
	if err != nil {
		t.Fatalf("replay: %v\n%s", err, harness.Tail(out))
	}
	dump := string(out[strings.LastIndex(string(out), "\ndump "):])
	for line := range strings.SplitSeq(dump, `\n`) {
		if found := terms.FindStringSubmatch(line); found != nil && found[1] == key {
			return found[2]
		}
	}
	return ""
}
