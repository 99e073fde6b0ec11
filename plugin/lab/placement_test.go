// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"path/filepath"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestPlacementIsToldInRankOrder(t *testing.T) {
	pod := func(name, rank, domain, node string) v1.Pod {
		return v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{rankAnnotation: rank, domainAnnotation: domain}},
			Spec:       v1.PodSpec{NodeName: node, Containers: []v1.Container{{Resources: v1.ResourceRequirements{Limits: limits("8")}}}},
		}
	}
	got := placementOf([]v1.Pod{
		pod("c", "10", "spine-1/leaf-2", "node-6"), pod("b", "2", "spine-1/leaf-2", "node-5"),
		pod("a", "1", "spine-1/leaf-1", "node-4"), pod("d", "0", "spine-1/leaf-1", "node-3"),
	}, nil)
	if want := "4 pods, 32 GPUs on 4 nodes in 2 leaves"; got.title != want {
		t.Errorf("title %q, want %q", got.title, want)
	}
	want := []string{"spine-1/leaf-1     ranks 0-1    node-3 node-4", "spine-1/leaf-2     ranks 2-10   node-5 node-6"}
	if len(got.lines) != 2 || got.lines[0] != want[0] || got.lines[1] != want[1] {
		t.Errorf("lines %q, want %q", got.lines, want)
	}

	single := v1.Pod{Spec: v1.PodSpec{NodeName: "node-9"}}
	single.Annotations = map[string]string{allocatedAnnotation: "node-9-gpu-4,node-9-gpu-7", domainAnnotation: "spine-1/leaf-3"}
	if got := placementOf([]v1.Pod{single}, nil).lines[0]; got != "spine-1/leaf-3                  node-9  GPUs 4,7" {
		t.Errorf("single pod: %q", got)
	}
	single.Annotations[allocatedAnnotation] = "GPU-a,GPU-b,GPU-c"
	if got := placementOf([]v1.Pod{single}, map[string]int{"GPU-a": 6, "GPU-b": 2}).lines[0]; got != "spine-1/leaf-3                  node-9  GPUs 6,2,GPU-c" {
		t.Errorf("ids of an agent: %q", got)
	}
}

func limits(gpus string) v1.ResourceList {
	return v1.ResourceList{nvidiaResource: resource.MustParse(gpus)}
}

func TestAWorkloadsPartOfTheMap(t *testing.T) {
	text := "spine-1\n  leaf-1   node-1 \x1b[31;1mAA\x1b[0m   node-2 ..\n  leaf-2  node-3 ..  node-14 ..\nspine-2\n  leaf-3  node-4 BB\n" +
		". free\nA demo/a: 2 GPUs on 1 node\nB demo/b: 2 GPUs on 1 node"
	got := partOfMap(text, map[string]bool{"node-4": true, "demo/b:": true})
	if want := "spine-2\n  leaf-3  node-4 BB\nB demo/b: 2 GPUs on 1 node"; got != want {
		t.Errorf("part:\n%s\nwant:\n%s", got, want)
	}
	if got := partOfMap(text, map[string]bool{"node-1": true}); got != "spine-1\n  leaf-1   node-1 \x1b[31;1mAA\x1b[0m   node-2 .." {
		t.Errorf("a coloured part:\n%q", got)
	}
	if got := partOfMap(text, nil); got != "" {
		t.Errorf("nothing placed, but shown:\n%s", got)
	}
}

func TestTheLastReasonInTheLogCounts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	log := `I1116 lead.go:69] "Gang placed" pod="demo/a-0-x" gang="demo/a" why="first"
I1116 lead.go:69] "Gang placed" pod="demo/a-0-y" gang="demo/a" leaves=1 why="rule \"same leaf\" met"
I1116 lead.go:69] "Gang placed" pod="demo/ab-0-y" gang="demo/ab" why="another's"
I1116 other.go:1] "Binding" gang="demo/a"
`
	if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, want := lastReason(path, "demo/a"), `rule "same leaf" met`; got != want {
		t.Errorf("lastReason() = %q, want %q", got, want)
	}
	if got := lastReason(path, "demo/none"); got != "" {
		t.Errorf("lastReason() = %q for a gang that was never placed", got)
	}
}
