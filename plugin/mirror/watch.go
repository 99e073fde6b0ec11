// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/frond-scheduler/frond/plugin/workload"
)

// Observer hears of pods before the engine gives back what they held, and of room afterwards.
type Observer interface {
	PodSeen(pod *v1.Pod)
	PodGone(pod *v1.Pod)
	// NodeChanged: a node has come, changed or gone; what was planned there may not hold any more.
	NodeChanged(name string)
	// Freed: there may be room that was not there before; gpus: GPUs among it, or a node.
	Freed(gpus bool)
	// ReportChanged: both of these for what an agent said, of which the scheduler's own queue hears nothing.
	ReportChanged(name string)
	// Problem is one sentence about an object that somebody should look at.
	Problem(object runtime.Object, reason, sentence string)
}

// Reasons of the events that the mirror causes.
const (
	ReasonFabricProblem = "FabricProblem"
	ReasonLeftOut       = "LeftOutOfFabric"
	ReasonReportRefused = "ReportRefused" // on a GpuNodeStatus
	ReasonStaleReport   = "StaleReport"   // on a GpuNodeStatus
	ReasonUnknownGPU    = "UnknownGPU"    // on a pod
	ReasonGPUConflict   = "GPUConflict"   // on a pod
	ReasonRewritten     = "GPUsRewritten" // on a pod
)

// Watch registers handlers; the returned function says whether both have seen everything that was there at the start.
func (m *Mirror) Watch(logger klog.Logger, nodes, pods cache.SharedInformer, observer Observer) (synced func() bool, err error) {
	w := &watcher{mirror: m, logger: logger, observer: observer}
	nodesSynced, err := nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { w.nodeSet(nil, object) },
		UpdateFunc: func(old, object any) { w.nodeSet(old, object) },
		DeleteFunc: w.nodeDeleted,
	})
	if err != nil {
		return nil, fmt.Errorf("watching nodes: %w", err)
	}
	podsSynced, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { w.podSet(nil, object) },
		UpdateFunc: func(old, object any) { w.podSet(old, object) },
		DeleteFunc: w.podDeleted,
	})
	if err != nil {
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	return func() bool { return nodesSynced.HasSynced() && podsSynced.HasSynced() }, nil
}

type watcher struct {
	mirror   *Mirror
	logger   klog.Logger
	observer Observer
}

func (w *watcher) nodeSet(old, object any) {
	node, ok := object.(*v1.Node)
	if !ok {
		return
	}
	changed, err := w.mirror.SetNode(node)
	if err != nil {
		w.logger.Error(err, "Node not mirrored", "node", klog.KObj(node))
		w.observer.Problem(node, ReasonLeftOut, err.Error())
	}
	w.mirror.Tell(w.observer)
	// Taints and allocatable CPU are upstream's, and may make room all the same.
	before, _ := old.(*v1.Node)
	if changed || before == nil || !sameForUpstream(before, node) {
		w.observer.NodeChanged(node.Name)
		w.observer.Freed(true)
	}
}

func sameForUpstream(a, b *v1.Node) bool {
	if len(a.Spec.Taints) != len(b.Spec.Taints) || len(a.Status.Allocatable) != len(b.Status.Allocatable) {
		return false
	}
	for i := range a.Spec.Taints {
		if !a.Spec.Taints[i].MatchTaint(&b.Spec.Taints[i]) || a.Spec.Taints[i].Value != b.Spec.Taints[i].Value {
			return false
		}
	}
	for name, quantity := range a.Status.Allocatable {
		if other, ok := b.Status.Allocatable[name]; !ok || !quantity.Equal(other) {
			return false
		}
	}
	return true
}

func (w *watcher) nodeDeleted(object any) {
	if node, ok := last[*v1.Node](object); ok {
		w.observer.NodeChanged(node.Name) // plans that count on it end before the engine forgets what was booked there
		w.mirror.DropNode(node.Name)
	}
}

func (w *watcher) podSet(old, object any) {
	pod, ok := object.(*v1.Pod)
	if !ok {
		return
	}
	if before, ok := old.(*v1.Pod); ok && before.UID != pod.UID {
		w.podDeleted(before) // its end was missed
	}
	if pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed {
		w.podDeleted(pod)
		return
	}
	w.observer.PodSeen(pod)
	if err := w.mirror.SetPod(pod); err != nil {
		w.logger.Error(err, "Pod not mirrored", "pod", klog.KObj(pod), "node", pod.Spec.NodeName)
		w.observer.Problem(pod, ReasonLeftOut, err.Error())
	}
	w.mirror.Tell(w.observer)
}

func (w *watcher) podDeleted(object any) {
	pod, ok := last[*v1.Pod](object)
	if !ok {
		return
	}
	w.observer.PodGone(pod)
	if freed := w.mirror.DropPod(pod.UID); freed || pod.Spec.NodeName != "" {
		w.observer.Freed(freed)
	}
}

// last is the last known state of an object that was deleted.
func last[T any](object any) (T, bool) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	typed, ok := object.(T)
	return typed, ok
}

const (
	problemsPause = time.Second // labels of a whole rack change one by one
	problemEvents = 8           // nodes that hear of one problem
)

// Run reports what is wrong with the fabric, each time that it changes, until the context ends.
func (m *Mirror) Run(ctx context.Context, logger klog.Logger, synced func() bool, nodes cache.Store, observer Observer) {
	var told []string
	for {
		select {
		case <-ctx.Done():
			return
		case <-m.dirty:
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(problemsPause):
		}
		if !synced() {
			m.touched() // half a cluster has problems that the whole one does not have
			continue
		}
		problems := m.engine.Problems()
		for _, sentence := range problems {
			if slices.Contains(told, sentence) {
				continue
			}
			logger.Info("Fabric problem", "problem", sentence)
			for _, name := range m.named(sentence) {
				if object, found, _ := nodes.GetByKey(name); found {
					observer.Problem(object.(*v1.Node), ReasonFabricProblem, sentence)
				}
			}
		}
		if len(told) > 0 && len(problems) == 0 {
			logger.Info("Fabric problems are gone")
		}
		told = problems
	}
}

// named are the nodes that a sentence speaks of: those it names, else those with most of the labels that it quotes.
func (m *Mirror) named(sentence string) []string {
	words := strings.FieldsFunc(sentence, func(r rune) bool {
		return r == ' ' || r == ',' || r == ';' || r == ':' || r == '"' || r == '\'' || r == '(' || r == ')'
	})
	m.mu.RLock()
	defer m.mu.RUnlock()
	var names []string
	for _, word := range words {
		if m.nodes[word] != nil && !slices.Contains(names, word) {
			names = append(names, word)
		}
	}
	if len(names) == 0 {
		most := 1
		for name, n := range m.nodes {
			quoted := 0
			for _, value := range n.labels {
				if value != "" && slices.Contains(words, value) {
					quoted++
				}
			}
			if quoted > most {
				most, names = quoted, nil
			}
			if quoted == most {
				names = append(names, name)
			}
		}
	}
	slices.SortFunc(names, workload.NaturalCompare)
	return names[:min(len(names), problemEvents)]
}
