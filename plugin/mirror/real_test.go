// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/frond-scheduler/frond/plugin/nodereport"
	"github.com/frond-scheduler/frond/plugin/workload"
	"github.com/frond-scheduler/frond/shim"
)

const realLibrary = "../../bin/libfrond.so"

// world is a mirror of the real engine, and what it told.
type world struct {
	*Mirror
	t      *testing.T
	engine *shim.Engine
	told   []string
}

func (w *world) PodSeen(*v1.Pod)      {}
func (w *world) PodGone(*v1.Pod)      {}
func (w *world) NodeChanged(string)   {}
func (w *world) Freed(bool)           {}
func (w *world) ReportChanged(string) {}
func (w *world) Problem(object runtime.Object, reason, sentence string) {
	w.told = append(w.told, reason+" "+object.(metav1.Object).GetName()+": "+sentence)
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, shim.Limits{Nodes: 64, Pods: 256})
}

func newWorldOf(t *testing.T, limits shim.Limits) *world {
	t.Helper()
	if _, err := os.Stat(realLibrary); err != nil {
		t.Fatalf("%s is not built (make engine)", realLibrary)
	}
	library, err := shim.Open(realLibrary)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := library.New(limits, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(engine.Close)
	return &world{Mirror: New(engine, reader()), t: t, engine: engine}
}

// As many nodes as there may be, with names as long as clouds make them, on 24 nodes a leaf, every GPU table another one.
func TestLimitsAreEnoughForACloud(t *testing.T) {
	library, err := shim.Open(realLibrary)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := library.New(Limits(), []byte(`{"topology": {"levels": ["leaf", "spine"]}}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	var tables []uint32
	for kind := range 250 {
		links := shim.Topology{GPUs: 8}
		links.LinkGBps[0][1], links.LinkGBps[1][0] = uint16(kind+1), uint16(kind+1)
		id, err := engine.TopologyPut(links)
		if err != nil {
			t.Fatalf("link table %d: %v", kind, err)
		}
		tables = append(tables, id)
	}
	for slot := range Limits().Nodes {
		node := shim.Node{Slot: slot, GPUs: 8, Topology: tables[int(slot)%len(tables)],
			Name: fmt.Sprintf("ip-10-%03d-%03d-%03d.us-gov-northeast-1.compute.internal.example", slot>>16, slot>>8&255, slot&255)}
		labels := map[string]string{"leaf": fmt.Sprintf("nn-%020d", slot/24), "spine": fmt.Sprintf("nn-%020d", 1000000+slot/384)}
		if err := engine.NodePut(node, labels); err != nil {
			t.Fatalf("node %d: %v", slot, err)
		}
	}
	if problems := engine.Problems(); len(problems) > 0 {
		t.Errorf("problems: %q", problems)
	}
}

func (w *world) node(name string, gpus int64) {
	w.t.Helper()
	if _, err := w.SetNode(nodeOf(name, gpus)); err != nil {
		w.t.Fatal(err)
	}
	w.check()
}

func (w *world) pod(object *v1.Pod) {
	w.t.Helper()
	if err := w.SetPod(object); err != nil {
		w.t.Fatal(err)
	}
	w.check()
}

func (w *world) report(report *nodereport.Report) bool {
	w.t.Helper()
	changed := w.SetReport(report)
	w.check()
	return changed
}

func (w *world) own(node string, owners map[string]types.UID) bool {
	w.t.Helper()
	freed := w.SetOwners(node, owners)
	w.check()
	return freed
}

func (w *world) check() {
	w.t.Helper()
	if err := w.engine.Check(); err != nil {
		w.t.Fatal(err)
	}
	w.Tell(w)
}

func (w *world) dump() string {
	w.t.Helper()
	text, err := w.engine.Dump()
	if err != nil {
		w.t.Fatal(err)
	}
	return text
}

// holds is what the engine has under a key: "mask 3 count 0", "" when nothing.
func (w *world) holds(key shim.Key) string {
	w.t.Helper()
	found := regexp.MustCompile(`pod ` + key.String() + ` bound node \d+ (mask [0-9a-f]+ count \d+)`).FindStringSubmatch(w.dump() + "\n")
	if found == nil {
		return ""
	}
	return found[1]
}

func (w *world) wants(uid, want string) {
	w.t.Helper()
	if got := w.holds(shim.PodKey(uid)); got != want {
		w.t.Errorf("%s holds %q, want %q", uid, got, want)
	}
}

func (w *world) wantsLock(node, uid, want string) {
	w.t.Helper()
	if got := w.holds(lockKey(node, types.UID(uid))); got != want {
		w.t.Errorf("the lock of %s on %s holds %q, want %q", uid, node, got, want)
	}
}

// wantsNode compares the engine's line of a node up to its leaf.
func (w *world) wantsNode(name, want string) {
	w.t.Helper()
	slot, _ := w.Slot(name)
	for line := range strings.Lines(w.dump()) {
		if strings.HasPrefix(line, fmt.Sprintf("node %d ", slot)) {
			if !strings.Contains(line, want) {
				w.t.Errorf("got %s want %s", line, want)
			}
			return
		}
	}
	w.t.Errorf("node %s is not there", name)
}

func (w *world) wantsTold(want ...string) {
	w.t.Helper()
	w.check()
	if len(w.told) != len(want) {
		w.t.Fatalf("told %q, want %q", w.told, want)
	}
	for i := range want {
		if !strings.Contains(w.told[i], want[i]) {
			w.t.Errorf("told %q, want %q", w.told[i], want[i])
		}
	}
	w.told = nil
}

func (w *world) wantsNoConflict() {
	w.t.Helper()
	stats, err := w.engine.Stats()
	if err != nil || stats.Conflicts != 0 {
		w.t.Errorf("%d conflicts, %v", stats.Conflicts, err)
	}
}

func uuid(node string, index int) string { return fmt.Sprintf("GPU-%s-%d", node, index) }

func uuids(node string, indices ...int) string {
	ids := make([]string, len(indices))
	for i, index := range indices {
		ids[i] = uuid(node, index)
	}
	return strings.Join(ids, ",")
}

// reportOf a machine whose GPUs are all joined at so many GB/s.
func reportOf(node string, gpus int, gbps uint16) *nodereport.Report {
	r := &nodereport.Report{Node: node, UID: types.UID("gns-" + node), Model: "test", Heartbeat: time.Unix(1000, 0)}
	r.Topology.GPUs = uint32(gpus)
	for i := range gpus {
		r.Devices = append(r.Devices, nodereport.Device{ID: uuid(node, i)})
		for j := range gpus {
			if i != j {
				r.Topology.LinkGBps[i][j] = gbps
			}
		}
	}
	return r
}

func with(pod *v1.Pod, pairs ...string) *v1.Pod {
	for i := 0; i < len(pairs); i += 2 {
		pod.Annotations[pairs[i]] = pairs[i+1]
	}
	return pod
}

func allocated(pod *v1.Pod, ids string) *v1.Pod { return with(pod, workload.Allocated, ids) }

func grouped(pod *v1.Pod, group string) *v1.Pod {
	pod.Labels = map[string]string{workload.PodGroupLabel: group}
	return pod
}

func TestRanksOfBoundPods(t *testing.T) {
	for text, want := range map[string]uint32{"0": 0, "17": 17, "2147483647": 1<<31 - 1, "2147483648": shim.None, "01": shim.None, "-1": shim.None, "+1": shim.None, "x": shim.None, "": shim.None} {
		if got := rankOf(with(podOf("p", "a", 1), workload.Rank, text)); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
	if got := rankOf(podOf("p", "a", 1)); got != shim.None {
		t.Errorf("none: got %d", got)
	}
	w := newWorld(t)
	w.node("a", 8)
	w.pod(with(podOf("p", "a", 1), workload.Rank, "7"))
	if !strings.Contains(w.dump(), " rank 7") {
		t.Error(w.dump())
	}
}

// normal is a dump that does not depend on the order of events: nodes and link tables by name, not by number.
func (w *world) normal(tables map[uint32]string) string {
	w.t.Helper()
	number := func(text string) uint32 {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			w.t.Fatal(err)
		}
		return uint32(n)
	}
	node := regexp.MustCompile(`\bnode (\d+)`)
	table := regexp.MustCompile(`\btopology (\d+)`)
	lost := regexp.MustCompile(`\blost \d+`) // of a gang: how many have gone is history
	var lines []string
	for line := range strings.Lines(w.dump()) {
		line = node.ReplaceAllStringFunc(line, func(text string) string { return "node " + w.Name(number(text[len("node "):])) })
		line = table.ReplaceAllStringFunc(line, func(text string) string {
			id := number(text[len("topology "):])
			if tables[id] == "" {
				return "topology by count"
			}
			return "topology " + tables[id]
		})
		lines = append(lines, lost.ReplaceAllString(line, "lost"))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
