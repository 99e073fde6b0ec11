// SPDX-License-Identifier: Apache-2.0

package nodereport

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/frond-scheduler/frond/shim"
)

// ErrEmpty: the object is there and its agent has not written anything into it yet.
var ErrEmpty = errors.New("status: is missing, the agent has not written it yet")

// Limits of what a report may say; those of the CRD.
const (
	devicesMax   = shim.GPUsMax
	textMax      = 128 // bytes in an id or a model
	nameMax      = 253 // bytes in the name of a node
	slicesMax    = 16  // parts that one device is cut into
	usersMax     = 64  // pods that use one device
	userMax      = 317 // bytes in the name of one
	numaMax      = math.MaxUint8
	bandwidthMax = math.MaxUint16 // GB/s between two devices
)

// Read checks an object and turns it into a report. The error is one sentence: path, what was there, what is allowed.
func Read(object *unstructured.Unstructured) (*Report, error) {
	name := object.GetName()
	if name == "" || len(name) > nameMax {
		return nil, fmt.Errorf("metadata.name: must have 1 to %d bytes, got %s", nameMax, shown(name))
	}
	if spec, ok := object.Object["spec"].(map[string]any); ok {
		if node, there := spec["nodeName"]; there && node != name {
			return nil, fmt.Errorf("spec.nodeName: must be the name of the object, %q, got %s", name, shown(node))
		}
	}
	raw, there := object.Object["status"]
	if !there || raw == nil {
		return nil, ErrEmpty
	}
	status, ok := raw.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("status: must be an object, got %s", shown(raw))
	}
	if len(status) == 0 {
		return nil, ErrEmpty
	}
	report := &Report{Node: name, UID: object.GetUID()}
	var err error
	if report.Heartbeat, err = moment(status, "status.heartbeat", "heartbeat"); err != nil {
		return nil, err
	}
	list, err := items(status, "status.devices", "devices", devicesMax)
	if err != nil {
		return nil, err
	}
	if _, there := status["total"]; there {
		total, err := number(status, "status.total", "total", 0, devicesMax)
		if err != nil {
			return nil, err
		}
		if total != int64(len(list)) {
			return nil, fmt.Errorf("status.total: must be the number of devices, %d, got %d", len(list), total)
		}
	}
	if err := report.devices(list); err != nil {
		return nil, err
	}
	return report, nil
}

// devices reads the list in two rounds: who is there, then who is joined to whom.
func (r *Report) devices(list []any) error {
	r.Devices = make([]Device, len(list))
	r.Topology.GPUs = uint32(len(list))
	at := make([]int, len(list)) // position in the list, by index
	for i := range at {
		at[i] = -1
	}
	models := map[string]bool{}
	for i, raw := range list {
		path := fmt.Sprintf("status.devices[%d]", i)
		device, ok := raw.(map[string]any)
		if !ok {
			return fmt.Errorf("%s: must be an object, got %s", path, shown(raw))
		}
		index, err := number(device, path+".index", "index", 0, int64(len(list))-1)
		if err != nil {
			return err
		}
		if at[index] >= 0 {
			return fmt.Errorf("%s.index: must be 0 to %d, each once, got %d as in status.devices[%d]", path, len(list)-1, index, at[index])
		}
		at[index] = i
		model, err := r.device(device, path, uint32(index))
		if err != nil {
			return err
		}
		models[model] = true
		r.Model = model
	}
	if len(models) != 1 {
		r.Model = ""
	}
	linked := make([]uint32, len(list)) // bit j of i: device i says how it is joined to j
	for index, position := range at {
		links, err := r.links(list[position].(map[string]any), fmt.Sprintf("status.devices[%d]", position), index)
		if err != nil {
			return err
		}
		linked[index] = links
	}
	return r.symmetric(at, linked)
}

// device reads what one device says of itself, and returns its model.
func (r *Report) device(device map[string]any, path string, index uint32) (model string, err error) {
	id, err := text(device, path+".id", "id", textMax)
	if err != nil {
		return "", err
	}
	if !isID(id) {
		return "", fmt.Errorf("%s.id: must be letters, digits, '-', '.' and '_', with a letter or digit at both ends, got %s", path, shown(id))
	}
	if other, taken := r.Index(id); taken {
		return "", fmt.Errorf("%s.id: must be unique, got %s as device %d", path, shown(id), other)
	}
	if number, plain := strings.CutPrefix(id, r.Node+"-gpu-"); plain && number != fmt.Sprint(index) {
		return "", fmt.Errorf("%s.id: names like NODE-gpu-INDEX belong to the scheduler, so device %d may only have %q, got %s",
			path, index, fmt.Sprintf("%s-gpu-%d", r.Node, index), shown(id))
	}
	r.Devices[index].ID = id
	if _, there := device["model"]; there {
		if model, err = text(device, path+".model", "model", textMax); err != nil {
			return "", err
		}
	}
	switch health, err := text(device, path+".health", "health", textMax); {
	case err != nil:
		return "", err
	case health == "Unhealthy" || health == "Unknown":
		r.Unhealthy |= 1 << index
	case health != "Healthy":
		return "", fmt.Errorf("%s.health: must be Healthy, Unhealthy or Unknown, got %s", path, shown(health))
	}
	slices, err := items(device, path+".mig", "mig", slicesMax)
	if err != nil {
		return "", err
	}
	mig, err := boolean(device, path+".migMode", "migMode")
	if err != nil {
		return "", err
	}
	if mig || slices != nil {
		r.Unhealthy |= 1 << index // nobody can have all of it, even if no slice was made yet
	}
	if _, there := device["numaNode"]; there {
		numa, err := number(device, path+".numaNode", "numaNode", 0, numaMax)
		if err != nil {
			return "", err
		}
		r.Topology.NUMA[index] = uint8(numa)
	}
	users, err := items(device, path+".inUseBy", "inUseBy", usersMax)
	if err != nil {
		return "", err
	}
	for i, raw := range users {
		user, ok := raw.(string)
		if !ok || user == "" || len(user) > userMax {
			return "", fmt.Errorf("%s.inUseBy[%d]: must be a pod's UID or namespace/name of at most %d bytes, got %s", path, i, userMax, shown(raw))
		}
		r.Devices[index].InUseBy = append(r.Devices[index].InUseBy, user)
	}
	return model, nil
}

// links reads how a device is joined to others. PCIe is how any two are joined, so it counts as no link
// (reference 3.7).
func (r *Report) links(device map[string]any, path string, index int) (linked uint32, err error) {
	list, err := items(device, path+".links", "links", devicesMax-1)
	if err != nil {
		return 0, err
	}
	for i, raw := range list {
		path := fmt.Sprintf("%s.links[%d]", path, i)
		link, ok := raw.(map[string]any)
		if !ok {
			return 0, fmt.Errorf("%s: must be an object, got %s", path, shown(raw))
		}
		peer, err := number(link, path+".peer", "peer", 0, int64(len(r.Devices))-1)
		if err != nil {
			return 0, err
		}
		if int(peer) == index || linked>>peer&1 != 0 {
			return 0, fmt.Errorf("%s.peer: must be another device, each once, got %d for device %d", path, peer, index)
		}
		bandwidth, err := number(link, path+".bandwidthGBps", "bandwidthGBps", 0, bandwidthMax)
		if err != nil {
			return 0, err
		}
		kind := ""
		if _, there := link["kind"]; there {
			if kind, err = text(link, path+".kind", "kind", textMax); err != nil {
				return 0, err
			}
		}
		switch kind {
		case "", "NVLink", "NVSwitch", "XGMI":
			r.Topology.LinkGBps[index][peer] = uint16(bandwidth)
		case "PCIe":
		default:
			return 0, fmt.Errorf("%s.kind: must be NVLink, NVSwitch, XGMI or PCIe, got %s", path, shown(kind))
		}
		linked |= 1 << peer
	}
	return linked, nil
}

// symmetric refuses links of which the two ends say different things. A link of 0 is no link, told or not.
func (r *Report) symmetric(at []int, linked []uint32) error {
	for i := range r.Devices {
		for j := range i {
			here, there := r.Topology.LinkGBps[i][j], r.Topology.LinkGBps[j][i]
			if here == there {
				continue
			}
			said := "no link"
			if linked[j]>>i&1 != 0 {
				said = fmt.Sprintf("%d GB/s", there)
			}
			return fmt.Errorf("status.devices[%d].links: must say the same as the other end, got %d GB/s from device %d to %d and %s back", at[i], here, i, j, said)
		}
	}
	return nil
}

// ---- values -------------------------------------------------------------------------------------------------------

func items(object map[string]any, path, key string, most int) ([]any, error) {
	raw, there := object[key]
	if !there || raw == nil {
		return nil, nil
	}
	list, ok := raw.([]any)
	if !ok {
		return nil, fmt.Errorf("%s: must be a list, got %s", path, shown(raw))
	}
	if len(list) > most {
		return nil, fmt.Errorf("%s: must have at most %d entries, got %d", path, most, len(list))
	}
	return list, nil
}

func text(object map[string]any, path, key string, most int) (string, error) {
	raw := object[key]
	value, ok := raw.(string)
	if !ok || len(value) > most || (value == "" && key == "id") {
		return "", fmt.Errorf("%s: must be text of at most %d bytes, got %s", path, most, shown(raw))
	}
	for _, char := range value {
		if char < ' ' || char > '~' {
			return "", fmt.Errorf("%s: must be printable ASCII, got %s", path, shown(raw))
		}
	}
	return value, nil
}

func boolean(object map[string]any, path, key string) (bool, error) {
	raw, there := object[key]
	if !there || raw == nil {
		return false, nil
	}
	value, ok := raw.(bool)
	if !ok {
		return false, fmt.Errorf("%s: must be true or false, got %s", path, shown(raw))
	}
	return value, nil
}

// number takes integers in every form that decoders leave them in.
func number(object map[string]any, path, key string, least, most int64) (int64, error) {
	raw := object[key]
	value, ok := int64(0), false
	switch number := raw.(type) {
	case int64:
		value, ok = number, true
	case int:
		value, ok = int64(number), true
	case float64:
		if number == math.Trunc(number) && math.Abs(number) <= 1<<53 {
			value, ok = int64(number), true
		}
	}
	if !ok || value < least || value > most {
		return 0, fmt.Errorf("%s: must be a whole number from %d to %d, got %s", path, least, most, shown(raw))
	}
	return value, nil
}

func moment(object map[string]any, path, key string) (time.Time, error) {
	raw, there := object[key]
	if !there || raw == nil {
		return time.Time{}, nil
	}
	value, ok := raw.(string)
	if ok && len(value) <= textMax {
		if when, err := time.Parse(time.RFC3339, value); err == nil {
			return when, nil
		}
	}
	return time.Time{}, fmt.Errorf("%s: must be a time such as 2026-01-02T15:04:05Z, got %s", path, shown(raw))
}

// isID: what can stand in a list with commas, in JSON and in an environment variable.
func isID(id string) bool {
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case (c == '-' || c == '.' || c == '_') && i > 0 && i < len(id)-1:
		default:
			return false
		}
	}
	return id != ""
}

// shown is a value for a sentence, cut where it stops to help.
func shown(value any) string {
	const most = 40
	switch value := value.(type) {
	case nil:
		return "nothing"
	case string:
		if len(value) > most {
			return fmt.Sprintf("%q… (%d bytes)", value[:most], len(value))
		}
		return fmt.Sprintf("%q", value)
	case []any:
		return fmt.Sprintf("a list of %d", len(value))
	case map[string]any:
		return "an object"
	default:
		return fmt.Sprint(value)
	}
}
