// SPDX-License-Identifier: Apache-2.0

package topologygpu

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
)

// verdicts remember what upstream's filters have said of a node for pods that ask for the same. A gang that waits is planned
// again whenever room appears, and all but a few nodes are then as they were. A node's verdict holds for one generation of
// it, which upstream counts for all nodes together, so it never holds for another node.
type verdicts struct {
	mu   sync.Mutex
	now  uint64
	asks map[[sha256.Size]byte]*verdict
}

// asksMost is how many kinds of pods are remembered; the one that was not asked for longest goes first.
const asksMost = 32

type verdict struct {
	used   uint64
	bySlot []nodeVerdict // written by the survey, of which there is one at a time
}

type nodeVerdict struct {
	generation  int64
	today, ever uint16
}

// pure are the filters that look at nothing but the pod's spec and the node itself. Where any other has something to say
// about a pod, every node is asked afresh.
var pure = sets.New(names.NodeUnschedulable, names.NodeName, names.TaintToleration, names.NodeAffinity, names.NodeResourcesFit, Name)

// lookup is what is remembered for pods like t's; nil when nothing may be.
func (v *verdicts) lookup(t *template, filters []config.Plugin, slots uint32) *verdict {
	if t.strict || t.allowed != nil {
		return nil
	}
	skipped := t.state.GetSkipFilterPlugins()
	for _, filter := range filters {
		if !pure.Has(filter.Name) && !skipped.Has(filter.Name) {
			return nil
		}
	}
	key, ok := asks(t.pod)
	if !ok {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.asks == nil {
		v.asks = map[[sha256.Size]byte]*verdict{}
	}
	v.now++
	found := v.asks[key]
	if found == nil {
		if len(v.asks) >= asksMost {
			v.evict()
		}
		found = &verdict{bySlot: make([]nodeVerdict, slots)}
		v.asks[key] = found
	}
	found.used = v.now
	return found
}

func (v *verdicts) evict() {
	var oldest [sha256.Size]byte
	least := v.now
	for key, other := range v.asks {
		if other.used < least {
			oldest, least = key, other.used
		}
	}
	delete(v.asks, oldest)
}

// asks is all that the pure filters read of a pod.
func asks(pod *v1.Pod) (key [sha256.Size]byte, ok bool) {
	spec := &pod.Spec
	type resources struct {
		Container v1.ResourceRequirements
		Restarts  *v1.ContainerRestartPolicy
	}
	var containers, inits []resources
	for i := range spec.Containers {
		containers = append(containers, resources{Container: spec.Containers[i].Resources})
	}
	for i := range spec.InitContainers {
		inits = append(inits, resources{spec.InitContainers[i].Resources, spec.InitContainers[i].RestartPolicy})
	}
	var affinity *v1.NodeAffinity
	if spec.Affinity != nil {
		affinity = spec.Affinity.NodeAffinity
	}
	text, err := json.Marshal([]any{containers, inits, spec.Resources, spec.Overhead, spec.NodeSelector, affinity, spec.Tolerations, spec.NodeName, spec.OS, spec.HostNetwork, spec.HostUsers, spec.SecurityContext})
	if err != nil {
		return key, false
	}
	return sha256.Sum256(text), true
}

func (v *verdict) recall(slot uint32, node fwk.NodeInfo) (today, ever int64, known bool) {
	if v == nil {
		return 0, 0, false
	}
	said := &v.bySlot[slot]
	return int64(said.today), int64(said.ever), said.generation == node.GetGeneration() && said.generation != 0
}

func (v *verdict) keep(slot uint32, node fwk.NodeInfo, today, ever int64) {
	if v != nil {
		v.bySlot[slot] = nodeVerdict{generation: node.GetGeneration(), today: uint16(today), ever: uint16(ever)}
	}
}
