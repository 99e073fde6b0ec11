// SPDX-License-Identifier: Apache-2.0

// Package client shows the fake driver to an NVML client that we did not write: NVIDIA's own Go binding, as the device
// plugin and the GPU operator use it. What the client sees is what the description says.
package client

import (
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

const (
	library  = "../../../build/nvml/libnvidia-ml.so.1"
	machines = "../machines"
)

// play starts the client on a description.
func play(t *testing.T, path string) nvml.Interface {
	t.Helper()
	t.Setenv("FROND_FAKE_NVML", path)
	whole, err := filepath.Abs(library)
	if err != nil {
		t.Fatal(err)
	}
	client := nvml.New(nvml.WithLibraryPath(whole))
	must(t, "Init", client.Init())
	t.Cleanup(func() { must(t, "Shutdown", client.Shutdown()) })
	return client
}

func must(t *testing.T, what string, code nvml.Return) {
	t.Helper()
	if code != nvml.SUCCESS {
		t.Fatalf("%s: code %d, want success", what, code)
	}
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func TestMachines(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(machines, "*.machine"))
	if err != nil || len(paths) < 10 {
		t.Fatalf("machines: got %d (%v), want at least 10", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			want, client := readMachine(t, path), play(t, path)
			version, code := client.SystemGetDriverVersion()
			must(t, "SystemGetDriverVersion", code)
			equal(t, "driver", version, want.driver)
			count, code := client.DeviceGetCount()
			must(t, "DeviceGetCount", code)
			equal(t, "GPUs", count, len(want.gpus))
			for i := range want.gpus {
				compareGPU(t, client, &want, i)
			}
		})
	}
}

func compareGPU(t *testing.T, client nvml.Interface, want *machine, i int) {
	t.Helper()
	device, code := client.DeviceGetHandleByIndex(i)
	if want.gpus[i].lost {
		equal(t, fmt.Sprintf("GPU %d", i), code, nvml.ERROR_GPU_IS_LOST)
		return
	}
	must(t, "DeviceGetHandleByIndex", code)
	compareIdentity(t, client, want, i, device)
	compareLinks(t, want, i, device)
	compareSlices(t, want, i, device)
	compareFabric(t, want, device)
	compareBoard(t, want, i, device)
	for peer := range want.gpus {
		if peer != i && !want.gpus[peer].lost {
			comparePair(t, client, want, i, peer, device)
		}
	}
}

func compareIdentity(t *testing.T, client nvml.Interface, want *machine, i int, device nvml.Device) {
	t.Helper()
	uuid, code := device.GetUUID()
	must(t, "GetUUID", code)
	equal(t, "uuid", uuid, fmt.Sprintf("GPU-%s-0000-4000-8000-0000000000%02x", want.uuid, i))
	again, code := client.DeviceGetHandleByUUID(uuid)
	must(t, "DeviceGetHandleByUUID", code)
	index, code := again.GetIndex()
	must(t, "GetIndex", code)
	equal(t, "index", index, i)
	name, code := device.GetName()
	must(t, "GetName", code)
	equal(t, "name", name, want.model)
	pci, code := device.GetPciInfo()
	must(t, "GetPciInfo", code)
	equal(t, "bus", cString(pci.BusId[:]), want.gpus[i].bus)
	memory, code := device.GetMemoryInfo()
	must(t, "GetMemoryInfo", code)
	equal(t, "memory", memory.Total>>20, want.memoryMiB)
	processes, code := device.GetComputeRunningProcesses()
	must(t, "GetComputeRunningProcesses", code)
	equal(t, "processes", len(processes), len(want.gpus[i].pids))
	for k, process := range processes {
		equal(t, "pid", process.Pid, want.gpus[i].pids[k])
	}
}

func compareLinks(t *testing.T, want *machine, i int, device nvml.Device) {
	t.Helper()
	links := want.gpus[i].links
	for at := range nvml.NVLINK_MAX_LINKS {
		state, code := device.GetNvLinkState(at)
		if at >= len(links) {
			equal(t, "link beyond the last", code, nvml.ERROR_NOT_SUPPORTED)
			continue
		}
		must(t, "GetNvLinkState", code)
		equal(t, fmt.Sprintf("link %d/%d up", i, at), state == nvml.FEATURE_ENABLED, links[at].up)
		if !links[at].up {
			continue
		}
		version, code := device.GetNvLinkVersion(at)
		must(t, "GetNvLinkVersion", code)
		equal(t, "link version", version, want.linkVersion)
		kind, code := device.GetNvLinkRemoteDeviceType(at)
		must(t, "GetNvLinkRemoteDeviceType", code)
		remote, code := device.GetNvLinkRemotePciInfo(at)
		must(t, "GetNvLinkRemotePciInfo", code)
		if links[at].peer < 0 {
			equal(t, "remote", kind, nvml.NVLINK_DEVICE_TYPE_SWITCH)
			continue
		}
		equal(t, "remote", kind, nvml.NVLINK_DEVICE_TYPE_GPU)
		equal(t, "remote bus", cString(remote.BusId[:]), want.gpus[links[at].peer].bus)
	}
}

func compareSlices(t *testing.T, want *machine, i int, device nvml.Device) {
	t.Helper()
	mode, _, code := device.GetMigMode()
	if !want.hasMIG {
		equal(t, "MIG mode", code, nvml.ERROR_NOT_SUPPORTED)
		return
	}
	must(t, "GetMigMode", code)
	equal(t, "MIG on", mode == nvml.DEVICE_MIG_ENABLE, want.gpus[i].mig)
	if !want.gpus[i].mig {
		return
	}
	places, code := device.GetMaxMigDeviceCount()
	must(t, "GetMaxMigDeviceCount", code)
	for at := range places {
		slice, code := device.GetMigDeviceHandleByIndex(at)
		if at >= len(want.gpus[i].slices) {
			equal(t, "empty place", code, nvml.ERROR_NOT_FOUND)
			continue
		}
		must(t, "GetMigDeviceHandleByIndex", code)
		is, code := slice.IsMigDeviceHandle()
		must(t, "IsMigDeviceHandle", code)
		equal(t, "is a slice", is, true)
		uuid, code := slice.GetUUID()
		must(t, "GetUUID of a slice", code)
		equal(t, "slice", uuid, fmt.Sprintf("MIG-%s-0000-5000-8000-00000000%02x%02x", want.uuid, i, at))
		name, code := slice.GetName()
		must(t, "GetName of a slice", code)
		equal(t, "slice name", name, want.model+" MIG "+want.gpus[i].slices[at])
		if _, code = slice.GetAttributes(); code != nvml.SUCCESS {
			t.Errorf("GetAttributes of a slice: code %d", code)
		}
	}
}

func compareFabric(t *testing.T, want *machine, device nvml.Device) {
	t.Helper()
	info, code := device.GetGpuFabricInfoV().V2()
	if want.cluster == "" {
		equal(t, "fabric", code, nvml.ERROR_NOT_SUPPORTED)
		return
	}
	must(t, "GetGpuFabricInfoV", code)
	equal(t, "cluster", hex.EncodeToString(info.ClusterUuid[:]), want.cluster)
	equal(t, "clique", info.CliqueId, want.clique)
}

// What monitors ask for: answers, or an honest "not supported"; never a function that is missing.
func compareBoard(t *testing.T, want *machine, i int, device nvml.Device) {
	t.Helper()
	cpus, code := device.GetCpuAffinity(64)
	must(t, "GetCpuAffinity", code)
	equal(t, "processors nearby", cpus[0], uint(1)<<want.gpus[i].numa)
	_, code = device.GetClockInfo(nvml.CLOCK_SM)
	must(t, "GetClockInfo", code)
	_, code = device.GetEnforcedPowerLimit()
	must(t, "GetEnforcedPowerLimit", code)
	_, code = device.GetTemperature(nvml.TEMPERATURE_GPU)
	must(t, "GetTemperature", code)
	_, code = device.GetPerformanceState()
	must(t, "GetPerformanceState", code)
	_, code = device.GetCurrPcieLinkWidth()
	must(t, "GetCurrPcieLinkWidth", code)
	_, code = device.GetVbiosVersion()
	must(t, "GetVbiosVersion", code)
	_, code = device.GetFanSpeed()
	equal(t, "fan", code, nvml.ERROR_NOT_SUPPORTED)
}

func comparePair(t *testing.T, client nvml.Interface, want *machine, a, b int, device nvml.Device) {
	t.Helper()
	other, code := client.DeviceGetHandleByIndex(b)
	must(t, "DeviceGetHandleByIndex", code)
	status, code := device.GetP2PStatus(other, nvml.P2P_CAPS_INDEX_NVLINK)
	must(t, "GetP2PStatus", code)
	equal(t, fmt.Sprintf("P2P over NVLink %d-%d", a, b), status == nvml.P2P_STATUS_OK, want.joined(a, b))
	level, code := device.GetTopologyCommonAncestor(other)
	must(t, "GetTopologyCommonAncestor", code)
	equal(t, fmt.Sprintf("level %d-%d", a, b), int(level), want.level(a, b))
}

// A client that runs sees the machine change.
func TestChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "machine")
	write := func(more string) {
		t.Helper()
		whole, err := filepath.Abs(filepath.Join(machines, "dgx-1v.machine"))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+".next", []byte("include "+whole+"\n"+more+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".next", path); err != nil {
			t.Fatal(err)
		}
	}
	write("")
	client := play(t, path)
	device, code := client.DeviceGetHandleByIndex(0)
	must(t, "DeviceGetHandleByIndex", code)
	for _, down := range []bool{false, true, false} {
		if down {
			write("down 0 2")
		} else {
			write("")
		}
		state, code := device.GetNvLinkState(2)
		must(t, "GetNvLinkState", code)
		equal(t, "link down", state == nvml.FEATURE_DISABLED, down)
	}
	write("lost 0")
	_, code = device.GetUUID()
	equal(t, "a lost GPU", code, nvml.ERROR_GPU_IS_LOST)
}

func cString(bytes []int8) string {
	text := make([]byte, 0, len(bytes))
	for _, b := range bytes {
		if b == 0 {
			break
		}
		text = append(text, byte(b))
	}
	return string(text)
}
