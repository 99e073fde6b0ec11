// SPDX-License-Identifier: Apache-2.0

package nodereport

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// machine is a status of n devices, each joined to the next one in a ring of 50 GB/s, two NUMA nodes.
func machine(n int) map[string]any {
	devices := make([]any, n)
	for i := range n {
		device := map[string]any{"id": fmt.Sprintf("GPU-%d", i), "index": int64(i), "model": "H100", "health": "Healthy", "numaNode": int64(2 * i / n)}
		var links []any
		for _, peer := range []int{(i + 1) % n, (i + n - 1) % n} {
			if peer != i && (n > 2 || len(links) == 0) {
				links = append(links, map[string]any{"peer": int64(peer), "kind": "NVLink", "bandwidthGBps": int64(50)})
			}
		}
		if links != nil {
			device["links"] = links
		}
		devices[i] = device
	}
	return map[string]any{"total": int64(n), "heartbeat": "2026-01-02T03:04:05Z", "devices": devices}
}

func object(status map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "node-1", "uid": "u-1"}}}
	if status != nil {
		o.Object["status"] = status
	}
	return o
}

func device(status map[string]any, i int) map[string]any {
	return status["devices"].([]any)[i].(map[string]any)
}

func link(status map[string]any, i, j int) map[string]any {
	return device(status, i)["links"].([]any)[j].(map[string]any)
}

func TestReadsAWholeMachine(t *testing.T) {
	status := machine(8)
	list := status["devices"].([]any)
	list[0], list[5] = list[5], list[0] // the order of the list says nothing
	device(status, 2)["health"] = "Unhealthy"
	device(status, 3)["health"] = "Unknown"
	device(status, 7)["mig"] = []any{map[string]any{"id": "MIG-1", "profile": "1g.5gb"}}
	device(status, 6)["mig"] = []any{} // ready to be cut: not whole any more
	device(status, 1)["migMode"] = true
	device(status, 4)["migMode"] = false
	device(status, 4)["inUseBy"] = []any{"uid-a", "ml/train-0"}
	device(status, 0)["inUseBy"] = []any{"ml/train-0"}
	device(status, 1)["links"] = append(device(status, 1)["links"].([]any), map[string]any{"peer": int64(7), "kind": "PCIe", "bandwidthGBps": int64(32)})
	r, err := Read(object(status))
	if err != nil {
		t.Fatal(err)
	}
	if r.Node != "node-1" || r.UID != "u-1" || r.Model != "H100" || len(r.Devices) != 8 || r.Devices[5].ID != "GPU-5" || r.Unhealthy != 0b11001110 ||
		r.Healthy() != 3 || !r.Heartbeat.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
		t.Errorf("got %+v", r)
	}
	if links := r.Topology.LinkGBps; links[0][1] != 50 || links[7][0] != 50 || links[0][2] != 0 || links[1][7] != 0 || r.Topology.GPUs != 8 || r.Topology.NUMA[3] != 0 || r.Topology.NUMA[4] != 1 {
		t.Errorf("got %+v", r.Topology)
	}
	if index, found := r.Index("GPU-7"); !found || index != 7 {
		t.Errorf("got %d %v", index, found)
	}
	if _, found := r.Index("GPU-8"); found {
		t.Error("found what is not there")
	}
	train := types.NamespacedName{Namespace: "ml", Name: "train-0"}
	if a, b, c := r.UsedBy("uid-a", types.NamespacedName{}), r.UsedBy("other", train), r.UsedBy("x", types.NamespacedName{}); a != 1<<4 || b != 1<<4|1<<5 || c != 0 {
		t.Errorf("got %b %b %b", a, b, c)
	}
	if object := r.Object(); object.GetKind() != "GpuNodeStatus" || object.GetAPIVersion() != "gpu.scheduling/v1" || object.GetName() != "node-1" || object.GetUID() != "u-1" {
		t.Errorf("got %v", object)
	}
}

func TestReadsOddButTrueMachines(t *testing.T) {
	mixed := machine(2)
	device(mixed, 1)["model"] = "A100"
	own := machine(2)
	device(own, 1)["id"] = "node-1-gpu-1"
	terse := map[string]any{"devices": []any{map[string]any{"id": "a", "index": 0.0, "health": "Healthy"}}}
	zero := machine(4)
	device(zero, 0)["links"] = append(device(zero, 0)["links"].([]any), map[string]any{"peer": int64(2), "bandwidthGBps": int64(0)})
	for _, test := range []struct {
		name    string
		status  map[string]any
		devices int
		model   string
	}{
		{"no GPUs", map[string]any{"total": int64(0)}, 0, ""}, {"one", machine(1), 1, "H100"}, {"as many as there can be", machine(16), 16, "H100"},
		{"two models", mixed, 2, ""}, {"the scheduler's own name", own, 2, "H100"}, {"the least", terse, 1, ""}, {"a link of 0 told by one end", zero, 4, "H100"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := Read(object(test.status))
			if err != nil || len(r.Devices) != test.devices || r.Model != test.model {
				t.Errorf("got %+v, %v", r, err)
			}
		})
	}
	for _, status := range []map[string]any{nil, {}} {
		if _, err := Read(object(status)); !errors.Is(err, ErrEmpty) {
			t.Errorf("nothing written yet: %v", err)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		name string
		with func(status map[string]any)
		want string
	}{
		{"a million devices", func(s map[string]any) { s["devices"] = make([]any, 1_000_000) }, "status.devices: must have at most 16 entries, got 1000000"},
		{"one too many", func(s map[string]any) { s["devices"] = machine(17)["devices"] }, "at most 16 entries, got 17"},
		{"devices no list", func(s map[string]any) { s["devices"] = "eight" }, `status.devices: must be a list, got "eight"`},
		{"a device no object", func(s map[string]any) { s["devices"].([]any)[1] = int64(3) }, "status.devices[1]: must be an object, got 3"},
		{"total", func(s map[string]any) { s["total"] = int64(5) }, "status.total: must be the number of devices, 4, got 5"},
		{"total absurd", func(s map[string]any) { s["total"] = int64(-1) }, "status.total: must be a whole number from 0 to 16, got -1"},
		{"heartbeat", func(s map[string]any) { s["heartbeat"] = "now" }, `status.heartbeat: must be a time such as 2026-01-02T15:04:05Z, got "now"`},
		{"heartbeat a number", func(s map[string]any) { s["heartbeat"] = int64(9) }, "status.heartbeat: must be a time"},
		{"index gap", func(s map[string]any) { device(s, 3)["index"] = int64(4) }, "status.devices[3].index: must be a whole number from 0 to 3, got 4"},
		{"index twice", func(s map[string]any) { device(s, 3)["index"] = int64(1) }, "status.devices[3].index: must be 0 to 3, each once, got 1 as in status.devices[1]"},
		{"index missing", func(s map[string]any) { delete(device(s, 0), "index") }, "status.devices[0].index: must be a whole number from 0 to 3, got nothing"},
		{"index half", func(s map[string]any) { device(s, 0)["index"] = 0.5 }, "got 0.5"},
		{"index huge", func(s map[string]any) { device(s, 0)["index"] = 1e300 }, "got 1e+300"},
		{"id missing", func(s map[string]any) { delete(device(s, 2), "id") }, "status.devices[2].id: must be text of at most 128 bytes, got nothing"},
		{"id empty", func(s map[string]any) { device(s, 2)["id"] = "" }, `status.devices[2].id: must be text of at most 128 bytes, got ""`},
		{"id twice", func(s map[string]any) { device(s, 2)["id"] = "GPU-1" }, `status.devices[2].id: must be unique, got "GPU-1" as device 1`},
		{"id long", func(s map[string]any) { device(s, 2)["id"] = strings.Repeat("x", 129) }, "(129 bytes)"},
		{"id with a comma", func(s map[string]any) { device(s, 2)["id"] = "a,b" }, `status.devices[2].id: must be letters, digits, '-', '.' and '_', with a letter or digit at both ends, got "a,b"`},
		{"id not printable", func(s map[string]any) { device(s, 2)["id"] = "a\x00b" }, `status.devices[2].id: must be printable ASCII, got "a\x00b"`},
		{"id of another device", func(s map[string]any) { device(s, 2)["id"] = "node-1-gpu-0" }, `may only have "node-1-gpu-2", got "node-1-gpu-0"`},
		{"model", func(s map[string]any) { device(s, 2)["model"] = "☃" }, `status.devices[2].model: must be printable ASCII, got "☃"`},
		{"health", func(s map[string]any) { device(s, 2)["health"] = "fine" }, `status.devices[2].health: must be Healthy, Unhealthy or Unknown, got "fine"`},
		{"health missing", func(s map[string]any) { delete(device(s, 2), "health") }, "status.devices[2].health: must be text of at most 128 bytes, got nothing"},
		{"numa", func(s map[string]any) { device(s, 2)["numaNode"] = int64(-1) }, "status.devices[2].numaNode: must be a whole number from 0 to 255, got -1"},
		{"users", func(s map[string]any) { device(s, 2)["inUseBy"] = []any{map[string]any{}} }, "status.devices[2].inUseBy[0]: must be a pod's UID or namespace/name of at most 317 bytes, got an object"},
		{"too many users", func(s map[string]any) { device(s, 2)["inUseBy"] = make([]any, 65) }, "status.devices[2].inUseBy: must have at most 64 entries, got 65"},
		{"MIG mode no boolean", func(s map[string]any) { device(s, 2)["migMode"] = "on" }, `status.devices[2].migMode: must be true or false, got "on"`},
		{"slices no list", func(s map[string]any) { device(s, 2)["mig"] = "1g" }, `status.devices[2].mig: must be a list, got "1g"`},
		{"too many slices", func(s map[string]any) { device(s, 2)["mig"] = make([]any, 17) }, "status.devices[2].mig: must have at most 16 entries, got 17"},
		{"links no list", func(s map[string]any) { device(s, 2)["links"] = map[string]any{} }, "status.devices[2].links: must be a list, got an object"},
		{"a link no object", func(s map[string]any) { device(s, 2)["links"] = []any{[]any{}} }, "status.devices[2].links[0]: must be an object, got a list of 0"},
		{"too many links", func(s map[string]any) { device(s, 2)["links"] = make([]any, 16) }, "status.devices[2].links: must have at most 15 entries, got 16"},
		{"unknown peer", func(s map[string]any) { link(s, 0, 0)["peer"] = int64(9) }, "status.devices[0].links[0].peer: must be a whole number from 0 to 3, got 9"},
		{"peer by id", func(s map[string]any) { link(s, 0, 0)["peer"] = "GPU-1" }, `status.devices[0].links[0].peer: must be a whole number from 0 to 3, got "GPU-1"`},
		{"itself", func(s map[string]any) { link(s, 0, 0)["peer"] = int64(0) }, "status.devices[0].links[0].peer: must be another device, each once, got 0 for device 0"},
		{"peer twice", func(s map[string]any) { link(s, 0, 1)["peer"] = int64(1) }, "status.devices[0].links[1].peer: must be another device, each once, got 1 for device 0"},
		{"negative", func(s map[string]any) { link(s, 0, 0)["bandwidthGBps"] = int64(-1) }, "status.devices[0].links[0].bandwidthGBps: must be a whole number from 0 to 65535, got -1"},
		{"absurd", func(s map[string]any) { link(s, 0, 0)["bandwidthGBps"] = int64(65536) }, "got 65536"},
		{"kind", func(s map[string]any) { link(s, 0, 0)["kind"] = "string" }, `status.devices[0].links[0].kind: must be NVLink, NVSwitch, XGMI or PCIe, got "string"`},
		{"asymmetric", func(s map[string]any) { link(s, 1, 1)["bandwidthGBps"] = int64(25) }, "status.devices[1].links: must say the same as the other end, got 25 GB/s from device 1 to 0 and 50 GB/s back"},
		{"one-sided", func(s map[string]any) { delete(device(s, 2), "links") }, "got 0 GB/s from device 2 to 1 and 50 GB/s back"},
		{"one-sided the other way", func(s map[string]any) { delete(device(s, 0), "links") }, "got 50 GB/s from device 1 to 0 and no link back"},
	} {
		t.Run(test.name, func(t *testing.T) {
			status := machine(4)
			test.with(status)
			r, err := Read(object(status))
			if err == nil || r != nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			} else if strings.ContainsAny(err.Error(), "\n\x00") || len(err.Error()) > 512 {
				t.Errorf("not a sentence: %q", err)
			}
		})
	}
	named := object(machine(4))
	named.Object["spec"] = map[string]any{"nodeName": "node-2"}
	if _, err := Read(named); err == nil || !strings.Contains(err.Error(), `spec.nodeName: must be the name of the object, "node-1", got "node-2"`) {
		t.Errorf("got %v", err)
	}
	if _, err := Read(&unstructured.Unstructured{Object: map[string]any{"status": map[string]any{}}}); err == nil || !strings.Contains(err.Error(), "metadata.name") {
		t.Errorf("got %v", err)
	}
	if _, err := Read(&unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "n"}, "status": "x"}}); err == nil || !strings.Contains(err.Error(), "status: must be an object") {
		t.Errorf("got %v", err)
	}
}

func TestSame(t *testing.T) {
	of := func(with func(map[string]any)) *Report {
		status := machine(4)
		with(status)
		r, err := Read(object(status))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := of(func(map[string]any) {})
	if !first.Same(of(func(s map[string]any) {
		s["heartbeat"] = "2027-01-01T00:00:00Z"
		device(s, 1)["utilization"] = int64(50)
	})) {
		t.Error("a heartbeat and a busy device are no news")
	}
	for name, with := range map[string]func(map[string]any){
		"health": func(s map[string]any) { device(s, 1)["health"] = "Unhealthy" },
		"users":  func(s map[string]any) { device(s, 1)["inUseBy"] = []any{"a/b"} },
		"id":     func(s map[string]any) { device(s, 1)["id"] = "GPU-x" },
		"model":  func(s map[string]any) { device(s, 1)["model"] = "other" },
		"numa":   func(s map[string]any) { device(s, 1)["numaNode"] = int64(9) },
		"count":  func(s map[string]any) { s["devices"], s["total"] = machine(5)["devices"], int64(5) },
	} {
		if first.Same(of(with)) {
			t.Errorf("%s is news", name)
		}
	}
}

func TestStale(t *testing.T) {
	beat := time.Unix(1_000_000, 0)
	for _, test := range []struct {
		beat  time.Time
		after time.Duration
		want  string
	}{
		{beat, 0, ""}, {beat, Patience, ""}, {beat, Patience + time.Second, "must not be older than 1m30s, got 1970-01-12T13:46:40Z"},
		{beat, -Patience, ""}, {beat, -Patience - time.Second, "must not lie in the future"}, {time.Time{}, 0, "is missing"},
	} {
		if got := (&Report{Heartbeat: test.beat}).Stale(beat.Add(test.after)); !strings.Contains(got, test.want) || (got == "") != (test.want == "") {
			t.Errorf("%v: got %q", test.after, got)
		}
	}
}

func TestFits(t *testing.T) {
	seven := &Report{Devices: make([]Device, 7)}
	if seven.Fits(8) || !seven.Fits(7) || !seven.Fits(0) {
		t.Error("a report has no fewer devices than the node lets pods have")
	}
}

// FuzzRead: whatever an object says, it is either refused with one sentence or a report that the engine can hold.
func FuzzRead(f *testing.F) {
	for _, status := range []map[string]any{machine(0), machine(1), machine(2), machine(8), machine(16), machine(17), nil, {}} {
		text, err := json.Marshal(object(status).Object)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, text := range []string{
		`{}`, `{"metadata":{"name":"n"},"status":[]}`, `{"metadata":{"name":"n"},"status":{"devices":[null]}}`,
		`{"metadata":{"name":"n"},"status":{"devices":[{"id":"a","index":0,"health":"Healthy","links":[{"peer":0}]}]}}`,
		`{"metadata":{"name":"n"},"status":{"total":1e99,"devices":{}}}`, `{"metadata":{"name":7},"spec":7,"status":{"heartbeat":7}}`,
		`{"metadata":{"name":"n"},"status":{"devices":[{"id":"n-gpu-00","index":0,"health":"Healthy"}]}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var raw map[string]any
		if json.Unmarshal(text, &raw) != nil {
			return
		}
		r, err := Read(&unstructured.Unstructured{Object: raw})
		if err != nil {
			if r != nil || err.Error() == "" || strings.ContainsAny(err.Error(), "\n\x00") {
				t.Fatalf("%+v, %q", r, err)
			}
			return
		}
		ids := map[string]bool{}
		for i := range r.Devices {
			if id := r.Devices[i].ID; !isID(id) || len(id) > textMax || ids[id] {
				t.Fatalf("id %q", id)
			}
			ids[r.Devices[i].ID] = true
		}
		n := len(r.Devices)
		if n > devicesMax || int(r.Topology.GPUs) != n || r.Unhealthy>>n != 0 || len(ids) != n || !r.Same(r) {
			t.Fatalf("%+v", r)
		}
		for i, row := range r.Topology.LinkGBps {
			for j, gbps := range row {
				if gbps != r.Topology.LinkGBps[j][i] || (gbps != 0 && (i == j || i >= n || j >= n)) {
					t.Fatalf("links %v", r.Topology.LinkGBps)
				}
			}
		}
	})
}
